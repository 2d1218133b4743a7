"""From a sample of two arms to their comparison: enough units, statistics of both arms in resamples, values of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from firstflight.analysis.ab.comparison import Comparison, described
from firstflight.analysis.ab.resampling import MOST_BLOCKS, Blocks, Sums, blocks_of, draws, one_blas_thread
from firstflight.analysis.ab.sample import ArmRows, Design, TwoArms
from firstflight.analysis.ab.statistic import Quantile, Statistic, share_of
from firstflight.analysis.intervals import (
    FIGURES,
    Bounds,
    Estimate,
    Evidence,
    Percentiles,
    Spread,
    Studentised,
    jackknifed,
    possible,
    units_of,
)

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
    """Minimum number of units in each arm (pairs, if paired) for an interval, by calibration: docs/statistics.md."""
    p = None if statistic in ("rate", "jain") else share_of(statistic)
    return _OF_SUMS if p is None else max(100, math.ceil(round(_IN_TAIL / min(p, 1 - p), 6)))


def shortage(sample: TwoArms, statistic: str, least: int | None) -> str:
    """Why there is no interval, with how many units it takes; empty where there are enough."""
    if sample.block == REPLICATE:
        return _replicates(sample, statistic, LEAST_REPLICATES if least is None else least)
    needed = least_units(statistic) if least is None else least
    for title, arm in zip(sample.arms, (sample.baseline, sample.treatment), strict=True):
        kind = "pairs" if sample.paired else f"{sample.unit}s of {title}"
        if arm.units == 0:
            return f"no {kind}: {statistic} needs {needed:,}"
        worth = effective(arm)
        if round(worth) < needed:
            counted = f"{arm.units:,} {kind}"
            if round(worth) < arm.units:
                counted += f", worth {worth:,.0f} by their weights,"
            return f"{counted} are too few: {statistic} needs {needed:,}"
        if arm.blocks < min(LEAST_BLOCKS, arm.units):
            return f"{arm.blocks} {sample.block} of {title} are too few to be drawn from: it takes {LEAST_BLOCKS}"
        sizes = np.bincount(arm.stratum, minlength=len(sample.strata))
        for name, size in zip(sample.strata, sizes, strict=True):
            if size == 1:
                of = f"stratum {name} of " if name else ""
                return f"only one {sample.block} of {of}{title}: at least two are needed"
    return ""


def _replicates(sample: TwoArms, statistic: str, least: int) -> str:
    """The same where a replicate is drawn: each is a repetition of the experiment, a quantile is of their rows."""
    of_quantile = statistic not in ("rate", "jain") and share_of(statistic) is not None
    for title, arm in zip(sample.arms, (sample.baseline, sample.treatment), strict=True):
        if arm.blocks < least:
            return f"{arm.blocks} replicates of {title} are too few: it takes {least}"
        rows = len(arm.values)
        if of_quantile and rows < (needed := least_units(statistic)):
            enough = math.ceil(arm.blocks * needed / rows)
            return f"{rows:,} rows of {title} are too few: {statistic} needs {needed:,}, so some {enough:,} replicates"
    return ""


def effective(arm: ArmRows) -> float:
    """Number of units of equal weight with the same information (Kish: squared sum of weights over sum of squares)."""
    weights = np.bincount(arm.block, arm.weight, arm.blocks) / np.maximum(
        np.bincount(arm.block, minlength=arm.blocks), 1
    )
    squares = float((weights**2).sum())
    return arm.units * float(weights.sum()) ** 2 / (squares * arm.blocks) if squares else 0.0


Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """A figure in each resample, shape (resamples,): its value, its value to the first order, its standard error."""

    value: Values
    line: Values
    error: Values


class Arms:
    """Both arms, of which samples are drawn: together if they have the same blocks."""

    def __init__(self, made: Sequence[Statistic], blocks: Sequence[Blocks], shares: Values | None, paired: bool):
        """`made`, `blocks`: of the baseline and of the treatment. `shares`: of the strata, if there are any."""
        self._made, self._paired = made, paired
        self._blocks = blocks[:1] if paired else blocks
        self._split = made[0].columns.shape[1]
        columns = [statistic.columns for statistic in made]
        # Of each sum, which one is the weight that goes with it: the first of its arm.
        weights = [np.zeros(matrix.shape[1], dtype=np.int64) for matrix in columns]
        if paired:
            columns = [np.concatenate(columns, axis=1)]
            weights = [np.concatenate([weights[0], weights[1] + self._split])]
        self._sums = [Sums(*parts, shares) for parts in zip(columns, weights, self._blocks, strict=True)]

    @property
    def drawn_from(self) -> int:
        """The number of blocks to draw, of both arms if they are drawn separately."""
        return sum(blocks.count for blocks in self._blocks)

    def spreads(self, resamples: int, generator: np.random.Generator) -> dict[str, Spread]:
        """Each figure with its resamples."""
        whole = self._whole()
        with one_blas_thread():
            resampled = self._figures(draws(self._blocks, resamples, generator))
        quantiles = [statistic for statistic in self._made if isinstance(statistic, Quantile)]
        smooth = self._paired and all(statistic.smooth for statistic in quantiles)
        # Of arms that are equal, rounding leaves some 1e-8 of their errors as that of the difference.
        alike = self._paired and np.array_equal(self._made[0].columns, self._made[1].columns)
        # Quantiles whose arms rank their units alike have equal columns, too.
        equal = alike and whole["difference"].value[0] == 0
        freedom = dict(zip(("baseline", "treatment"), (blocks.freedom for blocks in self._blocks), strict=False))
        figures: dict[str, Spread] = {}
        for name, at in whole.items():
            free = freedom.get(name, min(freedom.values()))
            value, error = float(at.value[0]), float(at.error[0])
            if equal and name in ("difference", "percent"):
                figures[name] = Studentised(0.0 * value, 0.0, np.zeros(1), np.zeros(1), free)
                continue
            drawn = resampled[name]
            if not quantiles or (smooth and name in ("difference", "percent")):
                figures[name] = Studentised(value, error, drawn.line - at.line, drawn.error, free)
            else:
                figures[name] = Percentiles(
                    value, error, drawn.value, min(free, *(quantile.freedom for quantile in quantiles))
                )
        return figures

    def jackknifed(self) -> Evidence:
        """The figures with each block left out in turn."""
        base, treat = (statistic.columns.sum(axis=0) - statistic.columns for statistic in self._made)
        without = (self._made[0].of(base), self._made[1].of(treat))
        values = self.values()
        return jackknifed((values["baseline"], values["treatment"]), without, self._paired, self.bounds)

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The range of each value."""
        return possible(*(statistic.bounds for statistic in self._made))

    def values(self) -> dict[str, float]:
        """The figures alone."""
        return {name: float(at.value[0]) for name, at in self._whole().items()}

    def _whole(self) -> Mapping[str, Drawn]:
        return self._figures([[np.ones((1, blocks.count)) for blocks in self._blocks]])

    def _figures(self, drawn: Iterable[Sequence[Values]]) -> Mapping[str, Drawn]:
        """Of all resamples, whose draws come in pieces: of each arm, shape (some resamples, blocks)."""
        pieces = [[sums.drawn(piece) for sums, piece in zip(self._sums, batch, strict=True)] for batch in drawn]
        of_arms = [np.concatenate(of_arm, axis=1) for of_arm in zip(*pieces, strict=True)]
        sums = np.concatenate(
            [arm_sums.of(of_arm) for arm_sums, of_arm in zip(self._sums, of_arms, strict=True)], axis=1
        )
        parts = (sums[:, : self._split], sums[:, self._split :])
        values = [statistic.of(part) for statistic, part in zip(self._made, parts, strict=True)]
        lines, slopes = zip(*(made.line(part) for made, part in zip(self._made, parts, strict=True)), strict=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = self._errors(_turned(*lines, *slopes), of_arms)
            made = zip(_both(*values).items(), _both(*lines).values(), errors, strict=True)
            return {name: Drawn(value, line, error) for (name, value), line, error in made}

    def _errors(self, slopes: Sequence[Values], of_arms: Sequence[Values]) -> list[Values]:
        """Of figures whose derivatives are `slopes` (resamples, sums of both arms)."""
        if self._paired:
            squares = self._sums[0].variances(of_arms[0], slopes)
        else:
            of_one = self._sums[0].variances(of_arms[0], [slope[:, : self._split] for slope in slopes])
            of_other = self._sums[1].variances(of_arms[1], [slope[:, self._split :] for slope in slopes])
            squares = [baseline + other for baseline, other in zip(of_one, of_other, strict=True)]
        return [np.sqrt(np.maximum(square, 0)) for square in squares]


def _both(base: Values, treat: Values) -> dict[str, Values]:
    percent = np.where(base == 0, np.nan, 100 * (treat / base - 1))
    return {"baseline": base, "treatment": treat, "difference": treat - base, "percent": percent}


def _turned(base: Values, treat: Values, of_base: Values, of_treat: Values) -> list[Values]:
    """Derivatives of the same four with respect to all sums, from those of each arm."""
    ones, none = np.ones(len(base)), np.zeros(len(base))
    factors = [(ones, none), (none, ones), (-ones, ones), (-100 * treat / base**2, 100 / base)]
    return [np.concatenate([left[:, None] * of_base, right[:, None] * of_treat], axis=1) for left, right in factors]


Make = Callable[[ArmRows, Blocks, Values], Statistic]


def of_sample(sample: TwoArms, make: Make, statistic: str, design: Design) -> Comparison:
    """The comparison of a sample that is read, by the statistic that `make` makes of an arm."""
    baseline, other = sample.baseline, sample.treatment
    reason = shortage(sample, statistic, design.least)
    evidence: Evidence | None = None
    method_words = "none"
    generator = np.random.default_rng(design.seed)
    units = units_of((baseline.units, other.units), sample.paired)
    if min(baseline.units, other.units) == 0 or _lacks_stratum(sample):
        reason = reason or _lacks_stratum(sample)
        estimates = dict.fromkeys(FIGURES, Estimate(math.nan))
    elif reason:
        values = _arms(sample, make, generator, design.shares).values()
        estimates = {name: Estimate(values[name], replicates=units[name]) for name in FIGURES}
    elif sample.block == REPLICATE and len(sample.strata) == 1 and min(baseline.blocks, other.blocks) < LEAST_BLOCKS:
        evidence = _arms(sample, make, generator, design.shares).jackknifed()
        estimates = evidence.estimates(design.confidence)
        method_words = f"delete-one jackknife over {'pairs of ' if sample.paired else ''}replicates, Student's t"
        reason = _no_interval(estimates)
    else:
        arms = _arms(sample, make, generator, design.shares)
        spreads = arms.spreads(design.resamples, generator)
        evidence = Evidence(spreads, arms.bounds, units, sample.paired)
        estimates = evidence.estimates(design.confidence)
        method_words = described(sample, spreads, design.resamples, arms.drawn_from)
        reason = _no_interval(estimates)
    return Comparison(
        statistic,
        **estimates,
        units=units["difference"],
        unmatched=(baseline.unmatched, other.unmatched),
        unfinished=(baseline.unfinished, other.unfinished),
        unknown=(baseline.unknown, other.unknown),
        method=method_words,
        confidence=design.confidence,
        reason=reason,
        evidence=evidence,
    )


def _no_interval(estimates: Mapping[str, Estimate]) -> str:
    if not math.isnan(estimates["difference"].low):
        return ""
    if any(math.isinf(estimates[name].high) for name in ("baseline", "treatment")):
        return "too many did not finish: in a resample the statistic of both arms is beyond every finished one"
    return "so few units have anything to divide by that a resample may hold none of them"


def _lacks_stratum(sample: TwoArms) -> str:
    for place, name in enumerate(sample.strata):
        for title, arm in (("baseline", sample.baseline), ("treatment", sample.treatment)):
            if not (arm.stratum == place).any():
                return f"the {title} has no unit of stratum {name}"
    return ""


def _arms(sample: TwoArms, make: Make, generator: np.random.Generator, shares: Mapping[str, float] | None) -> Arms:
    arms = (sample.baseline, sample.treatment)
    first = blocks_of(arms[0], generator, MOST_BLOCKS)
    blocks = (first, first if sample.paired else blocks_of(arms[1], generator, MOST_BLOCKS))
    stratum_shares = _shares(sample, shares)
    made = [make(arm, block, _scaled(arm, stratum_shares)) for arm, block in zip(arms, blocks, strict=True)]
    return Arms(made, blocks, stratum_shares, sample.paired)


def _scaled(arm: ArmRows, shares: Values | None) -> Values:
    """Weights that give each stratum its share."""
    if shares is None:
        return arm.weight
    of = arm.stratum[arm.block]
    return np.asarray(arm.weight * (shares / np.bincount(of, arm.weight))[of], dtype=np.float64)


def _shares(sample: TwoArms, shares: Mapping[str, float] | None) -> Values | None:
    """Share of each stratum, in the order of `TwoArms.strata`; None without strata."""
    if len(sample.strata) == 1 and sample.strata[0] == "":
        if shares is not None:
            raise ValueError("shares: they are those of strata, and no strata are named")
        return None
    if shares is None:
        weights = sum(
            np.bincount(arm.stratum[arm.block], arm.weight, len(sample.strata))
            for arm in (sample.baseline, sample.treatment)
        )
        fractions: Values = np.asarray(weights / np.sum(weights), dtype=np.float64)
        return fractions
    if set(shares) != set(sample.strata) or min(shares.values()) <= 0:
        raise ValueError(f"shares: give each of the strata {', '.join(sample.strata)} a share above 0")
    given = np.array([shares[name] for name in sample.strata], dtype=np.float64)
    return np.asarray(given / given.sum(), dtype=np.float64)
