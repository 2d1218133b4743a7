"""Window and throughput of all algorithms in one figure, the explained transfer, and the queue under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.controllers import window_and_throughput
from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.report.phases import explained

from .grid import titles

if TYPE_CHECKING:
    import altair

# Of Reno's download, what the explained picture shows: slow start, its overshoot and the first tooth.
_EXPLAINED_S = 11
# Of throughput: longer than a queue-swollen round trip, shorter than a tooth.
_INTERVAL_S = 0.5


def all_figures(traces: Mapping[str, pl.DataFrame], queues: pl.DataFrame) -> list[Figure]:
    """Those for which the run has data."""
    if not traces:
        return []
    named = {titles()[control]: segments for control, segments in traces.items()}
    figures = [
        window_and_throughput(
            named,
            "window_and_throughput",
            "One download at 10 Mbit/s: window and throughput",
            "Above: the congestion window at the server. Below: payload that reached the client, in steps of half a "
            "second.",
            _INTERVAL_S,
        ),
        _queues(queues),
    ]
    if "reno" in traces:
        shown = traces["reno"].filter(pl.col("time_ns") < _EXPLAINED_S * 1_000_000_000)
        caption = f"The first {_EXPLAINED_S} seconds of Reno's download."
        figures.insert(1, explained(shown, "explained", "Slow start, fast retransmit, congestion avoidance", caption))
    return figures


def _queues(queues: pl.DataFrame) -> Figure:
    names = [title for control, title in titles().items() if control in set(queues["control"])]
    rows = queues.with_columns(pl.col("control").replace_strict(titles()).alias("name"))
    return Figure(
        "queues",
        "The queue at the bottleneck during the download",
        "Packets waiting, mean over intervals of 100 ms. What is in the queue when the next packet comes is delay for "
        "it, and for every other flow.",
        _chart(rows, names, 600, 62),
        _chart(rows, names, 240, 52),
    )


def _chart(rows: pl.DataFrame, names: list[str], width: int, height: int) -> altair.TopLevelMixin:
    import altair as alt

    picture: altair.TopLevelMixin = (
        alt.Chart(inline(rows.to_dicts()))
        .mark_area(interpolate="step-after", opacity=0.45, line={"strokeWidth": 1.2})
        .encode(
            x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(nice=False)),
            y=alt.Y("packets:Q", title=None, axis=alt.Axis(tickCount=3)),
            color=alt.Color(
                "name:N", legend=None, sort=names, scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
            ),
        )
        .properties(width=width, height=height)
        .facet(
            row=alt.Row(
                "name:N", sort=names, title="packets waiting", header=alt.Header(labelAngle=0, labelAlign="left")
            ),
            spacing=8,
        )
    )
    return picture
