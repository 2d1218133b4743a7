"""Several congestion controls in one figure: window and throughput over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.figure import Figure, inline
from firstflight.report.style import ORDERED, palette
from firstflight.report.trace_plot import windows
from firstflight.report.trace_plot.connection import RECEIVED, Connection
from firstflight.report.trace_plot.panel import Panel

if TYPE_CHECKING:
    import altair

# Bars of time into which the longest transfer is cut to compute a throughput.
_INTERVALS = 60


def window_and_throughput(
    traces: Mapping[str, pl.DataFrame], name: str, title: str, caption: str, interval_s: float | None = None
) -> Figure:
    """One line a congestion control: its window in segments above, payload delivered in Mbit/s below.

    `traces` maps the name of each to the records' table `segments` of a run with it, at most as many as the palette has
    colors. Throughput is counted at the receiver in intervals of `interval_s`, by default a sixtieth of the longest
    run. Raises ValueError for none, for too many, or for a run without data.
    """
    if not 0 < len(traces) <= len(ORDERED):
        raise ValueError(f"{len(traces)} congestion controls do not make a figure: give 1 to {len(ORDERED)}")
    connections = {control: Connection.busiest(segments) for control, segments in traces.items()}
    end_s = max(connection.span[1] for connection in connections.values())
    interval_s = interval_s or end_s / _INTERVALS

    def chart(width: int) -> altair.TopLevelMixin:
        return _chart(connections, width, end_s, interval_s)

    return Figure(name, title, caption, chart(640), chart(270))


def throughput(connection: Connection, interval_s: float) -> pl.DataFrame:
    """`time_s`, the start of an interval, and `mbps`: payload that reached the receiver in it.

    Retransmissions count where they arrive; intervals in which nothing arrives count as 0.
    """
    arrived = connection.rows.filter(
        pl.col("is_data_way") & (pl.col("event") == RECEIVED) & (pl.col("length") > 0)
    ).select((pl.col("time_s") / interval_s).floor().cast(pl.Int64).alias("interval"), "length")
    last = arrived["interval"].max()
    every = pl.DataFrame({"interval": range(int(last or 0) + 2)})  # type: ignore[arg-type]
    bits = pl.col("length").sum() * 8
    sums = arrived.group_by("interval").agg((bits / interval_s / 1e6).alias("mbps"))
    return (
        every.join(sums, on="interval", how="left")
        .sort("interval")
        .select((pl.col("interval") * interval_s).alias("time_s"), pl.col("mbps").fill_null(0.0))
    )


def _chart(connections: Mapping[str, Connection], width: int, end_s: float, interval_s: float) -> altair.TopLevelMixin:
    import altair as alt

    panel = Panel(width, 0.0, end_s)
    names = list(connections)
    cwnd, delivered = [], []
    for control, connection in connections.items():
        label = pl.lit(control).alias("control")
        steps = windows.windows(connection).filter(pl.col("window") == "cwnd")
        cwnd.append(panel.thinned(steps, "segments").with_columns(label))
        delivered.append(throughput(connection, interval_s).with_columns(label))
    shade = alt.Color(
        "control:N",
        sort=names,
        title=None,
        scale=palette(names),
        legend=alt.Legend(columns=0 if width > 400 else 2, symbolType="stroke"),
    )

    def lines(rows: list[pl.DataFrame], column: str, label: str, titled: bool) -> alt.Chart:
        picture: alt.Chart = (
            alt.Chart(inline(pl.concat(rows).to_dicts()))
            .mark_line(interpolate="step-after", strokeWidth=1.6, clip=True)
            .encode(
                x=panel.time(titled),
                y=alt.Y(f"{column}:Q", title=label, axis=alt.Axis(tickCount=5)),
                color=shade,
            )
            .properties(width=width, height=200 if width > 400 else 150)
        )
        return picture

    above = lines(cwnd, "segments", "cwnd, segments", titled=False)
    below = lines(delivered, "mbps", "delivered, Mbit/s", titled=True)
    picture: altair.TopLevelMixin = alt.vconcat(above, below, spacing=14).resolve_scale(x="shared")
    return picture
