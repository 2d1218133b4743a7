"""The map of response sizes: how long each takes with each initial window, and what users' paths carry meanwhile.

Two panels over one axis of bytes. Above, the time of a response on one path, a line an initial window: a step is a
round trip more. Below, the users: how many have which round trip, and how many bytes their line carries in it. A user
to the right of a window's line has an idle line for a part of the first round trip, which a larger window would use.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from firstflight.report.figure import Figure, inline

if TYPE_CHECKING:
    import altair

# From the oldest window to the largest: grey, then around the colour circle at about the same darkness.
_COLOURS = ("#8a8a8a", "#2a7fbf", "#009E73", "#D99000", "#D55E00", "#B0307A", "#6A3D9A", "#333333")
_TICKS_KB = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_TICKS_MS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000, 2000, 5000)
_OUTER_PERCENT = 0.1
_LABEL_PX = 36.0
_BLOBS = {640: (46, 11), 270: (26, 11)}
"""Columns and rows of circles, by the width of the panel."""
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
    segment_bytes: int = _SEGMENT_BYTES,
) -> Figure:
    """The figure, for a wide and a narrow page.

    `curves`: `initial_window` (segments), `bytes` (of the response), `time_s`; every window over the same sizes. With a
    column `first_flight_segments`, what really left first counts: a receiver's window may bound it.
    `cloud`: one row a user, `rtt_s`, `down_bps` and `weight` (any unit; rows of weight 0 are left out). `path` says
    whose path the curves are of, `users` what the rows of the cloud are called, `headline` what one learns; these three
    are written into the picture. Raises ValueError where the curves have
    no row, the cloud no weight, or there are more windows than colours.
    """
    shown = cloud.filter((pl.col("weight") > 0) & (pl.col("down_bps") > 0) & (pl.col("rtt_s") > 0))
    windows = sorted(curves["initial_window"].unique().to_list())
    if not windows or shown.is_empty():
        raise ValueError("a map of sizes needs curves and users of a weight above 0")
    if len(windows) > len(_COLOURS):
        raise ValueError(f"a map of sizes has colours for {len(_COLOURS)} initial windows, not {len(windows)}")
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
    marks = _marks({window: flights[window] * segment_bytes / 1e3 for window in windows}, dots)

    def chart(width: int) -> altair.TopLevelMixin:
        return _chart(lines, dots, marks, width, headline, path, users)

    return Figure(name, title, caption, chart(640), chart(270))


def _marks(flights_kb: dict[int, float], dots: pl.DataFrame) -> list[dict[str, Any]]:
    """One a window: where its first flight ends, and how many users' lines carry more in a round trip."""
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
    """Rounded, but 100 % only where it is everyone."""
    return "> 99 %" if 99.5 <= share < 100 - 1e-9 else f"{share:.0f} %"


def _chart(
    lines: pl.DataFrame,
    dots: pl.DataFrame,
    marks: list[dict[str, Any]],
    width: int,
    headline: str,
    path: str,
    users: str,
) -> altair.TopLevelMixin:
    import altair as alt

    low, high = float(lines["kb"].min() or 1), float(lines["kb"].max() or 1)  # type: ignore[arg-type]
    axis = _Bytes(low, high, width)
    spread = _spread([mark for mark in marks if low < mark["kb"] < high], axis)
    panels = [
        _times(lines, spread, axis, f"Time of a response: {path}"),
        _users(
            dots, spread, axis, f"{users[:1].upper()}{users[1:]} whose line carries more than this in one round trip"
        ),
    ]
    picture = alt.vconcat(*panels, spacing=14)
    if headline:
        picture = picture.properties(
            title=alt.TitleParams(
                headline if axis.wide else textwrap.wrap(headline, 34),
                anchor="start",
                fontSize=17 if axis.wide else 13,
                offset=14,
            )
        )
    return picture


@dataclass(frozen=True)
class _Bytes:
    """The axis that both panels share, kB."""

    low: float
    high: float
    width: int

    @property
    def wide(self) -> bool:
        return self.width > 400

    def encoding(self, titled: bool) -> altair.X:
        import altair as alt

        ticks = [kb for kb in _TICKS_KB if self.low <= kb <= self.high]
        if not self.wide:
            ticks = [kb for kb in ticks if str(kb)[0] == "1"]
        title = "kB: of the response (above), of a round trip at the line's rate (below)" if self.wide else "kB"
        return alt.X(
            "kb:Q",
            scale=alt.Scale(type="log", domain=[self.low, self.high], nice=False),
            axis=alt.Axis(values=ticks, format=",d", labels=titled, gridOpacity=0.6),
            title=title if titled else None,
        )

    def at(self, kb: float) -> float:
        """Pixels from the left."""
        return self.width * math.log(kb / self.low) / math.log(self.high / self.low)

    def kb(self, at: float) -> float:
        """The inverse of `at`."""
        return float(self.low * (self.high / self.low) ** (at / self.width))


def _times(lines: pl.DataFrame, marks: list[dict[str, Any]], axis: _Bytes, heading: str) -> altair.LayerChart:
    import altair as alt

    top = 1.02 * float(lines["ms"].max() or 1)  # type: ignore[arg-type]
    y = alt.Y("ms:Q", title="ms", scale=alt.Scale(domain=[0, top], nice=False))
    x = axis.encoding(False)
    layers = [
        _rules(marks, x),
        alt.Chart(inline(lines.to_dicts()))
        .mark_line(strokeWidth=2.4 if axis.wide else 1.8, strokeJoin="round")
        .encode(x=x, y=y, color=_colour(marks), detail="initial_window:N"),
        _labels(marks, axis, x, "label"),
    ]
    step = _step(lines, marks)
    if step is not None and axis.wide:
        note = alt.Chart(inline([step])).mark_text(
            align="left", baseline="bottom", dx=4, dy=-4, fontSize=10.5, fontStyle="italic", color="#555555"
        )
        layers.append(note.encode(x=x, y=y, text="text:N"))
    return alt.LayerChart(layer=layers).properties(
        width=axis.width, height=290 if axis.wide else 220, title=_heading(heading, axis)
    )


def _users(dots: pl.DataFrame, marks: list[dict[str, Any]], axis: _Bytes, heading: str) -> altair.LayerChart:
    import altair as alt

    low, high = _ends(dots)
    x = axis.encoding(True)
    y = alt.Y(
        "ms:Q",
        title="round trip, ms",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=[ms for ms in _TICKS_MS if low <= ms <= high], format="d", labelOverlap=True),
    )
    cells = _gathered(dots, axis, low, high)
    most = max(cell["percent"] for cell in cells)
    largest = (axis.width / _BLOBS[axis.width][0]) ** 2
    cloud = (
        alt.Chart(inline(cells))
        .mark_circle(color="#4c5c6c", opacity=0.75, clip=True)
        .encode(
            x=x, y=y, size=alt.Size("percent:Q", scale=alt.Scale(domain=[0, most], range=[0, largest]), legend=None)
        )
    )
    return alt.LayerChart(layer=[_rules(marks, x), cloud, _labels(marks, axis, x, "roomy")]).properties(
        width=axis.width, height=150 if axis.wide else 130, title=_heading(heading, axis)
    )


def _colour(marks: list[dict[str, Any]]) -> altair.Color:
    import altair as alt

    windows = [mark["initial_window"] for mark in marks]
    scale = alt.Scale(domain=windows, range=list(_COLOURS[: len(windows)]))
    return alt.Color("initial_window:N", sort=windows, scale=scale, legend=None)


def _rules(marks: list[dict[str, Any]], x: altair.X) -> altair.Chart:
    import altair as alt

    rules: altair.Chart = (
        alt.Chart(inline(marks)).mark_rule(strokeDash=[3, 3], strokeWidth=1.2).encode(x=x, color=_colour(marks))
    )
    return rules


def _labels(marks: list[dict[str, Any]], axis: _Bytes, x: altair.X, column: str) -> altair.Chart:
    """Above the panel, each over its line or moved to the right of the one before."""
    import altair as alt

    placed = [mark | {"kb": mark["label_kb"]} for mark in marks]
    labels: altair.Chart = (
        alt.Chart(inline(placed))
        .mark_text(fontSize=12 if axis.wide else 10, fontWeight="bold", baseline="bottom", dy=-3)
        .encode(x=x, y=alt.value(0), text=f"{column}:N", color=_colour(marks))
    )
    return labels


def _heading(text: str, axis: _Bytes) -> altair.TitleParams:
    import altair as alt

    return alt.TitleParams(
        text if axis.wide else _broken(text),
        anchor="start",
        frame="group",
        fontSize=12.5 if axis.wide else 11,
        fontWeight="normal",
        offset=22,
    )


def _broken(text: str) -> list[str]:
    """The text in lines that a narrow page has room for."""
    return textwrap.wrap(text, 42)


def _step(lines: pl.DataFrame, marks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Where the first step of the smallest window is, for the word that says what a step is; None where none shows."""
    if not marks:
        return None
    first = marks[0]
    own = lines.filter(pl.col("initial_window") == first["initial_window"])
    before, after = own.filter(pl.col("kb") <= first["kb"]), own.filter(pl.col("kb") > first["kb"])
    if before.is_empty() or after.is_empty():
        return None
    return {"kb": first["kb"], "ms": after["ms"][0], "text": "one round trip more"}


def _spread(marks: list[dict[str, Any]], axis: _Bytes) -> list[dict[str, Any]]:
    """The marks with places for their labels (`label_kb`): their own, moved apart where they would touch."""
    own = [axis.at(mark["kb"]) for mark in marks]
    placed = list(own)
    # Two that are too near move apart by equal parts, until none is.
    for _ in range(100):
        for i in range(len(placed) - 1):
            lacking = _LABEL_PX - (placed[i + 1] - placed[i])
            if lacking > 0.01:
                placed[i] -= lacking / 2
                placed[i + 1] += lacking / 2
    return [mark | {"label_kb": axis.kb(at)} for mark, at in zip(marks, placed, strict=True)]


def _ends(dots: pl.DataFrame) -> tuple[float, float]:
    """Round trips (ms) between which all but two in a thousand users lie, with a margin."""
    order = dots.sort("ms").with_columns(pl.col("percent").cum_sum().alias("so_far"))
    least, *_ = order.filter(pl.col("so_far") >= _OUTER_PERCENT)["ms"]
    *_, most = order.filter(pl.col("so_far") - pl.col("percent") <= 100 - _OUTER_PERCENT)["ms"]
    return least / 1.2, most * 1.2


def _gathered(dots: pl.DataFrame, axis: _Bytes, ms_low: float, ms_high: float) -> list[dict[str, Any]]:
    """Percent of the users in each cell of a grid, logarithmic in both directions, at its middle; no empty cells.

    Users beyond an end of an axis are counted in its last cell: none vanishes.
    """
    columns, rows = _BLOBS[axis.width]
    across, up = np.geomspace(axis.low, axis.high, columns + 1), np.geomspace(ms_low, ms_high, rows + 1)
    kb = np.clip(dots["kb"].to_numpy(), axis.low, axis.high * (1 - 1e-9))
    ms = np.clip(dots["ms"].to_numpy(), ms_low, ms_high * (1 - 1e-9))
    counts, _, _ = np.histogram2d(kb, ms, bins=(across, up), weights=dots["percent"].to_numpy())
    return [
        {"kb": math.sqrt(left * right), "ms": math.sqrt(bottom * top), "percent": float(counts[i, j])}
        for i, (left, right) in enumerate(pairwise(across.tolist()))
        for j, (bottom, top) in enumerate(pairwise(up.tolist()))
        if counts[i, j] > 0
    ]
