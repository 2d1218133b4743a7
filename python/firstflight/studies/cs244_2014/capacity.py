"""How many users this machine carries at once without the machine showing in what is measured.

    python -m firstflight.studies.cs244_2014.capacity 12 24 48 96

emulates so many users, one replicate with an initial window of 10, and prints a line for each number: responses a
second while all users ask, share of responses disturbed by a stall of the machine, how late the link box was, and how
far the times are from the simulator's for the very same requests.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
import polars as pl

from firstflight.engines import find
from firstflight.scenario import Cell
from firstflight.studies.cs244_2014.grid import LINE, scenario
from firstflight.studies.cs244_2014.measure import MANY, of_cells, responses
from firstflight.studies.cs244_2014.tables import close_percent, side_by_side

_SEED = 1


class Load(NamedTuple):
    """What one number of users came to."""

    users: int
    wall_s: float
    responses: int
    missing: int
    per_second: float
    disturbed_percent: float
    stall_median_ms: float
    stall_p99_ms: float
    difference_median_percent: float
    close_percent: float

    def line(self) -> str:
        """The figures as a row of the table that `main` prints."""
        return (
            f"{self.users:5d} {self.wall_s:6.1f} {self.responses:9d} {self.missing:7d} {self.per_second:10.1f} "
            f"{self.disturbed_percent:11.1f} {self.stall_median_ms:9.3f} {self.stall_p99_ms:7.2f} "
            f"{self.difference_median_percent:+11.2f} {self.close_percent:8.1f}"
        )


HEADING = (
    "users wall_s responses missing responses/s disturbed_% stall50_ms stall99_ms difference_% close_%\n"
    "(difference: median of emulated minus simulated; close: within 1 % or 1 ms; both over undisturbed responses)"
)


def load(users: int, engine: str = "emulate") -> Load:
    """So many users at once with `engine`, beside the simulator."""
    cell = Cell({"path": LINE, "iw": MANY}, scenario(users, MANY), replicates=1, capture=True)
    began = time.monotonic()
    measured = of_cells([(cell, find(engine).run_cell(cell, _SEED, 1))])
    wall_s = time.monotonic() - began
    computed = responses(of_cells([(cell, find("simulate").run_cell(cell, _SEED, 1))]), users)
    rows = responses(measured, users)
    beside = side_by_side(rows, computed)
    above = (100 * (beside["time_ms"] / beside["simulated_ms"] - 1)).to_numpy()
    starts, stalls = measured.transfers["start_s"].to_list(), measured.transfers["stall_s"].to_numpy()
    # While every user still asks: until the first has begun her last request.
    last = measured.transfers.group_by("client").agg(pl.col("start_s").max())["start_s"].to_list()
    busy_s = min(last) - min(starts)
    return Load(
        users=users,
        wall_s=wall_s,
        responses=rows.height,
        missing=computed.height - rows.height,
        per_second=sum(start <= min(last) for start in starts) / busy_s,
        disturbed_percent=100 * rows.filter("disturbed").height / max(1, rows.height),
        stall_median_ms=1000 * float(np.median(stalls)),
        stall_p99_ms=1000 * float(np.quantile(stalls, 0.99)),
        difference_median_percent=float(np.median(above)),
        close_percent=close_percent(beside),
    )


def main(arguments: list[str]) -> None:
    """Print a line for each number of users."""
    print(HEADING)
    for users in arguments:
        print(load(int(users)).line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
