"""Effects on unchanged flows: those whose initial window is the same in both arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from firstflight.analysis.ab.compare import compare, compare_rate
from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.design import Design

HarmVerdict = Literal["within budget", "over budget", "inconclusive", "no flows", "too few flows"]


@dataclass(frozen=True)
class Budget:
    """The allowed harm to the others, in percent of the baseline."""

    latency_percent: float = 5.0
    throughput_percent: float = 5.0


@dataclass(frozen=True)
class Harm:
    """One measure of the other flows. `harm_percent`: how much worse it got (longer, slower; below 0: it got better),
    with `low` and `high`, its interval; `budget_percent`: how much it may. "within budget" if the whole interval is,
    "over budget" if no part of it is, else "inconclusive".
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

    `frame`: transfers. Throughput is the sum of `delivered_bytes` over the sum of seconds that they took; a transfer
    that did not finish took until `duration_s`, or is left out and counted without it. All is well where every measure
    is within budget: that needs no correction, as each must pass by itself.
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
        _harm(name, found, sign, allowed.latency_percent if sign > 0 else allowed.throughput_percent)
        for name, found, sign in measured
    ]


def within_budget(harms: Sequence[Harm]) -> HarmVerdict:
    """Of all measures together: the worst of their verdicts."""
    order: tuple[HarmVerdict, ...] = ("over budget", "too few flows", "no flows", "inconclusive", "within budget")
    return min((one.verdict for one in harms), key=order.index, default="no flows")


def _harm(name: str, found: Comparison, sign: float, budget: float) -> Harm:
    low, high = sorted((sign * found.percent.low, sign * found.percent.high))
    value, verdict = sign * found.percent.value, _verdict(found, low, high, budget)
    reason = found.reason
    if verdict == "inconclusive":
        reason = f"its CI, {low:.1f} to {high:.1f}%, includes the budget of {budget:g}%"
    return Harm(name, found, value, low, high, budget, verdict, reason)


def _verdict(found: Comparison, low: float, high: float, budget: float) -> HarmVerdict:
    if found.units == 0:
        return "no flows"
    if math.isnan(low) or math.isnan(high):
        return "too few flows"
    if high <= budget:
        return "within budget"
    return "over budget" if low > budget else "inconclusive"
