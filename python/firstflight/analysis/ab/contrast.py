"""From a sample of two arms to their comparison: enough units, statistics of both arms in resamples, values of both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from firstflight.analysis.ab.comparison import Comparison, described
from firstflight.analysis.ab.resampling import MOST_BLOCKS, Blocks, Key, Sums, blocks_of, drawn, one_blas_thread
from firstflight.analysis.ab.sample import ArmRows, Design, TwoArms
from firstflight.analysis.ab.statistic import Quantile, Statistic, share_of
from firstflight.analysis.intervals import (
    COMPARED,
    Bounds,
    Estimate,
    Evidence,
    Percentiles,
    Spread,
    Studentized,
    both,
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


class Arms:
    """Both arms, of which samples are drawn: together if they have the same blocks."""

    def __init__(self, made: Sequence[Statistic], blocks: Sequence[Blocks], shares: Values | None, state: str):
        """`made`, `blocks`: of the baseline and of the treatment. `shares`: of the strata, if any; `state`: of the
        generator.
        """
        self._made, self._paired = made, blocks[0] is blocks[1]
        self._blocks = blocks[:1] if self._paired else blocks
        self.key: Key = (state, tuple(tuple(of.sizes.tolist()) for of in self._blocks))
        self._split = len(made[0].columns)
        columns = [statistic.columns for statistic in made]
        # Of each sum, which one is the weight that goes with it: the first of its arm.
        weights = [np.zeros(len(matrix), dtype=np.int64) for matrix in columns]
        if self._paired:
            columns = [np.concatenate(columns)]
            weights = [np.concatenate([weights[0], weights[1] + self._split])]
        self.sums = [Sums(*parts, shares) for parts in zip(columns, weights, self._blocks, strict=True)]
        """Of both arms or, if they are drawn separately, of each."""

    @property
    def drawn_from(self) -> int:
        """The number of blocks to draw, of both arms if they are drawn separately."""
        return sum(blocks.count for blocks in self._blocks)

    def spreads(self, drawn: Sequence[Values]) -> dict[str, Spread]:
        """Each value with its resamples, from what is `drawn` of each of `sums`: first the sample itself."""
        sums = np.concatenate([of_arms.of(of_drawn) for of_arms, of_drawn in zip(self.sums, drawn, strict=True)])
        parts = (sums[: self._split], sums[self._split :])
        lines, slopes = zip(*(made.line(part) for made, part in zip(self._made, parts, strict=True)), strict=True)
        values = both(*(made.of(part) for made, part in zip(self._made, parts, strict=True)))
        in_first_order, errors = both(*lines), self._errors(drawn, *lines, *slopes)
        quantiles = [statistic for statistic in self._made if isinstance(statistic, Quantile)]
        smooth = self._paired and all(statistic.smooth for statistic in quantiles)
        # Of arms that are equal, rounding leaves some 1e-8 of their errors as that of the difference.
        alike = self._paired and np.array_equal(self._made[0].columns, self._made[1].columns)
        # Quantiles whose arms rank their units alike have equal columns, too.
        equal = alike and values["difference"][0] == 0
        freedom = dict(zip(("baseline", "treatment"), (blocks.freedom for blocks in self._blocks), strict=False))
        spreads: dict[str, Spread] = {}
        for name, drawn_errors in zip(COMPARED, errors, strict=True):
            free: float = freedom.get(name, min(freedom.values()))
            value, line, error = float(values[name][0]), in_first_order[name], float(drawn_errors[0])
            if equal and name in ("difference", "percent"):
                spreads[name] = Studentized(0.0 * value, 0.0, np.zeros(1), np.zeros(1), free)
            elif not quantiles or (smooth and name in ("difference", "percent")):
                spreads[name] = Studentized(value, error, line[1:] - line[0], drawn_errors[1:], free)
            else:
                free = min(free, *(quantile.freedom for quantile in quantiles))
                spreads[name] = Percentiles(value, error, values[name][1:], free)
        return spreads

    def jackknifed(self) -> Evidence:
        """The values with each block left out in turn."""
        base, treat = (statistic.columns.sum(axis=1, keepdims=True) - statistic.columns for statistic in self._made)
        without = (self._made[0].of(base), self._made[1].of(treat))
        values = self.values()
        return jackknifed((values["baseline"], values["treatment"]), without, self._paired, self.bounds)

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The range of each value."""
        return possible(*(statistic.bounds for statistic in self._made))

    def values(self) -> dict[str, float]:
        """The values alone."""
        values = (statistic.of(statistic.columns.sum(axis=1, keepdims=True)) for statistic in self._made)
        return {name: float(value[0]) for name, value in both(*values).items()}

    def _errors(self, drawn: Sequence[Values], base: Values, treat: Values, *slopes: Values) -> list[Values]:
        """Of `COMPARED`, from the values of both arms and their derivatives with respect to the sums of each."""
        none = np.zeros(slopes[0].shape)
        of_both = np.array([np.concatenate([slopes[0], none]), np.concatenate([none, slopes[1]])])
        parts = [of_both] if self._paired else [of_both[:, : self._split], of_both[:, self._split :]]
        with np.errstate(invalid="ignore", divide="ignore"):
            found = [sums.covariances(*of) for sums, *of in zip(self.sums, drawn, parts, strict=True)]
            (of_base, joint), (_, of_treat) = np.sum(found, axis=0)
            change = (of_treat - 2 * treat / base * joint + (treat / base) ** 2 * of_base) * (100 / base) ** 2
        squares = (of_base, of_treat, of_base + of_treat - 2 * joint, change)
        return [np.sqrt(np.maximum(square, 0)) for square in squares]


Make = Callable[[ArmRows, Blocks, Values], Statistic]


def of_samples(samples: Sequence[TwoArms], make: Make, statistic: str, design: Design) -> list[Comparison]:
    """Each sample by the statistic that `make` makes of an arm. Those with the same units are drawn at once."""
    asked = [(sample, shortage(sample, statistic, design.least), _arms(sample, make, design)) for sample in samples]
    together: dict[Key, list[Arms]] = {}
    for sample, reason, arms in asked:
        if arms is not None and not reason and not _has_few_replicates(sample):
            together.setdefault(arms.key, []).append(arms)
    spreads: dict[Arms | None, dict[str, Spread]] = {}
    with one_blas_thread():
        for key, group in together.items():
            found = drawn([arms.sums for arms in group], key, design.resamples)
            spreads |= {arms: arms.spreads(of_arms) for arms, of_arms in zip(group, found, strict=True)}
    return [_comparison(sample, statistic, design, reason, arms, spreads.get(arms)) for sample, reason, arms in asked]


def _has_few_replicates(sample: TwoArms) -> bool:
    few = min(sample.baseline.blocks, sample.treatment.blocks) < LEAST_BLOCKS
    return sample.block == REPLICATE and len(sample.strata) == 1 and few


def _comparison(
    sample: TwoArms, statistic: str, design: Design, reason: str, arms: Arms | None, spreads: dict[str, Spread] | None
) -> Comparison:
    baseline, other = sample.baseline, sample.treatment
    evidence: Evidence | None = None
    method_words = "none"
    units = units_of((baseline.units, other.units), sample.paired)
    if arms is None:
        reason = reason or _lacks_stratum(sample)
        estimates = dict.fromkeys(COMPARED, Estimate(math.nan))
    elif reason:
        values = arms.values()
        estimates = {name: Estimate(values[name], replicates=units[name]) for name in COMPARED}
    else:
        if spreads is None:
            evidence = arms.jackknifed()
            method_words = f"delete-one jackknife over {'pairs of ' if sample.paired else ''}replicates, Student's t"
        else:
            evidence = Evidence(spreads, arms.bounds, units, sample.paired)
            method_words = described(sample, spreads, design.resamples, arms.drawn_from)
        estimates = evidence.estimates(design.confidence)
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


def _arms(sample: TwoArms, make: Make, design: Design) -> Arms | None:
    """None if an arm has no units, or none of a stratum."""
    arms = (sample.baseline, sample.treatment)
    if min(arm.units for arm in arms) == 0 or _lacks_stratum(sample):
        return None
    generator = np.random.default_rng(design.seed)
    first = blocks_of(arms[0], generator, MOST_BLOCKS)
    blocks = (first, first if sample.paired else blocks_of(arms[1], generator, MOST_BLOCKS))
    stratum_shares = _shares(sample, design.shares)
    made = [make(arm, block, _scaled(arm, stratum_shares)) for arm, block in zip(arms, blocks, strict=True)]
    return Arms(made, blocks, stratum_shares, json.dumps(generator.bit_generator.state))


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
