"""The same comparison from counts, sums and histograms: of populations too large to keep one row per connection.

The replicate is the unit: the contents of each are merged, exactly and in any order, and a value is taken from all
replicates merged. Its interval rests on the delete-one jackknife over replicates with Student's t, which a few
replicates suffice for, since each holds many connections.

A quantile is read from log bins, geometrically between a bin's ends. It may be off by as much as the bin is wide; how
far its bin's farther end lies is added to its interval, of a difference that of both arms, unless `add_bins` is False.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.analysis.ab.buckets import Bucket, Correction, judged
from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import LEAST_REPLICATES
from firstflight.analysis.ab.statistic import share_of
from firstflight.analysis.intervals import COMPARED, Bounds, Estimate, Evidence, jackknifed, possible
from firstflight.records.schema import GAMMA

Values = npt.NDArray[np.float64]

_NS = 1e-9
_RATES = {
    "retransmission rate": ("retransmissions", "segments_sent"),
    "with retransmission": ("with_retransmission", "count"),
    "timeouts": ("timeouts", "count"),
    "first-flight loss": ("first_flight_lost_segments", "first_flight_segments"),
    "with first-flight loss": ("with_first_flight_loss", "count"),
    "completed": ("completed", "count"),
}
"""Statistics that are ratios of two sums of the records' `aggregates`."""


def of_aggregates(
    aggregates: pl.DataFrame | pl.LazyFrame,
    histograms: pl.DataFrame | pl.LazyFrame,
    *,
    arm: str,
    baseline: object,
    treatment: object,
    statistic: str = "mean",
    application: str | None = None,
    unit: str = "transfer",
    dimension: str = "all",
    bucket: int = 0,
    paired: bool = True,
    confidence: float = 0.95,
    add_bins: bool = True,
) -> Comparison:
    """Compare completion times (`mean`, `p50`, ..., in seconds) or a rate of both arms.

    Rates: `retransmission rate`, `with retransmission`, `timeouts`, `first-flight loss`, `with first-flight loss`,
    `completed`; of the `unit` (transfer or page) in one bucket of a dimension, of one application or of all. `paired`:
    replicates of the same number share their random numbers. Unfinished connections are excluded from a mean, and
    beyond every bin in a quantile. ValueError for an unknown statistic.
    """
    if statistic not in _RATES:
        share_of(statistic)
    sums = _here(aggregates, arm, application, unit, dimension, bucket)
    bins = _here(histograms, arm, application, unit, dimension, bucket)
    sides = [_side(sums, bins, side, statistic) for side in (baseline, treatment)]
    unmatched = (0, 0)
    if paired:
        both = sorted(set(sides[0].replicates) & set(sides[1].replicates))
        unmatched = (len(sides[0].replicates) - len(both), len(sides[1].replicates) - len(both))
        sides = [side.only(both) for side in sides]
    method = f"delete-one jackknife over {'pairs of ' if paired else ''}replicates, Student's t"
    if add_bins and _share(statistic) is not None:
        method += "; the width of the bins is added"
    evidence: Evidence | None = None
    estimates = dict.fromkeys(COMPARED, Estimate(math.nan))
    sizes = [len(side.replicates) for side in sides]
    reason = "" if all(side.connections for side in sides) else "no connections"
    units = 0 if reason else sizes[0] if paired else sum(sizes)
    if not reason:
        evidence = _jackknife(sides[0], sides[1], paired, add_bins)
        estimates = evidence.estimates(confidence)
        if min(sizes) < LEAST_REPLICATES:
            reason = f"{min(sizes)} replicates are too few for an interval: it takes {LEAST_REPLICATES}"
            evidence = None
            estimates = {name: Estimate(of.value, replicates=of.replicates) for name, of in estimates.items()}
        elif not math.isfinite(estimates["difference"].low):
            reason = "too many did not finish: the statistic is beyond every finished one"
    return Comparison(
        statistic,
        **estimates,
        units=units,
        unmatched=unmatched,
        unfinished=(sides[0].unfinished, sides[1].unfinished),
        unknown=(0, 0),
        method="none" if evidence is None else method,
        confidence=confidence,
        reason=reason,
        evidence=evidence,
    )


def by_bucket_of_aggregates(
    aggregates: pl.DataFrame | pl.LazyFrame,
    histograms: pl.DataFrame | pl.LazyFrame,
    *,
    dimension: str,
    buckets: Sequence[object],
    arm: str,
    baseline: object,
    treatment: object,
    statistic: str = "mean",
    application: str | None = None,
    unit: str = "transfer",
    paired: bool = True,
    confidence: float = 0.95,
    correction: Correction = "bonferroni",
    add_bins: bool = True,
) -> list[Bucket]:
    """`of_aggregates` in every bucket of a dimension: `buckets` are their names, in the order of their numbers."""
    sums = aggregates.lazy().filter(pl.col(arm).cast(pl.String) == str(baseline))
    counts = _grouped(sums, ["bucket"], application, unit, dimension).agg(pl.col("count").sum()).collect()
    by_number = dict(counts.iter_rows())
    total = sum(by_number.values())
    comparisons = []
    for number, name in enumerate(buckets):
        comparison = of_aggregates(
            aggregates,
            histograms,
            arm=arm,
            baseline=baseline,
            treatment=treatment,
            statistic=statistic,
            application=application,
            unit=unit,
            dimension=dimension,
            bucket=number,
            paired=paired,
            confidence=confidence,
            add_bins=add_bins,
        )
        comparisons.append((name, 100 * by_number.get(number, 0) / total if total else math.nan, comparison))
    return judged(comparisons, correction, confidence)


@dataclass(frozen=True)
class _Side:
    """One arm. `value` takes how often each replicate counts, shape (replicates,), and gives value and bin error."""

    replicates: tuple[int, ...]
    sums: Values
    bins: Values
    edges: Values
    statistic: str
    unfinished: int

    def only(self, replicates: Sequence[int]) -> _Side:
        places = [self.replicates.index(number) for number in replicates]
        return _Side(
            tuple(replicates), self.sums[places], self.bins[places], self.edges, self.statistic, self.unfinished
        )

    @property
    def connections(self) -> int:
        return int(self.sums[:, 2].sum())

    @property
    def bounds(self) -> Bounds:
        """The range of the statistic: a time or a share."""
        return (0.0, 1.0 if self.statistic in _RATES else math.inf)

    def value(self, counted: Values) -> tuple[float, float]:
        above, below, count = (float(total) for total in counted @ self.sums)
        p = _share(self.statistic)
        if p is None:
            return (above / below if below else math.nan), 0.0
        return _quantile(counted @ self.bins, self.edges, count, p)


def _share(statistic: str) -> float | None:
    """The share of a quantile; None for a mean and a rate."""
    return None if statistic in _RATES else share_of(statistic)


def _jackknife(baseline: _Side, other: _Side, paired: bool, add_bins: bool) -> Evidence:
    whole, off = zip(*(side.value(np.ones(len(side.replicates))) for side in (baseline, other)), strict=True)
    without = [
        np.array([side.value(counted)[0] for counted in 1 - np.eye(len(side.replicates))]) for side in (baseline, other)
    ]
    relative = 100 * whole[1] / whole[0] * (off[0] / whole[0] + off[1] / whole[1]) if all(whole) else 0.0
    widened = dict(zip(COMPARED, (*off, sum(off), relative), strict=True)) if add_bins else None
    return jackknifed(whole, without, paired, possible(baseline.bounds, other.bounds), widened)


def _quantile(counts: Values, edges: Values, count: float, p: float) -> tuple[float, float]:
    """Quantile in seconds and the distance to its bin's farther end; `edges` are the bins' numbers, rising."""
    cumulated = np.cumsum(counts)
    target = p * count
    if count == 0:
        return math.nan, 0.0
    if len(cumulated) == 0 or cumulated[-1] < target * (1 - 1e-12):
        return math.inf, 0.0
    place = int(np.searchsorted(cumulated, target * (1 - 1e-12)))
    share = (target - (cumulated[place] - counts[place])) / counts[place]
    value = _NS * GAMMA ** (edges[place] - 1 + share)
    return float(value), float(max(_NS * GAMMA ** edges[place] - value, value - _NS * GAMMA ** (edges[place] - 1)))


def _grouped(
    rows: pl.LazyFrame, keys: Sequence[str], application: str | None, unit: str, dimension: str
) -> pl.lazyframe.group_by.LazyGroupBy:
    kept = (pl.col("unit").cast(pl.String) == unit) & (pl.col("dimension").cast(pl.String) == dimension)
    if application is not None:
        kept &= pl.col("application").cast(pl.String) == application
    return rows.filter(kept).group_by(keys)


def _here(
    rows: pl.DataFrame | pl.LazyFrame, arm: str, application: str | None, unit: str, dimension: str, bucket: int
) -> pl.DataFrame:
    lazy = rows.lazy().filter(pl.col("bucket") == bucket).with_columns(pl.col(arm).cast(pl.String).alias("__arm"))
    names = lazy.collect_schema().names()
    keys = ["__arm", "replicate", *(["bin"] if "bin" in names else [])]
    summed = [name for name in names if name in _SUMMED]
    return _grouped(lazy, keys, application, unit, dimension).agg(pl.col(summed).cast(pl.Int64).sum()).collect()


_SUMMED = frozenset({"completion_ns_sum", "count", *(name for pair in _RATES.values() for name in pair)})


def _side(sums: pl.DataFrame, bins: pl.DataFrame, side: object, statistic: str) -> _Side:
    mine = sums.filter(pl.col("__arm") == str(side)).sort("replicate")
    above, below = _RATES.get(statistic, ("completion_ns_sum", "completed"))
    scale = 1.0 if statistic in _RATES else _NS
    columns = [scale * mine[above].to_numpy(), mine[below].to_numpy(), mine["count"].to_numpy()]
    replicates = tuple(int(number) for number in mine["replicate"])
    filled = bins.filter((pl.col("__arm") == str(side)) & (pl.col("count") > 0))
    edges = filled["bin"].unique().sort()
    table = np.zeros((len(replicates), len(edges)))
    row = {number: place for place, number in enumerate(replicates)}
    column = np.searchsorted(edges.to_numpy(), filled["bin"].to_numpy())
    table[[row[int(number)] for number in filled["replicate"]], column] = filled["count"].to_numpy()
    unfinished = int(mine["count"].sum()) - int(mine["completed"].sum())
    return _Side(
        replicates, np.stack(columns, axis=1).astype(np.float64), table, edges.to_numpy(), statistic, unfinished
    )
