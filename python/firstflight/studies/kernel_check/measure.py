"""What each engine measured under each condition, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from firstflight.studies.kernel_check.grid import EMULATE, SIMULATE, Point, captured

if TYPE_CHECKING:
    from firstflight.records import Run

KEYS = list(Point._fields)


@dataclass(frozen=True)
class Measured:
    """One engine under one condition: medians over its undisturbed, completed transfers.

    `time_s` is the completion time, `low_s` and `high_s` its quartiles; `count` transfers were begun, of which
    `disturbed` met a stall of the machine and `failed` did not end.
    """

    time_s: float
    low_s: float
    high_s: float
    first_flight: float
    first_flight_lost: float
    retransmissions: float
    timeouts: float
    count: int
    disturbed: int
    failed: int


@dataclass(frozen=True)
class Pair:
    """Both engines under one condition."""

    point: Point
    emulated: Measured
    simulated: Measured

    @property
    def difference_s(self) -> float:
        """Emulated minus simulated time."""
        return self.emulated.time_s - self.simulated.time_s

    @property
    def difference_percent(self) -> float:
        """The same in percent of the simulated time."""
        return 100 * self.difference_s / self.simulated.time_s

    @property
    def is_lossy(self) -> bool:
        """Whether either engine sent anything again."""
        return max(self.emulated.retransmissions, self.simulated.retransmissions) > 0


def measured(run: Run) -> dict[str, dict[Point, Measured]]:
    """By engine and condition; conditions without an undisturbed, completed transfer are left out."""
    kept = (pl.col("disturbed") == 0) & (pl.col("completed") == 1)
    time = pl.col("completion_time_s").filter(kept)
    frame = (
        run.transfers.group_by("engine", *KEYS, maintain_order=True)
        .agg(
            time.median().alias("time_s"),
            time.quantile(0.25, "linear").alias("low_s"),
            time.quantile(0.75, "linear").alias("high_s"),
            pl.col("first_flight_segments").filter(kept).median().alias("first_flight"),
            pl.col("first_flight_lost").filter(kept).median().alias("first_flight_lost"),
            pl.col("retransmissions").filter(kept).median().alias("retransmissions"),
            pl.col("timeouts").filter(kept).median().alias("timeouts"),
            pl.len().alias("count"),
            (pl.col("disturbed") == 1).sum().alias("disturbed"),
            (pl.col("completed") == 0).sum().alias("failed"),
        )
        .collect()
    )
    found: dict[str, dict[Point, Measured]] = {EMULATE: {}, SIMULATE: {}}
    for row in frame.iter_rows(named=True):
        point = Point(*(row.pop(key) for key in KEYS))
        engine = row.pop("engine")
        if row["time_s"] is not None:
            found[engine][point] = Measured(**row)
    return found


def pairs(run: Run) -> list[Pair]:
    """The conditions under which both engines measured, in the order of the grid."""
    found = measured(run)
    emulated, simulated = found[EMULATE], found[SIMULATE]
    return [Pair(point, emulated[point], simulated[point]) for point in simulated if point in emulated]


def unmeasured(run: Run) -> int:
    """Conditions under which every emulated transfer was disturbed or did not end."""
    finished = {tuple(cell[key] for key in KEYS) for cell in run.cells if cell["engine"] == EMULATE}
    return len(finished) - len(measured(run)[EMULATE])


def traces(run: Run) -> dict[str, dict[str, pl.DataFrame]]:
    """The captured connections by picture and engine, those of which the run has both: the records' `segments` of the
    first replicate, as seen at the server.
    """
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for name, point in captured().items():
        both = {}
        for engine in (EMULATE, SIMULATE):
            own = [pl.col(key) == value for key, value in point._asdict().items()]
            segments = run.segments.filter(pl.col("replicate") == 0, pl.col("engine") == engine, *own).collect()
            if not segments.is_empty():
                both[engine] = segments.drop("engine", *KEYS)
        if len(both) == 2:
            found[name] = both
    return found
