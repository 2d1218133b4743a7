"""Where the engines agree and where not, two connections segment by segment, and times by initial window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.studies.kernel_check.claims import CLOSE_PERCENT
from firstflight.studies.kernel_check.grid import EMULATE, SIMULATE, Point, ample, captured, settings
from firstflight.studies.kernel_check.measure import Pair
from firstflight.studies.kernel_check.overlay import overlay

if TYPE_CHECKING:
    import altair

NAMES = {EMULATE: "emulated", SIMULATE: "simulated"}


def all_figures(pairs: Sequence[Pair], traces: Mapping[str, Mapping[str, pl.DataFrame]]) -> list[Figure]:
    """Those for which the run has data."""
    figures = [_differences(pairs)] if pairs else []
    for name, both in traces.items():
        figures.append(_connection(name, captured()[name], both))
    for queue in settings()["grid"]["queues"]:
        own = [pair for pair in pairs if pair.point.queue == queue and pair.point.control == "cubic"]
        if own:
            figures.append(_windows(queue, own))
    return figures


def _queue_title(queue: int) -> str:
    return f"queue of {queue}" + (": no losses" if queue == ample() else "")


def _differences(pairs: Sequence[Pair]) -> Figure:
    queues = [queue for queue in settings()["grid"]["queues"] if any(pair.point.queue == queue for pair in pairs)]
    return Figure(
        "differences",
        "Difference between the engines",
        "A point a cell: emulated minus simulated time in percent of the simulated one. The axis is linear within 1 % "
        "(shaded) and logarithmic beyond.",
        _differences_chart(pairs, queues, 210, "column"),
        _differences_chart(pairs, queues, 260, "row"),
    )


def _differences_chart(
    pairs: Sequence[Pair], queues: Sequence[int], width: int, direction: str
) -> altair.TopLevelMixin:
    import altair as alt

    rates = settings()["grid"]["rates_mbit"]
    rows = [
        {
            "time_ms": 1000 * pair.simulated.time_s,
            "percent": pair.difference_percent,
            "rate": f"{pair.point.rate_mbit} Mbit/s",
            "control": pair.point.control,
            "queue": _queue_title(pair.point.queue),
        }
        for pair in pairs
    ]
    names = [f"{rate} Mbit/s" for rate in rates]
    greatest = max(2.0, *(abs(float(str(row["percent"]))) for row in rows))
    scale = alt.Scale(type="symlog", constant=CLOSE_PERCENT, domain=[-greatest, greatest], nice=True)
    values = [-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100]
    x = alt.X(
        "time_ms:Q", title="simulated time, ms", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=5)
    )
    y = alt.Y("percent:Q", title="difference, %", scale=scale, axis=alt.Axis(values=values))
    dots = (
        alt.Chart()
        .mark_point(filled=True, opacity=0.7, size=22)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "rate:N", sort=names, title=None, scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
            ),
            shape=alt.Shape("control:N", title=None),
        )
    )
    # Once a panel: drawn for every row, its many layers would be dark.
    band = (
        alt.Chart()
        .transform_aggregate(rows="count()", groupby=["queue"])
        .mark_rect(color="#888888", opacity=0.15)
        .encode(y=alt.datum(-CLOSE_PERCENT), y2=alt.datum(CLOSE_PERCENT))
    )
    layers = alt.layer(band, dots, data=inline(rows)).properties(width=width, height=260)
    panels = [_queue_title(queue) for queue in queues]
    picture: altair.TopLevelMixin = (
        layers.facet(column=alt.Column("queue:N", sort=panels, title=None), spacing=14)
        if direction == "column"
        else layers.facet(row=alt.Row("queue:N", sort=panels, title=None), spacing=14)
    )
    return picture


def _connection(name: str, point: Point, both: Mapping[str, pl.DataFrame]) -> Figure:
    chart = {
        width: overlay({NAMES[engine]: both[engine] for engine in (SIMULATE, EMULATE)}, width) for width in (680, 290)
    }
    return Figure(
        f"connection_{name}",
        f"One connection segment by segment: {point}",
        "Data as the server sent it, from the arrival of the SYN on: simulated broad, emulated narrow upon it. Crosses "
        "are retransmitted segments, lines acknowledgements.",
        chart[680],
        chart[290],
    )


def _windows(queue: int, pairs: Sequence[Pair]) -> Figure:
    chart = _windows_chart(pairs)
    return Figure(
        f"windows_queue_{queue}",
        f"Time by initial window, CUBIC, {_queue_title(queue)}",
        "Lines are simulated, points emulated (median; the bar shows the quartiles).",
        chart,
    )


def _windows_chart(pairs: Sequence[Pair]) -> altair.TopLevelMixin:
    import altair as alt

    rates = [f"{rate} Mbit/s" for rate in settings()["grid"]["rates_mbit"]]
    sizes = [f"{size} kB" for size in settings()["grid"]["sizes_kb"]]
    trips = [f"{rtt} ms" for rtt in settings()["grid"]["rtts_ms"]]
    rows = [
        {
            "iw": pair.point.iw,
            "simulated": 1000 * pair.simulated.time_s,
            "emulated": 1000 * pair.emulated.time_s,
            "low": 1000 * pair.emulated.low_s,
            "high": 1000 * pair.emulated.high_s,
            "rate": f"{pair.point.rate_mbit} Mbit/s",
            "size": f"{pair.point.size_kb} kB",
            "rtt": f"{pair.point.rtt_ms} ms",
        }
        for pair in pairs
    ]
    x = alt.X("iw:Q", title="IW, segments", scale=alt.Scale(type="log"), axis=alt.Axis(values=[1, 3, 10, 32]))
    colour = alt.Color(
        "rate:N", sort=rates, title=None, scale=alt.Scale(domain=rates, range=list(PALETTE[: len(rates)]))
    )

    def y(column: str) -> altair.Y:
        return alt.Y(f"{column}:Q", title="time, ms", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))

    line = alt.Chart().mark_line(strokeWidth=1.4).encode(x=x, y=y("simulated"), color=colour)
    dot = alt.Chart().mark_point(filled=True, size=30).encode(x=x, y=y("emulated"), color=colour)
    bar = alt.Chart().mark_rule().encode(x=x, y=y("low"), y2="high:Q", color=colour)
    picture: altair.TopLevelMixin = (
        alt.layer(line, bar, dot, data=inline(rows))
        .properties(width=190, height=100)
        .facet(
            row=alt.Row("size:N", sort=sizes, title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
            column=alt.Column("rtt:N", sort=trips, title=None),
            spacing=10,
        )
        .resolve_scale(y="independent")
    )
    return picture
