"""Medians, quartiles, and 95 % intervals of what is computed from medians.

For what was measured in real time, where a mean would follow the machine's worst moments. Samples of different places
are taken as independent of one another: they were not drawn from common random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from firstflight.analysis.intervals import CONFIDENCE, Estimate, seed_of

Values = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

_RESAMPLED = 500
"""Enough for the ends of a 95 % interval to stay within about a twentieth of its width."""


@dataclass(frozen=True)
class Sample:
    """Repetitions of one measurement. `left_out`: how many more there are that were not undisturbed."""

    values: tuple[float, ...]
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many repetitions there were, those left out included."""
        return len(self.values) + self.left_out

    @property
    def mostly_left_out(self) -> bool:
        """Whether more than half were."""
        return 2 * self.left_out > self.count

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median, upper quartile (linear between neighbours). ValueError without values."""
        if not self.values:
            raise ValueError("a sample without values has no quartiles")
        lower, median, upper = np.quantile(self.values, (0.25, 0.5, 0.75))
        return float(lower), float(median), float(upper)

    @property
    def median(self) -> float:
        """The median of those that count."""
        return self.quartiles[1]


class Medians(Generic[Key]):
    """The median of each place, first as measured and then of resampled repetitions: what a statistic computes with."""

    def __init__(self, samples: Mapping[Key, Sample], study: str) -> None:
        """Resamples are drawn by the name of the study and the place, so the order of reading moves nothing."""
        self._samples = samples
        self._study = study
        self._drawn: dict[Key, Values] = {}
        self._fewest: list[int] = []

    def __call__(self, key: Key) -> Values:
        """Medians of `key`, shape (1 + resamples,). KeyError if nothing was measured there."""
        if key not in self._drawn:
            sample = self._samples[key]
            if not sample.values:
                raise KeyError(key)
            values = np.array(sample.values)
            generator = np.random.default_rng(seed_of(self._study, "median", key))
            picked = generator.integers(0, len(values), (_RESAMPLED, len(values)))
            self._drawn[key] = np.concatenate([[np.median(values)], np.median(values[picked], axis=1)])
        self._fewest.append(len(self._samples[key].values))
        return self._drawn[key]

    def __contains__(self, key: object) -> bool:
        return key in self._samples and bool(self._samples[key].values)  # type: ignore[index]

    def estimate(self, statistic: Callable[[Medians[Key]], Values]) -> Estimate:
        """A statistic with the interval that its resampled values span (percentile bootstrap).

        It gets and gives arrays of shape (1 + resamples,). Without an interval where nothing it read was repeated.
        """
        self._fewest.clear()
        found = statistic(self)
        value, resampled = float(found[0]), found[1:]
        fewest = min(self._fewest, default=0)
        if max(self._fewest, default=0) < 2:
            return Estimate(value, replicates=fewest)
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(resampled, (tail, 1 - tail))
        return Estimate(value, float(low), float(high), fewest)


def least(medians: Iterable[Values]) -> Values:
    """The smallest of several places' medians, resample by resample; ValueError for none."""
    found: Values = np.stack(list(medians)).min(axis=0)
    return found


def most(medians: Iterable[Values]) -> Values:
    """The largest of several places' medians, resample by resample; ValueError for none."""
    found: Values = np.stack(list(medians)).max(axis=0)
    return found


def mean(medians: Iterable[Values]) -> Values:
    """The mean of several places' medians, resample by resample; ValueError for none."""
    found: Values = np.stack(list(medians)).mean(axis=0)
    return found


def middle(medians: Iterable[Values]) -> Values:
    """The median of several places' medians, resample by resample; ValueError for none."""
    found: Values = np.median(np.stack(list(medians)), axis=0)
    return found
