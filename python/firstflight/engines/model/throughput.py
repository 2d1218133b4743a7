"""The talk's equations: throughput by window, transfer time by doubling rounds."""

from __future__ import annotations

from firstflight.errors import RequestError


def window_throughput_bps(window_segments: float, mss_bytes: int, round_trip_s: float) -> float:
    """Throughput = window x MSS / RTT, in bit/s of payload.

    `window_segments` is the window in use (cwnd, unless the receive window is smaller). Valid while nothing
    is lost, the window is constant, and window x MSS / RTT stays below the bottleneck's rate:
    `limited_throughput_bps` adds that bound. Source: talk by J. Thalheim (in words; its formula is lost).
    """
    _positive(window_segments=window_segments, mss_bytes=mss_bytes, round_trip_s=round_trip_s)
    return 8 * window_segments * mss_bytes / round_trip_s


def limited_throughput_bps(
    window_segments: float, mss_bytes: int, round_trip_s: float, rate_bps: float, header_bytes: int = 40
) -> float:
    """`window_throughput_bps`, bounded by the rate that a link of `rate_bps` leaves after each segment's header.

    `round_trip_s` is the time from a segment's first bit sent to its ACK's arrival on the empty path.
    """
    _positive(rate_bps=rate_bps)
    payload_rate = rate_bps * mss_bytes / (mss_bytes + header_bytes)
    return min(window_throughput_bps(window_segments, mss_bytes, round_trip_s), payload_rate)


def doubling_rounds(segments: int, initial_window: int) -> int:
    """Round trips of data when the window doubles each round: the least k with IW (2^k - 1) >= segments.

    Valid on a path of infinite bandwidth, without loss, with an ACK for every segment. Equal to
    ceil(log2(segments / IW + 1)), in integers so that no logarithm rounds a whole number up.
    """
    _positive(segments=segments, initial_window=initial_window)
    rounds, delivered, window = 0, 0, initial_window
    while delivered < segments:
        delivered += window
        window *= 2
        rounds += 1
    return rounds


def transfer_time_s(
    size_bytes: int, mss_bytes: int, initial_window: int, round_trip_s: float, handshake: bool = True
) -> float:
    """The talk's transfer time in seconds: k rounds of data and, with `handshake`, one for SYN and SYN-ACK.

    Time starts when the client opens the connection; the request travels in the first round of data. Regime:
    that of `doubling_rounds`. Source: talk by J. Thalheim, reconstructed from its words.
    """
    _positive(size_bytes=size_bytes, mss_bytes=mss_bytes, round_trip_s=round_trip_s)
    rounds = doubling_rounds(-(-size_bytes // mss_bytes), initial_window)
    return (rounds + int(handshake)) * round_trip_s


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise RequestError(f"{name} must be positive, not {value}")
