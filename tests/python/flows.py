"""The example files, and the paths that they were made on."""

from pathlib import Path

import polars as pl

from firstflight.scenario import Scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "flows"
USERS = 8
# The sixth user's path loses packets, so that a window-limited sender does not fill it.
LOSSY = 5
WITHIN = 0.1


def paths() -> pl.DataFrame:
    """The true paths, a row a user: `user` from 0, `rtt_s`, `down_bps`, `buffer_bytes` for full packets."""
    network = Scenario.load(EXAMPLES / "paths.toml").to_plan()["network"]
    hub = network["hub"]["forward"]
    rows = [
        {
            "user": user,
            "rtt_s": 2e-9 * (hub["delay_ns"] + spoke["forward"]["delay_ns"]),
            "down_bps": float(spoke["forward"]["rate_bps"]),
            "buffer_bytes": 1500 * spoke["forward"]["queue"]["limit_packets"],
        }
        for user, spoke in enumerate(network["spokes"])
    ]
    return pl.DataFrame(rows)


def nearest(users: pl.DataFrame) -> pl.DataFrame:
    """`users` beside the true path of each, `true_rtt_s` and `true_down_bps`: the one whose round trip is nearest; the
    20 ms of two users are told apart by their rates.
    """
    truth = paths()
    rows = []
    for row in users.iter_rows(named=True):
        near = truth.filter((pl.col("rtt_s") / row["rtt_s"] - 1).abs() < WITHIN)
        assert near.height, f"nobody has a round trip of {row['rtt_s'] * 1e3:.1f} ms"
        if near.height > 1 and row["down_bps"] is not None:
            near = near.sort((pl.col("down_bps") / row["down_bps"] - 1).abs())
        true = near.row(0, named=True)
        rows.append(row | {"user": true["user"], "true_rtt_s": true["rtt_s"], "true_down_bps": true["down_bps"]})
    return pl.DataFrame(rows, infer_schema_length=None)
