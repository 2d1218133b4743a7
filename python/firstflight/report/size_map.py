"""The map of response sizes: the completion time of each with each initial window, and the capacity of users' paths.

Two panels over one axis of bytes. Above, the time of a response on one path, one line per initial window: a step is a
round trip more. Below, the users as a cloud of equal dots: their round trip, and how many bytes their line carries in
it. A user to the right of a window's line has an idle line for a part of the first round trip, which a larger window
would use.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from firstflight.report.figure import Figure, Spec, layer, nominal, quantitative
from firstflight.report.style import ORDERED, SOFT, scale

_TICKS_KB = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_TICKS_MS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000, 2000, 5000)
_OUTER_PERCENT = 0.1
_WIDE, _NARROW = 740, 270
"""Width of the panels, px."""
_LABEL_PX = {"label": {_WIDE: 26.0, _NARROW: 22.0}, "roomy": {_WIDE: 46.0, _NARROW: 37.0}}
"""Room above a panel for "IW 3" or "16", and for "> 99%"."""
_NAME_PX = 14.0
"""Room for the name of a line at its end, from one to the next."""
_DOTS = {_WIDE: 1000, _NARROW: 500}
"""The users are drawn as this number of dots of the same weight."""
_SEGMENT_BYTES = 1448
"""Payload of a full segment with timestamps."""


def size_map(
    curves: pl.DataFrame,
    cloud: pl.DataFrame,
    *,
    name: str,
    title: str,
    caption: str,
    path: str,
    users: str = "users",
    headline: str = "",
) -> Figure:
    """The figure, for a wide and a narrow page.

    `curves`: `initial_window` (segments), `bytes` (of the response), `time_s`; every window over the same sizes. With a
    column `first_flight_segments`, the actual first flight counts: a receiver's window may bound it.
    `cloud`: one row per user, `rtt_s`, `down_bps` and `weight` (any unit; rows of weight 0 are left out). `path` says
    whose path the curves are of, `users` the name of the rows of the cloud, `headline` the main result; these three
    are written into the picture. Raises ValueError where the curves have
    no row, the cloud no weight, or there are more windows than colors.
    """
    shown = cloud.filter((pl.col("weight") > 0) & (pl.col("down_bps") > 0) & (pl.col("rtt_s") > 0))
    windows = sorted(curves["initial_window"].unique().to_list())
    if not windows or shown.is_empty():
        raise ValueError("a map of sizes needs curves and users of a weight above 0")
    if len(windows) > len(ORDERED):
        raise ValueError(f"a map of sizes has colors for {len(ORDERED)} initial windows, not {len(windows)}")
    lines = curves.select(
        "initial_window", (pl.col("bytes") / 1e3).alias("kb"), (1e3 * pl.col("time_s")).alias("ms")
    ).sort("initial_window", "kb")
    dots = shown.select(
        (pl.col("rtt_s") * pl.col("down_bps") / 8e3).alias("kb"),
        (1e3 * pl.col("rtt_s")).alias("ms"),
        (100 * pl.col("weight") / shown["weight"].sum()).alias("percent"),
    )
    flights = {window: window for window in windows}
    if "first_flight_segments" in curves.columns:
        flights = dict(curves.group_by("initial_window").agg(pl.col("first_flight_segments").max()).iter_rows())
    marks = _marks({window: flights[window] * _SEGMENT_BYTES / 1e3 for window in windows}, dots)

    def chart(width: int) -> Spec:
        return _chart(lines, dots, marks, width, headline, path, users)

    return Figure(name, title, caption, chart(_WIDE), chart(_NARROW))


def _marks(flights_kb: dict[int, float], dots: pl.DataFrame) -> list[dict[str, Any]]:
    """One per window: where its first flight ends, and how many users' lines carry more in a round trip."""
    return [
        {
            "initial_window": window,
            "kb": kb,
            "label": f"{window}" if place else f"IW {window}",
            "roomy": _percent(float(dots.filter(pl.col("kb") > kb)["percent"].sum())),
        }
        for place, (window, kb) in enumerate(flights_kb.items())
    ]


def _percent(share: float) -> str:
    """Rounded, but 100% only where it is everyone."""
    return "> 99%" if 99.5 <= share < 100 - 1e-9 else f"{share:.0f}%"


def _chart(
    lines: pl.DataFrame,
    dots: pl.DataFrame,
    marks: list[dict[str, Any]],
    width: int,
    headline: str,
    path: str,
    users: str,
) -> Spec:
    low, high = float(lines["kb"].min() or 1), float(lines["kb"].max() or 1)  # type: ignore[arg-type]
    axis = _Bytes(low, high, width)
    shown = [mark for mark in marks if low < mark["kb"] < high]
    whose = f"{users[:1].upper()}{users[1:]}"
    panels = [
        _times(lines, shown, axis, _heading(f"Time of a response: {path}", axis)),
        _users(
            dots,
            shown,
            axis,
            _heading(
                f"{whose}: each dot is one in {_DOTS[width]:,}",
                axis,
                "above each line: share of users whose BDP exceeds this first flight",
            ),
        ),
    ]
    picture: Spec = {"vconcat": panels, "spacing": 14}
    if headline:
        text = textwrap.wrap(headline, 84 if axis.wide else 40)
        picture["title"] = {"text": text, "anchor": "start", "fontSize": 18 if axis.wide else 13, "offset": 14}
    return picture


@dataclass(frozen=True)
class _Bytes:
    """The axis that both panels share, kB."""

    low: float
    high: float
    width: int

    @property
    def wide(self) -> bool:
        return self.width == _WIDE

    def encoding(self, titled: bool) -> Spec:
        ticks = [kb for kb in _TICKS_KB if self.low <= kb <= self.high]
        if not self.wide:
            ticks = [kb for kb in ticks if str(kb)[0] == "1"]
        title = (
            "kB (logarithmic): above, size of the response; below, BDP of the access link"
            if self.wide
            else ["kB (logarithmic): size of the response,", "or BDP of the access link"]
        )
        return quantitative(
            "kb",
            scale={"type": "log", "domain": [self.low, self.high], "nice": False},
            axis={"values": ticks, "format": ",d", "labels": titled, "labelFlush": False, "gridOpacity": 0.6},
            title=title if titled else None,
        )

    def at(self, kb: float) -> float:
        """Pixels from the left."""
        return self.width * math.log(kb / self.low) / math.log(self.high / self.low)

    def kb(self, at: float) -> float:
        """The inverse of `at`."""
        return float(self.low * (self.high / self.low) ** (at / self.width))


def _times(lines: pl.DataFrame, marks: list[dict[str, Any]], axis: _Bytes, heading: Spec) -> Spec:
    top = 1.02 * float(lines["ms"].max() or 1)  # type: ignore[arg-type]
    y = quantitative("ms", title="time, ms", scale={"domain": [0, top], "nice": False}, axis={"tickCount": 6})
    x = axis.encoding(False)
    curve = {"type": "line", "strokeWidth": 2.4 if axis.wide else 1.8, "strokeJoin": "round"}
    layers = [
        _rules(marks, x),
        layer(curve, lines.to_dicts(), x=x, y=y, color=_color(marks), detail=nominal("initial_window")),
        _labels(marks, axis, x, "label"),
    ]
    height = 330 if axis.wide else 220
    if axis.wide:
        step = _step(lines, marks)
        if step is not None:
            note = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -4, "fontSize": 11}
            layers.append(layer(note, [step], x=x, y=y, text=nominal("text")))
        ends, bold = _line_ends(lines, marks, height / top), {"fontSize": 12, "fontWeight": "bold"}
        name = {"type": "text", "align": "left", "baseline": "middle", **bold}
        at = {"value": axis.width + 8}
        layers.append(layer(name, ends, x=at, y=y, text=nominal("name"), color=_color(marks)))
    return {"layer": layers, "width": axis.width, "height": height, "title": heading}


def _users(dots: pl.DataFrame, marks: list[dict[str, Any]], axis: _Bytes, heading: Spec) -> Spec:
    low, high = _ends(dots)
    x = axis.encoding(True)
    y = quantitative(
        "ms",
        title="RTT, ms",
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"values": [ms for ms in _TICKS_MS if low <= ms <= high], "format": "d", "labelOverlap": True},
    )
    drawn, beyond = _drawn(dots, axis, low, high)
    # Those at the same place make one dot, as much larger.
    size = quantitative("area", scale=None)
    circle = {"type": "circle", "color": SOFT, "opacity": 0.5, "clip": True, "aria": False}
    layers = [_rules(marks, x), layer(circle, drawn, x=x, y=y, size=size), _labels(marks, axis, x, "roomy")]
    if beyond:
        font = 11 if axis.wide else 10
        note = {"type": "text", "align": "right", "baseline": "top", "dx": -4, "dy": 5, "fontSize": font}
        rows = [{"text": f"{beyond} beyond \u2192"}]
        layers.append(layer(note, rows, x={"value": axis.width}, y={"value": 0}, text=nominal("text")))
    return {"layer": layers, "width": axis.width, "height": 190 if axis.wide else 140, "title": heading}


def _color(marks: list[dict[str, Any]]) -> Spec:
    windows = [mark["initial_window"] for mark in marks]
    return nominal("initial_window", sort=windows, scale=scale(windows, "iw"), legend=None)


def _rules(marks: list[dict[str, Any]], x: Spec) -> Spec:
    return layer({"type": "rule", "strokeDash": [3, 3], "strokeWidth": 1.2}, marks, x=x, color=_color(marks))


def _labels(marks: list[dict[str, Any]], axis: _Bytes, x: Spec, column: str) -> Spec:
    """Above the panel, each over its line or moved to the right of the one before."""
    places = _apart([axis.at(mark["kb"]) for mark in marks], _LABEL_PX[column][axis.width])
    placed = [mark | {"kb": axis.kb(at)} for mark, at in zip(marks, places, strict=True)]
    text = {"type": "text", "fontSize": 12 if axis.wide else 10, "fontWeight": "bold", "baseline": "bottom", "dy": -3}
    return layer(text, placed, x=x, y={"value": 0}, text=nominal(column), color=_color(marks))


def _heading(text: str, axis: _Bytes, below: str = "") -> Spec:
    letters = 110 if axis.wide else 46
    heading = {
        "text": textwrap.wrap(text, letters),
        "anchor": "start",
        "frame": "group",
        "fontSize": 14 if axis.wide else 11,
        "fontWeight": "bold",
        "subtitleFontSize": 12 if axis.wide else 10.5,
        "subtitlePadding": 5,
        "offset": 24 if axis.wide else 20,
    }
    return heading | ({"subtitle": textwrap.wrap(below, letters)} if below else {})


def _step(lines: pl.DataFrame, marks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The place of the smallest window's first step, for the label that explains a step; None if not visible."""
    if not marks:
        return None
    first = marks[0]
    points = lines.filter(pl.col("initial_window") == first["initial_window"])
    before, after = points.filter(pl.col("kb") <= first["kb"]), points.filter(pl.col("kb") > first["kb"])
    if before.is_empty() or after.is_empty():
        return None
    return {
        "kb": first["kb"],
        "ms": after["ms"][0],
        "text": f"+ {after['ms'][0] - before['ms'][-1]:.0f} ms: one more flight",
    }


def _line_ends(lines: pl.DataFrame, marks: list[dict[str, Any]], px_per_ms: float) -> list[dict[str, Any]]:
    """The name of each line and where to write it, ms: next to its end, and apart from the next one's."""
    last = lines.filter(pl.col("initial_window").is_in([mark["initial_window"] for mark in marks]))
    ends = last.sort("kb").group_by("initial_window", maintain_order=True).last().sort("ms")
    placed = _apart([ms * px_per_ms for ms in ends["ms"]], _NAME_PX)
    return [
        {"initial_window": window, "name": f"IW {window}", "ms": at / px_per_ms}
        for window, at in zip(ends["initial_window"], placed, strict=True)
    ]


def _apart(places: list[float], room: float) -> list[float]:
    """Rising places, each at least `room` from the next: two that are too near move apart by equal parts."""
    placed = list(places)
    for _ in range(100):
        for i in range(len(placed) - 1):
            lacking = room - (placed[i + 1] - placed[i])
            if lacking > 0.01:
                placed[i] -= lacking / 2
                placed[i + 1] += lacking / 2
    return placed


def _ends(dots: pl.DataFrame) -> tuple[float, float]:
    """Round trips (ms) between which all but two in a thousand users lie, with a margin."""
    order = dots.sort("ms").with_columns(pl.col("percent").cum_sum().alias("so_far"))
    least, *_ = order.filter(pl.col("so_far") >= _OUTER_PERCENT)["ms"]
    *_, most = order.filter(pl.col("so_far") - pl.col("percent") <= 100 - _OUTER_PERCENT)["ms"]
    return least / 1.2, most * 1.2


def _drawn(dots: pl.DataFrame, axis: _Bytes, ms_low: float, ms_high: float) -> tuple[list[dict[str, Any]], str]:
    """Dots of equal weight in place of the users, and the share of the users whom the axis ends before.

    In the order of bytes and round trip every user has as many dots as the weight is worth, to the nearest one. Users
    before an end of an axis, and those of the longest and shortest round trips, are drawn at its end.
    """
    count = _DOTS[axis.width]
    order = dots.sort("kb", "ms")
    so_far = order["percent"].cum_sum().to_numpy()
    rows = np.searchsorted(so_far / so_far[-1], (np.arange(count) + 0.5) / count)
    gathered = (
        order[rows]
        .filter(pl.col("kb") <= axis.high)
        .select(pl.col("kb").clip(axis.low, None).round(2), pl.col("ms").clip(ms_low, ms_high).round(2))
        .group_by("kb", "ms", maintain_order=True)
        .len("dots")
        .select("kb", "ms", (pl.col("dots") * (13.0 if axis.wide else 9.0)).alias("area"))
    )
    beyond = float(order.filter(pl.col("kb") > axis.high)["percent"].sum())
    return gathered.to_dicts(), "" if beyond == 0 else "< 1%" if beyond < 0.5 else _percent(beyond)
