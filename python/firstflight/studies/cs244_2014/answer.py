"""The study's answer in four sentences, computed from the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.studies.cs244_2014.grid import (
    ROUND_TRIP_S,
    TEN,
    always_busy_kbps,
    bucket_name,
    paths,
    ten_segments_fit_kbps,
)
from firstflight.studies.cs244_2014.measure import (
    FEW,
    MANY,
    Tables,
    crossing_kbps,
    of_run,
    pairs,
    responses,
    ten_segments_ms,
    timed_out_percent,
    undisturbed,
)

if TYPE_CHECKING:
    from firstflight.records import Run


def answer(run: Run) -> list[str]:
    """How much is gained where, why it depends on the bandwidth, and what the slowest users see."""
    tables = of_run(run)
    rows = responses(tables)
    paired = undisturbed(pairs(rows))
    if paired.is_empty():
        return [f"This run has no pair of responses with both initial windows, {FEW} and {MANY}."]
    return [_gained(paired), _why(tables, rows), _slowest(rows), *_shaped(run)]


def _shaped(run: Run) -> list[str]:
    """What the shaper of the published experiment makes of the same users, in a run that has it."""
    found = {path: undisturbed(pairs(responses(of_run(run, path)))) for path in paths()[1:]}
    ranges = []
    for path, paired in found.items():
        medians = paired.group_by("bucket").agg(pl.col("gain_ms").median())["gain_ms"].to_list()
        if medians:
            ranges.append(f"{round(min(medians))} to {round(max(medians))} ms ({path})")
    if not ranges:
        return []
    return [
        f"Over the shaper that Mininet sets up the medians by bandwidth are {' and '.join(ranges)}: how much of the "
        "published gain there is depends on how TCP's segments are put into GSO packets, which a link that transmits "
        "packet after packet does not see."
    ]


def _gained(paired: pl.DataFrame) -> str:
    medians = paired.group_by("bucket").agg(pl.col("gain_ms").median(), pl.col("gain_percent").median()).sort("bucket")
    each = [
        f"{round(gain)} ms ({round(percent)} %) at {bucket_name(index)}" for index, gain, percent in medians.iter_rows()
    ]
    return (
        f"By bandwidth in kbit/s, an initial window of {MANY} instead of {FEW} gains in the median {', '.join(each)}; "
        f"a round trip is {1000 * ROUND_TRIP_S:.0f} ms."
    )


def _why(tables: Tables, rows: pl.DataFrame) -> str:
    found = crossing_kbps(ten_segments_ms(tables, rows))
    measured = "not measured in this run" if found is None else f"measured: {found:.0f}"
    return (
        f"A round saved is a round trip gained only where the link would have stood idle: up to "
        f"{always_busy_kbps(FEW):.0f} kbit/s {FEW} segments keep it busy until the first acknowledgement is back, and "
        f"{TEN} segments take a round trip or more up to {ten_segments_fit_kbps():.0f} kbit/s ({measured})."
    )


def _slowest(rows: pl.DataFrame) -> str:
    late = rows.filter(pl.col("timeouts") > 0)["rate_kbps"].to_list()
    if not late:
        return "No retransmission timer is known to have expired."
    fastest = max(late)
    slow = rows.filter(pl.col("rate_kbps") <= fastest)
    share = {iw: timed_out_percent(slow.filter(pl.col("iw") == iw)) for iw in (FEW, MANY)}
    return (
        f"Up to {fastest:.0f} kbit/s a segment takes so long that the retransmission timer expires although nothing is "
        f"lost, in {share[FEW]:.0f} % of the responses with IW {FEW} and {share[MANY]:.0f} % with IW {MANY}."
    )
