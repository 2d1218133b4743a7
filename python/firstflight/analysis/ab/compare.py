"""A statistic in two arms, with intervals: of the values' mean or a quantile, or of a ratio of sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import Make, of_sample
from firstflight.analysis.ab.quantile import Quantile
from firstflight.analysis.ab.sample import read
from firstflight.analysis.ab.statistic import Ratio, share_of


def compare(
    frame: pl.DataFrame | pl.LazyFrame,
    value: str,
    *,
    arm: str,
    baseline: object,
    treatment: object,
    unit: Sequence[str],
    statistic: str = "mean",
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    cluster: str | Sequence[str] | None = None,
    paired: bool = True,
    resamples: int = 2000,
    seed: int = 1,
    confidence: float = 0.95,
    shares: Mapping[str, float] | None = None,
    least: int | None = None,
) -> Comparison:
    """Column `value` where `arm` is `treatment` against where it is `baseline`.

    `unit`: the columns that name a unit, of which there may be several rows (objects of a user). `paired`: a unit of
    both arms is the same one, drawn together; without, units of the arms are drawn apart, whatever their names.
    `cluster`: columns by which units are drawn together (users of a subnet). `strata`: drawing keeps the number of
    blocks in each, and each counts by its share in both arms together, or by `shares` (name: share). `weight`: survey
    weight of a row. A row whose value is NaN did not finish: beyond every number in a quantile, left out of a mean
    (with its partner if `paired`). `least`: fewer units than this get no interval; by default what the calibration
    found to be needed. ValueError for a request that makes no sense.
    """
    rows = read(
        frame,
        [value],
        arm=arm,
        baseline=baseline,
        treatment=treatment,
        unit=unit,
        weight=weight,
        strata=strata,
        cluster=cluster,
        paired=paired,
        unfinished_last=share_of(statistic) is not None,
    )
    return of_sample(rows.sample(), maker(statistic), statistic, resamples, seed, confidence, shares, least)


def compare_rate(
    frame: pl.DataFrame | pl.LazyFrame,
    numerator: str,
    denominator: str,
    *,
    arm: str,
    baseline: object,
    treatment: object,
    unit: Sequence[str],
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    cluster: str | Sequence[str] | None = None,
    paired: bool = True,
    resamples: int = 2000,
    seed: int = 1,
    confidence: float = 0.95,
    shares: Mapping[str, float] | None = None,
    least: int | None = None,
) -> Comparison:
    """Sum of `numerator` over sum of `denominator` (retransmitted segments, segments sent). The rest as `compare`."""
    rows = read(
        frame,
        [numerator, denominator],
        arm=arm,
        baseline=baseline,
        treatment=treatment,
        unit=unit,
        weight=weight,
        strata=strata,
        cluster=cluster,
        paired=paired,
        unfinished_last=False,
    )
    return of_sample(rows.sample(), Ratio, "rate", resamples, seed, confidence, shares, least)


def maker(statistic: str) -> Make:
    """What makes it of an arm: `rate`, or what `compare` takes."""
    p = None if statistic == "rate" else share_of(statistic)
    return Ratio if p is None else lambda rows, blocks, weight: Quantile(rows, blocks, weight, p)
