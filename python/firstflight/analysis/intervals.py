"""Every 95% CI: of a value over replicates, and of two arms that are compared. docs/statistics.md has which is where.

Over replicates a value is that of the rows of all replicates together. The replicate is the unit: pages and transfers
within one replicate share a queue and are not independent, replicates are.

From resamples, sums and paired quantiles have the studentized bootstrap (bootstrap-t; Efron 1981, Hall 1988), which
allows for skewness and for a spread that few units make up. A resample's standard error counts as a third of the
sample's at least: one that holds hardly any of those few units has hardly any itself. Other quantiles: the percentile
bootstrap, its ends widened to those of Student's t (Hesterberg 2015, "What teachers should know about the bootstrap",
section 5.3). Ends are order statistics at level·(resamples + 1). The p-value is one minus the confidence at which the
interval's end meets 0, never below the resolution of the number of resamples; no interval extends beyond the range of
its statistic (`possible`). Difference and percent are 0 together: where the interval of one includes 0, so does that of
the other (`agreeing`), and the p-value is the larger of both.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from firstflight import _native

Values = npt.NDArray[np.float64]
CONFIDENCE = 0.95
# Comparisons of as many units ask for the same one.
student_quantile = lru_cache(_native.student_quantile)


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% CI; `low` and `high` are NaN with fewer than two replicates."""

    value: float
    low: float = math.nan
    high: float = math.nan
    replicates: int = 0

    def times(self, factor: float) -> Estimate:
        """The estimate in another unit, such as a share in percent."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high, self.replicates)


def t_quantile(replicates: int) -> float:
    """Two-sided 95% quantile of Student's t with `replicates` - 1 degrees of freedom."""
    if replicates < 2:
        return math.nan
    return student_quantile(replicates - 1, (1 + CONFIDENCE) / 2)


def ratio(above: Values, below: Values) -> Estimate:
    """Sum of `above` over sum of `below`, one number of each per replicate, in the order of the replicates.

    A mean or a share over all replicates; with `below` all alike the mean over replicates. The interval is that of the
    delete-one jackknife (Tukey) with Student's t; for a mean over replicates this is Student's own.
    """
    n, whole = len(above), float(below.sum())
    value = float(above.sum()) / whole if whole else math.nan
    rest = whole - below
    if n < 2 or not rest.all():
        return Estimate(value, replicates=n)
    return jackknife(value, (above.sum() - above) / rest)


def jackknife(value: float, without: Values) -> Estimate:
    """`value`, and the interval of the delete-one jackknife from the values `without` each replicate in turn."""
    half = t_quantile(len(without)) * math.sqrt(_variance(without))
    return Estimate(value, value - half, value + half, len(without))


def _variance(without: Values) -> float:
    """Tukey's, of a value, from those `without` each unit in turn; NaN for fewer than two."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return math.nan
    return (n - 1) / n * float(((without - without.mean()) ** 2).sum())


def percentiles(value: float, drawn: Values) -> Estimate:
    """`value`, and the interval of the percentile bootstrap from the resamples `drawn`."""
    low, high = np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high))


def quantile(values: Values, weights: Values, replicates: Values, p: float, counted: bool) -> Estimate:
    """Quantile `p` of all `values` (rows,), which are infinite where something did not finish, over all `replicates`.

    `counted`: a weight is the number of rows of that value, and the quantile lies at place p (n - 1) of n in ascending
    order, interpolated; otherwise it is the least value with a share `p` of the weight at or below. The interval is
    Woodruff's (1952): that of the share of values up to the quantile, by replicate with Student's t, read back as
    quantiles. Its ends are NaN with one replicate, and where they lie beyond all values that are there.
    """
    order = np.argsort(values, kind="stable")
    values, weights, replicates = values[order], weights[order], replicates[order]
    cumulated = np.cumsum(weights)

    def at_weight(weight: float) -> float:
        # Rounding may leave the sum of weights below the whole.
        return float(values[min(int(np.searchsorted(cumulated, weight * (1 - 1e-12))), len(values) - 1)])

    value = at_weight(p * cumulated[-1])
    if counted:
        place = p * (cumulated[-1] - 1)
        below, above = (float(values[np.searchsorted(cumulated, end, "right")]) for end in (place // 1, -(-place // 1)))
        value = below + (above - below) * (place % 1) if below < above else below
    of, place_of = np.unique(replicates, return_inverse=True)
    if len(of) < 2 or math.isinf(value):
        return Estimate(value, replicates=len(of))
    totals = np.bincount(place_of, weights)
    passed = np.bincount(place_of, weights * (values <= value))
    off = passed - passed.sum() / totals.sum() * totals
    half = t_quantile(len(of)) * math.sqrt(len(of) / (len(of) - 1) * float((off**2).sum())) / float(totals.sum())
    ends = (at_weight((p - half) * cumulated[-1]), at_weight((p + half) * cumulated[-1]))
    if p - half < 0 or p + half > 1 or math.isinf(ends[1]):
        return Estimate(value, replicates=len(of))
    return Estimate(value, min(ends[0], value), max(ends[1], value), len(of))


def seed_of(study: str, quantity: str, cell: object = ()) -> int:
    """The seed of the resamples of a quantity in a cell: independent of other computations and of their order."""
    name = repr((study, quantity, cell)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())


COMPARED = ("baseline", "treatment", "difference", "percent")
Bounds = tuple[float, float]
_LEAST_ERROR = 1 / 3
"""Of a resample, in standard errors of the sample. If k of many units are all that differ, each by as much, the upper
end is 4, 8 and 12 times that for k = 1, 2 and 3 (Poisson's exact one: 5.6, 7.2 and 8.8 times). Next to none of the
calibration's resamples is below it."""


class Spread(ABC):
    """A value with its standard error, and the degrees of freedom of that; `kind` is how its interval is made."""

    kind: str

    def __init__(self, value: float, error: float, freedom: float) -> None:
        self.value, self.error, self._freedom = value, error, freedom

    @abstractmethod
    def interval(self, confidence: float) -> tuple[float, float]:
        """Lower and upper end; NaN where there is none."""

    @abstractmethod
    def p_value(self) -> float:
        """Two-sided, of the value being 0."""


class Studentized(Spread):
    """By how many of their own standard errors resamples are off; each end at least as far as Student's t.

    Alone it finds too much where the arms are alike and their differences have long tails on both sides: in 200 pairs
    7.8% false alarms.
    """

    kind = "studentized"

    def __init__(self, value: float, error: float, off: Values, errors: Values, freedom: float) -> None:
        """`off` (resamples,), resampled less `value`, with their `errors`."""
        super().__init__(value, error, freedom)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._off = np.sort(np.where(off == 0, 0.0, off / np.maximum(errors, _LEAST_ERROR * error)))
        # Sorting puts NaN last.
        self._known = math.isfinite(value) and math.isfinite(error) and not math.isnan(self._off[-1])

    def interval(self, confidence: float) -> tuple[float, float]:
        """See `Spread`."""
        if not self._known:
            return math.nan, math.nan
        if self.error == 0:
            return self.value, self.value
        low, high = (_level(self._off, level) for level in ((1 - confidence) / 2, (1 + confidence) / 2))
        if not (math.isfinite(low) and math.isfinite(high)):
            return math.nan, math.nan
        far = student_quantile(self._freedom, (1 + confidence) / 2)
        return self.value - max(high, far) * self.error, self.value - min(low, -far) * self.error

    def p_value(self) -> float:
        """See `Spread`."""
        if any(map(math.isnan, self.interval(0.5))):
            return math.nan
        if self.error == 0:
            return float(self.value == 0)
        at = self.value / self.error
        return max(_two_sided(self._off, at), 2 * _native.student_cdf(self._freedom, -abs(at)))


class Percentiles(Spread):
    """Resamples of the value itself."""

    kind = "percentile"

    def __init__(self, value: float, error: float, drawn: Values, freedom: float) -> None:
        """`drawn` (resamples,)."""
        super().__init__(value, error, freedom)
        self._drawn = np.sort(drawn)

    def interval(self, confidence: float) -> tuple[float, float]:
        """See `Spread`."""
        if math.isnan(self.value) or np.isnan(self._drawn).any():
            return math.nan, math.nan
        far = student_quantile(self._freedom, (1 + confidence) / 2) * math.sqrt(1 + 1 / self._freedom)
        low, high = (_level(self._drawn, NormalDist().cdf(end)) for end in (-far, far))
        # A percentage of a baseline that may be 0 either way has resamples on one side of it.
        return min(low, self.value), max(high, self.value)

    def p_value(self) -> float:
        """See `Spread`."""
        if math.isnan(self.value) or np.isnan(self._drawn).any():
            return math.nan
        far = abs(NormalDist().inv_cdf(_two_sided(self._drawn, 0.0) / 2))
        return 2 * _native.student_cdf(self._freedom, -far / math.sqrt(1 + 1 / self._freedom))


class LeftOut(Spread):
    """Tukey's delete-one jackknife with Student's t; half the interval grows by `widened`."""

    kind = "jackknife"

    def __init__(self, value: float, error: float, freedom: float, widened: float) -> None:
        super().__init__(value, error, freedom)
        self._widened = widened

    def interval(self, confidence: float) -> tuple[float, float]:
        """See `Spread`."""
        half = student_quantile(self._freedom, (1 + confidence) / 2) * self.error + self._widened
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """See `Spread`."""
        beyond = abs(self.value) - self._widened
        if math.isnan(beyond) or beyond <= 0:
            return math.nan if math.isnan(beyond) else 1.0
        return 2 * _native.student_cdf(self._freedom, -beyond / self.error) if self.error else 0.0


@dataclass(frozen=True)
class Evidence:
    """How each of `COMPARED` of two arms spreads, for intervals of any confidence. `bounds`: the range of each
    value; `units`: the number of its units.
    """

    spreads: Mapping[str, Spread]
    bounds: Mapping[str, Bounds]
    units: Mapping[str, int]
    paired: bool

    def estimates(self, confidence: float) -> dict[str, Estimate]:
        """None beyond what is possible, and none in percent of a baseline whose own interval includes 0."""
        intervals = {name: (spread.value, *spread.interval(confidence)) for name, spread in self.spreads.items()}
        made = {name: Estimate(*within(self.bounds[name], *of), self.units[name]) for name, of in intervals.items()}
        value, low, high = intervals["baseline"]
        if value and low <= 0 <= high:
            made["percent"] = Estimate(made["percent"].value, replicates=self.units["percent"])
        return agreeing(made)

    @cached_property
    def p_value(self) -> float:
        """Of no change: the larger one of difference and percent; of the difference where there is no percentage."""
        difference, percent = (self.spreads[name].p_value() for name in ("difference", "percent"))
        return difference if math.isnan(percent) else max(difference, percent)


def jackknifed(
    whole: Sequence[float],
    without: Sequence[Values],
    paired: bool,
    bounds: Mapping[str, Bounds],
    widened: Mapping[str, float] | None = None,
) -> Evidence:
    """Of a statistic in both arms, of all and `without` each unit in turn; paired: the same units."""
    base, treat = map(np.array, whole)
    value, parts = both(base, treat), [both(*without)] if paired else [both(without[0], treat), both(base, without[1])]
    counts = [len(of_arm) - 1 for of_arm in without][: len(parts)]
    spreads: dict[str, Spread] = {}
    for name in COMPARED:
        squares = [_variance(part[name]) for part in parts]
        # Welch and Satterthwaite.
        weights = sum(square**2 / max(1, count) for square, count in zip(squares, counts, strict=True))
        freedom = sum(squares) ** 2 / weights if weights > 0 else float(max(1, min(counts)))
        error = math.sqrt(sum(squares))
        spreads[name] = LeftOut(float(value[name]), error, freedom, widened[name] if widened else 0.0)
    return Evidence(spreads, bounds, units_of((len(without[0]), len(without[1])), paired), paired)


def both(base: Values, treat: Values) -> dict[str, Values]:
    """Each of `COMPARED`, from the values of both arms."""
    base, treat = np.broadcast_arrays(base, treat)
    with np.errstate(invalid="ignore", divide="ignore"):
        percent = np.where(base == 0, np.nan, 100 * (treat / base - 1))
        return {"baseline": base, "treatment": treat, "difference": treat - base, "percent": percent}


def units_of(sizes: tuple[int, int], paired: bool) -> dict[str, int]:
    """The number of units of each value: pairs, or those of both arms together."""
    joint = sizes[0] if paired else sum(sizes)
    return dict(zip(COMPARED, (*sizes, joint, joint), strict=True))


def possible(base: Bounds, treat: Bounds) -> dict[str, Bounds]:
    """The range of each value, from the range of the statistic in each arm."""
    percent = (-100.0, math.inf) if min(base[0], treat[0]) >= 0 else (-math.inf, math.inf)
    difference = (treat[0] - base[1], treat[1] - base[0])
    return {"baseline": base, "treatment": treat, "difference": difference, "percent": percent}


def within(bounds: Bounds, value: float, low: float, high: float) -> tuple[float, float, float]:
    """A value and the ends of its interval, none beyond what is possible; NaN stays NaN."""
    least, most = bounds
    return min(max(value, least), most), min(max(low, least), most), min(max(high, least), most)


def agreeing(estimates: dict[str, Estimate]) -> dict[str, Estimate]:
    """With difference and percent that both include 0 or both exclude it: the one that excludes it alone ends at 0.

    The treatment equals the baseline in both or in neither, and to widen an interval costs no coverage.
    """
    pair = ("difference", "percent")
    if not any(estimates[name].low <= 0 <= estimates[name].high for name in pair):
        return estimates
    return estimates | {
        name: replace(estimates[name], low=min(estimates[name].low, 0.0), high=max(estimates[name].high, 0.0))
        for name in pair
        if not math.isnan(estimates[name].low + estimates[name].high)
    }


def _two_sided(ordered: Values, value: float) -> float:
    """Twice the share that is at least as far out as `value`, on its side."""
    count = len(ordered)
    at_most = int(np.searchsorted(ordered, value, side="right"))
    at_least = count - int(np.searchsorted(ordered, value, side="left"))
    return min(1.0, 2 * (min(at_most, at_least) + 1) / (count + 1))


def _level(ordered: Values, level: float) -> float:
    # Linear between neighbors; not numpy's, which makes NaN of two infinite ones.
    place = min(max(level * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return float(ordered[below])
    share = place - below
    return float(ordered[below] if share == 0 else ordered[below] * (1 - share) + ordered[above] * share)
