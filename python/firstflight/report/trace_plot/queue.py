"""The packets that wait at the link where this connection's data waits longest."""

from __future__ import annotations

import polars as pl

from firstflight.report.figure import Spec, layer, quantitative
from firstflight.report.style import SOFT
from firstflight.report.trace_plot.connection import DROPPED, Connection
from firstflight.report.trace_plot.panel import Panel, heading

HEIGHT = 110
HEADING = "Queue at {}, where the data waits longest"


def chart(connection: Connection, panel: Panel, crossings: pl.DataFrame) -> Spec | None:
    """Packets of all connections that wait there, exact to the nanosecond, and those that it dropped."""
    link = bottleneck(connection, crossings)
    if link is None:
        return None
    there = crossings.filter((pl.col("replicate") == connection.replicate) & (pl.col("link") == link))
    steps = panel.thinned(waiting(there, panel), "packets")
    time = panel.time(titled=True)
    most = max(1, int(steps["packets"].max() or 0))  # type: ignore[arg-type]
    y = quantitative("packets", title="packets waiting", axis=panel.counts(most), scale={"domain": [0, 1.08 * most]})
    line = {"strokeWidth": 1.2, "color": SOFT}
    area = {"type": "area", "interpolate": "step-after", "opacity": 0.35, "line": line, "color": SOFT}
    size = {"width": panel.width, "height": HEIGHT, "title": heading(HEADING.format(link))}
    return layer(area, steps.to_dicts(), x=time, y=y) | size


def bottleneck(connection: Connection, crossings: pl.DataFrame) -> str | None:
    """The link at which the connection's data waits longest in total; if it waits nowhere, the slowest.

    None where no packet of the data's sender came to a link.
    """
    way = crossings.filter(
        (pl.col("replicate") == connection.replicate)
        & (pl.col("connection") == connection.number)
        & (pl.col("from_server") == connection.from_server)
    )
    sent = (pl.col("event") != DROPPED).cast(pl.Int64)
    links = (
        way.group_by("link", maintain_order=True)
        .agg(
            (sent * (pl.col("start_ns") - pl.col("time_ns"))).sum().alias("waited"),
            (sent * (pl.col("end_ns") - pl.col("start_ns"))).sum().alias("transmitted"),
        )
        .sort("waited", "transmitted", descending=True, maintain_order=True)
    )
    return None if links.is_empty() else str(links["link"][0])


def waiting(crossings: pl.DataFrame, panel: Panel) -> pl.DataFrame:
    """`time_s` and `packets`: how many wait from that moment on, within the time of the panel."""
    waited = crossings.filter(pl.col("start_ns") > pl.col("time_ns"))
    came = waited.select(pl.col("time_ns").alias("at"), pl.lit(1).alias("change"))
    went = waited.select(pl.col("start_ns").alias("at"), pl.lit(-1).alias("change"))
    steps = (
        pl.concat([came, went])
        .group_by("at")
        .agg(pl.col("change").sum())
        .sort("at")
        .select((pl.col("at") / 1e9).alias("time_s"), pl.col("change").cum_sum().alias("packets"))
    )
    before = steps.filter(pl.col("time_s") <= panel.start_s)["packets"]
    inside = steps.filter((pl.col("time_s") > panel.start_s) & (pl.col("time_s") < panel.end_s))
    last = inside["packets"][-1] if not inside.is_empty() else (before[-1] if len(before) else 0)
    ends = {"time_s": [panel.start_s, panel.end_s], "packets": [before[-1] if len(before) else 0, last]}
    start, end = pl.DataFrame(ends, schema=steps.schema).iter_slices(1)
    return pl.concat([start, inside, end])
