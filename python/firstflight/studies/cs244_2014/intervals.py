"""Bootstrap intervals of medians over responses.

Every user has a link of her own and nothing waits on the shared one, so users do not disturb one another, and a
response is long over when its user asks again: the response, not the replicate, is what is drawn again. (At the very
slowest, what was retransmitted in vain may still be in the queue.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.analysis.intervals import CONFIDENCE, Estimate, seed_of
from firstflight.studies.cs244_2014.grid import NAME, settings

Values = npt.NDArray[np.float64]


def median(values: pl.Series, quantity: str, cell: Hashable) -> Estimate:
    """The median of a quantity in a cell with its 95 % interval (percentile bootstrap); NaN without values, no interval
    with one.
    """
    kept = values.to_numpy().astype(np.float64)
    if len(kept) == 0:
        return Estimate(math.nan)
    if len(kept) == 1:
        return Estimate(float(kept[0]))
    drawn = kept[_draws(len(kept), quantity, cell)]
    low, high = _bounds(np.median(drawn, axis=1))
    return Estimate(float(np.median(kept)), low, high, len(kept))


def of_groups(groups: Mapping[Hashable, Values], quantity: str, statistic: Callable[[list[Values]], float]) -> Estimate:
    """A statistic of a quantity in groups of responses (users, buckets), with the interval from drawing again each
    group among itself: the bandwidths stay as they are.
    """
    value = statistic(list(groups.values()))
    places = [_draws(len(group), quantity, name) for name, group in groups.items()]
    found = [
        statistic([group[place[draw]] for group, place in zip(groups.values(), places, strict=True)])
        for draw in range(settings()["bootstrap"])
    ]
    low, high = _bounds(np.array(found))
    return Estimate(value, low, high, len(groups))


def _draws(count: int, quantity: str, cell: Hashable) -> npt.NDArray[np.int64]:
    """Places of drawn responses, a row a draw; always the same ones, so that a report does not change when read."""
    generator = np.random.default_rng(seed_of(NAME, quantity, cell))
    return generator.integers(0, count, size=(settings()["bootstrap"], count))


def _bounds(found: Values) -> tuple[float, float]:
    outside = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(found, [outside, 100 - outside])
    return float(low), float(high)
