"""Bars of shares and means by bucket and source, and a forest of intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from firstflight.report.figure import inline
from firstflight.report.style import BASE, INK, ORDERED, SOFT, palette
from firstflight.studies.kernel.figure import heading_of, rows_of, titles

if TYPE_CHECKING:
    import altair
    import xarray as xr

_MS_AXIS = [0, 10, 30, 100, 300, 1000, 3000]
_STRETCHED = 200
"""Bars of more ms than that get an axis that is stretched towards zero."""
_LABEL = "replace(datum.label, '<= ', '\u2264 ')"
"""The name of a bucket as an axis shows it."""


def bars(
    quantity: xr.DataArray,
    by: str,
    sources: Sequence[str],
    step: int,
    above: Sequence[str] | None = None,
    height: int = 150,
) -> altair.LayerChart:
    """A bar per bucket, a label of `by`, and `source`; the last of `sources` is grey. `above` is written over the
    buckets of a chart of ms.
    """
    import altair as alt

    rows, order = rows_of(quantity, [by, "source"]), titles(quantity[by])
    there = [source for source in sources if any(row["source"] == source for row in rows)]
    in_ms = quantity.attrs["units"] == "ms"
    ticks = alt.Axis(labelAngle=-45, labels=not in_ms, labelExpr=_LABEL)
    x = alt.X(
        f"{by}:N",
        sort=order,
        scale=alt.Scale(domain=order),
        title=None if in_ms else quantity[by].attrs["long_name"],
        axis=ticks,
    )
    scale, values = alt.Scale(nice=True), alt.Axis(format="d")
    if in_ms and max(row["value"] for row in rows) > _STRETCHED:
        scale, values = alt.Scale(type="symlog", constant=10), alt.Axis(values=_MS_AXIS, format="d")
    offset = alt.XOffset("source:N", sort=there)
    colors = alt.Scale(domain=list(sources), range=[ORDERED[0], ORDERED[1], BASE])
    legend = alt.Legend(values=list(sources if above is None else there)) if len(there) > 1 else None
    color = alt.Color("source:N", title=None, scale=colors, legend=legend)
    base = alt.Chart(inline(rows)).encode(x=x, xOffset=offset)
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(color=INK)
    layers = [
        base.mark_bar().encode(y=alt.Y("value:Q", title=heading_of(quantity), scale=scale, axis=values), color=color),
        whiskers.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
    ]
    if in_ms and above is not None:
        written = [{by: label, "share": share} for label, share in zip(order, above, strict=True)]
        text = alt.Chart(inline(written)).mark_text(fontSize=8.5, color=SOFT, baseline="bottom")
        layers.append(text.encode(x=x, y=alt.value(-3), text="share:N"))
    return alt.LayerChart(layer=layers).properties(width=step * len(order), height=height)


def forest(
    quantity: xr.DataArray,
    y: str,
    color: str,
    title: str,
    ticks: Sequence[float],
    published: Mapping[str, float],
    width: int,
    step: int,
    label: int,
) -> altair.LayerChart:
    """The value and interval of each label of `y`, and dashed the `published` value for a label of `color`. `ticks` go
    from end to end of the axis, logarithmic if they are all positive; intervals that go on beyond are cut. `step`:
    height of a line; `label`: letters next to it before its text continues below, 0 for none.
    """
    import altair as alt

    own = [
        row
        | {"told": "|".join(textwrap.wrap(row[y], label or 200))}
        | ({"low": max(row["low"], ticks[0]), "high": min(row["high"], ticks[-1])} if "low" in row else {})
        for row in rows_of(quantity, [color, y])
    ]
    told, names = (list(dict.fromkeys(row[key] for row in own)) for key in ("told", color))
    theirs = [{color: of, "value": published[of]} for of in names]
    scale = alt.Scale(domain=[ticks[0], ticks[-1]], type="log" if ticks[0] > 0 else "linear", nice=False)
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(values=list(ticks), format=".2~f"))
    axis = alt.Axis(labelExpr="split(datum.label, '|')", labelLimit=320, labelLineHeight=12) if label else None
    lines = alt.Y("told:N", sort=told, title=None, axis=axis)
    shade = alt.Color(f"{color}:N", title=None, scale=palette(names, color))
    base = alt.Chart(inline(own)).encode(y=lines, yOffset=alt.YOffset(f"{color}:N", sort=names), color=shade)
    chart: altair.LayerChart = (
        alt.Chart(inline(theirs)).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x=x, color=shade)
        + base.mark_rule(strokeWidth=2, opacity=0.5, clip=True).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        + base.mark_point(filled=True, size=38, opacity=1, clip=True).encode(x=x)
    ).properties(width=width, height=alt.Step(step))
    return chart
