"""The analytical model: one transfer alone on its path, by closed form, by rounds or segment by segment.

docs/model.md compares each function with the simulator. `run_cell` is the engine `model`: `compute` as records.
"""

import math
from typing import Any

import polars as pl

from firstflight.engines.model.delayed_acks import cumulative_segments, first_rounds, round_trips
from firstflight.engines.model.loss import ShortTransfer, mathis_bps, pftk_segments_per_s
from firstflight.engines.model.per_segment import ModeledTransfer, compute
from firstflight.engines.model.single_transfer import SingleTransfer, from_scenario
from firstflight.engines.model.slow_start import (
    SlowStart,
    doubling_rounds,
    limited_throughput_bps,
    transfer_time_s,
    window_throughput_bps,
)
from firstflight.records.schema import TABLES, empty
from firstflight.scenario import Cell
from firstflight.scenario.tcp import initial_window_bytes

__all__ = [
    "ModeledTransfer",
    "ShortTransfer",
    "SingleTransfer",
    "SlowStart",
    "compute",
    "cumulative_segments",
    "doubling_rounds",
    "first_rounds",
    "from_scenario",
    "limited_throughput_bps",
    "mathis_bps",
    "pftk_segments_per_s",
    "round_trips",
    "transfer_time_s",
    "window_throughput_bps",
]


def run_cell(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
    """The transfer of a cell's scenario as records: `transfers` (one row per replicate), `pages` and `links`
    (empty).

    Nothing is drawn, so `seed` has no effect and all replicates are alike. Events that cannot happen here
    (retransmissions, timeouts, losses) are 0. Raises RequestError for a scenario that is not one loss-free
    transfer, or where the regime of `per_segment` ends.
    """
    transfer = from_scenario(cell.scenario)
    # As in the simulator, a transfer that would start after the end of the run leaves no row.
    numbers = range(first_replicate, first_replicate + replicates) if transfer.start_ns <= transfer.duration_ns else ()
    row = _row(transfer, compute(transfer)) if numbers else {}
    schema = {
        column.name: pl.Enum([transfer.application]) if column.dtype is None else column.dtype
        for column in TABLES["transfers"]
    }
    transfers = pl.DataFrame([row | {"replicate": replicate} for replicate in numbers], schema=schema)
    return {"transfers": transfers, "pages": empty("pages"), "links": empty("links")}


def _row(transfer: SingleTransfer, outcome: ModeledTransfer) -> dict[str, Any]:
    """Other counts are 0, and other times NaN."""
    mss = transfer.mss_bytes
    return {column.name: math.nan if column.dtype == pl.Float64 else 0 for column in TABLES["transfers"]} | {
        "application": transfer.application,
        "page": None,
        "start_s": transfer.start_ns / 1e9,
        "handshake_time_s": _seconds(outcome.handshake_ns),
        "first_byte_time_s": _seconds(outcome.first_byte_ns),
        "completion_time_s": _seconds(outcome.completion_ns),
        "bytes": transfer.size_bytes,
        "delivered_bytes": outcome.delivered_bytes,
        "segments_sent": outcome.segments_sent,
        "first_flight_segments": outcome.first_flight_segments,
        "initial_window_segments": initial_window_bytes(transfer.sender_tcp["initial_window"], mss) // mss,
        "completed": int(outcome.completion_ns is not None),
        "stall_s": 0.0,
    }


def _seconds(time_ns: int | None) -> float:
    return math.nan if time_ns is None else time_ns / 1e9
