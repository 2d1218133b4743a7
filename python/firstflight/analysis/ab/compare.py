"""A statistic in two arms, with intervals: of the values' mean or a quantile, or of a ratio of sums."""

from __future__ import annotations

import polars as pl

from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import Make, of_sample
from firstflight.analysis.ab.design import Design
from firstflight.analysis.ab.quantile import Quantile
from firstflight.analysis.ab.sample import read
from firstflight.analysis.ab.statistic import Ratio, share_of


def compare(frame: pl.DataFrame | pl.LazyFrame, value: str, design: Design, *, statistic: str = "mean") -> Comparison:
    """The mean, the median or a percentile ("p99") of column `value` in both arms.

    A row whose value is NaN did not finish: beyond every number in a quantile, left out of a mean (with its partner if
    paired). ValueError for a request that makes no sense.
    """
    rows = read(frame, [value], design, unfinished_last=share_of(statistic) is not None)
    return of_sample(rows.sample(), maker(statistic), statistic, design)


def compare_rate(frame: pl.DataFrame | pl.LazyFrame, numerator: str, denominator: str, design: Design) -> Comparison:
    """Sum of `numerator` over sum of `denominator` (retransmitted segments, segments sent). The rest as `compare`."""
    rows = read(frame, [numerator, denominator], design, unfinished_last=False)
    return of_sample(rows.sample(), Ratio, "rate", design)


def maker(statistic: str) -> Make:
    """The statistic of an arm: `rate`, or an argument of `compare`."""
    p = None if statistic == "rate" else share_of(statistic)
    return Ratio if p is None else lambda rows, blocks, weight: Quantile(rows, blocks, weight, p)
