"""From a sample of two arms to their comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from firstflight.analysis.ab.comparison import Comparison, described
from firstflight.analysis.ab.design import Design
from firstflight.analysis.ab.figures import Arms
from firstflight.analysis.ab.interval import FIGURES, Evidence, Resampled
from firstflight.analysis.ab.least import LEAST_BLOCKS, REPLICATE, shortage
from firstflight.analysis.ab.resampling import MOST_BLOCKS, Blocks, blocks_of
from firstflight.analysis.ab.sample import Arm, Sample
from firstflight.analysis.ab.statistic import Statistic
from firstflight.analysis.intervals import Estimate

Values = npt.NDArray[np.float64]
Make = Callable[[Arm, Blocks, Values], Statistic]


def of_sample(
    sample: Sample,
    make: Make,
    statistic: str,
    design: Design,
) -> Comparison:
    """The comparison of a sample that is read, by the statistic that `make` makes of an arm."""
    one, other = sample.baseline, sample.treatment
    reason = shortage(sample, statistic, design.least)
    evidence: Evidence | None = None
    method_words = "none"
    generator = np.random.default_rng(design.seed)
    units = {"baseline": one.units, "treatment": other.units}
    units |= dict.fromkeys(("difference", "percent"), one.units if sample.paired else one.units + other.units)
    if min(one.units, other.units) == 0 or _lacks_stratum(sample):
        reason = reason or _lacks_stratum(sample)
        found = dict.fromkeys(FIGURES, Estimate(math.nan))
    elif reason:
        values = _arms(sample, make, generator, design.shares).values()
        found = {name: Estimate(values[name], replicates=units[name]) for name in FIGURES}
    elif sample.block == REPLICATE and len(sample.strata) == 1 and min(one.blocks, other.blocks) < LEAST_BLOCKS:
        evidence = _arms(sample, make, generator, design.shares).jackknifed()
        found = evidence.estimates(design.confidence)
        method_words = f"delete-one jackknife over {'pairs of ' if sample.paired else ''}replicates, Student's t"
        reason = _no_interval(found)
    else:
        arms = _arms(sample, make, generator, design.shares)
        spreads = arms.spreads(design.resamples, generator)
        evidence = Resampled(spreads, arms.bounds, units, sample.paired)
        found = evidence.estimates(design.confidence)
        method_words = described(sample, spreads, design.resamples, arms.drawn_from)
        reason = _no_interval(found)
    return Comparison(
        statistic,
        found["baseline"],
        found["treatment"],
        found["difference"],
        found["percent"],
        units=units["difference"],
        unmatched=(one.unmatched, other.unmatched),
        unfinished=(one.unfinished, other.unfinished),
        unknown=(one.unknown, other.unknown),
        p_value=math.nan if evidence is None else evidence.p_value,
        standard_error=math.nan if evidence is None else evidence.standard_error,
        method=method_words,
        confidence=design.confidence,
        reason=reason,
        evidence=evidence,
    )


def _no_interval(found: Mapping[str, Estimate]) -> str:
    if not math.isnan(found["difference"].low):
        return ""
    if any(math.isinf(found[name].high) for name in ("baseline", "treatment")):
        return "too many did not finish: in a resample the statistic of both arms is beyond every finished one"
    return "so few units have anything to divide by that a resample may hold none of them"


def _lacks_stratum(sample: Sample) -> str:
    for place, name in enumerate(sample.strata):
        for title, arm in (("baseline", sample.baseline), ("treatment", sample.treatment)):
            if not (arm.stratum == place).any():
                return f"the {title} has no unit of stratum {name}"
    return ""


def _arms(sample: Sample, make: Make, generator: np.random.Generator, shares: Mapping[str, float] | None) -> Arms:
    arms = (sample.baseline, sample.treatment)
    first = blocks_of(arms[0], generator, MOST_BLOCKS)
    blocks = (first, first if sample.paired else blocks_of(arms[1], generator, MOST_BLOCKS))
    wanted = _shares(sample, shares)
    made = [make(arm, block, _scaled(arm, wanted)) for arm, block in zip(arms, blocks, strict=True)]
    return Arms(made, blocks, wanted, sample.paired)


def _scaled(arm: Arm, shares: Values | None) -> Values:
    """Weights that give each stratum its share."""
    if shares is None:
        return arm.weight
    of = arm.stratum[arm.block]
    return np.asarray(arm.weight * (shares / np.bincount(of, arm.weight))[of], dtype=np.float64)


def _shares(sample: Sample, shares: Mapping[str, float] | None) -> Values | None:
    """Share of each stratum, in the order of `Sample.strata`; None without strata."""
    if len(sample.strata) == 1 and sample.strata[0] == "":
        if shares is not None:
            raise ValueError("shares: they are those of strata, and no strata are named")
        return None
    if shares is None:
        weights = sum(
            np.bincount(arm.stratum[arm.block], arm.weight, len(sample.strata))
            for arm in (sample.baseline, sample.treatment)
        )
        found: Values = np.asarray(weights / np.sum(weights), dtype=np.float64)
        return found
    if set(shares) != set(sample.strata) or min(shares.values()) <= 0:
        raise ValueError(f"shares: give each of the strata {', '.join(sample.strata)} a share above 0")
    given = np.array([shares[name] for name in sample.strata], dtype=np.float64)
    return np.asarray(given / given.sum(), dtype=np.float64)
