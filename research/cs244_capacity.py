"""How many users of cs244-2014 this machine carries at once without the machine showing in what is measured.

    python research/cs244_capacity.py 12 24 48 96

emulates so many users, one replicate with an initial window of 10, and prints a line for each number: responses a
second while all users ask, share of responses disturbed by a stall of the machine, how late the link box was, and how
far the times are from the simulator's for the very same requests.
"""

from __future__ import annotations

import sys
import time

import polars as pl

from firstflight.engines import find
from firstflight.scenario import Cell
from firstflight.studies import cs244_2014
from firstflight.studies.cs244_2014.responses import MANY, rates_kbps

_SEED = 1
HEADING = (
    "users wall_s responses missing responses/s disturbed_% stall50_ms stall99_ms difference_% close_%\n"
    "(difference: median of emulated minus simulated; close: within 1 % or 1 ms; both over undisturbed responses)"
)


def line(users: int, engine: str) -> str:
    """So many users at once with `engine`, beside the simulator."""
    grid = cs244_2014.STUDY.grids["line"]
    base = next(cell.scenario for cell in grid.cells("emulate", ["iw"]) if cell.key["iw"] == MANY)
    spoke = base.to_dict()["network"]["spokes"][0]
    spokes = [spoke | {"rate": f"{round(1000 * rate)}bit"} for rate in rates_kbps(users)]
    cell = Cell({}, base.replace("network.spokes", spokes).replace("application.response.clients", users), replicates=1)
    began = time.monotonic()
    measured = _responses(find(engine).run_cell(cell, _SEED, 1)["transfers"])
    wall_s = time.monotonic() - began
    computed = _responses(find("simulate").run_cell(cell, _SEED, 1)["transfers"])
    beside = measured.filter(pl.col("disturbed") == 0).join(computed, on=["client", "request"], suffix="_simulated")
    above_s = beside["completion_time_s"] - beside["completion_time_s_simulated"]
    percent = 100 * above_s / beside["completion_time_s_simulated"]
    close = (above_s.abs() <= 0.001) | (percent.abs() <= 1)
    # While every user still asks: until the first has begun her last request.
    last_s = measured.group_by("client").agg(pl.col("start_s").max())["start_s"].to_list()
    starts_s, stalls_ms = measured["start_s"].to_list(), 1000 * measured["stall_s"]
    per_second = sum(start <= min(last_s) for start in starts_s) / (min(last_s) - min(starts_s))
    return (
        f"{users:5d} {wall_s:6.1f} {measured.height:9d} {computed.height - measured.height:7d} {per_second:10.1f} "
        f"{100 * measured['disturbed'].mean():11.1f} {stalls_ms.median():9.3f} {stalls_ms.quantile(0.99):7.2f} "
        f"{percent.median():+11.2f} {100 * close.mean():8.1f}"
    )


def _responses(transfers: pl.DataFrame) -> pl.DataFrame:
    return (
        transfers.sort("client", "start_s")
        .with_columns(pl.int_range(pl.len()).over("client").alias("request"))
        .filter(pl.col("completed") == 1)
    )


if __name__ == "__main__":
    print(HEADING)
    for users in sys.argv[1:]:
        print(line(int(users), "emulate"), flush=True)
