"""Segments delivered against round trips: the rule as steps, the run's transfers as points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstflight.engines.model.delayed_acks import first_rounds
from firstflight.report.figure import Figure, inline

from . import published

if TYPE_CHECKING:
    import altair

# Okabe and Ito's palette.
COLOURS = ("#0072B2", "#D55E00")


def all_figures(measured: dict[tuple[int, int], float]) -> list[Figure]:
    """One figure; none where nothing was measured."""
    if not measured:
        return []
    caption = (
        "Steps: the rule, round by round. Dots: transfers of this run, each at its size and the round trips it "
        "took. Cross: the RFC's sentence about 32 segments, which lies above the step and so cannot be."
    )
    title = "Segments delivered against round trips"
    return [Figure("rounds", title, caption, _chart(measured, 620), _chart(measured, 260))]


def _chart(measured: dict[tuple[int, int], float], width: int) -> altair.TopLevelMixin:
    import altair as alt

    windows = [str(iw) for iw in published.initial_windows()]
    largest = max(segments for segments, _ in measured)
    color = alt.Color(
        "iw:N",
        sort=windows,
        scale=alt.Scale(domain=windows, range=list(COLOURS)),
        legend=alt.Legend(title=None, labelExpr="'IW ' + datum.label", symbolType="circle", symbolOpacity=1),
    )
    x = alt.X("round_trips:Q", title="round trips from the request", axis=alt.Axis(tickMinStep=1, format="d"))
    y = alt.Y("segments:Q", title="segments delivered", scale=alt.Scale(nice=True))
    steps = alt.Chart(inline(_steps(largest))).mark_line(interpolate="step-after", strokeWidth=2)
    dots = alt.Chart(inline(_dots(measured))).mark_point(size=46, filled=True, opacity=1)
    slips = alt.Chart(inline(_slips())).mark_point(shape="cross", angle=45, size=110, filled=True, opacity=1)
    layers = [layer.encode(x=x, y=y, color=color) for layer in (steps, dots, slips)]
    return alt.layer(*layers).properties(width=width, height=320 if width > 400 else 240)


def _steps(largest: int) -> list[dict[str, Any]]:
    """From the request on, one point a round, until the largest transfer of the run is delivered."""
    points: list[dict[str, Any]] = []
    for iw in published.initial_windows():
        points.append({"iw": str(iw), "round_trips": 0, "segments": 0})
        delivered, rounds = 0, 0
        while delivered < largest:
            rounds += 1
            delivered = first_rounds(iw, rounds)[-1]
            points.append({"iw": str(iw), "round_trips": rounds, "segments": min(delivered, largest)})
    return points


def _dots(measured: dict[tuple[int, int], float]) -> list[dict[str, Any]]:
    return [
        {"iw": str(iw), "round_trips": trips, "segments": segments}
        for (segments, iw), trips in sorted(measured.items())
    ]


def _slips() -> list[dict[str, Any]]:
    """What the text states beyond what the rule allows."""
    return [
        {"iw": str(iw), "round_trips": trips, "segments": segments}
        for (segments, iw), trips in published.example().items()
        if first_rounds(iw, trips)[-1] < segments
    ]
