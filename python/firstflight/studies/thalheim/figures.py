"""The figures: an overview and formulas here, the others in files of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from firstflight.analysis.medians import Medians, Sample
from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline

from .computed import closed_form_s, talk_s
from .gain import gain, is_known
from .grid import NAME, TRANSFER, Point, settings
from .measure import TIME, Place, Values
from .panels import FASTER, panels
from .sharing import mice, parallel
from .small_queue import small_queue

if TYPE_CHECKING:
    import altair


def all_figures(values: Values, emulated: bool) -> list[Figure]:
    """Those for which the run has data."""
    data = Medians(values, NAME)
    alone = {
        place.point: sample
        for place, sample in values.items()
        if place.metric == TIME and place.point.experiment == TRANSFER and sample.values
    }
    found = [_overview(data, alone)]
    found += [panels(data, alone, rate, emulated) for rate in reversed(settings()["rates_mbit"])]
    found += [_formulas(alone, emulated), small_queue(values), parallel(values, emulated), mice(values, emulated)]
    return [figure for figure in found if figure is not None]


def _overview(data: Medians[Place], alone: Iterable[Point]) -> Figure | None:
    base, proposed = settings()["base_window"], settings()["proposed_window"]
    rows = [
        {
            "rate": f"{point.rate_mbit} Mbit/s",
            "delay": f"{point.delay_ms}",
            "size": f"{point.size_kb} kB",
            "gain": float(gain(data, point)[0]),
        }
        for point in alone
        if point.iw == proposed and is_known(data, point)
    ]
    if not rows:
        return None
    return Figure(
        "overview",
        f"What an initial window of {proposed} gains over {base}",
        f"Percent of the transfer time with {base} segments that {proposed} save. Across: delay in ms, one way.",
        _matrix(rows, 42),
        _matrix(rows, 22),
    )


def _matrix(rows: list[dict[str, Any]], step: int) -> altair.TopLevelMixin:
    import altair as alt

    wide = step > 30
    delays = [f"{value}" for value in settings()["delays_ms"]]
    sizes = [f"{value} kB" for value in settings()["sizes_kb"]]
    rates = [f"{value} Mbit/s" for value in settings()["rates_mbit"]]
    base = alt.Chart().encode(
        x=alt.X("delay:O", sort=delays, title="delay, ms" if wide else None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("size:O", sort=sizes, title=None),
    )
    colour = alt.Color("gain:Q", legend=None, scale=alt.Scale(domain=[0, 50], range=["#f4f4f0", FASTER]))
    cells = base.mark_rect(stroke="white").encode(color=colour)
    text = base.mark_text(fontSize=12 if wide else 9, color="#222222").encode(text=alt.Text("gain:Q", format=".0f"))
    picture: altair.TopLevelMixin = (
        alt.layer(cells, text, data=inline(rows))
        .properties(width=alt.Step(step), height=alt.Step(28 if wide else 22))
        .facet(column=alt.Column("rate:N", sort=rates, title=None), spacing=14 if wide else 8)
    )
    return picture


def _formulas(alone: Mapping[Point, Sample], emulated: bool) -> Figure | None:
    formulas = {"the talk's words": talk_s, "closed form": closed_form_s}
    rows = [
        {
            "measured": sample.median,
            "share": computed(point) / sample.median,
            "formula": name,
            "rate": f"{point.rate_mbit} Mbit/s",
        }
        for point, sample in alone.items()
        for name, computed in formulas.items()
    ]
    if not rows:
        return None
    return Figure(
        "formulas",
        "Two formulas against the measured times",
        "Each point a transfer: its formula's time over the measured one. The talk's words: windows that double each "
        "round trip, whatever the link carries. The closed form adds the time that the link takes for the bytes. "
        "Measured " + ("on the kernel." if emulated else "in the simulator."),
        _scatter(rows, list(formulas), 190, 220),
        _scatter(rows, list(formulas), 86, 190),
    )


def _scatter(rows: list[dict[str, Any]], names: list[str], width: int, height: int) -> altair.TopLevelMixin:
    import altair as alt

    rates = [f"{value} Mbit/s" for value in settings()["rates_mbit"]]
    ratios = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]
    points = (
        alt.Chart()
        .mark_circle(size=20, opacity=0.55)
        .encode(
            x=alt.X(
                "measured:Q",
                title="measured, s",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[0.1, 1, 10], format="~g"),
            ),
            y=alt.Y(
                "share:Q",
                title="formula / measured",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=ratios, format="~g"),
            ),
            color=alt.Color(
                "formula:N", sort=names, title=None, scale=alt.Scale(domain=names, range=[PALETTE[5], PALETTE[0]])
            ),
        )
    )
    one = alt.Chart().mark_rule(color="#666666", strokeDash=[4, 3]).encode(y=alt.datum(1))
    picture: altair.TopLevelMixin = (
        alt.layer(one, points, data=inline(rows))
        .properties(width=width, height=height)
        .facet(column=alt.Column("rate:N", sort=rates, title=None), spacing=14)
    )
    return picture
