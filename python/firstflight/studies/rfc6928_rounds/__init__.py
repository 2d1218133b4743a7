"""RFC 6928 section 5.1: round trips by transfer size, with initial windows of 3 and 10 segments."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.counted import counted
from firstflight.engines.model.delayed_acks import first_rounds
from firstflight.engines.model.delayed_acks import round_trips as by_rule
from firstflight.report.figure import Figure, Spec, layer, nominal, quantitative
from firstflight.report.style import scale
from firstflight.studies import kernel as k

REFERENCE = Path(__file__).parent / "reference"
TABLE = {(n, iw): trips for n, iw, trips in pl.read_csv((REFERENCE / "round_trips.csv").read_bytes()).iter_rows()}
"""(segments, initial window) -> round trips, the 26 values of the RFC's table."""
_SENTENCES = pl.read_csv((REFERENCE / "sentences.csv").read_bytes())
EXAMPLE = {(n, iw): trips for sentence, n, iw, trips in _SENTENCES.iter_rows() if sentence == "example"}
"""The same for the transfer that the sentence after the table speaks of."""
FEW, MANY, UNIT = 3, 10, "round trips"
SECTION = k.Source("RFC 6928 section 5.1", "rfc6928-s5.1-", needs="value")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The 26 values of the table, the sentence about 32 segments (two values), and the largest saving."""
    printed = [_value(q, *key, trips) for key, trips in TABLE.items()]
    example = [_value(q, *key, trips, "example-", _contradiction(*key, trips)) for key, trips in EXAMPLE.items()]
    return [*printed, *example, _largest_saving(q)]


def _value(q: k.Quantities, segments: int, iw: int, trips: int, kind: str = "", note: str = "") -> k.ClaimSpec:
    return SECTION.says(
        f"{kind}{segments}-segments-iw{iw}",
        f"A transfer of {segments} segments with an initial window of {iw} takes {counted(trips, 'round trip')}.",
        q.round_trips.sel(segments=segments, iw=iw),
        k.near(trips, UNIT),
        f"The rule applied round by round gives {by_rule(segments, iw)}. Counts of round trips are exact, so the "
        "tolerance is 0.",
        note,
    )


def _contradiction(segments: int, iw: int, trips: int) -> str:
    """Where the RFC's text differs from its own rule: the printed neighbors of a size, which bound its rounds."""
    if trips == by_rule(segments, iw):
        return ""
    printed = {size: count for (size, window), count in TABLE.items() if window == iw}
    below, above = max(n for n in printed if n < segments), min(n for n in printed if n > segments)
    rounds = first_rounds(iw, by_rule(segments, iw))
    return (
        f"The RFC contradicts itself: its table has {printed[below]} for {below} segments and {printed[above]} for "
        f"{above}, and round {len(rounds) - 1} ends with segment {rounds[-2]}, so {segments} segments need round "
        f"{len(rounds)}."
    )


def _largest_saving(q: k.Quantities) -> k.ClaimSpec:
    saving = int(_SENTENCES.filter(pl.col("sentence") == "largest_saving")["round_trips"].item())
    trips = q.round_trips.sel(segments=[size for size, iw in TABLE if iw == FEW])
    saved = trips.sel(iw=FEW) - trips.sel(iw=MANY)
    where = saved["segments"].where(saved.isel(draw=0) == saved.isel(draw=0).max(), drop=True).values
    return SECTION.says(
        "largest-saving",
        f"An initial window of {MANY} segments instead of {FEW} saves up to {counted(saving, 'round trip')}.",
        saved.max("segments"),
        k.near(saving, UNIT),
        "Counts of round trips are exact, so the tolerance is 0.",
        note=f"Over the sizes of the table; reached at {' and '.join(f'{size:.0f}' for size in where)} segments.",
    )


def tables(q: k.Quantities) -> Sequence[Table]:
    """The RFC's table."""
    measured, rule = q.round_trips, _of_sizes(q, by_rule)
    return [
        k.table(
            "round_trips",
            "Section 5.1. Round trips by transfer size",
            "Infinite bandwidth, no loss, delayed ACKs with a long timer; counted from the request on.",
            [measured, k.named(rule, "round_trips_by_rule", "Round trips, by the rule round by round", UNIT, 0)],
            across="iw",
            published=dict.fromkeys(("round_trips", "round_trips_by_rule"), _printed(q, TABLE | EXAMPLE)),
            notes=("32 segments: not in the RFC's table, but in the sentence after it, which contradicts the table.",),
        )
    ]


def _of_sizes(q: k.Quantities, trips: Callable[[int, int], float]) -> xr.DataArray:
    """`trips` of the sizes and windows that the run has."""
    measured = q.round_trips.isel(draw=0, drop=True)
    sizes, windows = measured["segments"], measured["iw"]
    by_size: xr.DataArray = xr.apply_ufunc(trips, sizes, windows, vectorize=True, output_dtypes=[float])
    return by_size.where(measured.notnull())


def _printed(q: k.Quantities, trips: Mapping[tuple[int, int], int]) -> xr.DataArray:
    return _of_sizes(q, lambda segments, iw: trips.get((segments, iw), math.nan))


def figures(q: k.Quantities) -> Sequence[Figure]:
    """The rule as steps, the run's transfers as points, the RFC's sentence as a cross."""
    caption = (
        "Steps: the rule, round by round. Dots: transfers of this run, each at its size and the round trips it "
        "took. Cross: the RFC's sentence about 32 segments, which lies above the step and so cannot be."
    )
    measured = _measured(q)
    if not measured:
        return []
    title, largest = "Segments delivered against round trips", max(segments for segments, _ in measured)
    trips = (f"{measured[largest, iw]:g} round trips with IW {iw}" for iw in (FEW, MANY) if (largest, iw) in measured)
    finding = f"{largest} segments take {', '.join(trips)}"
    return [Figure("rounds", title, caption, _chart(measured, 620), _chart(measured, 260), finding)]


def _measured(q: k.Quantities) -> dict[tuple[int, int], float]:
    """(segments, initial window) -> round trips, where the run has them."""
    values = q.round_trips.isel(draw=0)
    trips = {(int(n), int(iw)): float(values.sel(segments=n, iw=iw)) for n in values["segments"] for iw in values["iw"]}
    return {key: count for key, count in trips.items() if count == count}


def _chart(measured: dict[tuple[int, int], float], width: int) -> Spec:
    windows = [str(FEW), str(MANY)]
    legend = {"title": None, "labelExpr": "'IW ' + datum.label", "symbolType": "circle", "symbolOpacity": 1}
    encoding = {
        "color": nominal("iw", sort=windows, scale=scale(windows, "iw"), legend=legend),
        "x": quantitative("round_trips", title="round trips from the request", axis={"tickMinStep": 1, "format": "d"}),
        "y": quantitative("segments", title="segments delivered", scale={"nice": True}),
    }
    # From the request on, one point a round, until the largest transfer of the run is delivered.
    largest = max(segments for segments, _ in measured)
    delivered = {iw: [0, *first_rounds(iw, by_rule(largest, iw))] for iw in (FEW, MANY)}
    rule = {(min(n, largest), iw): rounds for iw, of in delivered.items() for rounds, n in enumerate(of)}
    slips = {key: trips for key, trips in EXAMPLE.items() if trips < by_rule(*key)}
    steps = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    dot = {"type": "point", "size": 46, "filled": True, "opacity": 1}
    cross = dot | {"shape": "cross", "angle": 45, "size": 110}
    marks = ((steps, rule), (dot, measured), (cross, slips))
    layers = [layer(mark, _points(trips), **encoding) for mark, trips in marks]
    return {"layer": layers, "width": width, "height": 320 if width > 400 else 240}


def _points(trips: Mapping[tuple[int, int], float]) -> list[dict[str, Any]]:
    return [{"iw": str(iw), "round_trips": count, "segments": n} for (n, iw), count in sorted(trips.items())]


def answer(q: k.Quantities) -> Sequence[str]:
    """The time saved by the larger window, the agreement with the table, and errors in the RFC's text."""
    trips, printed = q.round_trips.isel(draw=0), _printed(q, TABLE)
    table = trips.sel(segments=[size for size, iw in TABLE if iw == FEW])
    saved, sizes = table.sel(iw=FEW) - table.sel(iw=MANY), table["segments"]
    computed = sum(by_rule(*key) == count for key, count in TABLE.items())
    return [
        f"With an initial window of {MANY} segments instead of {FEW}, transfers of {int(sizes.min())} to "
        f"{int(sizes.max())} segments take {table.sel(iw=MANY).mean():.1f} round trips on average instead of "
        f"{table.sel(iw=FEW).mean():.1f}: {saved.min():.0f} to {saved.max():.0f} saved.",
        f"This run reproduces {int((trips == printed).sum())} of the {len(TABLE)} values of the RFC's table; "
        f"the rule applied round by round reproduces {computed} of {len(TABLE)}.",
        *(_difference(float(trips.sel(segments=n, iw=iw)), (n, iw), printed) for (n, iw), printed in EXAMPLE.items()),
    ]


def _difference(measured_trips: float, key: tuple[int, int], trips: int) -> str:
    segments, iw = key
    if measured_trips == trips:
        return ""
    # Only a value that the rule gives too is an error of the RFC; any other may be an error of this run.
    if measured_trips != by_rule(*key):
        return (
            f"The sentence after the table gives {segments} segments {trips} round trips with an initial window of "
            f"{iw}; here they take {measured_trips:g}, where the rule has {by_rule(*key)}."
        )
    return (
        f"The sentence after the table is a slip: it gives {segments} segments {trips} round trips with an "
        f"initial window of {iw}; they take {measured_trips:.0f}, as the table itself implies."
    )


# On a path of infinite bandwidth the handshake takes a round trip. The RFC counts from the request on, so the first
# flight arrives after 1 round trip. Rounded because seconds in binary floating point do not hold whole nanoseconds.
ROUND_TRIPS = k.Quantity(
    "round_trips",
    "Round trips, from the run's records",
    UNIT,
    (pl.col("completion_time_s") / pl.col("handshake_time_s") - 1).mean().round(6),
    k.DONE,
    digits=0,
)

STUDY = k.DeclaredStudy(__file__, [ROUND_TRIPS], claims, tables, figures, answer)
