"""Two arms compared: a mean, a quantile, rates, Jain's index, retransmissions, and effects on unchanged flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import Make, of_samples
from firstflight.analysis.ab.sample import ComparedRows, Design, Mask
from firstflight.analysis.ab.statistic import Jain, Quantile, Ratio, share_of


def compare(frame: pl.DataFrame | pl.LazyFrame, value: str, design: Design, *, statistic: str = "mean") -> Comparison:
    """Compare the mean, the median or a percentile ("p99") of column `value` in both arms.

    A row with NaN did not finish: beyond every number in a quantile, excluded from a mean (with its partner if paired).
    ValueError for an inconsistent request.
    """
    return compared([Pair(ComparedRows(frame, [value], design), design)], [value], statistic)[0]


def compare_rate(frame: pl.DataFrame | pl.LazyFrame, numerator: str, denominator: str, design: Design) -> Comparison:
    """As `compare`, for the sum of `numerator` over that of `denominator` (retransmitted segments, segments sent)."""
    names = [numerator, denominator]
    return compared([Pair(ComparedRows(frame, names, design), design)], names, "rate")[0]


@dataclass(frozen=True)
class Pair:
    """Two arms of `rows`: all of them, or those `among` them."""

    rows: ComparedRows
    design: Design
    among: Mask | None = None

    @property
    def weight(self) -> float:
        """Of the baseline."""
        side = self.rows.of_arm[self.design.baseline]
        return float(self.rows.weights[side if self.among is None else side[self.among[side]]].sum())


def compared(pairs: Sequence[Pair], names: Sequence[str], statistic: str) -> list[Comparison]:
    """As `compare` for columns `names`. `statistic`: of one column, or `rate` of two. The designs differ in nothing but
    their arms. Pairs with the same units take less time than each alone, and one that was compared before none.
    """
    p = None if statistic == "rate" else share_of(statistic)
    make: Make = Ratio if p is None else lambda arm, blocks, weight: Quantile(arm, blocks, weight, p)
    keys = [
        (statistic, *names, repr(pair.design), None if pair.among is None else np.packbits(pair.among).tobytes())
        for pair in pairs
    ]
    left = [(key, pair) for key, pair in zip(keys, pairs, strict=True) if key not in pair.rows.made]
    samples = [pair.rows.sample(names, pair.design, p is not None, pair.among) for _, pair in left]
    found = of_samples(samples, make, statistic, left[0][1].design) if left else []
    for (key, pair), made in zip(left, found, strict=True):
        pair.rows.made[key] = made
    return [pair.rows.made[key] for key, pair in zip(keys, pairs, strict=True)]


@dataclass(frozen=True)
class Retransmissions:
    """`rate`: retransmitted segments over segments sent. `flows`: share of transfers with any. `timeouts`: mean number
    per transfer. `first_flight`: share of first-flight segments that were lost.
    """

    rate: Comparison
    flows: Comparison
    timeouts: Comparison
    first_flight: Comparison


def retransmissions(frame: pl.DataFrame | pl.LazyFrame, design: Design) -> Retransmissions:
    """Retransmissions, timeouts and first-flight losses of transfers in both arms.

    Transfers with a null count are excluded from it and counted as unknown.
    """
    rows = frame.lazy().with_columns(any_retransmission=(pl.col("retransmissions") > 0).cast(pl.Float64))
    return Retransmissions(
        compare_rate(rows, "retransmissions", "segments_sent", design),
        compare(rows, "any_retransmission", design),
        compare(rows, "timeouts", design),
        compare_rate(rows, "first_flight_lost_segments", "first_flight_segments", design),
    )


Values = npt.NDArray[np.float64]


def jain_index(values: Sequence[float] | Values, weights: Sequence[float] | Values | None = None) -> float:
    """Jain's index (Σ w x)² / (Σ w · Σ w x²): 1 for equal shares, 1/n if one of n has all; NaN if all have 0.

    `values` (flows,): the allocation of each, such as throughput; `weights` (flows,): 1 by default. ValueError without
    values, and for a negative or missing one.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(x) == 0 or len(x) != len(w):
        raise ValueError(f"Jain's index of {len(x)} values with {len(w)} weights: give as many, and at least one")
    if not (x >= 0).all() or not (w >= 0).all() or np.isinf(x).any():
        raise ValueError("Jain's index: every value and weight is a finite number of at least 0")
    return _index(float(w.sum()), float(w @ x), float(w @ x**2))


def compare_jain(frame: pl.DataFrame | pl.LazyFrame, value: str, design: Design) -> Comparison:
    """As `compare`, for Jain's index of `value` (the allocation of a row, at least 0) over all rows of an arm."""
    sample = ComparedRows(frame, [value], design).sample([value], design, False)
    if any((side.values < 0).any() for side in (sample.baseline, sample.treatment)):
        raise ValueError(f"{value}: Jain's index is of values of at least 0")
    return of_samples([sample], Jain, "jain", design)[0]


def _index(flows: float, got: float, squares: float) -> float:
    return got**2 / (flows * squares) if flows * squares else math.nan


HarmVerdict = Literal["within budget", "over budget", "inconclusive", "no flows", "too few flows"]


@dataclass(frozen=True)
class Budget:
    """The allowed harm to other flows, in percent of the baseline."""

    latency_percent: float = 5.0
    throughput_percent: float = 5.0


@dataclass(frozen=True)
class Harm:
    """One measure of the other flows. `harm_percent`: how much worse (longer, slower) it became, below 0 if better,
    with the interval `low` to `high`; `budget_percent`: the limit. "within budget" if the whole interval is, "over
    budget" if no part of it is, else "inconclusive".
    """

    measure: str
    comparison: Comparison
    harm_percent: float
    low: float
    high: float
    budget_percent: float
    verdict: HarmVerdict
    reason: str


def harm(
    frame: pl.DataFrame | pl.LazyFrame,
    design: Design,
    *,
    others: Sequence[str],
    by: str = "application",
    budget: Budget | None = None,
    latency: Sequence[str] = ("p50", "p95"),
    duration_s: float | None = None,
) -> list[Harm]:
    """Latency (each statistic in `latency`) and throughput of the rows whose column `by` is one of `others`.

    `frame`: transfers. Throughput is the sum of `delivered_bytes` over the sum of their times; an unfinished transfer
    took until `duration_s`, or is excluded and counted without it. The treatment passes if every measure is within
    budget, without a correction, since each must pass alone.
    """
    allowed = budget or Budget()
    rows = frame.lazy().filter(pl.col(by).cast(pl.String).is_in(list(others)))
    finished = pl.col("completion_time_s")
    if duration_s is not None:
        finished = pl.when(finished.is_nan()).then(duration_s - pl.col("start_s")).otherwise(finished)
    rows = rows.with_columns(finished.alias("seconds"))
    measured = [
        (f"latency {name}", compare(rows, "completion_time_s", design, statistic=name), 1.0) for name in latency
    ]
    measured.append(("throughput", compare_rate(rows, "delivered_bytes", "seconds", design), -1.0))
    return [
        _harm(name, comparison, sign, allowed.latency_percent if sign > 0 else allowed.throughput_percent)
        for name, comparison, sign in measured
    ]


def within_budget(harms: Sequence[Harm]) -> HarmVerdict:
    """The worst verdict of all measures."""
    order: tuple[HarmVerdict, ...] = ("over budget", "too few flows", "no flows", "inconclusive", "within budget")
    return min((measure.verdict for measure in harms), key=order.index, default="no flows")


def _harm(name: str, comparison: Comparison, sign: float, budget: float) -> Harm:
    low, high = sorted((sign * comparison.percent.low, sign * comparison.percent.high))
    value, verdict = sign * comparison.percent.value, _verdict(comparison, low, high, budget)
    reason = comparison.reason
    if verdict == "inconclusive":
        reason = f"its CI, {low:.1f} to {high:.1f}%, includes the budget of {budget:g}%"
    return Harm(name, comparison, value, low, high, budget, verdict, reason)


def _verdict(comparison: Comparison, low: float, high: float, budget: float) -> HarmVerdict:
    if comparison.units == 0:
        return "no flows"
    if math.isnan(low) or math.isnan(high):
        return "too few flows"
    if high <= budget:
        return "within budget"
    return "over budget" if low > budget else "inconclusive"
