"""The study's tables: repairs, what they cost, and completion times under random loss."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from firstflight.analysis.intervals import student
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.report.loss_matrix import REPAIRS

from .grid import CONGESTED, RANDOM, Point

SHARES = {repair: f"share_{repair.replace(' ', '_')}" for repair in REPAIRS}
REPAIR_METRICS = (
    *(Metric(name, f"By {repair}", 0) for repair, name in SHARES.items()),
    Metric("mean_cost", "Mean cost of a loss", 0),
    Metric("worst_cost", "Worst cost", 0),
)
POSITION_METRICS = (Metric("cost", "Cost of the loss", 1), Metric("retransmissions", "Retransmitted segments", 0))
COMPARED_METRICS = (Metric("mean_completion_time", "Mean completion time", 3),)


def all_tables(cases: pl.DataFrame, times: Mapping[Point, Mapping[int, float]]) -> list[Table]:
    """`repairs`, `positions`, `random_loss` and `congested`; only those for which there is data."""
    tables = [*_matrices(cases)] if not cases.is_empty() else []
    tables += [_compared(times, RANDOM, "loss_percent"), _compared(times, CONGESTED, "rate_kbps")]
    return [table for table in tables if not table.frame.is_empty()]


def _matrices(cases: pl.DataFrame) -> list[Table]:
    keys = ("experiment", "stack", "iw")
    rows, single = [], []
    for key, flight in cases.group_by(keys, maintain_order=True):
        place = dict(zip(keys, key, strict=True))
        for repair, name in SHARES.items():
            share = 100 * (flight["repair"] == repair).sum() / flight.height
            rows.append(place | {"metric": name, "ours": share, "unit": "percent"})
        rows.append(place | {"metric": "mean_cost", "ours": flight["cost_ms"].mean(), "unit": "ms"})
        rows.append(place | {"metric": "worst_cost", "ours": flight["cost_ms"].max(), "unit": "ms"})
        for case in flight.iter_rows(named=True):
            at = place | {"position": case["position"], "repair": case["repair"]}
            single.append(at | {"metric": "cost", "ours": case["cost_ms"], "unit": "ms"})
            single.append(at | {"metric": "retransmissions", "ours": case["retransmissions"], "unit": "segments"})
    return [
        Table(
            "repairs",
            "How a single loss in the first flight is repaired",
            "Over all positions of the loss. Cost: completion time above that of the same response without loss.",
            keys,
            rows_frame(keys, rows),
            metrics=REPAIR_METRICS,
        ),
        Table(
            "positions",
            "Each single loss",
            "Position: of the lost segment in the first flight. Repair: the slowest means that was needed.",
            (*keys, "position", "repair"),
            rows_frame((*keys, "position", "repair"), single),
            metrics=POSITION_METRICS,
        ),
    ]


_COMPARED = {
    RANDOM: ("random_loss", "Responses under random loss", "One after the other."),
    CONGESTED: (
        "congested",
        "Responses over a congested link",
        "Five at once; round trip 300 ms, queue of 40 packets.",
    ),
}


def _compared(times: Mapping[Point, Mapping[int, float]], experiment: str, condition: str) -> Table:
    keys = ("stack", "size_segments", condition, "iw")
    rows = []
    for point, replicates in times.items():
        if point.experiment != experiment:
            continue
        mean = student(list(replicates.values()))
        rows.append(
            {key: getattr(point, key) for key in keys}
            | {"metric": "mean_completion_time", "ours": mean.value, "low": mean.low, "high": mean.high, "unit": "s"}
        )
    name, title, caption = _COMPARED[experiment]
    caption = f"{caption} From the opening of the connection to the last byte."
    return Table(name, title, caption, keys, rows_frame(keys, rows), across="iw", metrics=COMPARED_METRICS)
