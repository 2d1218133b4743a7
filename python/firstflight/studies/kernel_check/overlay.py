"""One connection as two engines carried it: what the server sent and what was acknowledged, one over the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import inline
from firstflight.report.trace_plot.connection import RECEIVED, SENT, Connection

if TYPE_CHECKING:
    import altair


def timeline(segments: pl.DataFrame) -> pl.DataFrame:
    """What the server saw of the connection that carries most data, in the order of time.

    Columns `time_ms` since the first segment that reached the server (the SYN), `what` ("sent", "retransmitted" or
    "acknowledged"), `low_kb` and `high_kb`: its place in the stream. ValueError where no data was sent.
    """
    rows = Connection.busiest(segments).rows
    at_server = rows.filter(
        (pl.col("is_data_way") & (pl.col("event") == SENT)) | (~pl.col("is_data_way") & (pl.col("event") == RECEIVED))
    )
    sent = pl.col("is_data_way") & (pl.col("length") > 0)
    what = (
        pl.when(sent & (pl.col("retransmission") == 1))
        .then(pl.lit("retransmitted"))
        .when(sent)
        .then(pl.lit("sent"))
        .when(~pl.col("is_data_way"))
        .then(pl.lit("acknowledged"))
    )
    low = pl.when(sent).then(pl.col("seq")).otherwise(pl.col("ack"))
    high = pl.when(sent).then(pl.col("seq") + pl.col("length")).otherwise(pl.col("ack"))
    return at_server.select(
        ((pl.col("time_ns") - pl.col("time_ns").first()) / 1e6).alias("time_ms"),
        what.alias("what"),
        (low / 1000).alias("low_kb"),
        (high / 1000).alias("high_kb"),
    ).drop_nulls("what")


def overlay(captures: Mapping[str, pl.DataFrame], width: int) -> altair.TopLevelMixin:
    """The time-sequence diagrams of the records' `segments`, the first broad and the others narrow upon it."""
    import altair as alt

    names = list(captures)
    lines = {name: timeline(segments).with_columns(pl.lit(name).alias("engine")) for name, segments in captures.items()}
    colour = alt.Color(
        "engine:N", sort=names, title=None, scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
    )
    x = alt.X("time_ms:Q", title="time at the server, ms", scale=alt.Scale(nice=False))
    y = alt.Y("low_kb:Q", title="sequence number, kB")
    layers: list[alt.Chart] = []
    for place, name in enumerate(names):
        own = lines[name]
        acks = alt.Chart(inline(own.filter(pl.col("what") == "acknowledged").to_dicts()))
        layers.append(
            acks.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.6).encode(x=x, y=y, color=colour)
        )
        data = alt.Chart(inline(own.filter(pl.col("what") != "acknowledged").to_dicts()))
        layers.append(
            data.mark_rule(strokeWidth=4 if place == 0 else 1.5).encode(x=x, y=y, y2="high_kb:Q", color=colour)
        )
        again = alt.Chart(inline(own.filter(pl.col("what") == "retransmitted").to_dicts()))
        layers.append(
            again.mark_point(shape="cross", angle=45, size=70 if place == 0 else 30).encode(x=x, y=y, color=colour)
        )
    picture: altair.TopLevelMixin = alt.layer(*layers).properties(width=width, height=360)
    return picture
