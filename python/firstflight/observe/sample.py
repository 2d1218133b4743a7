"""A uniform sample of the rows of a file, so that memory does not grow with the file."""

from __future__ import annotations

import numpy as np
import polars as pl

from firstflight.counted import counted

MOST_ROWS = 1_000_000
"""Kept of a file at most: ten times the connections that `advise` simulates at most."""
_MOST_PIECES = 64
"""Frames that are held apart; each takes some kilobytes whatever is in it."""
_KEY = "__key"


class Sample:
    """At most `MOST_ROWS` rows of a file, in their order; each has the same chance. The same file gives the same
    rows, whatever the pieces that it is read in.
    """

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._below = 1 << 64
        self.read = 0
        """Rows that were offered."""

    @property
    def rows(self) -> pl.DataFrame | None:
        """All that is kept; None if nothing was offered."""
        return pl.concat(self._frames).drop(_KEY) if self._frames else None

    @property
    def held(self) -> list[pl.DataFrame]:
        """The rows kept now, in pieces."""
        return self._frames

    @property
    def note(self) -> str:
        """Notes on the sample; empty if every row is kept."""
        kept = sum(frame.height for frame in self._frames)
        if kept == self.read:
            return ""
        return f"{counted(self.read, 'response', 'responses')} read, of which a random sample of {kept:,} is kept"

    def chosen(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of the next piece that `add` takes, by their `connection`, so that all of it is taken, or else by
        their `line`: the others need no more work.
        """
        self.read += frame.height
        of = frame.select(pl.coalesce(pl.col("connection"), pl.col("line").cast(pl.UInt64))).to_series()
        return self._thinned(frame.with_columns(pl.Series(_KEY, _keys(of.to_numpy()))))

    def add(self, chosen: pl.DataFrame) -> None:
        """Keep them, and fewer of all if they are too many."""
        self._frames.append(chosen)
        while sum(frame.height for frame in self._frames) > MOST_ROWS:
            self._below //= 2
            self._frames = [self._thinned(frame) for frame in self._frames]
        if len(self._frames) > _MOST_PIECES:
            self._frames = [pl.concat(self._frames, rechunk=True)]

    def _thinned(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col(_KEY) < pl.lit(self._below, dtype=pl.UInt64)) if self._below < 1 << 64 else frame


def _keys(numbers: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Random numbers of 64 bits, each a function of its number alone: the finalizer of SplitMix64 (Steele 2014)."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
