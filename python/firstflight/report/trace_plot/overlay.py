"""Several connections upon each other, a color each: the effect of another initial window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from firstflight.report.figure import Spec, layer, legend, nominal, quantitative
from firstflight.report.style import scale
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


def chart(drawn: Sequence[PlottedConnection], width: int, title: str) -> Spec:
    """One panel below the other. ValueError where one sent no data."""
    connections = [Connection.busiest(plotted.segments, plotted.marks) for plotted in drawn]
    starts, ends = zip(*(connection.span for connection in connections), strict=True)
    panel = Panel(width, min(starts), max(ends))
    names = [plotted.name for plotted in drawn]
    color = nominal("name", sort=names, title=None, scale=scale(names), legend=legend(names, width))
    plain = color | {"legend": None}
    panels = [
        _sequence(names, connections, panel, color, title),
        _cwnd(names, connections, panel, plain),
        *_queue([(plotted.name, plotted.crossings) for plotted in drawn], connections, panel, plain),
    ]
    scales = {"x": "shared", "color": "independent"}
    return {"vconcat": panels, "spacing": 14, "resolve": {"scale": scales}}


def _sequence(names: list[str], connections: list[Connection], panel: Panel, color: Spec, title: str) -> Spec:
    marks = [sequence.marks(connection) for connection in connections]
    top = max(sequence.data_top(frames) for frames in marks) * 1.04
    time = panel.time(titled=False)
    y = quantitative("low_kb", title="sequence number, kB", scale={"domain": [0, top], "nice": False})
    layers = sequence.opening(min(connections, key=lambda connection: float(connection.data_sent["time_s"][0])), panel)
    for place, (name, frames) in enumerate(zip(names, marks, strict=True)):

        def drawn(mark: Spec, frame: pl.DataFrame, y: Spec, name: str = name, **encoding: Spec) -> None:
            rows = frame.with_columns(pl.lit(name).alias("name")).to_dicts()
            layers.append(layer(mark, rows, x=time, y=y, color=color, **encoding))

        line = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.2, "clip": True}
        drawn(line, panel.thinned(frames[sequence.ACKED], "low_kb"), y)
        # The first is the broadest, so that each shows where all send the same at the same time.
        width = 1.8 + 1.6 * (len(names) - 1 - place)
        for kinds, opacity in (((sequence.SENT, sequence.AGAIN), 1.0), ((sequence.TLS,), 0.45)):
            sent = panel.merged(pl.concat([frames[kind] for kind in kinds]).sort("time_s"))
            drawn({"type": "rule", "strokeWidth": width, "opacity": opacity}, sent, y, y2={"field": "high_kb"})
        cross = {"type": "point", "shape": sequence.CROSS, "size": 50, "strokeWidth": 1.8, "opacity": 1}
        drawn(cross, panel.merged(frames[sequence.GONE]), y)
        letters = sequence.apart(frames[sequence.AGAIN], panel, top)
        drawn({"type": "text", **sequence.LETTER}, letters, quantitative("high_kb"))
    tls = _TLS if any(not frames[sequence.TLS].is_empty() for frames in marks) else ""
    titles = {"text": wrapped(title), "subtitle": _MARKS.format(tls=tls), "anchor": "start", "offset": 8}
    return {"layer": layers, "width": panel.width, "height": sequence.HEIGHT, "title": titles}


def _cwnd(names: list[str], connections: list[Connection], panel: Panel, color: Spec) -> Spec:
    lines = [windows.windows(connection).filter(pl.col("window") == "cwnd") for connection in connections]
    thinned = [panel.thinned(line.drop("window"), "segments") for line in lines]
    size = {"height": windows.HEIGHT, "title": heading(windows.HEADING)}
    return _lines(names, thinned, "segments", "cwnd, segments", panel, color) | size


def _queue(
    named: list[tuple[str, pl.DataFrame | None]], connections: list[Connection], panel: Panel, color: Spec
) -> Iterator[Spec]:
    there = {name: crossings for name, crossings in named if crossings is not None}
    first = queue.bottleneck(connections[0], next(iter(there.values()))) if len(there) == len(named) else None
    if first is None:
        return
    link_crossings = (crossings.filter(pl.col("link") == first) for crossings in there.values())
    steps = [panel.thinned(queue.waiting(crossings, panel), "packets") for crossings in link_crossings]
    size = {"height": queue.HEIGHT, "title": heading(queue.HEADING.format(first))}
    yield _lines(list(there), steps, "packets", "packets waiting", panel, color, titled=True) | size


def _lines(
    names: list[str],
    steps: list[pl.DataFrame],
    field: str,
    title: str,
    panel: Panel,
    color: Spec,
    titled: bool = False,
) -> Spec:
    points = pl.concat(frame.with_columns(pl.lit(name).alias("name")) for name, frame in zip(names, steps, strict=True))
    most = max(1.0, float(points[field].max() or 0))  # type: ignore[arg-type]
    y = quantitative(field, title=title, axis=panel.counts(most), scale={"domain": [0, 1.08 * most]})
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8}
    return layer(line, points.to_dicts(), x=panel.time(titled), y=y, color=color) | {"width": panel.width}
