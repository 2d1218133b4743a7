"""Charts of quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.report.figure import Figure, inline
from firstflight.report.style import ORDERED

from .quantity import DRAW, estimate

if TYPE_CHECKING:
    import altair
    import xarray as xr


def lines(
    quantity: xr.DataArray, title: str, caption: str, x: str, color: str, columns: str | None = None, log: bool = False
) -> Figure:
    """A line per label of `color` against the dimension `x`, with a band of the 95 % interval; `columns` gives each
    label of a third dimension a panel of its own. Titles come from the attribute `long_name` of the coordinates.
    """
    return Figure(
        str(quantity.name),
        title,
        caption,
        _chart(quantity, 560, x, color, columns, log),
        _chart(quantity, 240, x, color, columns, log),
    )


def _chart(
    quantity: xr.DataArray, width: int, x: str, color: str, columns: str | None, log: bool
) -> altair.TopLevelMixin:
    import altair as alt

    keys = [key for key in (x, color, columns) if key]
    left = {str(name) for name in quantity.dims} - {*keys, DRAW}
    if left:
        raise ValueError(f'"{quantity.name}" still has the dimensions {", ".join(sorted(left))}; select or reduce them')
    rows = []
    for cell in quantity.stack(cell=keys)["cell"].values:
        place = dict(zip(keys, cell, strict=True))
        found = estimate(quantity.sel(place))
        if found.value == found.value:
            labels = {key: label.item() if hasattr(label, "item") else label for key, label in place.items()}
            interval = {} if found.low != found.low else {"low": found.low, "high": found.high}
            rows.append(labels | {"value": found.value} | interval)
    names = [str(label) for label in quantity[color].values]
    shade = alt.Color(
        f"{color}:N",
        sort=names,
        title=quantity[color].attrs.get("long_name", color),
        scale=alt.Scale(domain=names, range=list(ORDERED[: len(names)])),
    )
    across = alt.X(
        f"{x}:Q", title=quantity[x].attrs.get("long_name", x), scale=alt.Scale(type="log" if log else "linear")
    )
    title = f"{quantity.attrs['long_name']}, {quantity.attrs['units']}"
    base = alt.Chart(inline(rows)).encode(x=across, color=shade)
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("value:Q", title=title))
    panels = quantity.sizes[columns] if columns else 1
    chart = alt.layer(band, line).properties(width=max(width // panels - 30, 150), height=240)
    if columns is None:
        return chart
    panel = quantity[columns].attrs.get("long_name", columns)
    header = alt.Header(labelExpr=f"'{panel} ' + datum.value")
    return chart.facet(column=alt.Column(f"{columns}:N", sort=None, title=None, header=header))
