"""cwnd and ssthresh of the data's sender, over the phases of its congestion control."""

from __future__ import annotations

import polars as pl

from firstflight.report.figure import Spec, layer, nominal, quantitative
from firstflight.report.style import ORDERED, color
from firstflight.report.trace_plot.connection import Connection
from firstflight.report.trace_plot.panel import Panel, heading

HEIGHT = 140
HEADING = "Congestion window of the data's sender"

SLOW_START = "slow start"
AVOIDANCE = "congestion avoidance"
FAST_RECOVERY = "fast recovery"
LOSS = "after a timeout"
PHASES = dict(
    zip((SLOW_START, AVOIDANCE, FAST_RECOVERY, LOSS), map(color, ("blue", "green", "orange", "red")), strict=True)
)
PALE = 0.16
"""Opacity of a phase behind the lines."""

# `recovery_state` of the records.
_FAST_RECOVERY, _LOSS = 3, 4


def chart(connection: Connection, panel: Panel) -> Spec | None:
    """The two windows in segments as lines; the sender's phase as the color behind them. None for a capture of
    packets, which does not show them.
    """
    if not connection.own["cwnd_segments"].is_finite().any():
        return None

    lines = windows(connection)
    spans = phases(connection).filter(pl.col("until_s") > pl.col("time_s"))
    most = float(lines["segments"].max() or 1.0)  # type: ignore[arg-type]
    time = panel.time(titled=False)
    names = [name for name in ("cwnd", "ssthresh") if name in lines["window"].unique().to_list()]
    shown = [name for name in PHASES if name in spans["phase"].to_list()]
    scale = {"domain": shown, "range": [PHASES[name] for name in shown]}
    behind = layer(
        {"type": "rect", "opacity": PALE},
        spans.to_dicts(),
        x=time,
        x2={"field": "until_s"},
        color=nominal("phase", sort=shown, title=None, scale=scale),
    )
    thinned = pl.concat(panel.thinned(lines.filter(pl.col("window") == name), "segments") for name in names)
    dashes = {"domain": names, "range": [[1, 0], [4, 3]][: len(names)]}
    before = layer(
        {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
        thinned.to_dicts(),
        x=time,
        y=quantitative("segments", title="segments", axis=panel.counts(most), scale={"domain": [0, 1.08 * most]}),
        strokeDash=nominal("window", sort=names, scale=dashes, title=None),
        color={"value": ORDERED[0]},
    )
    return {"layer": [behind, before], "width": panel.width, "height": HEIGHT, "title": heading(HEADING)}


def windows(connection: Connection) -> pl.DataFrame:
    """`time_s`, `window` and `segments`: cwnd and ssthresh when the sender sends and after what it receives."""
    rows = connection.own
    cwnd = rows.select("time_s", pl.lit("cwnd").alias("window"), pl.col("cwnd_segments").alias("segments"))
    ssthresh = rows.select("time_s", pl.lit("ssthresh").alias("window"), pl.col("ssthresh_segments").alias("segments"))
    # "Arbitrarily high" is no line: an initial ssthresh far above the window would flatten everything else.
    limit = 2 * float(rows["cwnd_segments"].max() or 1.0)  # type: ignore[arg-type]
    return pl.concat([cwnd, ssthresh.filter(pl.col("segments").is_finite() & (pl.col("segments") <= limit))])


def phases(connection: Connection) -> pl.DataFrame:
    """`time_s`, `until_s` and `phase`: the spans of time in which the sender was in one phase."""
    state = pl.col("recovery_state")
    phase = (
        pl.when(state == _FAST_RECOVERY)
        .then(pl.lit(FAST_RECOVERY))
        .when(state == _LOSS)
        .then(pl.lit(LOSS))
        # RFC 5681 section 3.1: slow start while cwnd is below ssthresh.
        .when(pl.col("cwnd_segments") < pl.col("ssthresh_segments"))
        .then(pl.lit(SLOW_START))
        .otherwise(pl.lit(AVOIDANCE))
    )
    # Of several changes at one moment the last one stays.
    states = connection.own.select("time_s", phase.alias("phase")).unique("time_s", keep="last", maintain_order=True)
    changes = states.filter((pl.col("phase") != pl.col("phase").shift(1)).fill_null(True))
    return changes.with_columns(pl.col("time_s").shift(-1).fill_null(states["time_s"][-1]).alias("until_s"))
