"""Time-sequence plot of one connection over its congestion window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.figure import inline, png, svg

if TYPE_CHECKING:
    import altair

SENT, RECEIVED, DROPPED, LOST = range(4)
"""`event` of the records' table `segments`."""

_SENT_COLOUR, _ACK_COLOUR, _AGAIN_COLOUR, _LOSS_COLOUR = "#2a7fbf", "#7a7a7a", "#E69F00", "#CC3D6F"
_MARKS = ("data sent", "sent again", "dropped or lost", "acknowledged")
_COLOURS = (_SENT_COLOUR, _AGAIN_COLOUR, _LOSS_COLOUR, _ACK_COLOUR)


def draw(segments: pl.DataFrame, path: Path, title: str) -> None:
    """Write the plot to `path`, SVG or PNG by its suffix.

    `segments` is the records' table of that name; of several connections the one that carries most
    data is drawn, in the direction of its data. Raises ValueError for another suffix or where no
    data segment was sent.
    """
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".png"):
        raise ValueError(f'a plot is written as .svg or .png, and "{path.name}" is neither')
    picture = chart(segments, title)
    data = svg(picture).encode() if suffix == ".svg" else png(picture)
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(data)
    beside.replace(path)


def chart(segments: pl.DataFrame, title: str) -> altair.TopLevelMixin:
    """The plot as an Altair chart: sequence numbers in kB above, windows in segments below."""
    import altair as alt

    rows = _busiest(segments)
    marks = _marks(rows)
    # From the start of the run, so that plots of several initial windows can be held beside each other.
    time = alt.X("time_s:Q", title="time, s", axis=alt.Axis(tickCount=8), scale=alt.Scale(zero=True))
    colour = alt.Color(
        "what:N", sort=list(_MARKS), scale=alt.Scale(domain=list(_MARKS), range=list(_COLOURS)), title=None
    )
    y = alt.Y("low_kb:Q", title="sequence number, kB")
    above = alt.layer(
        alt.Chart(_rows(marks.filter(pl.col("what") == "acknowledged")))
        .mark_line(interpolate="step-after", strokeWidth=1.2)
        .encode(x=time, y=y, color=colour),
        *(
            alt.Chart(_rows(marks.filter(pl.col("what") == what)))
            .mark_rule(strokeWidth=width)
            .encode(x=time, y=y, y2="high_kb:Q", color=colour)
            # Retransmissions lie on the line of acknowledgements and would vanish beside it.
            for what, width in zip(_MARKS[:2], (2.5, 5.0), strict=True)
        ),
        alt.Chart(_rows(marks.filter(pl.col("what") == _MARKS[2])))
        .mark_point(shape="cross", angle=45, filled=True, size=36, opacity=1)
        .encode(x=time, y=y, color=colour),
    ).properties(width=640, height=320, title=alt.TitleParams(title, anchor="start"))
    windows = _windows(rows)
    below = (
        alt.Chart(_rows(windows))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=time,
            y=alt.Y("segments:Q", title="segments", axis=alt.Axis(tickCount=5)),
            strokeDash=alt.StrokeDash(
                "window:N",
                sort=["cwnd", "ssthresh"],
                scale=alt.Scale(domain=["cwnd", "ssthresh"], range=[[1, 0], [4, 3]]),
                title=None,
            ),
            color=alt.value(_SENT_COLOUR),
        )
        .properties(width=640, height=130)
    )
    both: altair.TopLevelMixin = alt.vconcat(above, below).resolve_scale(
        x="shared", color="independent", strokeDash="independent"
    )
    return both


def _rows(frame: pl.DataFrame) -> altair.Data:
    return inline(frame.to_dicts())


def _busiest(segments: pl.DataFrame) -> pl.DataFrame:
    """The rows of one connection, with `is_data_way`: sent by the end that sends most data."""
    place = ["replicate", "connection"]
    sent = (
        segments.filter((pl.col("event") == SENT) & (pl.col("length") > 0))
        .group_by([*place, "from_server"])
        .agg(pl.col("length").sum())
        .sort("length", *place, descending=[True, False, False])
    )
    if sent.is_empty():
        raise ValueError("there is nothing to draw: no data segment was sent")
    replicate, connection, from_server, _ = sent.row(0)
    return (
        segments.filter((pl.col("replicate") == replicate) & (pl.col("connection") == connection))
        .sort("time_ns", maintain_order=True)
        .with_columns(
            (pl.col("time_ns") / 1e9).alias("time_s"),
            (pl.col("from_server") == from_server).alias("is_data_way"),
        )
    )


def _marks(rows: pl.DataFrame) -> pl.DataFrame:
    event = pl.col("event")
    low, high = pl.col("seq") / 1000, (pl.col("seq") + pl.col("length")) / 1000
    data = rows.filter(pl.col("is_data_way") & (pl.col("length") > 0) & (event != RECEIVED)).select(
        "time_s",
        low.alias("low_kb"),
        high.alias("high_kb"),
        pl.when(event != SENT)
        .then(pl.lit(_MARKS[2]))
        .when(pl.col("retransmission") == 1)
        .then(pl.lit(_MARKS[1]))
        .otherwise(pl.lit(_MARKS[0]))
        .alias("what"),
    )
    acknowledged = rows.filter(~pl.col("is_data_way") & (event == RECEIVED)).select(
        "time_s",
        (pl.col("ack").cum_max() / 1000).alias("low_kb"),
        (pl.col("ack").cum_max() / 1000).alias("high_kb"),
        pl.lit(_MARKS[3]).alias("what"),
    )
    return pl.concat([data, acknowledged])


def _windows(rows: pl.DataFrame) -> pl.DataFrame:
    """The data sender's windows: when it sends, and after each segment that it receives."""
    own = rows.filter(
        (pl.col("is_data_way") & (pl.col("event") == SENT)) | (~pl.col("is_data_way") & (pl.col("event") == RECEIVED))
    )
    cwnd = own.select("time_s", pl.lit("cwnd").alias("window"), pl.col("cwnd_segments").alias("segments"))
    ssthresh = own.select("time_s", pl.lit("ssthresh").alias("window"), pl.col("ssthresh_segments").alias("segments"))
    # "Arbitrarily high" is no line: an initial ssthresh far above the window would flatten everything else.
    limit = 2 * float(own["cwnd_segments"].max() or 1.0)  # type: ignore[arg-type]
    return pl.concat([cwnd, ssthresh.filter(pl.col("segments").is_finite() & (pl.col("segments") <= limit))])
