"""The number of units that an interval needs for its nominal coverage."""

from __future__ import annotations

import math

import numpy as np

from firstflight.analysis.ab.sample import Arm, Sample
from firstflight.analysis.ab.statistic import share_of

LEAST_BLOCKS = 50
"""Clusters to draw from."""
LEAST_REPLICATES = 5
"""Repetitions of a whole experiment, where the interval is Student's."""
REPLICATE = "replicate"
_OF_SUMS = 400
"""Units of a mean or a ratio of sums, whose skewness fades with their number."""
_IN_TAIL = 40
"""Units beyond a quantile, on its thinner side."""


def least_units(statistic: str) -> int:
    """Units in each arm (pairs, if paired) below which there is no interval. By calibration: docs/statistics.md."""
    p = None if statistic in ("rate", "jain") else share_of(statistic)
    return _OF_SUMS if p is None else max(100, math.ceil(round(_IN_TAIL / min(p, 1 - p), 6)))


def shortage(sample: Sample, statistic: str, least: int | None) -> str:
    """Why there is no interval, with how many units it takes; empty where there are enough."""
    if sample.block == REPLICATE:
        return _replicates(sample, statistic, LEAST_REPLICATES if least is None else least)
    wanted = least_units(statistic) if least is None else least
    for title, arm in zip(sample.arms, (sample.baseline, sample.treatment), strict=True):
        kind = "pairs" if sample.paired else f"{sample.unit}s of {title}"
        if arm.units == 0:
            return f"no {kind}: {statistic} needs {wanted:,}"
        found = effective(arm)
        if round(found) < wanted:
            counted = f"{arm.units:,} {kind}"
            if round(found) < arm.units:
                counted += f", worth {found:,.0f} by their weights,"
            return f"{counted} are too few: {statistic} needs {wanted:,}"
        if arm.blocks < min(LEAST_BLOCKS, arm.units):
            return f"{arm.blocks} {sample.block} of {title} are too few to be drawn from: it takes {LEAST_BLOCKS}"
        sizes = np.bincount(arm.stratum, minlength=len(sample.strata))
        for name, size in zip(sample.strata, sizes, strict=True):
            if size == 1:
                of = f"stratum {name} of " if name else ""
                return f"only one {sample.block} of {of}{title}: at least two are needed"
    return ""


def _replicates(sample: Sample, statistic: str, wanted: int) -> str:
    """The same where a replicate is drawn: each is a repetition of the experiment, a quantile is of their rows."""
    of_quantile = statistic not in ("rate", "jain") and share_of(statistic) is not None
    for title, arm in zip(sample.arms, (sample.baseline, sample.treatment), strict=True):
        if arm.blocks < wanted:
            return f"{arm.blocks} replicates of {title} are too few: it takes {wanted}"
        rows = len(arm.values)
        if of_quantile and rows < (needed := least_units(statistic)):
            enough = math.ceil(arm.blocks * needed / rows)
            return f"{rows:,} rows of {title} are too few: {statistic} needs {needed:,}, so some {enough:,} replicates"
    return ""


def effective(arm: Arm) -> float:
    """Number of units of equal weight with the same information as these (Kish: square of the sum of weights over the
    sum of squares).
    """
    weights = np.bincount(arm.block, arm.weight, arm.blocks) / np.maximum(
        np.bincount(arm.block, minlength=arm.blocks), 1
    )
    squares = float((weights**2).sum())
    return arm.units * float(weights.sum()) ** 2 / (squares * arm.blocks) if squares else 0.0
