"""Slow start without loss in closed form: by the stalls between windows over one bottleneck, and by doubling rounds.

Symbols: S size (bytes), M = MSS (bytes), n = ceil(S/M) segments, w0 = initial window (segments), R =
round-trip time of the empty path without the bottleneck's serialization (seconds), tau = time of one full
segment on the bottleneck (seconds), K = windows that cover the transfer, Q = stalls of an endless one, P =
min(Q, K - 1) stalls that happen.

    K = ceil(log2(n/w0 + 1))
    Q = 1 + floor(log2((1 + R/tau)/w0)), or 0 where that is negative
    T = 2 R + S/C + P (R + tau) - w0 (2^P - 1) tau          with C = M/tau, the payload rate

A sender stalls after its k-th window while w0 2^(k-1) tau < R + tau, that is while the first ACK of a window
comes back after its last segment has left. Source: the latency model of static windows and slow start in the
teaching literature (slides), extended here to an initial window other than one segment.
"""

from dataclasses import dataclass, replace

from firstflight.errors import RequestError


@dataclass(frozen=True)
class SlowStart:
    """One transfer over one bottleneck, in closed form.

    Valid without loss, with an ACK for every segment, cwnd as the only limit, and one bottleneck on which ACKs and the
    handshake take no time. `compute` needs only the first condition.
    """

    size_bytes: int
    mss_bytes: int
    initial_window: int
    """Segments."""
    round_trip_s: float
    rate_bps: float
    """Bottleneck, bit/s, headers included."""
    header_bytes: int = 40
    """Bytes of a segment on the wire in addition to its payload."""

    def __post_init__(self) -> None:
        for name in ("size_bytes", "mss_bytes", "initial_window", "round_trip_s", "rate_bps"):
            if not getattr(self, name) > 0:
                raise RequestError(f"{name} must be positive, not {getattr(self, name)}")
        if self.header_bytes < 0:
            raise RequestError(f"header_bytes must not be negative: {self.header_bytes}")

    @property
    def segments(self) -> int:
        """n: number of segments; the last may be short."""
        return -(-self.size_bytes // self.mss_bytes)

    @property
    def serialization_s(self) -> float:
        """tau: transmission time of a full segment on the bottleneck, in s."""
        return 8 * (self.mss_bytes + self.header_bytes) / self.rate_bps

    @property
    def pipe_segments(self) -> float:
        """BDP in full segments: 1 + R/tau."""
        return 1 + self.round_trip_s / self.serialization_s

    @property
    def windows(self) -> int:
        """K: number of windows of the transfer."""
        return doubling_rounds(self.segments, self.initial_window)

    @property
    def stalls_of_endless_transfer(self) -> int:
        """Q: stalls of a transfer without end; 0 if the first window fills the pipe."""
        stalls, window = 0, self.initial_window
        while window <= self.pipe_segments:
            stalls += 1
            window *= 2
        return stalls

    @property
    def stalls(self) -> int:
        """P: stalls of this transfer."""
        return min(self.stalls_of_endless_transfer, self.windows - 1)

    @property
    def stalled_s(self) -> float:
        """Idle time of the bottleneck between windows, in s."""
        stalls, tau = self.stalls, self.serialization_s
        return stalls * (self.round_trip_s + tau) - self.initial_window * float(2**stalls - 1) * tau

    @property
    def wire_bytes(self) -> int:
        """Bytes of the transfer with headers."""
        return self.size_bytes + self.segments * self.header_bytes

    @property
    def completion_time_s(self) -> float:
        """T: time from the SYN to the last byte at the receiver, in s."""
        return 2 * self.round_trip_s + 8 * self.wire_bytes / self.rate_bps + self.stalled_s

    def gain_s(self, initial_window: int) -> float:
        """Time saved by `initial_window` (segments), in s: at most `stalled_s`, since it only removes stalls."""
        return self.completion_time_s - replace(self, initial_window=initial_window).completion_time_s


# The equations of the talk by J. Thalheim: throughput by window, transfer time by doubling rounds.


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
