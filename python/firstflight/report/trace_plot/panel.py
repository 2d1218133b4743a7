"""The common part of a plot's panels: their width and their time axis."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

import polars as pl

from firstflight.report.figure import Spec, quantitative

# Points a unit of width that a line keeps at most: beyond these a picture does not change.
_POINTS_PER_UNIT = 2
# Letters of a title that the width has room for.
_LETTERS = 95


def wrapped(title: str) -> list[str]:
    """The title of the picture in lines."""
    return textwrap.wrap(title, _LETTERS)


def heading(text: str) -> Spec:
    """The title of a panel below the first."""
    return {"text": text, "anchor": "start", "fontSize": 12, "fontWeight": "normal", "offset": 4}


@dataclass(frozen=True)
class Panel:
    """`width` in units of the picture; the time axis goes from `start_s` to `end_s`."""

    width: int
    start_s: float
    end_s: float

    def time(self, titled: bool) -> Spec:
        """The time axis."""
        axis = {"tickCount": 8, "title": "time, s" if titled else None}
        domain = [self.start_s, max(self.end_s, self.start_s + 1e-9)]
        return quantitative("time_s", axis=axis, scale={"domain": domain, "nice": False})

    def thinned(self, steps: pl.DataFrame, value: str) -> pl.DataFrame:
        """A step line with as many points as are distinguishable.

        Of the points in each sliver of time the first, the lowest, the highest and the last stay (M4 aggregation:
        Jugel et al., VLDB 2014), so the line covers the same parts of the picture.
        """
        if steps.height <= 4 * self._slivers:
            return steps
        numbered = steps.with_columns(pl.int_range(pl.len()).alias("row"), self._sliver)
        keep = numbered.group_by("sliver").agg(
            pl.col("row").first().alias("first"),
            pl.col("row").last().alias("last"),
            pl.col("row").get(pl.col(value).arg_min()).alias("lowest"),
            pl.col("row").get(pl.col(value).arg_max()).alias("highest"),
        )
        rows = pl.concat([keep[name] for name in ("first", "last", "lowest", "highest")]).unique()
        return numbered.filter(pl.col("row").is_in(rows.implode())).drop("row", "sliver")

    def merged(self, bars: pl.DataFrame) -> pl.DataFrame:
        """Bars from `low_kb` to `high_kb`, as many as are distinguishable.

        Bars in the same sliver of time that touch or overlap become one bar, which covers the same part of the picture.
        """
        if bars.height <= self._slivers:
            return bars
        by_place = bars.with_columns(self._sliver).sort("sliver", "low_kb", maintain_order=True)
        reach = pl.col("high_kb").cum_max().shift(1).over("sliver")
        apart = (pl.col("low_kb") > reach).fill_null(True).cast(pl.Int64).cum_sum().alias("bar")
        return (
            by_place.with_columns(apart)
            .group_by("bar", maintain_order=True)
            .agg(pl.col("time_s").first(), pl.col("low_kb").min(), pl.col("high_kb").max())
            .drop("bar")
        )

    @property
    def _slivers(self) -> int:
        return self.width * _POINTS_PER_UNIT

    @property
    def _sliver(self) -> pl.Expr:
        width_s = max(self.end_s - self.start_s, 1e-9) / self._slivers
        return ((pl.col("time_s") - self.start_s) / width_s).floor().alias("sliver")

    def counts(self, most: float) -> Spec:
        """An axis of whole numbers up to `most`."""
        return {"tickCount": max(1, min(5, math.ceil(most))), "tickMinStep": 1, "format": "d"}
