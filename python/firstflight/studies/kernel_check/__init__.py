"""The simulator against the kernel that runs here: one transfer, many conditions, both engines side by side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.engines.emulate.kernel import tick_ns
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.kernel_check import report
from firstflight.studies.kernel_check.claims import claims

CALM = (pl.col("disturbed") == 0) & (pl.col("completed") == 1)


# Of the transfers of either engine; a slice of the grid is compared as the whole is.
QUANTITIES = tuple(
    Quantity(f"{grid}_{name}", title, unit, value.max(), where, grid=grid, over="each", partial=True)
    for name, title, unit, value, where in (
        ("time", "Time", "ms", 1e3 * pl.col("completion_time_s"), CALM),
        ("lost", "First flight lost", "segments", pl.col("first_flight_lost_segments"), CALM),
        ("retransmissions", "Retransmitted", "segments", pl.col("retransmissions"), CALM),
        ("disturbed", "Disturbed", "count", pl.col("disturbed"), None),
    )
    for grid in ("emulated", "simulated")
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The kernel that runs here, so that simulated timers wait for its ticks, too."""
    return scenario.replace("tcp.timer_tick", {"period": f"{tick_ns()}ns", "wheel": True})


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
