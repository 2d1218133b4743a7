"""Tables, the windows and the queue of the downloads that are drawn, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.report.controllers import window_and_throughput
from firstflight.report.figure import Figure, inline
from firstflight.report.phases import explained
from firstflight.report.style import palette
from firstflight.studies.congestion_control.claims import DRAWN, TALK
from firstflight.studies.kernel import Quantities, table

if TYPE_CHECKING:
    import altair

# Of Reno's download, the part in the explained picture: slow start, its overshoot and the first tooth.
_EXPLAINED_S = 11
# Of throughput: longer than a queue-swollen round trip, shorter than a tooth.
_INTERVAL_S = 0.5


def tables(q: Quantities) -> Sequence[Table]:
    """Downloads, the grid around them, parallel connections, short flows."""
    downloads = [q.completion_time, q.goodput, q.retransmissions, q.timeouts, q.mean_queue, q.max_queue]
    return [
        table(
            "downloads",
            "One download of 50 MB",
            "10 Mbit/s, RTT 80 ms, a queue of 67 packets (1 x the bandwidth-delay product), alone on its path.",
            [of.sel(DRAWN, drop=True) for of in downloads],
        ),
        table(
            "paths",
            "The same download over other paths",
            "Round trip in ms; queue in bandwidth-delay products.",
            [of.transpose("rtt_ms", "buffer_bdp", ...) for of in (q.goodput, q.retransmissions, q.mean_queue)],
            across="control",
        ),
        table(
            "parallel",
            "Objects of 100 kB over connections that open together",
            "`flows` connections with an object each. First flights: segments sent before an ACK of data.",
            [q.object_time, q.first_flights, q.retransmitted],
        ),
        table(
            "mice",
            "Short flows next to a long one",
            "`elephants`: number of long flows of the same algorithm, started ten seconds before. Share: of the bytes "
            "that the bottleneck transmitted while the server sent the short response.",
            [q.mouse_time, q.elephant_share.reindex_like(q.mouse_time["elephants"])],
        ),
    ]


def figures(q: Quantities) -> Sequence[Figure]:
    """Window and throughput, the explained transfer, queues."""
    titles = q.completion_time["control"].attrs["titles"]
    segments = q.run.table("segments", **DRAWN).filter(pl.col("replicate") == 0).collect()
    traces = {control: own for (control,), own in segments.partition_by("control", as_dict=True).items()}
    traces = {control: traces[control] for control in titles if control in traces}
    if not traces:
        return []
    title = "One download at 10 Mbit/s: window and throughput"
    caption = (
        "Above: the congestion window at the server. Below: payload that reached the client, in steps of half a second."
    )
    named = {titles[control]: own for control, own in traces.items()}
    found = [window_and_throughput(named, "window_and_throughput", title, caption, _INTERVAL_S)]
    if "reno" in traces:
        shown = traces["reno"].filter(pl.col("time_ns") < _EXPLAINED_S * 1_000_000_000)
        caption = f"The first {_EXPLAINED_S} seconds of Reno's download."
        found.append(explained(shown, "explained", "Slow start, fast retransmit, congestion avoidance", caption))
    return [*found, _queues(q, list(traces))]


def _queues(q: Quantities, controls: list[str]) -> Figure:
    from firstflight.studies.congestion_control import waiting

    titles = q.completion_time["control"].attrs["titles"]
    rows = waiting(q.run).filter(pl.col(key) == label for key, label in DRAWN.items()).collect()
    names = [titles[control] for control in controls]
    shown = rows.select(
        pl.col("interval_start_s").alias("time_s"),
        pl.col("queue_mean_packets").alias("packets"),
        pl.col("control").replace_strict(titles).alias("name"),
    ).to_dicts()

    def chart(width: int, height: int) -> altair.TopLevelMixin:
        import altair as alt

        color = alt.Color("name:N", legend=None, sort=names, scale=palette(names))
        area = (
            alt.Chart(inline(shown))
            .mark_area(interpolate="step-after", opacity=0.45, line={"strokeWidth": 1.2})
            .encode(
                x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(nice=False)),
                y=alt.Y("packets:Q", title=None, axis=alt.Axis(tickCount=3)),
                color=color,
            )
            .properties(width=width, height=height)
        )
        header = alt.Header(labelAngle=0, labelAlign="left")
        row = alt.Row("name:N", sort=names, title="packets waiting", header=header)
        picture: altair.TopLevelMixin = area.facet(row=row, spacing=8)
        return picture

    return Figure(
        "queues",
        "The queue at the bottleneck during the download",
        "Packets waiting, mean over intervals of 100 ms. The queue that a packet finds is its delay, and that of every "
        "other flow.",
        chart(600, 62),
        chart(240, 52),
    )


def answer(q: Quantities) -> Sequence[str]:
    """The queue of each algorithm, parallel connections, and the effect of a long flow on short ones."""
    goodput, queue = (of.sel(DRAWN).sel(draw=0) for of in (q.goodput, q.mean_queue))
    many = int(q.object_time["flows"].max())
    slower = (q.object_time.sel(flows=many) / q.object_time.sel(flows=1)).sel(draw=0, control=TALK)
    again = q.retransmitted.sel(flows=many, draw=0, control=TALK)
    shares = [q.elephant_share.sel(size_kb=size, elephants=1, draw=0) for size in q.elephant_share["size_kb"]]
    parts = [f"{_ends(share, ' %')} of the link while {int(share['size_kb'])} kB are sent" for share in shares]
    return [
        f"Alone on the link all reach {_span(goodput, 2)} Mbit/s; the queue that they keep differs, from "
        f"{_ends(queue, ' packets')} on average.",
        f"{many} connections that open together begin with {many} first flights; each object of 100 kB takes "
        f"{_span(slower, 1)} times as long as alone, and {_span(again, 0)}% of the segments are retransmitted.",
        f"A long flow keeps {', '.join(parts)}.",
    ]


def _span(values: xr.DataArray, digits: int) -> str:
    """From the least to the greatest, as one figure where they print alike."""
    least, most = f"{float(values.min()):.{digits}f}", f"{float(values.max()):.{digits}f}"
    return least if least == most else f"{least} to {most}"


def _ends(values: xr.DataArray, unit: str) -> str:
    """The least and the greatest, with whose they are."""
    titles = values["control"].attrs["titles"]
    least, most = (titles[str(at.values)] for at in (values.idxmin("control"), values.idxmax("control")))
    return f"{float(values.min()):.0f}{unit} ({least}) to {float(values.max()):.0f}{unit} ({most})"
