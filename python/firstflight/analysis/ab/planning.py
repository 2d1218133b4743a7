"""How long to run: the difference that a sample can detect, and the required size, from a pilot.

The spread of a statistic falls with the square root of the number of units; a difference of (z of confidence + z of
power) standard errors is found with that power. Both rest on the pilot's units being like those to come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import polars as pl

from firstflight.analysis.ab.compare import compare
from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import least_units
from firstflight.analysis.ab.sample import Design
from firstflight.analysis.intervals import LeftOut


@dataclass(frozen=True)
class Pilot:
    """A pilot of a planned comparison. `deviation`: standard error of the difference times the square root of the
    number of units (pairs, or units in each arm), in the value's unit. `value`: the current statistic.
    """

    statistic: str
    value: float
    deviation: float
    units: int
    paired: bool


@dataclass(frozen=True)
class Detectable:
    """The smallest difference that this number of units (pairs, or units in each arm) detects with this power."""

    difference: float
    percent: float
    units: int
    power: float
    confidence: float


def pilot_of_one_arm(
    frame: pl.DataFrame | pl.LazyFrame,
    value: str,
    *,
    unit: Sequence[str],
    statistic: str = "mean",
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    cluster: str | Sequence[str] | None = None,
    resamples: int = 2000,
    seed: int = 1,
    least: int | None = None,
) -> Pilot:
    """A pilot from current traffic alone: two arms of different users. `unit` and what follows `statistic` are as in
    `Design`. ValueError for too few units.
    """
    arm = "__arm"
    rows = frame.lazy()
    both = pl.concat([rows.with_columns(pl.lit(place).alias(arm)) for place in (0, 1)])
    request = Design(
        arm=arm,
        baseline=0,
        treatment=1,
        unit=unit,
        weight=weight,
        strata=strata,
        cluster=cluster,
        least=least,
        resamples=resamples,
        seed=seed,
    )
    comparison = compare(both, value, request, statistic=statistic)
    deviation = math.sqrt(2) * _deviation(comparison, "baseline")
    return Pilot(statistic, comparison.baseline.value, deviation, comparison.units, paired=False)


def pilot_of(comparison: Comparison) -> Pilot:
    """A pilot from a finished comparison of the same design, however small. ValueError if it has no interval."""
    paired = comparison.evidence is not None and comparison.evidence.paired
    parts = ["difference"] if paired else ["baseline", "treatment"]
    deviation = math.hypot(*(_deviation(comparison, name) for name in parts))
    units = min(comparison.baseline.replicates, comparison.treatment.replicates)
    return Pilot(comparison.statistic, comparison.baseline.value, deviation, units, paired)


def minimum_detectable_effect(
    pilot: Pilot | Comparison, units: int, *, power: float = 0.8, confidence: float = 0.95
) -> Detectable:
    """The smallest effect that `units` pairs, or units in each arm, detect. ValueError for too few units."""
    known = pilot if isinstance(pilot, Pilot) else pilot_of(pilot)
    least = least_units(known.statistic)
    if units < least:
        raise ValueError(f"{units} units are too few: {known.statistic} needs {least:,} for an interval")
    difference = _reach(power, confidence) * known.deviation / math.sqrt(units)
    percent = 100 * difference / known.value if known.value else math.nan
    return Detectable(difference, percent, units, power, confidence)


def units_needed(
    pilot: Pilot | Comparison,
    *,
    difference: float | None = None,
    percent: float | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
) -> int:
    """Pairs, or units in each arm, that detect this `difference`, or this many `percent` of the current value.

    At least as many as an interval of the statistic needs. ValueError unless exactly one of the two is given and not 0.
    """
    known = pilot if isinstance(pilot, Pilot) else pilot_of(pilot)
    if (difference is None) == (percent is None):
        raise ValueError("units_needed: give either the difference or the percent that is to be found")
    effect = abs(difference if difference is not None else (percent or 0.0) / 100 * known.value)
    if not effect > 0:
        raise ValueError("units_needed: no sample is large enough for a difference of 0")
    units = math.ceil((_reach(power, confidence) * known.deviation / effect) ** 2)
    return max(units, least_units(known.statistic))


def _reach(power: float, confidence: float) -> float:
    if not 0 < power < 1 or not 0 < confidence < 1:
        raise ValueError(f"power {power} and confidence {confidence}: both lie between 0 and 1")
    normal = NormalDist()
    return normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power)


def _deviation(comparison: Comparison, name: str) -> float:
    """Standard error of a value times the square root of its units."""
    evidence = comparison.evidence
    if evidence is None or isinstance(evidence.spreads[name], LeftOut):
        raise ValueError(f"the pilot has no spread: {comparison.reason or 'it was not resampled'}")
    if not math.isfinite(error := evidence.spreads[name].error):
        raise ValueError("the pilot has no spread: too many did not finish")
    return error * math.sqrt(getattr(comparison, name).replicates)
