"""Charts of quantities."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from firstflight.report.figure import Figure, inline
from firstflight.report.style import BASE, palette
from firstflight.studies.kernel.quantity import estimates

if TYPE_CHECKING:
    import altair
    import xarray as xr


# From here on the axis is logarithmic: the largest label over the smallest.
_LOGARITHMIC = 20
# Labels that an axis can write, each one.
_FEW = 12
# Labels of a line that has a point at each.
_POINTS = 40
# Width of a letter of an axis, px.
_LETTER = 8


def lines(
    quantity: xr.DataArray,
    title: str,
    caption: str,
    x: str,
    color: str,
    columns: str | None = None,
    log: bool = False,
    linear_within: float | None = None,
    base: float | None = None,
    between: tuple[xr.DataArray, xr.DataArray] | None = None,
) -> Figure | None:
    """A line per label of `color` against the dimension `x`, with a band of the 95% CI, or `between` two other
    quantities, such as quartiles. `columns` gives each label of a third dimension, or each line, its own panel.
    The axis of the values is logarithmic with `log`, or with `linear_within` beyond this value on either side of
    zero; a dashed line is at the `base`. Labels of `x` that are texts get points with bars. Titles come from the
    attributes `long_name` and `titles` of the coordinates. None without data. ValueError where another dimension is
    left.
    """
    keys = [x, color, *([columns] if columns else [])]
    for key in map(str, quantity.dims):
        quantity = quantity.dropna(key, how="all")
    if not quantity.size:
        return None
    # As the names of the colors.
    rows = [row | {color: str(row[color])} for row in rows_of(quantity, keys)]
    for end, other in zip(("low", "high"), between or (), strict=False):
        places = {tuple(str(row[key]) for key in keys): row["value"] for row in rows_of(other, keys)}
        rows = [row | {end: places[tuple(str(row[key]) for key in keys)]} for row in rows]
    greatest = max((abs(row["value"]) for row in rows), default=0)
    scale = Values(log, linear_within, base, greatest)
    wide, narrow = (_chart(quantity, rows, width, x, color, columns, scale) for width in (560, 300))
    return Figure(str(quantity.name), title, caption, wide, narrow)


class Values(NamedTuple):
    """The axis of the values."""

    log: bool
    linear_within: float | None
    base: float | None
    greatest: float

    def channel(self, title: str) -> altair.Y:
        """The encoding of the field `value`."""
        import altair as alt

        if self.linear_within is None:
            scale = alt.Scale(type="log", nice=False) if self.log else alt.Scale(zero=True)
            axis = alt.Axis(tickCount=6, format="~g") if self.log else alt.Axis()
            return alt.Y("value:Q", title=title, scale=scale, axis=axis)
        steps = [self.linear_within * 2**step for step in range(12) if self.linear_within * 2**step <= self.greatest]
        scale = alt.Scale(type="symlog", constant=self.linear_within, nice=False)
        axis = alt.Axis(values=[*(-step for step in steps), 0, *steps], format="d", labelOverlap=True)
        return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _chart(
    quantity: xr.DataArray,
    rows: list[dict[str, Any]],
    width: int,
    x: str,
    color: str,
    columns: str | None,
    values: Values,
) -> altair.TopLevelMixin:
    import altair as alt

    names = titles(quantity[color])
    shade = alt.Color(
        f"{color}:N",
        sort=names,
        title=quantity[color].attrs.get("long_name", color),
        scale=palette(names, color),
    )
    labels = quantity[x].values.tolist()
    numbers = all(isinstance(label, int | float) for label in labels)
    far = numbers and min(labels) > 0 and max(labels) >= _LOGARITHMIC * min(labels) and not _even(labels)
    heading = quantity[x].attrs.get("long_name", x)
    if numbers:
        few = labels if len(labels) <= _FEW else alt.Undefined
        axis = alt.Axis(values=few, labelExpr="'' + datum.value", labelOverlap=True)
        scale = alt.Scale(type="log" if far else "linear", zero=False, nice=not far)
        across = alt.X(f"{x}:Q", title=heading, scale=scale, axis=axis)
    else:
        room = width / min(quantity.sizes[columns] if columns else 1, 4 if width > 400 else 2) / len(labels)
        angle = 0 if max(map(len, titles(quantity[x]))) * _LETTER <= room else -40
        across = alt.X(f"{x}:N", title=heading, sort=titles(quantity[x]), axis=alt.Axis(labelAngle=angle))
    value = values.channel(heading_of(quantity))
    low = value.copy()
    low.shorthand = "low:Q"
    base = alt.Chart().encode(x=across, color=shade)
    if numbers:
        drawn = [
            base.mark_area(opacity=0.2).encode(y=low, y2="high:Q"),
            base.mark_line(point=len(labels) <= _POINTS).encode(y=value),
        ]
    else:
        if len(names) > 1 and color != columns:
            base = base.encode(xOffset=alt.XOffset(f"{color}:N", sort=names))
        drawn = [base.mark_rule().encode(y=low, y2="high:Q"), base.mark_point(filled=True, size=60).encode(y=value)]
    if values.base is not None:
        drawn.insert(0, alt.Chart().mark_rule(color=BASE, strokeDash=[5, 4]).encode(y=alt.datum(values.base)))
    panels = quantity.sizes[columns] if columns else 1
    abreast = min(panels, 4 if width > 400 else 2)
    chart = alt.layer(*drawn, data=inline(rows)).properties(
        width=max(width // abreast - 40, 100), height=240 if width > 400 else 180
    )
    if columns is None:
        return chart
    named = quantity[columns].attrs.get("long_name") if not quantity[columns].attrs.get("titles") else None
    header = alt.Header(labelExpr=f"'{named}: ' + datum.value" if named else "datum.value")
    picture = chart.facet(
        alt.Facet(f"{columns}:N", sort=titles(quantity[columns]), title=None, header=header), columns=abreast
    )
    # Lines that are not compared have an axis each.
    return picture.resolve_scale(y="independent") if color == columns else picture


def _even(labels: list[Any]) -> bool:
    """Whether labels are evenly spaced, as percentiles are."""
    return len(labels) > 2 and len({after - before for before, after in itertools.pairwise(labels)}) == 1


def heading_of(quantity: xr.DataArray) -> str:
    """An axis's title."""
    unit = quantity.attrs["units"]
    return f"{quantity.attrs['long_name']}, {unit}" if unit else str(quantity.attrs["long_name"])


def titles(coordinate: xr.DataArray) -> list[str]:
    """The text shown for each label."""
    named = coordinate.attrs.get("titles", {})
    return [str(named.get(str(label), label)) for label in coordinate.values]


def rows_of(quantity: xr.DataArray, keys: list[str]) -> list[dict[str, Any]]:
    """Label of each key, `value` and, where there is an interval, `low` and `high`; of cells with data."""
    keys = list(dict.fromkeys(keys))
    named = {key: quantity[key].attrs.get("titles", {}) for key in keys}
    rows = []
    for place, found in estimates(quantity, keys):
        interval = {} if math.isnan(found.low) else {"low": found.low, "high": found.high}
        shown = {key: named[key].get(str(label), label) for key, label in place.items()}
        rows.append(shown | {"value": found.value} | interval)
    return rows
