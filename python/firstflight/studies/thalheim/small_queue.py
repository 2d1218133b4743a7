"""The figure of the small queue: where the windows begin to pay for losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline

from .grid import SHALLOW, TRANSFER, settings
from .measure import TIME, Place, Values

if TYPE_CHECKING:
    import altair


def small_queue(values: Values) -> Figure | None:
    """Times over the ample and the small queue beside each other, by size and rate; None unless the run has both."""
    chosen = settings()
    small, base, delay = chosen["small_packets"], chosen["base_window"], chosen["path"]["delay_ms"]
    names = {TRANSFER: "ample queue", SHALLOW: f"queue of {small} packets"}
    rows = []
    for place in values:
        point = place.point
        if place.metric != TIME or point.experiment != SHALLOW:
            continue
        ample = point._replace(experiment=TRANSFER, queue_packets=chosen["ample_packets"])
        unit = values.get(Place(TIME, ample._replace(iw=base)))
        for shown in (ample, point):
            sample = values.get(Place(TIME, shown))
            if unit and sample and unit.values and sample.values:
                rows.append(
                    {
                        "iw": point.iw,
                        "share": sample.median / unit.median,
                        "queue": names[shown.experiment],
                        "size": f"{point.size_kb} kB",
                        "rate": f"{point.rate_mbit} Mbit/s",
                    }
                )
    if not rows:
        return None
    return Figure(
        "small_queue",
        f"The same over a queue of {small} packets",
        f"Transfer time as a share of that with {base} segments and an ample queue; {delay} ms one way. The axis of "
        "times is logarithmic.",
        _chart(rows, list(names.values()), 190, 76),
        _chart(rows, list(names.values()), 72, 64),
    )


def _chart(rows: list[dict[str, Any]], names: list[str], width: int, height: int) -> altair.TopLevelMixin:
    import altair as alt

    wide = width > 100
    windows = settings()["initial_windows"]
    sizes = [f"{value} kB" for value in settings()["sizes_kb"]]
    rates = [f"{value} Mbit/s" for value in settings()["rates_mbit"]]
    one = alt.Chart().mark_rule(color="#999999").encode(y=alt.datum(1))
    lines = (
        alt.Chart()
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=20 if wide else 10, filled=True, opacity=1))
        .encode(
            x=alt.X(
                "iw:Q",
                title=None,
                scale=alt.Scale(type="log", base=2, domain=[0.9, 36], nice=False),
                axis=alt.Axis(
                    values=windows if wide else [1, 3, 10, 32],
                    format="d",
                    labelFontSize=9,
                    grid=False,
                    labelOverlap=False,
                ),
            ),
            y=alt.Y(
                "share:Q",
                title=None,
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[0.5, 1, 2, 4], format=".0%", labelFontSize=9),
            ),
            color=alt.Color(
                "queue:N", sort=names, title=None, scale=alt.Scale(domain=names, range=[PALETTE[0], PALETTE[5]])
            ),
        )
    )
    picture: altair.TopLevelMixin = (
        alt.layer(one, lines, data=inline(rows))
        .properties(width=width, height=height)
        .facet(
            title=alt.TitleParams(
                "initial window, segments", orient="bottom", anchor="middle", fontSize=11, fontWeight="normal"
            ),
            row=alt.Row("size:N", sort=sizes, title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
            column=alt.Column("rate:N", sort=rates, title=None),
            spacing=10 if wide else 6,
        )
    )
    return picture
