"""Charts of quantities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from firstflight.report.figure import Figure, inline
from firstflight.report.style import ORDERED

from .quantity import DRAW, estimate, plain

if TYPE_CHECKING:
    import altair
    import xarray as xr


# From here on the axis is logarithmic: the largest label over the smallest.
_LOGARITHMIC = 30


def lines(quantity: xr.DataArray, title: str, caption: str, x: str, color: str, columns: str | None = None) -> Figure:
    """A line per label of `color` against the dimension `x`, with a band of the 95 % interval; `columns` gives each
    label of a third dimension, or each line, a panel of its own. Labels of `x` that are texts get points with bars.
    Titles come from the attribute `long_name` of the coordinates. ValueError where another dimension is left.
    """
    wide, narrow = (_chart(quantity, width, x, color, columns) for width in (560, 240))
    return Figure(str(quantity.name), title, caption, wide, narrow)


def _chart(quantity: xr.DataArray, width: int, x: str, color: str, columns: str | None) -> altair.TopLevelMixin:
    import altair as alt

    names = [str(label) for label in quantity[color].values]
    shade = alt.Color(
        f"{color}:N",
        sort=names,
        title=quantity[color].attrs.get("long_name", color),
        scale=alt.Scale(domain=names, range=list(ORDERED[: len(names)])),
    )
    labels = quantity[x].values.tolist()
    numbers = all(isinstance(label, int | float) for label in labels)
    log = numbers and min(labels) > 0 and max(labels) >= _LOGARITHMIC * min(labels)
    heading = quantity[x].attrs.get("long_name", x)
    if numbers:
        across = alt.X(f"{x}:Q", title=heading, scale=alt.Scale(type="log" if log else "linear", zero=False))
    else:
        across = alt.X(f"{x}:N", title=heading, sort=labels, axis=alt.Axis(labelAngle=0))
    unit = quantity.attrs["units"]
    title = f"{quantity.attrs['long_name']}, {unit}" if unit else quantity.attrs["long_name"]
    rows = _rows(quantity, list(dict.fromkeys(key for key in (x, color, columns) if key)))
    base = alt.Chart(inline(rows)).encode(x=across, color=shade)
    between, value = {"y": alt.Y("low:Q", title=title), "y2": "high:Q"}, alt.Y("value:Q", title=title)
    drawn = (
        [base.mark_area(opacity=0.2).encode(**between), base.mark_line(point=True).encode(y=value)]
        if numbers
        else [base.mark_rule().encode(**between), base.mark_point(filled=True, size=60).encode(y=value)]
    )
    panels = quantity.sizes[columns] if columns else 1
    chart = alt.layer(*drawn).properties(width=max(width // panels - 30, 150), height=240)
    if columns is None:
        return chart
    named = quantity[columns].attrs.get("long_name")
    header = alt.Header(labelExpr=f"'{named} ' + datum.value" if named else "datum.value")
    picture = chart.facet(column=alt.Column(f"{columns}:N", sort=None, title=None, header=header))
    # Lines that are not compared have an axis each.
    return picture.resolve_scale(y="independent") if color == columns else picture


def _rows(quantity: xr.DataArray, keys: list[str]) -> list[dict[str, Any]]:
    """Label of each key, `value` and, where there is an interval, `low` and `high`; of cells with data."""
    left = {str(name) for name in quantity.dims} - {*keys, DRAW}
    if left:
        raise ValueError(f'"{quantity.name}" still has the dimensions {", ".join(sorted(left))}; select or reduce them')
    rows = []
    for cell in quantity.stack(cell=keys)["cell"].values:
        place = {key: plain(label) for key, label in zip(keys, cell, strict=True)}
        found = estimate(quantity.sel(place))
        if not math.isnan(found.value):
            interval = {} if math.isnan(found.low) else {"low": found.low, "high": found.high}
            rows.append(place | {"value": found.value} | interval)
    return rows
