"""Throughput and latency under random loss, as expectations.

Status of these equations: **from memory**. Nobody compared them with the papers' text for this project, so
none of them is the target of a test or of a claim; tests check their limits and how they order, and
docs/model.md shows them next to the simulator for orientation.

Symbols: p probability that a segment is lost; R round-trip time (s); b segments an ACK; T0 first
retransmission timeout (s); Wmax largest window (segments); n segments of the transfer; w0 initial window
(segments). The models assume segments of one size, losses that the window suffers as a whole (once a segment
is lost, so is the rest of its round), and a round-trip time that does not depend on the window: a path whose
queue the flow itself does not fill.
"""

import math
from dataclasses import dataclass

from firstflight.errors import RequestError


def mathis_bps(mss_bytes: int, round_trip_s: float, loss: float, segments_per_ack: int = 2) -> float:
    """Mathis, Semke, Mahdavi, Ott 1997 (from memory): B = (M/R) sqrt(3/(2 b p)), bit/s of payload.

    Valid for long transfers, p up to about 1%, without timeouts, with cwnd as the only limit. RequestError for a loss
    outside (0, 1).
    """
    _probability(loss)
    return 8 * mss_bytes / round_trip_s * math.sqrt(3 / (2 * segments_per_ack * loss))


def pftk_segments_per_s(
    round_trip_s: float, timeout_s: float, loss: float, window_segments: float, segments_per_ack: int = 2
) -> float:
    """Padhye, Firoiu, Towsley, Kurose 1998, the approximate formula (from memory), segments per second.

    B = min(Wmax/R, 1/(R sqrt(2 b p/3) + T0 min(1, 3 sqrt(3 b p/8)) p (1 + 32 p^2)))

    Valid for long transfers of Reno, p from well below 1% to tens of percent, with timeouts. RequestError for a loss
    outside (0, 1).
    """
    _probability(loss)
    b = segments_per_ack
    recovery = round_trip_s * math.sqrt(2 * b * loss / 3)
    timeouts = timeout_s * min(1.0, 3 * math.sqrt(3 * b * loss / 8)) * loss * (1 + 32 * loss**2)
    return min(window_segments / round_trip_s, 1 / (recovery + timeouts))


@dataclass(frozen=True)
class ShortTransfer:
    """Expected latency of a transfer of any length: Cardwell, Savage, Anderson 2000 (equations from memory).

    Valid for Reno with all data written at the start and p below 1/2: one loss ends slow start, PFTK's rate applies
    after it. RequestError otherwise.
    """

    segments: int
    initial_window: int
    """Segments."""
    round_trip_s: float
    loss: float
    """p: of a packet from the data sender."""
    reverse_loss: float = 0.0
    """Of a packet the other way; counts in the handshake only."""
    timeout_s: float = 1.0
    """T0: first retransmission timeout of data."""
    syn_timeout_s: float = 1.0
    """Ts: initial retransmission timeout, before the first sample (3 s before RFC 6298)."""
    window_segments: float = 1e9
    segments_per_ack: int = 2
    delayed_ack_s: float = 0.1
    """Mean wait of a lone first segment for its ACK (BSD's heartbeat: 100 ms); counts if w0 = 1 and b = 2."""

    def __post_init__(self) -> None:
        for loss in (self.loss, self.reverse_loss):
            if not 0 <= loss < 0.5:
                raise RequestError(f"the short-transfer model holds for a loss below 0.5, not {loss}")
        for name in ("segments", "initial_window", "round_trip_s", "timeout_s", "window_segments"):
            if not getattr(self, name) > 0:
                raise RequestError(f"{name} must be positive, not {getattr(self, name)}")

    @property
    def growth(self) -> float:
        """Gamma = 1 + 1/b: growth of cwnd per round of slow start."""
        return 1 + 1 / self.segments_per_ack

    @property
    def slow_start_segments(self) -> float:
        """E[d]: segments sent up to the first lost one, inclusive."""
        p, n = self.loss, self.segments
        if p == 0:
            return float(n)
        return min(float(n), (1 - (1 - p) ** n) * (1 - p) / p + 1)

    @property
    def slow_start_window(self) -> float:
        """E[W]: cwnd at the end of slow start, in segments."""
        gamma = self.growth
        return self.slow_start_segments * (gamma - 1) / gamma + self.initial_window / gamma

    @property
    def slow_start_s(self) -> float:
        """E[Tss]: duration of slow start, in s."""
        gamma, w0, d = self.growth, self.initial_window, self.slow_start_segments
        if self.slow_start_window <= self.window_segments:
            rounds = math.log(d * (gamma - 1) / w0 + 1, gamma)
        else:
            top = self.window_segments
            rounds = math.log(top / w0, gamma) + 1 + (d - (gamma * top - w0) / (gamma - 1)) / top
        return self.round_trip_s * rounds

    @property
    def first_loss_s(self) -> float:
        """E[Tloss]: expected added time of the loss that ends slow start, in s."""
        p = self.loss
        if p == 0:
            return 0.0
        any_loss = 1 - (1 - p) ** self.segments
        window = min(self.slow_start_window, self.window_segments)
        by_timeout = _timeout_share(p, window)
        timeout = self.timeout_s * _backoff_sum(p) / (1 - p)
        return any_loss * (by_timeout * timeout + (1 - by_timeout) * self.round_trip_s)

    @property
    def remaining_s(self) -> float:
        """Time of the n - E[d] segments after slow start at PFTK's rate, in s."""
        rest = self.segments - self.slow_start_segments
        if rest <= 0 or self.loss == 0:
            return 0.0
        rate = pftk_segments_per_s(
            self.round_trip_s, self.timeout_s, self.loss, self.window_segments, self.segments_per_ack
        )
        return rest / rate

    @property
    def handshake_s(self) -> float:
        """E[Lh] = R + Ts ((1-pr)/(1-2pr) + (1-pf)/(1-2pf) - 2) in s, with the losses pf forward and pr reverse."""
        waits = sum((1 - p) / (1 - 2 * p) for p in (self.loss, self.reverse_loss)) - 2
        return self.round_trip_s + self.syn_timeout_s * waits

    @property
    def completion_time_s(self) -> float:
        """Expected time from the SYN to the last byte, in s."""
        lone_segment = self.initial_window == 1 and self.segments_per_ack > 1
        wait = self.delayed_ack_s if lone_segment else 0.0
        return self.handshake_s + self.slow_start_s + self.first_loss_s + self.remaining_s + wait


def _timeout_share(p: float, window: float) -> float:
    """PFTK's Q(p, w): probability that a loss in a window of w segments ends in a timeout."""
    if window <= 3:
        return 1.0
    first = 1 - (1 - p) ** 3
    rest = 1 + (1 - p) ** 3 * (1 - math.pow(1 - p, window - 3))
    return min(1.0, first * rest / (1 - math.pow(1 - p, window)))


def _backoff_sum(p: float) -> float:
    """PFTK's G(p): mean length of a run of timeouts with doubling up to 64, in units of T0, times 1 - p."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def _probability(loss: float) -> None:
    if not 0 < loss < 1:
        raise RequestError(f"a loss of {loss} is not a probability between 0 and 1 (both excluded)")
