"""Charts of quantities."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from firstflight.report.figure import Figure, inline
from firstflight.report.style import ORDERED
from firstflight.studies.kernel.quantity import DRAW, estimate, plain

if TYPE_CHECKING:
    import altair
    import xarray as xr


# From here on the axis is logarithmic: the largest label over the smallest.
_LOGARITHMIC = 20


def lines(
    quantity: xr.DataArray,
    title: str,
    caption: str,
    x: str,
    color: str,
    columns: str | None = None,
    log: bool = False,
) -> Figure | None:
    """A line per label of `color` against the dimension `x`, with a band of the 95 % interval; `columns` gives each
    label of a third dimension, or each line, a panel of its own; `log` is for the values. Labels of `x` that are texts
    get points with bars. Titles come from the attributes `long_name` and `titles` of the coordinates. None without
    data. ValueError where another dimension is left.
    """
    for key in map(str, quantity.dims):
        quantity = quantity.dropna(key, how="all")
    if not quantity.size:
        return None
    wide, narrow = (_chart(quantity, width, x, color, columns, log) for width in (560, 300))
    return Figure(str(quantity.name), title, caption, wide, narrow)


def _chart(
    quantity: xr.DataArray, width: int, x: str, color: str, columns: str | None, log: bool
) -> altair.TopLevelMixin:
    import altair as alt

    names = titles(quantity[color])
    shade = alt.Color(
        f"{color}:N",
        sort=names,
        title=quantity[color].attrs.get("long_name", color),
        scale=alt.Scale(domain=names, range=list(ORDERED[: len(names)])),
    )
    labels = quantity[x].values.tolist()
    numbers = all(isinstance(label, int | float) for label in labels)
    far = numbers and min(labels) > 0 and max(labels) >= _LOGARITHMIC * min(labels)
    heading = quantity[x].attrs.get("long_name", x)
    if numbers:
        axis = alt.Axis(values=labels, format="~g", labelOverlap=True) if far else alt.Axis()
        scale = alt.Scale(type="log" if far else "linear", zero=False, nice=not far)
        across = alt.X(f"{x}:Q", title=heading, scale=scale, axis=axis)
    else:
        across = alt.X(f"{x}:N", title=heading, sort=titles(quantity[x]), axis=alt.Axis(labelAngle=0))
    title = heading_of(quantity)
    height = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=True)
    rows = rows_of(quantity, [x, color, *([columns] if columns else [])])
    base = alt.Chart().encode(x=across, color=shade)
    between = {"y": alt.Y("low:Q", title=title, scale=height), "y2": "high:Q"}
    value = alt.Y("value:Q", title=title, scale=height)
    drawn = (
        [base.mark_area(opacity=0.2).encode(**between), base.mark_line(point=True).encode(y=value)]
        if numbers
        else [base.mark_rule().encode(**between), base.mark_point(filled=True, size=60).encode(y=value)]
    )
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


def heading_of(quantity: xr.DataArray) -> str:
    """An axis's title."""
    unit = quantity.attrs["units"]
    return f"{quantity.attrs['long_name']}, {unit}" if unit else str(quantity.attrs["long_name"])


def titles(coordinate: xr.DataArray) -> list[str]:
    """What people read for each label."""
    named = coordinate.attrs.get("titles", {})
    return [str(named.get(str(label), label)) for label in coordinate.values]


def rows_of(quantity: xr.DataArray, keys: list[str]) -> list[dict[str, Any]]:
    """Label of each key, `value` and, where there is an interval, `low` and `high`; of cells with data."""
    left = {str(name) for name in quantity.dims} - {*keys, DRAW}
    if left:
        raise ValueError(f'"{quantity.name}" still has the dimensions {", ".join(sorted(left))}; select or reduce them')
    keys = list(dict.fromkeys(keys))
    named = {key: quantity[key].attrs.get("titles", {}) for key in keys}
    rows = []
    for cell in itertools.product(*(quantity[key].values for key in keys)):
        place = {key: plain(label) for key, label in zip(keys, cell, strict=True)}
        found = estimate(quantity.sel(place))
        if not math.isnan(found.value):
            interval = {} if math.isnan(found.low) else {"low": found.low, "high": found.high}
            shown = {key: named[key].get(str(label), label) for key, label in place.items()}
            rows.append(shown | {"value": found.value} | interval)
    return rows
