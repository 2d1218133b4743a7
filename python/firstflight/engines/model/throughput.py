"""The talk's equations: throughput by window, transfer time by doubling rounds."""

from firstflight.errors import RequestError


def window_throughput_bps(window_segments: float, mss_bytes: int, round_trip_s: float) -> float:
    """Throughput = window x MSS / RTT, in bit/s of payload.

    `window_segments`: the smaller of cwnd and rwnd, constant. Valid without loss and below the bottleneck's rate
    (`limited_throughput_bps` adds that limit). Source: talk by J. Thalheim, in words.
    """
    _positive(window_segments=window_segments, mss_bytes=mss_bytes, round_trip_s=round_trip_s)
    return 8 * window_segments * mss_bytes / round_trip_s


def limited_throughput_bps(
    window_segments: float, mss_bytes: int, round_trip_s: float, rate_bps: float, header_bytes: int = 40
) -> float:
    """`window_throughput_bps`, limited by the payload rate of a link of `rate_bps`.

    `round_trip_s`: from the first bit of a segment to its ACK, without queueing.
    """
    _positive(rate_bps=rate_bps)
    payload_rate = rate_bps * mss_bytes / (mss_bytes + header_bytes)
    return min(window_throughput_bps(window_segments, mss_bytes, round_trip_s), payload_rate)


def doubling_rounds(segments: int, initial_window: int) -> int:
    """Round trips of data if cwnd doubles per round: the least k with IW (2^k - 1) >= segments.

    Valid with infinite bandwidth, without loss, with an ACK for every segment. Equal to ceil(log2(segments / IW + 1)),
    without rounding errors.
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
    """Transfer time from the SYN in s: `doubling_rounds` and, with `handshake`, one round for SYN and SYN-ACK.

    The request is sent in the first round of data. Valid as `doubling_rounds`. Source: talk by J. Thalheim, in words.
    """
    _positive(size_bytes=size_bytes, mss_bytes=mss_bytes, round_trip_s=round_trip_s)
    rounds = doubling_rounds(-(-size_bytes // mss_bytes), initial_window)
    return (rounds + int(handshake)) * round_trip_s


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise RequestError(f"{name} must be positive, not {value}")
