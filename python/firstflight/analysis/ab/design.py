"""How two arms are compared: the rows of each arm, the unit, and the resampling of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Design:
    """Rows whose column `arm` is `treatment`, against those where it is `baseline`.

    `unit`: the columns that name a unit, which may have several rows (objects of a user). `paired`: a unit of both arms
    is the same one, drawn together; otherwise units of the arms are drawn separately, with any names. `cluster`:
    columns by which units are drawn together (users of a subnet). `strata`: drawing keeps the number of blocks in each,
    and each counts by its share in both arms together, or by `shares` (name: share). `weight`: column with the survey
    weight of a row. `least`: fewer units than this get no interval; None: as many as the calibration found to be
    needed. `resamples` are drawn from `seed`; `confidence`: of the intervals.
    """

    arm: str
    baseline: object
    treatment: object
    unit: Sequence[str]
    weight: str | None = None
    strata: str | Sequence[str] | None = None
    cluster: str | Sequence[str] | None = None
    paired: bool = True
    shares: Mapping[str, float] | None = None
    least: int | None = None
    resamples: int = 2000
    seed: int = 1
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.unit:
            raise ValueError("unit: name at least one column, such as replicate and client")
        if self.baseline == self.treatment:
            raise ValueError(f"{self.arm}: both arms are {self.baseline!r}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence: {self.confidence} is not between 0 and 1")
        if self.resamples < 100:
            raise ValueError(f"resamples: {self.resamples} are too few for an interval, take at least 100")
