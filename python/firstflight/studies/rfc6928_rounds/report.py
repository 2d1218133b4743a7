"""The RFC's table with this run's values, segments delivered against round trips, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from firstflight.analysis.table import Table
from firstflight.engines.model.delayed_acks import first_rounds
from firstflight.engines.model.delayed_acks import round_trips as by_rule
from firstflight.report.figure import Figure, inline
from firstflight.report.style import palette
from firstflight.studies.kernel import Quantities, named, table
from firstflight.studies.rfc6928_rounds.claims import EXAMPLE, FEW, MANY, TABLE

if TYPE_CHECKING:
    import altair

PRINTED = TABLE | EXAMPLE


def tables(q: Quantities) -> Sequence[Table]:
    """The RFC's table."""
    measured = q.round_trips
    rule = xr.apply_ufunc(by_rule, measured["segments"], measured["iw"], vectorize=True).where(measured.notnull())
    return [
        table(
            "round_trips",
            "Section 5.1. Round trips by transfer size",
            "Infinite bandwidth, no loss, delayed ACKs with a long timer; counted from the request on.",
            [measured, named(rule, "round_trips_by_rule", "Round trips, by the rule round by round", "round trips", 0)],
            across="iw",
            published={
                (name, *key): trips for name in ("round_trips", "round_trips_by_rule") for key, trips in PRINTED.items()
            },
            notes=("32 segments: not in the RFC's table, but in the sentence after it, which contradicts the table.",),
        )
    ]


def figures(q: Quantities) -> Sequence[Figure]:
    """The rule as steps, the run's transfers as points, the RFC's sentence as a cross."""
    caption = (
        "Steps: the rule, round by round. Dots: transfers of this run, each at its size and the round trips it "
        "took. Cross: the RFC's sentence about 32 segments, which lies above the step and so cannot be."
    )
    measured = _measured(q)
    title = "Segments delivered against round trips"
    return [Figure("rounds", title, caption, _chart(measured, 620), _chart(measured, 260))] if measured else []


def _measured(q: Quantities) -> dict[tuple[int, int], float]:
    """(segments, initial window) -> round trips, where the run has them."""
    values = q.round_trips.isel(draw=0)
    trips = {(int(n), int(iw)): float(values.sel(segments=n, iw=iw)) for n in values["segments"] for iw in values["iw"]}
    return {key: count for key, count in trips.items() if count == count}


def _chart(measured: dict[tuple[int, int], float], width: int) -> altair.TopLevelMixin:
    import altair as alt

    windows = [str(FEW), str(MANY)]
    color = alt.Color(
        "iw:N",
        sort=windows,
        scale=palette(windows, "iw"),
        legend=alt.Legend(title=None, labelExpr="'IW ' + datum.label", symbolType="circle", symbolOpacity=1),
    )
    x = alt.X("round_trips:Q", title="round trips from the request", axis=alt.Axis(tickMinStep=1, format="d"))
    y = alt.Y("segments:Q", title="segments delivered", scale=alt.Scale(nice=True))
    # From the request on, one point a round, until the largest transfer of the run is delivered.
    largest = max(segments for segments, _ in measured)
    delivered = {iw: [0, *first_rounds(iw, by_rule(largest, iw))] for iw in (FEW, MANY)}
    rule = {(min(n, largest), iw): rounds for iw, of in delivered.items() for rounds, n in enumerate(of)}
    slips = {key: trips for key, trips in EXAMPLE.items() if trips < by_rule(*key)}
    steps = alt.Chart(inline(_points(rule))).mark_line(interpolate="step-after", strokeWidth=2)
    dots = alt.Chart(inline(_points(measured))).mark_point(size=46, filled=True, opacity=1)
    cross = alt.Chart(inline(_points(slips))).mark_point(shape="cross", angle=45, size=110, filled=True, opacity=1)
    layers = [layer.encode(x=x, y=y, color=color) for layer in (steps, dots, cross)]
    return alt.layer(*layers).properties(width=width, height=320 if width > 400 else 240)


def _points(trips: Mapping[tuple[int, int], float]) -> list[dict[str, Any]]:
    return [{"iw": str(iw), "round_trips": count, "segments": n} for (n, iw), count in sorted(trips.items())]


def answer(q: Quantities) -> Sequence[str]:
    """The time saved by the larger window, the agreement with the table, and errors in the RFC's text."""
    trips = q.round_trips.isel(draw=0)
    table = trips.sel(segments=[size for size, iw in TABLE if iw == FEW])
    saved, sizes = table.sel(iw=FEW) - table.sel(iw=MANY), table["segments"]
    measured = _measured(q)
    agreeing = sum(measured[key] == printed for key, printed in TABLE.items())
    computed = sum(by_rule(*key) == printed for key, printed in TABLE.items())
    return [
        f"With an initial window of {MANY} segments instead of {FEW}, transfers of {int(sizes.min())} to "
        f"{int(sizes.max())} segments take {float(table.sel(iw=MANY).mean()):.1f} round trips on average instead of "
        f"{float(table.sel(iw=FEW).mean()):.1f}: {float(saved.min()):.0f} to {float(saved.max()):.0f} saved.",
        f"This run reproduces {agreeing} of the {len(TABLE)} values of the RFC's table; "
        f"the rule applied round by round reproduces {computed} of {len(TABLE)}.",
        *(_difference(float(trips.sel(segments=n, iw=iw)), (n, iw), printed) for (n, iw), printed in EXAMPLE.items()),
    ]


def _difference(found: float, key: tuple[int, int], trips: int) -> str:
    segments, iw = key
    if found == trips:
        return ""
    # Only a value that the rule gives too is an error of the RFC; any other may be an error of this run.
    if found != by_rule(*key):
        return (
            f"The sentence after the table gives {segments} segments {trips} round trips with an initial window of "
            f"{iw}; here they take {found:g}, where the rule has {by_rule(*key)}."
        )
    return (
        f"The sentence after the table is a slip: it gives {segments} segments {trips} round trips with an "
        f"initial window of {iw}; they take {found:.0f}, as the table itself implies."
    )
