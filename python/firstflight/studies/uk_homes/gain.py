"""What a window gains and costs against today's, with intervals over homes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from firstflight.analysis.ab import Comparison, compare, compare_rate
from firstflight.analysis.intervals import Estimate
from firstflight.studies.kept import kept
from firstflight.studies.uk_homes.grid import HOMES, settings
from firstflight.studies.uk_homes.measure import UNIT, national, part, quantiles

if TYPE_CHECKING:
    from firstflight.records import Run

PERCENTILES = np.arange(1, 100)
_RESAMPLES = 1000


@kept
def of_time(
    run: Run, year: int, farther_ms: int, response: str, iw: int, statistic: str = "p50", experiment: str = HOMES
) -> Comparison | None:
    """The time of a response (ms) with `iw` against today's window, over the country's homes; None without both."""
    return _compared(national(part(run, experiment, year, farther_ms, response)), iw, statistic)


@kept
def of_technology(run: Run, year: int, technology: str, iw: int, response: str, farther_ms: int) -> Comparison | None:
    """The same for the homes of one technology, each counting once: Ofcom gives some technologies no weight."""
    rows = part(run, HOMES, year, farther_ms, response)
    own = rows.filter(pl.col("technology") == technology).with_columns(pl.lit(1.0).alias("weight"))
    return _compared(own, iw, "p50")


@kept
def of_rate(
    run: Run,
    year: int,
    farther_ms: int,
    response: str,
    iw: int,
    numerator: str,
    denominator: str,
    experiment: str = HOMES,
) -> Comparison | None:
    """A ratio of sums (retransmitted segments of those sent) with `iw` against today's window; None without both."""
    rows = national(part(run, experiment, year, farther_ms, response))
    if not _has_both(rows, iw):
        return None
    return compare_rate(
        rows,
        numerator,
        denominator,
        arm="iw",
        baseline=settings()["today"],
        treatment=iw,
        unit=UNIT,
        cluster="home",
        weight="weight",
        resamples=_RESAMPLES,
    )


def saved_percent(comparison: Comparison) -> Estimate:
    """Of the time with today's window; above 0: sooner."""
    return turned(comparison.percent)


def saved_ms(comparison: Comparison) -> Estimate:
    """Above 0: sooner."""
    return turned(comparison.difference)


def turned(found: Estimate) -> Estimate:
    """The estimate with the other sign."""
    return Estimate(-found.value, -found.high, -found.low, found.replicates)


def saved_by_percentile(rows: pl.DataFrame, iw: int) -> list[float]:
    """By how much (%) each of the percentiles 1 to 99 of the country's homes is sooner with `iw`; NaN unless finished.

    A percentile is of the times in each arm: the home that is the slowest of a hundred need not be the same one.
    """
    found = [
        quantiles(own["time_ms"].to_numpy(), own["weight"].to_numpy(), PERCENTILES / 100)
        for window in (settings()["today"], iw)
        for own in [national(rows.filter(pl.col("iw") == window))]
    ]
    saved: list[float] = (100 * (1 - found[1] / found[0])).tolist()
    return saved


def _compared(rows: pl.DataFrame, iw: int, statistic: str) -> Comparison | None:
    if not _has_both(rows, iw):
        return None
    return compare(
        rows,
        "time_ms",
        arm="iw",
        baseline=settings()["today"],
        treatment=iw,
        unit=UNIT,
        cluster="home",
        statistic=statistic,
        weight="weight",
        resamples=_RESAMPLES,
    )


def _has_both(rows: pl.DataFrame, iw: int) -> bool:
    windows = rows["iw"].unique().to_list()
    return iw in windows and settings()["today"] in windows
