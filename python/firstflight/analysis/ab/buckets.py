"""A comparison bucket by bucket, with a correction for looking at many.

Intervals hold simultaneously by Bonferroni: each has the confidence 1 - (1 - confidence)/m, m the buckets that have an
interval. A verdict is read off the interval next to it: among buckets without a difference the chance that any is
called better or worse is at most 1 - confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import polars as pl

from firstflight.analysis.ab.compare import Pair, compared
from firstflight.analysis.ab.comparison import Comparison, Verdict
from firstflight.analysis.ab.sample import ComparedRows, Design
from firstflight.analysis.intervals import Estimate

Correction = Literal["bonferroni", "none"]
_BEYOND_EACH_END = 10
"""Resamples that must lie beyond each end of a simultaneous interval."""


@dataclass(frozen=True)
class Bucket:
    """One bucket. `share_percent`: of the baseline's weight; `units` as in `Comparison`. `low` and `high` bound the
    difference, `percent_low` and `percent_high` the gain in percent, in all buckets simultaneously; NaN without an
    interval. `reason`: why there is no verdict, with the number of flows needed, or a note.
    """

    bucket: object
    share_percent: float
    units: int
    comparison: Comparison | None
    low: float
    high: float
    percent_low: float
    percent_high: float
    p_adjusted: float
    verdict: Verdict
    reason: str

    @property
    def percent(self) -> Estimate:
        """The gain with that interval; NaN without flows."""
        value = math.nan if self.comparison is None else self.comparison.percent.value
        return Estimate(value, self.percent_low, self.percent_high, self.units)


def bucketed(frame: pl.DataFrame, column: str, edges: Sequence[float], into: str) -> pl.DataFrame:
    """`frame` with a column `into`: the index of the first of `edges` that `column` does not exceed, or their number.

    Null and NaN become null. ValueError unless the edges rise.
    """
    if list(edges) != sorted(set(edges)):
        raise ValueError(f"{column}: the edges {list(edges)} do not rise")
    place = sum((pl.col(column) > edge).cast(pl.Int32) for edge in edges)
    known = pl.col(column).cast(pl.Float64).is_not_nan()
    return frame.with_columns(pl.when(known).then(place).alias(into))


def by_bucket(
    frame: pl.DataFrame | pl.LazyFrame,
    value: str,
    bucket: str,
    design: Design,
    *,
    buckets: Sequence[object],
    denominator: str | None = None,
    statistic: str = "mean",
    correction: Correction = "bonferroni",
    lower_is_better: bool = True,
) -> list[Bucket]:
    """`compare` of `value`, or `compare_rate` of `value` over `denominator`, in each of `buckets` of column `bucket`.

    Buckets keep their order; those without flows are included. More resamples than the design's are drawn if the
    intervals of this number of buckets need them.
    """
    names = [value] if denominator is None else [value, denominator]
    rows = ComparedRows(frame, [*names, bucket], design)
    found = of_buckets([Pair(rows, design)], names, bucket, buckets, "rate" if denominator else statistic)[0]
    comparisons = [(name, *bucket_found) for name, bucket_found in zip(buckets, found, strict=True)]
    return judged(comparisons, correction, design.confidence, lower_is_better)


def of_buckets(
    pairs: Sequence[Pair], names: Sequence[str], bucket: str, buckets: Sequence[object], statistic: str = "mean"
) -> list[list[tuple[float, Comparison]]]:
    """Of each pair of arms and each of its buckets the percentage of the baseline's weight, and the comparison of
    columns `names`. The designs differ in nothing but their arms.
    """
    found: list[list[tuple[float, Comparison]]] = [[] for _ in pairs]
    wholes = [pair.weight for pair in pairs]
    for name in buckets:
        parts = [_part(pair, bucket, name, len(buckets)) for pair in pairs]
        made = compared(parts, names, statistic)
        for of_pair, part, whole, comparison in zip(found, parts, wholes, made, strict=True):
            of_pair.append((100 * part.weight / whole if whole else math.nan, comparison))
    return found


def _part(pair: Pair, bucket: str, name: object, buckets: int) -> Pair:
    inside, tail = pair.rows.inside(bucket, name), (1 - pair.design.confidence) / buckets / 2
    enough = replace(pair.design, resamples=max(pair.design.resamples, math.ceil(_BEYOND_EACH_END / tail)))
    return Pair(pair.rows, enough, inside if pair.among is None else inside & pair.among)


def judged(
    comparisons: Sequence[tuple[object, float, Comparison]],
    correction: Correction,
    confidence: float,
    lower_is_better: bool = True,
) -> list[Bucket]:
    """Verdicts over comparisons that are looked at together: (name, share in percent, comparison) of each."""
    if correction not in get_args(Correction):
        raise ValueError(f"correction: {correction!r} is not bonferroni or none")
    looks = (
        1
        if correction == "none"
        else max(1, sum(not math.isnan(comparison.p_value) for _, _, comparison in comparisons))
    )
    return [
        _bucket(name, share, comparison, looks, confidence, lower_is_better) for name, share, comparison in comparisons
    ]


def _bucket(
    name: object, share: float, comparison: Comparison, looks: int, confidence: float, lower_is_better: bool
) -> Bucket:
    tested = not math.isnan(comparison.p_value)
    wide = comparison.at(1 - (1 - confidence) / looks) if tested else comparison
    difference, percent = (wide.difference, wide.percent) if tested else (Estimate(math.nan),) * 2
    return Bucket(
        name,
        share,
        comparison.units,
        comparison if comparison.units else None,
        difference.low,
        difference.high,
        percent.low,
        percent.high,
        float(np.minimum(1.0, looks * comparison.p_value)),
        wide.verdict(lower_is_better),
        "" if tested else comparison.reason,
    )
