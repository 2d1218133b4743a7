"""The RFC's table, ours beside it."""

from __future__ import annotations

from typing import Any

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.engines.model.delayed_acks import round_trips as modelled

from . import published
from .measure import KEYS

RECORDED, MODELLED = "round_trips", "round_trips_by_rule"
METRICS = (
    Metric(RECORDED, "Round trips, from the run's records", 0, "absolute", 0.5),
    Metric(MODELLED, "Round trips, by the rule round by round", 0, "absolute", 0.5),
)


def all_tables(measured: dict[tuple[int, int], float]) -> list[Table]:
    """One table, `round_trips`; no table where nothing was measured."""
    if not measured:
        return []
    printed = published.table() | published.example()
    rows: list[dict[str, Any]] = []
    for metric in (RECORDED, MODELLED):
        for segments, iw in sorted(measured):
            ours = measured[segments, iw] if metric == RECORDED else modelled(segments, iw)
            rows.append(
                {
                    "segments": segments,
                    "iw": iw,
                    "metric": metric,
                    "ours": ours,
                    "published": printed.get((segments, iw)),
                    "unit": "round trips",
                }
            )
    table = Table(
        "round_trips",
        "Section 5.1. Round trips by transfer size",
        "Infinite bandwidth, no loss, delayed ACKs with a long timer; counted from the request on.",
        KEYS,
        rows_frame(KEYS, rows),
        across="iw",
        metrics=METRICS,
        notes=("32 segments: not in the RFC's table, but in the sentence after it, which contradicts the table.",),
    )
    return [table]
