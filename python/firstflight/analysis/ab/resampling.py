"""The number of draws of each block of an arm, per resample, and the sums over the drawn ones.

The ordinary bootstrap: as many blocks as there are, with replacement, within each stratum. More than `MOST_BLOCKS`
blocks are first put at random into that many groups, which are then drawn instead: sums of independent blocks spread as
the blocks do (variance and third moment are kept on average), and with that many groups the spread is known to about
2%, which the interval allows for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from firstflight.analysis.ab.sample import ArmRows


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS works with one thread.

    The products of a resampling are small: BLAS's threads would wait for each other for longer than they work, and take
    several times the CPU.
    """
    context: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return context


@cache
def _libraries() -> ThreadpoolController:
    # To find the libraries takes milliseconds.
    return ThreadpoolController()


Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

MOST_BLOCKS = 2000
_AT_ONCE = 1 << 17
"""Numbers in one piece of work. Half as many take an eighth more CPU, twice as many do not fit the cache."""
_KEPT = 40
"""Draws: those of all users and of the buckets of four dimensions of them. A byte each: 100 MB for 4,000 users."""


@dataclass(frozen=True)
class Blocks:
    """The blocks to draw from, sorted by stratum. `of`: the place here of each block of the arm; `sizes`: how many each
    stratum has.
    """

    of: Places
    sizes: Places

    @property
    def count(self) -> int:
        """Their number."""
        return int(self.sizes.sum())

    @property
    def starts(self) -> Places:
        """First place of each stratum."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a spread among them."""
        return self.count - len(self.sizes)

    def sums(self, arm: ArmRows, *columns: Values) -> Values:
        """Of each column (rows of the arm,) in each block: shape (columns, blocks)."""
        place = self.of[arm.block]
        return np.stack([np.bincount(place, column, self.count) for column in columns])


def blocks_of(arm: ArmRows, generator: np.random.Generator, most: int) -> Blocks:
    """The arm's blocks or, of many, random groups of them: each stratum gets its share, at least two where it can.

    ValueError if a stratum has no block.
    """
    sizes = np.bincount(arm.stratum).astype(np.int64)
    if not sizes.all():
        raise ValueError("a stratum has no block")
    if arm.blocks <= most:
        return Blocks(np.arange(arm.blocks), sizes)
    groups = np.minimum(sizes, np.maximum(2, sizes * most // arm.blocks))
    places = [generator.permutation(size) % group for size, group in zip(sizes, groups, strict=True)]
    return Blocks(np.concatenate(places) + np.repeat(np.cumsum(groups) - groups, sizes), groups)


Key = tuple[str, tuple[tuple[int, ...], ...]]
"""What alone decides on draws, so that comparisons of the same units from the same seed share them: the generator's
state, and of each arm the sizes of its strata.
"""


def drawn(of: Sequence[Sequence[Sums]], key: Key, resamples: int) -> list[list[Values]]:
    """Of each comparison, whose arms have the blocks of `key`, what `Sums.of` reads of each arm. The first draw has
    every block once.
    """
    by_arm = []
    for arm, parts in enumerate(zip(*of, strict=True)):
        # Comparisons with the same baseline have it once, as each the product of two columns.
        rows: dict[bytes, tuple[int, Values]] = {}
        places = [[rows.setdefault(row.tobytes(), (len(rows), row))[0] for row in sums.columns] for sums in parts]
        columns = np.reshape([row for _, row in rows.values()], (-1, sum(key[1][arm])))
        ends = np.cumsum(key[1][arm])
        found = np.empty((len(ends), len(columns), 1 + resamples))
        done = 0
        for piece in draws(key, resamples):
            counts = piece[arm].astype(np.float64)
            for stratum, (end, size) in enumerate(zip(ends, key[1][arm], strict=True)):
                inside = slice(end - size, end)
                np.matmul(columns[:, inside], counts[:, inside].T, out=found[stratum, :, done : done + len(counts)])
            done += len(counts)
        by_arm.append([found[:, place] for place in places])
    return [list(of_arms) for of_arms in zip(*by_arm, strict=True)]


@lru_cache(maxsize=_KEPT)
def draws(key: Key, resamples: int) -> list[list[npt.NDArray[np.uint8]]]:
    """The number of draws of each block, of each arm: in pieces of shape (some resamples, blocks)."""
    state, sizes = key
    generator = np.random.default_rng()
    generator.bit_generator.state = json.loads(state)
    at_once = max(1, _AT_ONCE // max(map(sum, sizes)))
    pieces = [[np.ones((1, sum(of)), dtype=np.uint8) for of in sizes]]
    for first in range(0, resamples, at_once):
        rows = min(at_once, resamples - first)
        pieces.append([np.concatenate([_counts(rows, n, generator) for n in of], axis=1) for of in sizes])
    return pieces


def _counts(rows: int, size: int, generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    drawn = generator.integers(0, size, (rows, size))
    drawn += np.arange(rows)[:, None] * size
    # One of 256 blocks or more is drawn 256 times with a probability below 1e-500.
    return np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.uint8)


class Sums:
    """Weighted sums over drawn blocks, and how a linear combination of them varies from one draw of that kind to
    another. Columns that are equal, as the weights of paired arms are, count once, and a column that is the same in
    every block of a stratum does not vary.
    """

    def __init__(self, columns: Values, weights: Places, blocks: Blocks, shares: Values | None) -> None:
        """`columns` (sums, blocks); `weights` (sums,): which of them is the weight that each goes with. `shares`: of
        the weight, of each stratum, to which every draw is brought (post-stratification); None: as they are.
        """
        first: dict[bytes, int] = {}
        self._at = np.array([first.setdefault(column.tobytes(), len(first)) for column in columns])
        distinct = columns[np.unique(self._at, return_index=True)[1]]
        self._weights = np.zeros(len(first), dtype=np.int64)
        self._weights[self._at] = self._at[weights]
        self._blocks, self._shares = blocks, shares
        self._once = np.equal.outer(np.arange(len(first)), self._at).astype(np.float64)
        self._means = np.add.reduceat(distinct, blocks.starts, axis=1) / blocks.sizes
        centered = distinct - np.repeat(self._means, blocks.sizes, axis=1)
        self._varying = np.flatnonzero(centered.any(axis=1))
        centered = centered[self._varying]
        # About the means: the difference of two nearly equal arms must not drown in rounding.
        self.columns = np.concatenate([centered, *(centered * column for column in centered)])
        """To be summed over drawn blocks, shape (some columns, blocks)."""

    def of(self, drawn: Values) -> Values:
        """The sums (sums, resamples), from those of `columns` over the drawn blocks of each stratum (strata, columns,
        resamples).
        """
        totals = self._totals(drawn)
        if self._shares is not None:
            totals = (share * total / total[self._weights] for share, total in zip(self._shares, totals, strict=True))
        sums: Values = np.sum(list(totals), axis=0)[self._at]
        return sums

    def covariances(self, drawn: Values, slopes: Values) -> Values:
        """In each draw, of combinations of the sums with the factors `slopes` (combinations, sums, resamples): shape
        (combinations, combinations, resamples).
        """
        slopes = self._once @ slopes
        varying, resamples = len(self._varying), drawn.shape[2]
        found = np.zeros((len(slopes), len(slopes), resamples))
        for stratum, (total, size) in enumerate(zip(self._totals(drawn), self._blocks.sizes, strict=True)):
            off, products = drawn[stratum, :varying], drawn[stratum, varying:].reshape(varying, varying, resamples)
            covariance = (products - off[:, None] * off / size) * (size / max(size - 1, 1))
            here = slopes if self._shares is None else self._unscaled(slopes, total, self._shares[stratum])
            here = here[:, self._varying]
            half = np.einsum("lrn,irn->iln", covariance, here)
            found += np.einsum("iln,jln->ijn", half, here)
        return found

    def _totals(self, drawn: Values) -> Iterator[Values]:
        """The distinct sums of each stratum."""
        for stratum, size in enumerate(self._blocks.sizes):
            total = np.repeat(size * self._means[:, stratum, None], drawn.shape[2], axis=1)
            total[self._varying] += drawn[stratum, : len(self._varying)]
            yield total

    def _unscaled(self, slopes: Values, total: Values, share: float) -> Values:
        """Factors of the sums, from those of share * sum / weight."""
        weight = total[self._weights]
        of_weight = np.equal.outer(np.arange(len(self._weights)), self._weights).astype(np.float64)
        return np.asarray(share * (slopes / weight - of_weight @ (slopes * total / weight**2)), dtype=np.float64)
