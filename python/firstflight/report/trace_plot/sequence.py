"""The time-sequence graph, as tcptrace draws it: data sent, acknowledged and allowed, seen at the data's sender."""

from __future__ import annotations

import itertools

import polars as pl

from firstflight.report.figure import Spec, layer, nominal, quantitative
from firstflight.report.style import PAPER, SOFT, color
from firstflight.report.trace_plot.connection import CONGESTION_EXPERIENCED, DROPPED, RECEIVED, Connection
from firstflight.report.trace_plot.panel import Panel, wrapped

HEIGHT = 340

SENT = "data sent"
TLS = "TLS handshake"
AGAIN = "R retransmission"
SACKED = "selectively acknowledged"
ACKED = "acknowledged"
DUPLICATE = "duplicate ACK"
WINDOW = "receive window"
GONE = "dropped or lost"
MARKED = "marked (ECN CE)"

# The symbols stand in the legend as they are drawn.
_UPRIGHT, _STEP, CROSS = "M0,-1V1", "M-1,.5H0V-.5H1", "M-.6,-.6L.6,.6M.6,-.6L-.6,.6"
_LOOK = {
    SENT: (color("blue"), _UPRIGHT),
    TLS: (color("tls"), _UPRIGHT),
    AGAIN: (color("alarm"), _UPRIGHT),
    SACKED: (color("sky"), _UPRIGHT),
    ACKED: (color("green"), _STEP),
    DUPLICATE: (color("wine"), "M0,0H1"),
    WINDOW: (color("yellow"), _STEP),
    GONE: (color("ink"), CROSS),
    MARKED: (color("orange"), "diamond"),
}

LETTER: Spec = {"text": "R", "dy": -8, "fontSize": 11, "fontWeight": "bold"}
"""Over a retransmission."""

# Below this number of bars each has a foot and a head, as in tcptrace; above, these would run together.
_FEW_BARS = 200
# Room that a letter needs, in units of the picture.
_LETTER = 12
# Room that the name of a span before the data needs,.
_NAME = 52
# Room that the name of a mark needs.
_END = 140


def chart(connection: Connection, panel: Panel, title: str) -> Spec:
    """Bars from first to last byte, lines for acknowledgments and window, marks for losses and other events."""
    frames = marks(connection)
    top = _top(frames)
    window = frames[WINDOW].filter(pl.col("low_kb") <= top)
    frames[WINDOW] = frames[WINDOW] if not window.is_empty() else window
    drawn = [name for name, rows in frames.items() if not rows.is_empty()]
    time = panel.time(titled=False)
    y = quantitative("low_kb", title="sequence number, kB", scale={"domain": [0, top], "nice": False})
    high = quantitative("high_kb")
    shade, shape = (
        nominal("what", sort=drawn, title=None, scale={"domain": drawn, "range": [_LOOK[name][of] for name in drawn]})
        for of in range(2)
    )
    few = frames[SENT].height + frames[TLS].height + frames[AGAIN].height <= _FEW_BARS
    width = 2.0 if few else 1.5

    layers = opening(connection, panel)

    def add(mark: str, settings: Spec, name: str, rows: pl.DataFrame, y: Spec = y, **encoding: Spec) -> None:
        named = rows.with_columns(pl.lit(name).alias("what")).to_dicts()
        layers.append(layer({"type": mark, **settings}, named, x=time, y=y, **encoding))

    for name in (WINDOW, ACKED):
        steps = panel.thinned(frames[name], "low_kb")
        add("line", {"interpolate": "step-after", "strokeWidth": 1.3, "clip": True}, name, steps, color=shade)
    for name, stroke in ((SACKED, width + 1), (SENT, width), (TLS, width), (AGAIN, width + 0.6)):
        bars = panel.merged(frames[name])
        add("rule", {"strokeWidth": stroke}, name, bars, y2={"field": "high_kb"}, color=shade)
    if few:
        for name, end in itertools.product((SENT, TLS, AGAIN), (y, high)):
            foot = {"shape": "stroke", "size": 22, "strokeWidth": 1.2, "opacity": 1}
            add("point", foot, name, frames[name], end, color=shade)
    for name, size in ((DUPLICATE, 60), (MARKED, 40), (GONE, 50)):
        point = {"size": size, "strokeWidth": 1.8, "opacity": 1, "filled": False}
        add("point", point, name, panel.merged(frames[name]), color=shade, shape=shape)
    letters = apart(frames[AGAIN], panel, top)
    # The same letter below it in the color of the page, broader, separates it from the background.
    add("text", LETTER | {"stroke": PAPER, "strokeWidth": 3, "color": PAPER}, AGAIN, letters, high)
    add("text", LETTER, AGAIN, letters, high, color=shade)
    layers += _ends(connection, panel)
    heading = {"text": wrapped(title), "anchor": "start", "offset": 8}
    return {"layer": layers, "width": panel.width, "height": HEIGHT, "title": heading}


def opening(connection: Connection, panel: Panel) -> list[Spec]:
    """The time before the first data segment, named where a name has room."""
    # The other end sent the SYN before the first time that is drawn.
    spans = connection.opening.with_columns(pl.col("time_s").clip(panel.start_s)).filter(
        pl.col("until_s") > pl.col("time_s")
    )
    if spans.is_empty():
        return []
    across = panel.width / max(panel.end_s - panel.start_s, 1e-9)
    roomy = spans.filter((pl.col("until_s") - pl.col("time_s")) * across > _NAME)
    time = panel.time(titled=False)
    band = {"type": "rect", "color": SOFT, "opacity": 1, "fillOpacity": 0.12}
    edge = {"stroke": SOFT, "strokeOpacity": 0.5, "strokeWidth": 1}
    name = {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "color": SOFT}
    return [
        layer(band | edge, spans.to_dicts(), x=time, x2={"field": "until_s"}),
        layer(name, roomy.to_dicts(), x=time, y={"value": HEIGHT / 2}, text=nominal("what")),
    ]


def _ends(connection: Connection, panel: Panel) -> list[Spec]:
    """A line where each of the connection's marks is, with its name: one line lower than the one before."""
    shown = {name: time_s for name, time_s in connection.marks.items() if panel.start_s <= time_s <= panel.end_s}
    if not shown:
        return []
    time, latest_s = panel.time(titled=False), panel.end_s - _END * (panel.end_s - panel.start_s) / panel.width
    layers = []
    for place, (name, time_s) in enumerate(shown.items()):
        row = [{"time_s": time_s, "name": f"{name} {1e3 * time_s:.1f} ms"}]
        side: Spec = {"align": "right", "dx": -4} if time_s > latest_s else {"align": "left", "dx": 4}
        text = side | {"type": "text", "fontSize": 10}
        at = {"x": time, "y": {"value": 9 + 13 * place}, "text": nominal("name")}
        layers += [
            layer({"type": "rule", "color": SOFT, "strokeDash": [2, 3], "strokeWidth": 1}, row, x=time),
            layer(text | {"stroke": PAPER, "strokeWidth": 3, "color": PAPER}, row, **at),
            layer(text | {"color": SOFT}, row, **at),
        ]
    return layers


def marks(connection: Connection) -> dict[str, pl.DataFrame]:
    """The drawn marks, by name: `time_s`, and `low_kb` to `high_kb`, the place or the range on the sequence axis."""
    sent, acks = connection.data_sent, connection.acks
    again = pl.col("retransmission") == 1
    reached = acks.with_columns(pl.col("ack").cum_max())
    allowed = reached.with_columns((pl.col("ack") + pl.col("window_bytes")).cum_max().alias("edge"))
    return {
        SENT: _ranges(sent.filter(~again & ~pl.col("is_tls"))),
        TLS: _ranges(sent.filter(~again & pl.col("is_tls"))),
        AGAIN: _ranges(sent.filter(again)),
        SACKED: _sacked(acks),
        ACKED: _points(reached, "ack"),
        DUPLICATE: _points(acks.filter("is_duplicate"), "ack"),
        WINDOW: _points(allowed, "edge"),
        GONE: _middles(connection.data.filter(pl.col("event") >= DROPPED)),
        MARKED: _middles(connection.data.filter(pl.col("event") == RECEIVED, pl.col("ecn") == CONGESTION_EXPERIENCED)),
    }


def _top(marks: dict[str, pl.DataFrame]) -> float:
    """The end of the axis: the data's, or a little more where the window is that near."""
    data = data_top(marks)
    near = marks[WINDOW].filter(pl.col("low_kb") <= 1.25 * data)["low_kb"].max()
    return 1.04 * max(data, float(near or 0.0))  # type: ignore[arg-type]


def data_top(marks: dict[str, pl.DataFrame]) -> float:
    """The end of the sent data, kB."""
    return max(float(rows["high_kb"].max() or 0.0) for rows in (marks[SENT], marks[TLS], marks[AGAIN]))  # type: ignore[arg-type]


def _ranges(rows: pl.DataFrame) -> pl.DataFrame:
    low, high = pl.col("seq") / 1000, (pl.col("seq") + pl.col("length")) / 1000
    return rows.select("time_s", low.alias("low_kb"), high.alias("high_kb"))


def _middles(rows: pl.DataFrame) -> pl.DataFrame:
    middle = (pl.col("seq") + pl.col("length") / 2) / 1000
    return rows.select("time_s", middle.alias("low_kb"), middle.alias("high_kb"))


def _points(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    place = pl.col(column) / 1000
    return rows.select("time_s", place.alias("low_kb"), place.alias("high_kb"))


def _sacked(acks: pl.DataFrame) -> pl.DataFrame:
    """Every range of every SACK option, at the time at which the sender learned of it."""
    return pl.concat(
        acks.filter(pl.col("sack_count") > index).select(
            "time_s",
            (pl.col(f"sack_left_{index}") / 1000).alias("low_kb"),
            (pl.col(f"sack_right_{index}") / 1000).alias("high_kb"),
        )
        for index in range(4)
    )


def apart(marks: pl.DataFrame, panel: Panel, top: float) -> pl.DataFrame:
    """Those marks whose letters do not lie on each other, from the first on."""
    across = panel.width / max(panel.end_s - panel.start_s, 1e-9)
    along = HEIGHT / top
    kept: list[dict[str, float]] = []
    for mark in marks.iter_rows(named=True):
        near = kept and (
            abs(mark["time_s"] - kept[-1]["time_s"]) * across < _LETTER
            and abs(mark["high_kb"] - kept[-1]["high_kb"]) * along < _LETTER
        )
        if not near:
            kept.append(mark)
    return pl.DataFrame(kept, schema=marks.schema)
