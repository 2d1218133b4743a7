"""What a transfer's time is by computation, to stand beside the measured one: simulated, and by two formulas."""

from __future__ import annotations

from functools import cache

from firstflight.analysis.link_share import PACKET_BYTES, PAYLOAD_BYTES
from firstflight.engines import find
from firstflight.engines.model.slow_start import SlowStart
from firstflight.engines.model.throughput import transfer_time_s

from .grid import Point, cell, header_bytes


@cache
def simulated_s(point: Point) -> float:
    """Completion time of the same transfer in virtual time, seconds. It draws nothing, so one replicate is all."""
    transfers = find("simulate").run_cell(cell(point, "simulate"), seed=1, replicates=1)["transfers"]
    return float(transfers["completion_time_s"][0])


def talk_s(point: Point) -> float:
    """The talk's words as a time, seconds: windows that double each round trip, one round trip for the handshake."""
    return transfer_time_s(_bytes(point), PAYLOAD_BYTES, point.iw, 2 * point.delay_ms / 1000)


def closed_form_s(point: Point) -> float:
    """The model engine's closed form, seconds: the same, and the time that the link takes for the bytes."""
    return SlowStart(
        size_bytes=_bytes(point),
        mss_bytes=PAYLOAD_BYTES,
        initial_window=point.iw,
        round_trip_s=2 * point.delay_ms / 1000,
        rate_bps=point.rate_mbit * 1e6,
        header_bytes=PACKET_BYTES - PAYLOAD_BYTES,
    ).completion_time_s


def _bytes(point: Point) -> int:
    return 1000 * point.size_kb + header_bytes()
