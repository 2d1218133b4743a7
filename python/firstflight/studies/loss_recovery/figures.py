"""The matrices of position and initial window, and the comparison under random loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.intervals import student
from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.report.loss_matrix import loss_matrix

from .claims.sentences import FEW, MANY
from .grid import CONGESTED, FLIGHT, RANDOM, RESPONSE, Point, settings

if TYPE_CHECKING:
    import altair

Times = Mapping[Point, Mapping[int, float]]

_PAIRS = {"rfc": ("new_reno", "sack"), "early": ("new_reno_early", "sack_early"), "linux": ("linux_no_sack", "linux")}
_HEADINGS = {FLIGHT: "nothing follows the first flight", RESPONSE: "more data follows"}
_CAPTION = (
    "Colour: what it took to repair the loss. Number: how many milliseconds later the response was complete than "
    "without loss. Round trip 100 ms, 10 Mbit/s."
)
_EARLY = {
    "early": " Early: on fewer than three duplicate ACKs or SACKed segments (RFC 5827).",
    "linux": " Early: on fewer than three SACKed segments, when RACK's reordering window, a quarter of the round trip, "
    "had passed (RFC 8985).",
}


def all_figures(cases: pl.DataFrame, times: Times) -> list[Figure]:
    """Those for which the run has data."""
    figures = []
    for pair, stacks in _PAIRS.items():
        for experiment in _HEADINGS:
            shown = cases.filter((pl.col("experiment") == experiment) & pl.col("stack").is_in(stacks))
            if not shown.is_empty():
                figures.append(_matrix(shown, stacks, pair, experiment))
    return [*figures, *(figure for experiment in _COMPARED for figure in _comparison(times, experiment))]


def _matrix(cases: pl.DataFrame, stacks: tuple[str, ...], pair: str, experiment: str) -> Figure:
    titles = {stack: settings()["stacks"][stack]["title"] for stack in stacks}
    panels = cases.with_columns(
        pl.col("stack").replace_strict(titles).alias("panel"), pl.col("iw").alias("initial_window")
    ).sort(pl.col("stack").replace_strict({stack: place for place, stack in enumerate(stacks)}), maintain_order=True)
    return loss_matrix(
        panels.select("initial_window", "position", "repair", "cost_ms", "panel"),
        f"{pair}_{experiment}",
        f"One loss in the first flight; {_HEADINGS[experiment]}: {' and '.join(titles.values())}",
        _CAPTION + _EARLY.get(pair, ""),
    )


_COMPARED = {
    RANDOM: ("random_loss", "under random loss", ""),
    CONGESTED: (
        "congested",
        "five responses at once over a congested link",
        " Round trip 300 ms, queue of 40 packets, as in the testbed that RFC 6928 cites.",
    ),
}


def _comparison(times: Times, experiment: str) -> list[Figure]:
    lines = {"new_reno": f"IW {MANY} without SACK", "sack": f"IW {FEW} with SACK"}
    points = [
        {
            "size": point.size_segments,
            "condition": f"{point.loss_percent:g} % loss" if experiment == RANDOM else f"{point.rate_kbps} kbit/s",
            "line": lines[point.stack],
            **_interval(replicates),
        }
        for point, replicates in times.items()
        if point.experiment == experiment and (point.stack, point.iw) in (("new_reno", MANY), ("sack", FEW))
    ]
    if not points:
        return []
    name, where, more = _COMPARED[experiment]
    return [
        Figure(
            name,
            f"IW {MANY} without SACK against IW {FEW} with SACK, {where}",
            "Mean completion time of responses, NewReno against RFC 6675; band: 95 % interval over replicates. Both "
            f"axes are logarithmic.{more}",
            _lines(points, list(lines.values()), columns=4),
            _lines(points, list(lines.values()), columns=2),
        )
    ]


def _interval(replicates: Mapping[int, float]) -> dict[str, float | None]:
    mean = student(list(replicates.values()))
    bounded = mean.replicates > 1
    return {"seconds": mean.value, "low": mean.low if bounded else None, "high": mean.high if bounded else None}


def _lines(points: list[dict[str, Any]], names: list[str], columns: int) -> altair.TopLevelMixin:
    import altair as alt

    sizes = sorted({point["size"] for point in points})
    conditions = list(dict.fromkeys(point["condition"] for point in points))
    x = alt.X(
        "size:Q",
        title="response, segments",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=sizes, format="d"),
    )
    scale = alt.Scale(type="log", nice=False, zero=False)
    axis = alt.Axis(values=[0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 30, 50, 100], format="~g")
    colour = alt.Color("line:N", sort=names, title=None, scale=alt.Scale(domain=names, range=list(PALETTE[:2])))
    base = alt.Chart().encode(x=x, color=colour)
    band = base.mark_area(opacity=0.25).encode(
        y=alt.Y("low:Q", scale=scale, axis=axis, title="mean completion time, s"), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=26, filled=True, opacity=1)).encode(
        y=alt.Y("seconds:Q", scale=scale, axis=axis, title="mean completion time, s")
    )
    picture: altair.TopLevelMixin = (
        alt.layer(band, line, data=inline(points))
        .properties(width=150 if columns == 4 else 115, height=220 if columns == 4 else 170)
        .facet(alt.Facet("condition:N", title=None, sort=conditions), columns=columns)
    )
    return picture
