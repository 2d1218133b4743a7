"""Several connections upon each other, a color each: the effect of another initial window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from firstflight.report.figure import inline, legend
from firstflight.report.style import alt, palette
from firstflight.report.trace_plot import queue, sequence, windows
from firstflight.report.trace_plot.connection import Connection
from firstflight.report.trace_plot.panel import Panel, heading, wrapped

_MARKS = "Bars: data sent, R: retransmissions. Thin lines: acknowledged. Crosses: dropped or lost.{tls}"
_TLS = " Faint bars: TLS handshake."


@dataclass(frozen=True)
class PlottedConnection:
    """A connection to draw: its name in the legend, the tables `segments` and, if there, `crossings`, and its marks."""

    name: str
    segments: pl.DataFrame
    crossings: pl.DataFrame | None = None
    marks: Mapping[str, float] | None = None


def chart(drawn: Sequence[PlottedConnection], width: int, title: str) -> alt.TopLevelMixin:
    """One panel below the other. ValueError where one sent no data."""
    connections = [Connection.busiest(plotted.segments, plotted.marks) for plotted in drawn]
    starts, ends = zip(*(connection.span for connection in connections), strict=True)
    panel = Panel(width, min(starts), max(ends))
    names = [plotted.name for plotted in drawn]
    color, plain = _color(names, legend(names, width)), _color(names, None)
    panels: list[alt.LayerChart | alt.Chart] = [
        _sequence(names, connections, panel, color, title),
        _cwnd(names, connections, panel, plain),
        *_queue([(plotted.name, plotted.crossings) for plotted in drawn], connections, panel, plain),
    ]
    picture: alt.TopLevelMixin = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared", color="independent")
    return picture


def _color(names: list[str], shown: alt.Legend | None) -> alt.Color:
    return alt.Color("name:N", sort=names, title=None, scale=palette(names), legend=shown)


def _sequence(
    names: list[str], connections: list[Connection], panel: Panel, color: alt.Color, title: str
) -> alt.LayerChart:
    marks = [sequence.marks(connection) for connection in connections]
    top = max(sequence.data_top(frames) for frames in marks) * 1.04
    time = panel.time(titled=False)
    y = alt.Y("low_kb:Q", title="sequence number, kB", scale=alt.Scale(domain=[0, top], nice=False))
    layers: list[alt.Chart] = sequence.opening(
        min(connections, key=lambda connection: float(connection.data_sent["time_s"][0])), panel
    )
    for place, (name, frames) in enumerate(zip(names, marks, strict=True)):

        def rows(frame: pl.DataFrame, name: str = name) -> alt.Chart:
            return alt.Chart(inline(frame.with_columns(pl.lit(name).alias("name")).to_dicts())).encode(x=time)

        acked = rows(panel.thinned(frames[sequence.ACKED], "low_kb"))
        layers.append(acked.mark_line(interpolate="step-after", strokeWidth=1.2, clip=True).encode(y=y, color=color))
        # The first is the broadest, so that each shows where all send the same at the same time.
        width = 1.8 + 1.6 * (len(names) - 1 - place)
        for kinds, opacity in (((sequence.SENT, sequence.AGAIN), 1.0), ((sequence.TLS,), 0.45)):
            sent = rows(panel.merged(pl.concat([frames[kind] for kind in kinds]).sort("time_s")))
            bar = sent.mark_rule(strokeWidth=width, opacity=opacity)
            layers.append(bar.encode(y=y, y2="high_kb:Q", color=color))
        gone = rows(panel.merged(frames[sequence.GONE]))
        layers.append(
            gone.mark_point(shape=sequence.CROSS, size=50, strokeWidth=1.8, opacity=1).encode(y=y, color=color)
        )
        letters = rows(sequence.apart(frames[sequence.AGAIN], panel, top)).encode(y=alt.Y("high_kb:Q"), color=color)
        layers.append(letters.mark_text(text="R", dy=-8, fontSize=11, fontWeight="bold"))
    tls = _TLS if any(not frames[sequence.TLS].is_empty() for frames in marks) else ""
    titles = alt.TitleParams(wrapped(title), subtitle=_MARKS.format(tls=tls), anchor="start", offset=8)
    return alt.LayerChart(layer=layers, width=panel.width, height=sequence.HEIGHT, title=titles)


def _cwnd(names: list[str], connections: list[Connection], panel: Panel, color: alt.Color) -> alt.Chart:
    lines = [windows.windows(connection).filter(pl.col("window") == "cwnd") for connection in connections]
    thinned = [panel.thinned(line.drop("window"), "segments") for line in lines]
    return _lines(names, thinned, "segments", "cwnd, segments", panel, color).properties(
        height=windows.HEIGHT, title=heading(windows.HEADING)
    )


def _queue(
    named: list[tuple[str, pl.DataFrame | None]], connections: list[Connection], panel: Panel, color: alt.Color
) -> Iterator[alt.Chart]:
    there = {name: crossings for name, crossings in named if crossings is not None}
    first = queue.bottleneck(connections[0], next(iter(there.values()))) if len(there) == len(named) else None
    if first is None:
        return
    link_crossings = (crossings.filter(pl.col("link") == first) for crossings in there.values())
    steps = [panel.thinned(queue.waiting(crossings, panel), "packets") for crossings in link_crossings]
    yield _lines(list(there), steps, "packets", "packets waiting", panel, color, titled=True).properties(
        height=queue.HEIGHT, title=heading(queue.HEADING.format(first))
    )


def _lines(
    names: list[str],
    steps: list[pl.DataFrame],
    field: str,
    title: str,
    panel: Panel,
    color: alt.Color,
    titled: bool = False,
) -> alt.Chart:
    points = pl.concat(frame.with_columns(pl.lit(name).alias("name")) for name, frame in zip(names, steps, strict=True))
    most = max(1.0, float(points[field].max() or 0))  # type: ignore[arg-type]
    y = alt.Y(f"{field}:Q", title=title, axis=panel.counts(most), scale=alt.Scale(domain=[0, 1.08 * most]))
    picture: alt.Chart = (
        alt.Chart(inline(points.to_dicts()))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(x=panel.time(titled=titled), y=y, color=color)
        .properties(width=panel.width)
    )
    return picture
