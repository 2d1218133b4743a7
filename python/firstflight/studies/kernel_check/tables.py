"""Both engines side by side: a summary, the cells farthest apart, and every cell, a table a queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.kernel_check.claims import is_close
from firstflight.studies.kernel_check.grid import ample, settings
from firstflight.studies.kernel_check.measure import KEYS, Pair

SIDE_BY_SIDE = (
    Metric("emulated", "Emulated", 1),
    Metric("lower_quartile", "Its lower quartile", 1),
    Metric("upper_quartile", "Its upper quartile", 1),
    Metric("simulated", "Simulated", 1),
    Metric("difference", "Difference", 2),
    Metric("relative_difference", "Difference", 2),
    Metric("transfers", "Transfers", 0),
    Metric("disturbed", "Disturbed", 0),
    Metric("emulated_first_flight_lost", "First flight lost, emulated", 1),
    Metric("simulated_first_flight_lost", "First flight lost, simulated", 0),
    Metric("emulated_retransmissions", "Retransmitted, emulated", 1),
    Metric("simulated_retransmissions", "Retransmitted, simulated", 0),
)
OVER_CELLS = (
    Metric("cells", "Cells", 0),
    Metric("close", "Within 1 % or 1 ms", 1),
    Metric("median_difference", "Median of differences", 2),
    Metric("median_distance", "Median of their absolute values", 2),
    Metric("greatest_distance", "Greatest", 1),
    Metric("same_first_flight_losses", "Same losses of the first flight", 1),
    Metric("disturbed", "Disturbed transfers", 1),
)
_UNITS = dict.fromkeys(("emulated", "lower_quartile", "upper_quartile", "simulated", "difference"), "ms")
_UNITS |= dict.fromkeys(
    ("relative_difference", "close", "median_difference", "median_distance", "greatest_distance"), "percent"
)
_UNITS |= {"same_first_flight_losses": "percent", "transfers": "count", "cells": "count"}
# Rows of the table of the cells farthest apart.
_FARTHEST = 20
_QUARTILES = "Median and quartiles of the emulated times over undisturbed transfers; difference: emulated - simulated."


def all_tables(pairs: Sequence[Pair]) -> list[Table]:
    """`summary`, `farthest`, and `queue-N` for each queue; none without a condition that both engines measured."""
    if not pairs:
        return []
    far = sorted(pairs, key=lambda pair: -abs(pair.difference_percent))[:_FARTHEST]
    tables = [_summary(pairs), _cells("farthest", f"The {len(far)} cells that differ most", _QUARTILES, far, KEYS)]
    for queue in settings()["grid"]["queues"]:
        chosen = [pair for pair in pairs if pair.point.queue == queue]
        if chosen:
            kind = "no losses" if queue == ample() else "a shallow queue"
            title = f"A queue of {queue} packets: {kind}"
            tables.append(_cells(f"queue-{queue}", title, _QUARTILES, chosen, KEYS[1:]))
    return tables


def _summary(pairs: Sequence[Pair]) -> Table:
    keys = ("queue", "rate_mbit", "control")
    groups: dict[tuple[object, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(tuple(getattr(pair.point, key) for key in keys), []).append(pair)
    rows = []
    for values, own in groups.items():
        alike = [pair.emulated.first_flight_lost == pair.simulated.first_flight_lost for pair in own]
        transfers = sum(pair.emulated.count for pair in own)
        figures = {
            "cells": len(own),
            "close": 100 * sum(map(is_close, own)) / len(own),
            "median_difference": median(pair.difference_percent for pair in own),
            "median_distance": median(abs(pair.difference_percent) for pair in own),
            "greatest_distance": max(abs(pair.difference_percent) for pair in own),
            "same_first_flight_losses": 100 * sum(alike) / len(own),
            "disturbed": 100 * sum(pair.emulated.disturbed for pair in own) / transfers,
        }
        units = _UNITS | {"disturbed": "percent"}
        rows += _rows(dict(zip(keys, values, strict=True)), figures, units)
    rows.sort(key=lambda row: (-row["queue"], row["rate_mbit"]))
    caption = "Emulated beside simulated, over the cells of a queue (packets), a rate (Mbit/s) and an algorithm."
    return Table("summary", "Where the engines agree", caption, keys, rows_frame(keys, rows), metrics=OVER_CELLS)


def _cells(name: str, title: str, caption: str, pairs: Iterable[Pair], keys: Sequence[str]) -> Table:
    rows = []
    for pair in pairs:
        emulated, simulated = pair.emulated, pair.simulated
        figures = {
            "emulated": 1000 * emulated.time_s,
            "lower_quartile": 1000 * emulated.low_s,
            "upper_quartile": 1000 * emulated.high_s,
            "simulated": 1000 * simulated.time_s,
            "difference": 1000 * pair.difference_s,
            "relative_difference": pair.difference_percent,
            "transfers": emulated.count,
            "disturbed": emulated.disturbed,
            "emulated_first_flight_lost": emulated.first_flight_lost,
            "simulated_first_flight_lost": simulated.first_flight_lost,
            "emulated_retransmissions": emulated.retransmissions,
            "simulated_retransmissions": simulated.retransmissions,
        }
        units = _UNITS | {"disturbed": "count"}
        rows += _rows({key: getattr(pair.point, key) for key in keys}, figures, units)
    return Table(name, title, caption, tuple(keys), rows_frame(keys, rows), metrics=SIDE_BY_SIDE)


def _rows(key: dict[str, Any], figures: dict[str, float], units: dict[str, str]) -> list[dict[str, Any]]:
    return [
        key | {"metric": metric, "ours": value, "unit": units.get(metric, "segments")}
        for metric, value in figures.items()
    ]
