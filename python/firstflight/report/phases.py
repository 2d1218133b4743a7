"""One transfer explained: the changes of cwnd and their reasons, written into the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.report.figure import Figure, inline
from firstflight.report.style import INK, ORDERED, PAPER, SOFT
from firstflight.report.trace_plot import windows
from firstflight.report.trace_plot.connection import Connection
from firstflight.report.trace_plot.panel import Panel

if TYPE_CHECKING:
    import altair

_HEIGHT = 300
# Units of width that a letter takes; a phase's name is written into it, on two lines, where its longer word has room.
_LETTER = 6.0


def explained(segments: pl.DataFrame, name: str, title: str, caption: str) -> Figure:
    """The windows of a transfer, its phases named in place and each loss event numbered.

    `segments` is the records' table of that name; the connection that carries most data is drawn. The numbers on the
    picture are explained below it, with the windows of this very transfer. Raises ValueError where no data was sent.
    """
    connection = Connection.busiest(segments)
    events = notes(connection)
    told = " ".join(f"({event['number']}) {event['text']}" for event in events)

    def chart(width: int) -> altair.TopLevelMixin:
        return _chart(connection, events, width)

    return Figure(name, title, f"{caption} {told}".strip(), chart(640), chart(270))


def notes(connection: Connection) -> list[dict[str, Any]]:
    """The moments worth a word: `number`, `time_s`, `segments` (cwnd just before) and `text`."""
    own, spans = connection.own, windows.phases(connection)
    found: list[dict[str, Any]] = []
    first_avoidance = True
    for at, phase, before in zip(spans["time_s"], spans["phase"], [None, *spans["phase"][:-1]], strict=True):
        earlier, later = own.filter(pl.col("time_s") < at), own.filter(pl.col("time_s") == at)
        cwnd = float(earlier["cwnd_segments"][-1]) if not earlier.is_empty() else float(later["cwnd_segments"][0])
        now, threshold = float(later["cwnd_segments"][-1]), float(later["ssthresh_segments"][-1])
        if phase == windows.SLOW_START and before is None:
            text = f"Slow start from {_count(now)}: each ACK raises cwnd by the data it acknowledges."
        elif phase == windows.FAST_RECOVERY:
            text = (
                f"Fast retransmit at {at:.2f} s: the missing segment is retransmitted without waiting for the timer, "
                f"and ssthresh becomes {_count(threshold)}."
            )
        elif phase == windows.LOSS:
            text = f"Timeout at {at:.2f} s: cwnd falls from {cwnd:.0f} to {_count(now)}; ssthresh is {threshold:.0f}."
        elif phase == windows.AVOIDANCE and first_avoidance:
            first_avoidance = False
            text = f"Congestion avoidance from {at:.2f} s: beyond ssthresh, cwnd grows slowly from {_count(now)} on."
        else:
            continue
        found.append({"number": len(found) + 1, "time_s": float(at), "segments": cwnd, "text": text})
    return found


def _count(segments: float) -> str:
    rounded = round(segments)
    return f"{rounded} segment" if rounded == 1 else f"{rounded} segments"


def _chart(connection: Connection, events: list[dict[str, Any]], width: int) -> altair.TopLevelMixin:
    import altair as alt

    panel = Panel(width, *connection.span)
    steps, spans = windows.windows(connection), windows.phases(connection)
    top = 1.2 * float(steps["segments"].max() or 1.0)  # type: ignore[arg-type]
    time = panel.time(titled=True)
    y = alt.Y("segments:Q", title="segments", scale=alt.Scale(domain=[0, top], nice=False))
    scale = alt.Scale(domain=list(windows.PHASES), range=list(windows.PHASES.values()))
    back = (
        alt.Chart(inline(spans.to_dicts()))
        .mark_rect(opacity=windows.PALE)
        .encode(x=time, x2="until_s:Q", color=alt.Color("phase:N", scale=scale, legend=None))
    )
    longest = pl.col("phase").str.split(" ").list.eval(pl.element().str.len_chars()).list.max()
    units = (pl.col("until_s") - pl.col("time_s")) / (panel.end_s - panel.start_s) * width
    room = units >= _LETTER * longest
    middle = ((pl.col("time_s") + pl.col("until_s")) / 2).alias("time_s")
    named = [
        {"time_s": at, "segments": top, "phase": phase.rsplit(" ", 1)}
        for at, phase in spans.filter(room).select(middle, "phase").iter_rows()
    ]
    names = (
        alt.Chart(inline(named))
        .mark_text(baseline="top", dy=6, fontSize=11, fontStyle="italic", color=SOFT)
        .encode(x=time, y=y, text="phase:N")
    )
    thinned = pl.concat(
        panel.thinned(steps.filter(pl.col("window") == window), "segments") for window in ("cwnd", "ssthresh")
    )
    lines = (
        alt.Chart(inline(thinned.to_dicts()))
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True, color=ORDERED[0])
        .encode(
            x=time,
            y=y,
            strokeDash=alt.StrokeDash(
                "window:N", title=None, scale=alt.Scale(domain=["cwnd", "ssthresh"], range=[[1, 0], [4, 3]])
            ),
        )
    )
    disc = alt.Chart(inline(events)).mark_circle(size=230, color=INK, opacity=1).encode(x=time, y=y)
    number = (
        alt.Chart(inline(events))
        .mark_text(fontSize=10.5, fontWeight="bold", color=PAPER, dy=0.5)
        .encode(x=time, y=y, text="number:N")
    )
    return alt.LayerChart(layer=[back, lines, names, disc, number]).properties(width=width, height=_HEIGHT)
