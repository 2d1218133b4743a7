"""The statistics of one arm as functions of weighted sums over its blocks: a mean, a ratio of sums, Jain's index."""

from __future__ import annotations

import math
import re
from typing import Protocol

import numpy as np
import numpy.typing as npt

from firstflight.analysis.ab.resampling import Blocks
from firstflight.analysis.ab.sample import Arm

Values = npt.NDArray[np.float64]


class Statistic(Protocol):
    """A statistic of an arm. `columns` (blocks, sums): the contribution of a block to each sum, its weight to the
    first.
    `bounds`: the least and the greatest that it can be.
    """

    columns: Values
    bounds: tuple[float, float]

    def of(self, sums: Values) -> Values:
        """Its value by the sums of each resample: (resamples, sums) to (resamples,)."""
        ...

    def line(self, sums: Values) -> tuple[Values, Values]:
        """To the first order: its value (resamples,), and its derivative with respect to each sum."""
        ...


class Ratio:
    """The ratio of two weighted sums: a mean where the second is the weight alone."""

    def __init__(self, arm: Arm, blocks: Blocks, weight: Values) -> None:
        """`arm.values` (rows, 1) or (rows, 2): numerator and, if it is no mean, denominator. `weight` (rows,)."""
        self.columns = blocks.sums(arm, weight, weight * arm.values[:, 0], *(weight * x for x in arm.values.T[1:]))
        self._below = self.columns.shape[1] - 1 if arm.values.shape[1] == 2 else 0
        above, below = arm.values[:, 0], arm.values[:, 1] if self._below else np.ones(len(arm.values))
        # Part of a whole in every row, or a flag.
        share = (above <= below).all() if self._below else np.isin(above, (0, 1)).all()
        self.bounds = (0.0 if min(above.min(), below.min()) >= 0 else -math.inf, 1.0 if share else math.inf)

    def of(self, sums: Values) -> Values:
        """See `Statistic`. NaN in a resample whose denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            below = np.where(sums[:, self._below] == 0, np.nan, sums[:, self._below])
            return np.asarray(sums[:, 1] / below, dtype=np.float64)

    def line(self, sums: Values) -> tuple[Values, Values]:
        """See `Statistic`."""
        value, slope = self.of(sums), np.zeros(sums.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope[:, 1] = 1 / sums[:, self._below]
            slope[:, self._below] = -value / sums[:, self._below]
        return value, slope


class Jain:
    """Jain's index (Σ w x)² / (Σ w · Σ w x²)."""

    bounds = (0.0, 1.0)

    def __init__(self, arm: Arm, blocks: Blocks, weight: Values) -> None:
        """`arm.values` (rows, 1), `weight` (rows,)."""
        self.columns = blocks.sums(arm, *(weight * arm.values[:, 0] ** power for power in (0, 1, 2)))

    def of(self, sums: Values) -> Values:
        """See `Statistic`. NaN where all get nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums[:, 1] ** 2 / (sums[:, 0] * sums[:, 2]), dtype=np.float64)

    def line(self, sums: Values) -> tuple[Values, Values]:
        """See `Statistic`."""
        value = self.of(sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            return value, value[:, None] * np.array([-1.0, 2.0, -1.0]) / sums


def share_of(statistic: str) -> float | None:
    """0.99 of `p99`, 0.999 of `p99.9`, 0.5 of `median`; None of `mean`. ValueError for anything else."""
    if statistic == "mean":
        return None
    if statistic == "median":
        return 0.5
    match = re.fullmatch(r"p(\d+(?:\.\d+)?)", statistic)
    if match is None or not 0 < float(match[1]) < 100:
        raise ValueError(f"statistic: {statistic!r} is not mean, median or p with a percentage between 0 and 100")
    return float(match[1]) / 100
