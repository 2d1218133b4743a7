"""Makes a table of flows to try `firstflight advise` on: UK homes of 2023 and a server 30 ms farther away.

    .venv/bin/python examples/flows/homes.py runs/homes.csv --flows 8000

They are simulated, so that the truth behind them is known: paths as Ofcom measured them (population "uk-2023", by
weight), buffers included, which the table does not tell, and an initial window of 10. Another --iw and --seed make the
other data set for `firstflight compare`.
"""

import argparse
from pathlib import Path

import polars as pl

import firstflight

SCENARIO = {
    "name": "homes",
    "duration": "300s",
    "tcp": {"profile": "linux", "initial_window": 10},
    "population": {"name": "uk-2023", "row_sampling": "weighted", "extra_rtt": "30ms"},
    "application": [
        {
            "kind": "file_transfer",
            "size": {"distribution": "lognormal", "median": "40kB", "sigma": 1.2, "minimum": "200B", "maximum": "5MB"},
            "count": 1,
        }
    ],
}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="the CSV file to write")
    parser.add_argument("--flows", type=int, default=8000)
    parser.add_argument("--iw", type=int, default=10, help="initial window, segments")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    population = {**SCENARIO["population"], "users": given.flows}  # type: ignore[dict-item]
    changed = {"population": population, "tcp": {"profile": "linux", "initial_window": given.iw}}
    run = firstflight.run(firstflight.Scenario.from_dict(SCENARIO | changed), replicates=1, seed=given.seed)
    joined = run.transfers.join(run.users, on=["replicate", "client"], suffix="_of_user", maintain_order="left")
    seen = joined.filter(pl.col("completed") == 1)
    table = seen.select(
        (1e3 * pl.col("rtt_s")).round(3).alias("rtt_ms"),
        (pl.col("down_bps") / 1e6).round(4).alias("down_mbps"),
        "bytes",
        (1e3 * pl.col("completion_time_s")).round(3).alias("completion_time_ms"),
        "segments_sent",
        "retransmissions",
        "first_flight_segments",
    )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    table.collect().write_csv(given.out)


if __name__ == "__main__":
    main()
