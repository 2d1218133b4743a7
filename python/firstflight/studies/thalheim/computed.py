"""What a transfer's time is by computation, to stand beside the measured one: simulated, and by two formulas."""

from __future__ import annotations

from functools import cache

from firstflight.analysis.link_share import PACKET_BYTES, PAYLOAD_BYTES
from firstflight.analysis.medians import Sample
from firstflight.engines import find
from firstflight.engines.model.slow_start import SlowStart
from firstflight.engines.model.throughput import transfer_time_s

from .grid import TRANSFER, Point, cell, header_bytes
from .measure import REQUEST_TIME, TIME, Place, Values


def simulated_s(point: Point) -> float:
    """Completion time of the same transfer in virtual time, seconds."""
    return _simulated_s(point, None)[0]


def over_shaper(values: Values, shaper: str) -> dict[Place, Sample]:
    """`TIME` and `REQUEST_TIME` of the figure's transfers among `values`, simulated over one of the shapers."""
    chosen = [place.point for place in values if place.metric == TIME and place.point.experiment == TRANSFER]
    found: dict[Place, Sample] = {}
    for point in chosen:
        whole, handshake = _simulated_s(point, shaper)
        found[Place(TIME, point)] = Sample((whole,))
        found[Place(REQUEST_TIME, point)] = Sample((whole - handshake,))
    return found


@cache
def _simulated_s(point: Point, shaper: str | None) -> tuple[float, float]:
    """Completion time and handshake's. A transfer draws nothing, so one replicate is all."""
    found = find("simulate").run_cell(cell(point, "simulate", shaper), seed=1, replicates=1)["transfers"]
    return float(found["completion_time_s"][0]), float(found["handshake_time_s"][0])


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
