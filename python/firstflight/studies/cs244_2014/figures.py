"""The post's Figure 2, every user's gain with what arithmetic gives, and the kernel against the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from firstflight.engines.model.slow_start import SlowStart
from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.studies.cs244_2014.grid import (
    ROUND_TRIP_S,
    always_busy_kbps,
    bucket_name,
    edges_kbps,
    paths,
    rates_kbps,
    settings,
    ten_segments_fit_kbps,
)
from firstflight.studies.cs244_2014.measure import (
    FEW,
    MANY,
    REQUEST,
    of_run,
    pairs,
    present,
    responses,
    simulated,
    undisturbed,
)
from firstflight.studies.cs244_2014.tables import side_by_side

if TYPE_CHECKING:
    import altair

    from firstflight.records import Run

_NAMES = {"simulate": "simulated", "emulate": "emulated (kernel)"}
_COLOURS = {
    "emulated (kernel)": PALETTE[0],
    "simulated": PALETTE[1],
    **{f"simulated, {path}": PALETTE[2 + index] for index, path in enumerate(paths()[1:])},
}
_MSS, _HEADERS, _MEDIAN_BYTES = 1448, 52, 9300
"""Payload of a full packet and its headers, with timestamps; the median response with its response header."""
_AXIS_MS = [0, 35, 70, 140, 350, 700, 1400]


def all_figures(run: Run) -> list[Figure]:
    """`improvement`, `users`, and `engines` for an emulated run; none for a run without pairs."""
    rows = responses(of_run(run))
    sides = {_NAMES.get(run.engine, run.engine): rows}
    if run.engine == "emulate":
        sides[_NAMES["simulate"]] = responses(simulated(run))
    else:
        shaped = {f"simulated, {path}": responses(of_run(run, path)) for path in paths()[1:]}
        sides |= {name: found for name, found in shaped.items() if not pairs(found).is_empty()}
    paired = {name: undisturbed(pairs(side)) for name, side in sides.items()}
    if any(side.is_empty() for side in paired.values()):
        return []
    # What was disturbed on one side is left out on both.
    measured, *others = paired
    paired |= {name: paired[name].join(paired[measured], on=REQUEST, how="semi") for name in others}
    figures = [_improvement(paired), _users(paired)]
    if run.engine == "emulate":
        figures.append(_engines(side_by_side(rows, sides[_NAMES["simulate"]])))
    return figures


def _improvement(paired: dict[str, pl.DataFrame]) -> Figure:
    points = [
        {
            "bucket": bucket_name(index),
            "engine": name,
            "middle": float(np.median(values)),
            "low": float(np.quantile(values, 0.25)),
            "high": float(np.quantile(values, 0.75)),
            "quantity": quantity,
        }
        for name, side in paired.items()
        for index in present(side)
        for quantity in ("gain_ms", "gain_percent")
        for values in [side.filter(pl.col("bucket") == index)[quantity].to_numpy()]
    ]
    order = [bucket_name(index) for index in range(len(edges_kbps()))]
    return Figure(
        "improvement",
        "Improvement by bandwidth, IW 3 to IW 10",
        "The post's Figure 2: median over pairs of responses with their inter-quartile range, by the bandwidth of the "
        "user. Dashed: one round trip, which the post finds at every bandwidth. The axis of the milliseconds is "
        "stretched towards zero.",
        _by_bucket(points, order, list(paired), 300, horizontal=True),
        _by_bucket(points, order, list(paired), 250, horizontal=False),
    )


def _by_bucket(
    points: list[dict[str, Any]], order: list[str], names: list[str], width: int, horizontal: bool
) -> altair.TopLevelMixin:
    import altair as alt

    colour = _colour(names)
    x = alt.X("bucket:N", sort=order, title="bandwidth, kbit/s", axis=alt.Axis(labelAngle=-40))
    offset = alt.XOffset("engine:N", sort=names)
    panels = []
    for quantity, title in (("gain_ms", "gain, ms"), ("gain_percent", "gain, % of the time with IW 3")):
        own = [point for point in points if point["quantity"] == quantity]
        scale, axis = alt.Scale(nice=True), alt.Axis(format="d")
        layers = []
        if quantity == "gain_ms":
            scale = alt.Scale(type="symlog", constant=35, nice=False)
            axis = alt.Axis(values=_AXIS_MS, format="d")
            layers.append(
                alt.Chart(inline([{"at": 1000 * ROUND_TRIP_S}]))
                .mark_rule(strokeDash=[5, 4], color="#777777")
                .encode(y=alt.Y("at:Q", scale=scale, axis=axis, title=title))
            )
        base = alt.Chart(inline(own)).encode(x=x, xOffset=offset, color=colour)
        layers.append(base.mark_rule(strokeWidth=5, opacity=0.35).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"))
        layers.append(
            base.mark_point(size=55, filled=True, opacity=1).encode(
                y=alt.Y("middle:Q", scale=scale, axis=axis, title=title)
            )
        )
        panels.append(alt.layer(*layers).properties(width=width, height=260))
    combined: altair.TopLevelMixin = alt.hconcat(*panels) if horizontal else alt.vconcat(*panels)
    return combined


def _users(paired: dict[str, pl.DataFrame]) -> Figure:
    points = [
        {"rate": rate, "gain": gain, "engine": name}
        for name, side in paired.items()
        for rate, gain in side.group_by("rate_kbps", maintain_order=True)
        .agg(pl.col("gain_ms").median())
        .sort("rate_kbps")
        .iter_rows()
    ]
    return Figure(
        "users",
        "The gain of every user",
        "Median gain of each user by her bandwidth. Line: what slow start by arithmetic gains for the median response "
        f"(9 kB): nothing up to {always_busy_kbps(FEW):.0f} kbit/s (first dotted line), where three segments keep the "
        "link busy until the first acknowledgement is back, and a whole round trip only where sending takes no time. "
        f"Ten segments take a round trip at {ten_segments_fit_kbps():.0f} kbit/s (second). Above the line on the left: "
        "retransmission timers that expire although nothing is lost, which costs IW 3 more.",
        _scatter(points, list(paired), 620),
        _scatter(points, list(paired), 260),
    )


def computed_gain_ms(rate_kbps: float) -> float:
    """What IW 10 gains the median response over IW 3 by the closed form of slow start, without timers."""
    few = SlowStart(_MEDIAN_BYTES, _MSS, FEW, ROUND_TRIP_S, 1000 * rate_kbps, _HEADERS)
    return 1000 * few.gain_s(MANY)


def _scatter(points: list[dict[str, Any]], names: list[str], width: int) -> altair.TopLevelMixin:
    import altair as alt

    slow, fast = rates_kbps(settings()["users"])[0], rates_kbps(settings()["users"])[-1]
    curve = [{"rate": float(rate), "gain": computed_gain_ms(float(rate))} for rate in np.geomspace(slow, fast, 120)]
    marks = [
        {"rate": always_busy_kbps(FEW), "text": "always busy with 3"},
        {"rate": ten_segments_fit_kbps(), "text": "10 segments fit"},
    ]
    x = alt.X(
        "rate:Q",
        title="bandwidth, kbit/s",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=[30, 56, 100, 256, 512, 1000, 2000, 5000], format="d"),
    )
    y = alt.Y(
        "gain:Q",
        title="gain, ms",
        scale=alt.Scale(type="symlog", constant=35, nice=False),
        axis=alt.Axis(values=_AXIS_MS, format="d"),
    )
    line = alt.Chart(inline(curve)).mark_line(color="#777777", strokeWidth=1.5).encode(x=x, y=y)
    rules = alt.Chart(inline(marks)).mark_rule(strokeDash=[2, 3], color="#777777").encode(x=x)
    texts = (
        alt.Chart(inline(marks))
        .mark_text(align="left", dx=4, fontSize=10.5, color="#555555")
        .encode(x=x, y=alt.value(8), text="text:N")
    )
    dots = (
        alt.Chart(inline(points)).mark_point(size=40, filled=True, opacity=0.9).encode(x=x, y=y, color=_colour(names))
    )
    return alt.LayerChart(layer=[rules, texts, line, dots]).properties(width=width, height=280)


def _engines(beside: pl.DataFrame) -> Figure:
    points = [
        {"rate": rate, "difference": difference, "window": f"IW {iw}"}
        for iw, rate, difference in beside.select(
            "iw", "rate_kbps", 100 * (pl.col("time_ms") / pl.col("simulated_ms") - 1)
        ).iter_rows()
    ]
    return Figure(
        "engines",
        "The kernel against the simulator, response by response",
        "Time of each undisturbed response on the running kernel, in percent above that of the same response in the "
        "simulator.",
        _differences(points, 620),
        _differences(points, 260),
    )


def _differences(points: list[dict[str, Any]], width: int) -> altair.TopLevelMixin:
    import altair as alt

    picture: altair.TopLevelMixin = (
        alt.Chart(inline(points))
        .mark_point(size=18, filled=True, opacity=0.55)
        .encode(
            x=alt.X(
                "rate:Q",
                title="bandwidth, kbit/s",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[30, 56, 100, 256, 512, 1000, 2000, 5000], format="d"),
            ),
            y=alt.Y(
                "difference:Q",
                title="emulated above simulated, %",
                scale=alt.Scale(type="symlog", constant=1),
                axis=alt.Axis(values=[-50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50], format="d"),
            ),
            color=alt.Color(
                "window:N",
                title=None,
                scale=alt.Scale(domain=[f"IW {FEW}", f"IW {MANY}"], range=[PALETTE[1], PALETTE[0]]),
            ),
        )
        .properties(width=width, height=240)
    )
    return picture


def _colour(names: list[str]) -> altair.Color:
    import altair as alt

    return alt.Color(
        "engine:N",
        sort=names,
        title=None,
        scale=alt.Scale(domain=names, range=[_COLOURS.get(name, PALETTE[2]) for name in names]),
        legend=alt.Legend() if len(names) > 1 else None,
    )
