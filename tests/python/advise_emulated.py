"""Whether an advice's gains are those of real connections: the first users of a population as a star, by nginx and curl
over the kernel that runs here, with each initial window in turn, beside the same users in the simulator.

    .venv/bin/python tests/python/advise_emulated.py [FLOWS] [USERS] [REPEATS]
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import advise_flows
from firstflight import observe
from firstflight.advise.brackets import settings
from firstflight.advise.experiment import RESPONSE, Experiment
from firstflight.advise.fit import fit
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign
from firstflight.scenario import Cell, Scenario

SETTING = "no loss of its own"
"""Without random losses, of which the two engines draw others; overflow is there in both."""
HEADER = "300B"
"""Of a response: nginx sends one, and so must the simulated server."""
APART_MS = 150
"""Between the starts of two users: programs that all start at once would meet a busy processor."""


@dataclass(frozen=True)
class Agreement:
    """Gains of one window over the one in use, in percent of the mean time, and how far single users are apart."""

    initial_window: int
    simulated_percent: float
    emulated_percent: float
    median_gap_ms: float
    disturbed: int


def agreement(flows: Path, windows: list[int], users: int, repeats: int, seed: int = 1) -> list[Agreement]:
    """Both engines' gains over the first of `windows`, on the first `users` of the flows.

    Of a user's repeats the quickest counts: what a busy machine adds it never takes away.
    """
    population = fit(observe.read(flows), users, seed)
    experiment = Experiment(population, [s for s in settings(population) if s.name == SETTING], windows, seed)
    cells = [
        Cell({"iw": cell.key["iw"]}, cell.scenario.replace(f"application.{RESPONSE}.response_header", HEADER))
        for cell in experiment.cells("simulate")
    ]
    virtual = pl.concat(
        simulate.run_cell(cell, seed, 1)["transfers"].select(
            pl.lit(cell.key["iw"]).alias("iw"), pl.col("client").cast(pl.Int64), time_s="completion_time_s"
        )
        for cell in cells
    )
    stars = [Cell(cell.key, _star(cell.scenario, seed, users)) for cell in cells]
    tables = campaign.run_together(stars, seed, [repeats] * len(stars), lambda cell, replicates: None)
    real = pl.concat(
        table["transfers"].select(
            pl.lit(cell.key["iw"]).alias("iw"),
            pl.col("application").cast(pl.String).str.split(".").list.last().cast(pl.Int64).alias("client"),
            "disturbed",
            time_s="completion_time_s",
        )
        for cell, table in zip(stars, tables, strict=True)
    )
    disturbed = int(real["disturbed"].sum())
    real = real.filter(pl.col("disturbed") == 0).group_by("iw", "client").agg(pl.col("time_s").min())
    both = virtual.join(real, on=["iw", "client"], suffix="_emulated")
    gap = float((1e3 * (both["time_s_emulated"] - both["time_s"])).abs().median() or 0.0)
    found = []
    for window in windows[1:]:
        pairs = both.filter(pl.col("iw") == windows[0]).join(
            both.filter(pl.col("iw") == window), on="client", suffix="_b"
        )
        gains = [
            100 * (1 - float(pairs[f"{column}_b"].sum() / pairs[column].sum()))
            for column in ("time_s", "time_s_emulated")
        ]
        found.append(Agreement(window, *gains, gap, disturbed))
    return found


def _star(scenario: Scenario, seed: int, users: int) -> Scenario:
    star = scenario.star_of_users(seed, users=users).to_dict()
    for place, application in enumerate(star["application"]):
        application["start"] = f"{place * APART_MS}ms"
    star["duration"] = f"{users * APART_MS / 1e3 + 20:g}s"
    return Scenario.from_dict(star)


def main() -> None:
    """Print the agreement of each window."""
    users, repeats = (int(word) for word in (*sys.argv[2:4], "24", "5")[:2])
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory) / "flows.csv"
        flows = Path(sys.argv[1]) if len(sys.argv) > 1 else advise_flows.write(made, users)
        for one in agreement(flows, [10, 16, 20, 32], users, repeats):
            print(one)


if __name__ == "__main__":
    main()
