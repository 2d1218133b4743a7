"""The number of draws of each block of an arm, per resample, and the sums over the drawn ones.

The ordinary bootstrap: as many blocks as there are, with replacement, within each stratum. More than `MOST_BLOCKS`
blocks are first put at random into that many groups, which are then drawn instead: sums of independent blocks spread as
the blocks do (variance and third moment are kept on average), and with that many groups the spread is known to about
2%, which the interval allows for.
"""

from __future__ import annotations

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
    """The blocks to draw from, sorted by stratum. `of`: the place here of each block of the arm; `starts`: first
    place of each stratum, `sizes`: how many it has.
    """

    of: Places
    starts: Places
    sizes: Places

    @property
    def count(self) -> int:
        """Their number."""
        return int(self.sizes.sum())

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a spread among them."""
        return self.count - len(self.sizes)

    def sums(self, arm: ArmRows, *columns: Values) -> Values:
        """Of each column (rows of the arm,) in each block: shape (blocks, columns)."""
        place = self.of[arm.block]
        return np.stack([np.bincount(place, column, self.count) for column in columns], axis=1)


def blocks_of(arm: ArmRows, generator: np.random.Generator, most: int) -> Blocks:
    """The arm's blocks or, of many, random groups of them: each stratum gets its share, at least two where it can.

    ValueError if a stratum has no block.
    """
    sizes = np.bincount(arm.stratum).astype(np.int64)
    if not sizes.all():
        raise ValueError("a stratum has no block")
    if arm.blocks <= most:
        of = np.arange(arm.blocks, dtype=np.int64)
        return Blocks(of, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), sizes)
    groups = np.minimum(sizes, np.maximum(2, sizes * most // arm.blocks))
    starts = np.concatenate([[0], np.cumsum(groups)[:-1]]).astype(np.int64)
    of = np.concatenate(
        [start + generator.permutation(size) % group for start, size, group in zip(starts, sizes, groups, strict=True)]
    )
    return Blocks(of.astype(np.int64), starts, groups)


def draws(of: Sequence[Blocks], resamples: int, generator: np.random.Generator) -> Iterator[list[Values]]:
    """The number of draws of each block, in pieces of shape (some resamples, blocks), until all resamples are done.

    The generator's state alone decides, and stays as it is: comparisons of the same units from the same seed share
    their draws.
    """
    state = generator.bit_generator.state
    key = (state["bit_generator"], tuple(state["state"].items()), state["has_uint32"], state["uinteger"])
    sizes = tuple(tuple(map(int, blocks.sizes)) for blocks in of)
    for piece in _drawn(key, sizes, resamples):
        yield [counts.astype(np.float64) for counts in piece]


_State = tuple[str, tuple[tuple[str, int], ...], int, int]


@lru_cache(maxsize=_KEPT)
def _drawn(state: _State, sizes: Sequence[Sequence[int]], resamples: int) -> list[list[npt.NDArray[np.uint8]]]:
    name, words, has_half, half = state
    bits = getattr(np.random, name)()
    bits.state = {"bit_generator": name, "state": dict(words), "has_uint32": has_half, "uinteger": half}
    generator = np.random.Generator(bits)
    at_once = max(1, _AT_ONCE // max(map(sum, sizes)))
    pieces = []
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
        """`columns` (blocks, sums); `weights` (sums,): which of them is the weight that each goes with. `shares`: of
        the weight, of each stratum, to which every draw is brought (post-stratification); None: as they are.
        """
        first: dict[bytes, int] = {}
        self._at = np.array([first.setdefault(column.tobytes(), len(first)) for column in columns.T])
        distinct = columns[:, np.unique(self._at, return_index=True)[1]]
        self._weights = np.zeros(len(first), dtype=np.int64)
        self._weights[self._at] = self._at[weights]
        self._blocks, self._shares, self._count = blocks, shares, len(first)
        of = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
        self._means = np.add.reduceat(distinct, blocks.starts) / blocks.sizes[:, None]
        centered = distinct - self._means[of]
        self._varying = np.flatnonzero(centered.any(axis=0))
        self._left, self._right = np.triu_indices(len(self._varying))
        centered = centered[:, self._varying]
        # About the means: the difference of two nearly equal arms must not drown in rounding.
        self._columns = np.concatenate([centered, centered[:, self._left] * centered[:, self._right]], axis=1)

    def drawn(self, counts: Values) -> Values:
        """The value of `of` for each draw, from how often each block is drawn, shape (resamples, blocks), in pieces."""
        ends = self._blocks.starts + self._blocks.sizes
        parts = zip(self._blocks.starts, ends, strict=True)
        return np.array([counts[:, start:end] @ self._columns[start:end] for start, end in parts])

    def of(self, drawn: Values) -> Values:
        """The sums (resamples, sums) of all `drawn`."""
        sums = np.zeros((drawn.shape[1], self._count))
        for stratum, total in enumerate(self._totals(drawn)):
            sums += total if self._shares is None else self._shares[stratum] * total / total[:, self._weights]
        return sums[:, self._at]

    def variances(self, drawn: Values, slopes: Sequence[Values]) -> list[Values]:
        """In each draw, of the combinations whose factors (resamples, sums) are `slopes`."""
        once = np.equal.outer(self._at, np.arange(self._count)).astype(np.float64)
        slopes = [slope @ once for slope in slopes]
        squares = [np.zeros(drawn.shape[1]) for _ in slopes]
        twice = np.where(self._left == self._right, 1.0, 2.0)
        for stratum, (total, size) in enumerate(zip(self._totals(drawn), self._blocks.sizes, strict=True)):
            off, products = np.split(drawn[stratum], [len(self._varying)], axis=1)
            covariance = (products - off[:, self._left] * off[:, self._right] / size) * (
                size / max(size - 1, 1) * twice
            )
            for square, slope in zip(squares, slopes, strict=True):
                here = slope if self._shares is None else self._unscaled(slope, total, float(self._shares[stratum]))
                here = here[:, self._varying]
                square += np.einsum("rc,rc->r", here[:, self._left] * here[:, self._right], covariance)
        return squares

    def _totals(self, drawn: Values) -> Iterator[Values]:
        """The distinct sums of each stratum."""
        for stratum, size in enumerate(self._blocks.sizes):
            total = np.tile(size * self._means[stratum], (drawn.shape[1], 1))
            total[:, self._varying] += drawn[stratum, :, : len(self._varying)]
            yield total

    def _unscaled(self, slope: Values, total: Values, share: float) -> Values:
        """Factors of the sums, from those of share * sum / weight."""
        weight = total[:, self._weights]
        of_weight = np.equal.outer(self._weights, np.arange(self._count)).astype(np.float64)
        return np.asarray(share * (slope / weight - (slope * total / weight**2) @ of_weight), dtype=np.float64)
