"""The picture of a connection, or of several upon each other: sequence numbers, windows, queue over one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from firstflight.records import output
from firstflight.report.figure import Spec, format_of, picture
from firstflight.report.trace_plot import overlay, queue, sequence, windows
from firstflight.report.trace_plot.connection import Connection
from firstflight.report.trace_plot.panel import Panel

WIDTH = 720


def draw(
    segments: pl.DataFrame,
    path: Path,
    title: str,
    crossings: pl.DataFrame | None = None,
    marks: Mapping[str, float] | None = None,
) -> None:
    """Write the plot to `path`, in the format of its suffix.

    `segments` and `crossings` are the records' tables of these names; without `crossings` there is no queue to show. Of
    several connections the one that carries most data is drawn, in the direction of its data. `marks`: times of a
    trace, by name; of segments with `is_tls` those of the TLS handshake have a color of their own. Raises ValueError
    where no data segment was sent, RequestError for another suffix and for a file that something else wrote,
    MachineError where it cannot be written.
    """
    form = format_of(path)
    output.write(path, picture(chart(segments, title, crossings, marks), form))


def draw_together(drawn: Sequence[overlay.PlottedConnection], path: Path, title: str) -> None:
    """Write several connections upon each other to `path`. Errors as of `draw`."""
    form = format_of(path)
    output.write(path, picture(overlay.chart(drawn, WIDTH, title), form))


def chart(
    segments: pl.DataFrame, title: str, crossings: pl.DataFrame | None = None, marks: Mapping[str, float] | None = None
) -> Spec:
    """The plot, one panel below the other."""
    connection = Connection.busiest(segments, marks)
    panel = Panel(WIDTH, *connection.span)
    panels = [sequence.chart(connection, panel, title)]
    if (between := windows.chart(connection, panel)) is not None:
        panels.append(between)
    if crossings is not None and (below := queue.chart(connection, panel, crossings)) is not None:
        panels.append(below)
    scales = {"x": "shared", "color": "independent", "shape": "independent", "strokeDash": "independent"}
    return {"vconcat": panels, "spacing": 14, "resolve": {"scale": scales}}
