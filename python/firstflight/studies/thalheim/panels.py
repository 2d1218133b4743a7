"""The talk's figure: a grid of panels, sizes downwards, delays to the right, windows along x, relative time along y."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from firstflight.analysis.medians import Medians, Sample
from firstflight.report.figure import Figure, inline

from .computed import simulated_s
from .gain import is_known, relative
from .grid import Point, settings
from .measure import TIME, Place

if TYPE_CHECKING:
    import altair

FASTER, SLOWER, LINE, BESIDE = "#009E73", "#D55E00", "#2a7fbf", "#9a9a9a"
_OUTSIDE = 0.08
"""By how much the axis of times goes beyond the extremes."""


def panels(data: Medians[Place], figure: Mapping[Point, Sample], rate_mbit: int, emulated: bool) -> Figure | None:
    """The grid of one rate; None if the run has none of it. `emulated`: with quartiles and the simulator's line."""
    shown = [point for point in figure if point.rate_mbit == rate_mbit and is_known(data, point)]
    if not shown:
        return None
    rows = [_row(data, point, figure[point], emulated) for point in shown]
    base = settings()["base_window"]
    caption = (
        f"Time of the whole download with an initial window of so many segments, as a share of that with {base}. "
        f"Down: size. Right: delay, one way. Green: sooner than with {base}; red: later. Ringed, and in "
        f"figures: {settings()['proposed_window']} segments."
    )
    if emulated:
        caption += " Medians of undisturbed transfers; whiskers: quartiles. Dashed grey: the simulator."
    return Figure(
        f"relative_{rate_mbit}",
        f"Transfer time relative to an initial window of {base}, at {rate_mbit} Mbit/s",
        caption,
        _chart(rows, emulated, 142, 84),
        _chart(rows, emulated, 54, 64),
    )


def _row(data: Medians[Place], point: Point, sample: Sample, emulated: bool) -> dict[str, Any]:
    base = point._replace(iw=settings()["base_window"])
    share = float(relative(data, point)[0])
    unit = float(data(Place(TIME, base))[0])
    row = {
        "iw": point.iw,
        "size": f"{point.size_kb} kB",
        "delay": f"{point.delay_ms} ms",
        "share": share,
        "sooner": min(share, 1.0),
        "later": max(share, 1.0),
        "gained": _gained(share) if point.iw == settings()["proposed_window"] else "",
    }
    if emulated:
        lower, _, upper = sample.quartiles
        row |= {"lower": lower / unit, "upper": upper / unit}
        row["simulated"] = simulated_s(point) / simulated_s(base)
    return row


def _gained(share: float) -> str:
    percent = round(100 * (share - 1))
    return f"{percent} %".replace("-", "\N{MINUS SIGN}")


def _chart(rows: list[dict[str, Any]], emulated: bool, width: int, height: int) -> altair.TopLevelMixin:
    import altair as alt

    wide = width > 100
    windows = settings()["initial_windows"]
    sizes, delays = ([f"{value} {unit}" for value in settings()[key]] for key, unit in _AXES)
    low = min(min(row["share"], row.get("lower", 1.0)) for row in rows)
    high = max(max(row["share"], row.get("upper", 1.0)) for row in rows)
    domain = [math.floor(10 * (low - _OUTSIDE)) / 10, math.ceil(10 * (high + _OUTSIDE)) / 10]
    x = alt.X(
        "iw:Q",
        title=None,
        scale=alt.Scale(type="log", base=2, domain=[0.9, 36], nice=False),
        axis=alt.Axis(
            values=windows if wide else [1, 3, 10, 32], format="d", labelFontSize=9, grid=False, labelOverlap=False
        ),
    )

    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            title=None,
            scale=alt.Scale(domain=domain, nice=False, zero=False),
            axis=alt.Axis(values=[0.5, 1.0, 1.5], format=".0%", labelFontSize=9),
        )

    base = alt.Chart().encode(x=x)
    layers: list[alt.Chart] = [
        base.mark_area(color=colour, opacity=0.3).encode(y=y(field), y2=alt.Y2Datum(1))
        for field, colour in (("sooner", FASTER), ("later", SLOWER))
    ]
    if emulated:
        layers.append(base.mark_line(color=BESIDE, strokeWidth=1.2, strokeDash=[3, 2]).encode(y=y("simulated")))
    layers.append(base.mark_line(color=LINE, strokeWidth=1.6).encode(y=y("share")))
    if emulated:
        layers.append(base.mark_rule(color=LINE, strokeWidth=1.2).encode(y=y("lower"), y2="upper"))
    layers.append(base.mark_circle(color=LINE, size=22 if wide else 12, opacity=1).encode(y=y("share")))
    layers.append(
        alt.Chart()
        .transform_filter("datum.gained != ''")
        .mark_point(color=LINE, size=70 if wide else 30, strokeWidth=1.4)
        .encode(x=x, y=y("share"))
    )
    # Below the line of the base and left of its window no curve ever comes.
    layers.append(
        alt.Chart()
        .mark_text(color="#00664a", align="left", fontSize=12 if wide else 8, fontWeight="bold")
        .encode(x=alt.datum(1), y=alt.datum(0.72), text="gained:N")
    )
    picture: altair.TopLevelMixin = (
        alt.layer(*layers, data=inline(rows))
        .properties(width=width, height=height)
        .facet(
            title=alt.TitleParams(
                "initial window, segments", orient="bottom", anchor="middle", fontSize=11, fontWeight="normal"
            ),
            row=alt.Row("size:N", sort=sizes, title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
            column=alt.Column("delay:N", sort=delays, title=None),
            spacing=10 if wide else 6,
        )
    )
    return picture


_AXES = (("sizes_kb", "kB"), ("delays_ms", "ms"))
