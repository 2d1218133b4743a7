"""Both arms' statistics in resamples, the values computed from the two, and their variation within a resample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from firstflight.analysis.ab.interval import (
    Bounds,
    Jackknifed,
    Percentiles,
    Spread,
    Studentised,
    jackknifed,
    possible,
)
from firstflight.analysis.ab.quantile import Quantile
from firstflight.analysis.ab.resampling import Blocks, Sums, draws
from firstflight.analysis.ab.statistic import Statistic
from firstflight.analysis.ab.threads import one_blas_thread

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
        weights = [np.zeros(each.shape[1], dtype=np.int64) for each in columns]
        if paired:
            columns = [np.concatenate(columns, axis=1)]
            weights = [np.concatenate([weights[0], weights[1] + self._split])]
        self._sums = [Sums(*each, shares) for each in zip(columns, weights, self._blocks, strict=True)]

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
        found: dict[str, Spread] = {}
        for name, at in whole.items():
            free = freedom.get(name, min(freedom.values()))
            value, error = float(at.value[0]), float(at.error[0])
            if equal and name in ("difference", "percent"):
                found[name] = Studentised(0.0 * value, 0.0, np.zeros(1), np.zeros(1), free)
                continue
            drawn = resampled[name]
            if not quantiles or (smooth and name in ("difference", "percent")):
                found[name] = Studentised(value, error, drawn.line - at.line, drawn.error, free)
            else:
                found[name] = Percentiles(value, error, drawn.value, min(free, *(each.freedom for each in quantiles)))
        return found

    def jackknifed(self) -> Jackknifed:
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
        pieces = [[sums.drawn(piece) for sums, piece in zip(self._sums, each, strict=True)] for each in drawn]
        of_arms = [np.concatenate(of_arm, axis=1) for of_arm in zip(*pieces, strict=True)]
        sums = np.concatenate([each.of(of_arm) for each, of_arm in zip(self._sums, of_arms, strict=True)], axis=1)
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
            squares = [one + other for one, other in zip(of_one, of_other, strict=True)]
        return [np.sqrt(np.maximum(square, 0)) for square in squares]


def _both(base: Values, treat: Values) -> dict[str, Values]:
    percent = np.where(base == 0, np.nan, 100 * (treat / base - 1))
    return {"baseline": base, "treatment": treat, "difference": treat - base, "percent": percent}


def _turned(base: Values, treat: Values, of_base: Values, of_treat: Values) -> list[Values]:
    """Derivatives of the same four with respect to all sums, from those of each arm."""
    one, none = np.ones(len(base)), np.zeros(len(base))
    factors = [(one, none), (none, one), (-one, one), (-100 * treat / base**2, 100 / base)]
    return [np.concatenate([left[:, None] * of_base, right[:, None] * of_treat], axis=1) for left, right in factors]
