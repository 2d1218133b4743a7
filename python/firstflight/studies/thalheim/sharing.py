"""Figures of what shares the link: parallel connections, and short requests beside a long download."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline

from .grid import MICE, PARALLEL, Point, settings
from .measure import TIME, Values

if TYPE_CHECKING:
    import altair


def parallel(values: Values, emulated: bool) -> Figure | None:
    """The same bytes over one, two and six connections, by window and queue; None without data."""
    small = settings()["small_packets"]
    queues = {settings()["ample_packets"]: "ample queue", small: f"queue of {small} packets"}
    rows = _bars(
        values,
        PARALLEL,
        lambda point: queues[point.queue_packets],
        lambda flows: "1 connection" if flows == 1 else f"{flows} connections",
    )
    if not rows:
        return None
    return Figure(
        "parallel",
        f"{settings()['parallel']['total_kb']} kB over one, two and six connections",
        "Time until all connections are complete; they open together and share the bytes, on 10 Mbit/s and 50 ms one "
        f"way. {_spread(emulated)}",
        _bars_chart(rows, list(queues.values()), "until all are complete, s", 84, 190),
        _bars_chart(rows, list(queues.values()), "until all are complete, s", 36, 170),
    )


def mice(values: Values, emulated: bool) -> Figure | None:
    """Short requests alone and beside a long download, by window; None without data."""
    rows = _bars(values, MICE, lambda point: "", lambda flows: "beside a long download" if flows else "alone")
    if not rows:
        return None
    size, queue = settings()["mice"]["size_kb"], settings()["mice"]["queue_packets"]
    return Figure(
        "mice",
        f"Requests of {size} kB alone and beside a long download",
        f"Median time of a request, on 10 Mbit/s and 50 ms one way, a queue of {queue} packets. {_spread(emulated)}",
        _bars_chart(rows, [""], "median time, s", 120, 190),
        _bars_chart(rows, [""], "median time, s", 64, 170),
    )


def _spread(emulated: bool) -> str:
    return f"Whiskers: quartiles over {'undisturbed ' if emulated else ''}replicates."


def _bars(
    values: Values, experiment: str, panel: Callable[[Point], str], named: Callable[[int], str]
) -> list[dict[str, Any]]:
    rows = []
    for place, sample in values.items():
        point = place.point
        if point.experiment == experiment and place.metric == TIME and sample.values:
            lower, median, upper = sample.quartiles
            rows.append(
                {
                    "iw": f"IW {point.iw}",
                    "flows": named(point.flows),
                    "panel": panel(point),
                    "median": median,
                    "lower": lower,
                    "upper": upper,
                }
            )
    return rows


def _bars_chart(
    rows: list[dict[str, Any]], panels: list[str], title: str, width: int, height: int
) -> altair.TopLevelMixin:
    import altair as alt

    windows = list(dict.fromkeys(row["iw"] for row in rows))
    flows = list(dict.fromkeys(row["flows"] for row in rows))
    x = alt.X("flows:N", sort=flows, title=None, axis=alt.Axis(labels=False))
    colours = [PALETTE[4], PALETTE[0], PALETTE[1]][-len(flows) :]
    colour = alt.Color("flows:N", sort=flows, title=None, scale=alt.Scale(domain=flows, range=colours))
    base = alt.Chart().encode(x=x)
    bars = base.mark_bar().encode(y=alt.Y("median:Q", title=title), color=colour)
    whiskers = base.mark_rule(color="#333333").encode(y="lower:Q", y2="upper:Q")

    def one(panel: str) -> alt.FacetChart:
        own = [row for row in rows if row["panel"] == panel]
        return (
            alt.layer(bars, whiskers, data=inline(own))
            .properties(width=width, height=height)
            .facet(column=alt.Column("iw:N", sort=windows, title=panel or None), spacing=4)
        )

    shown = [panel for panel in panels if any(row["panel"] == panel for row in rows)]
    picture: altair.TopLevelMixin = alt.hconcat(*(one(panel) for panel in shown)).resolve_scale(y="shared")
    return picture
