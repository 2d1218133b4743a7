"""The data sender: which segments the window lets out, and how cwnd grows with each ACK."""

from __future__ import annotations

from typing import Any

from firstflight.engines.initial_window import initial_window_bytes
from firstflight.engines.model.single_transfer import SingleTransfer
from firstflight.engines.model.timer import RetransmissionTimer

# RFC 7323 section 2.2: without the window scale option, and in a SYN in any case, a window is 16 bits.
LARGEST_UNSCALED = 65535


class Sender:
    """Slow start and congestion avoidance of RFC 5681, in bytes; nothing is ever lost."""

    def __init__(self, transfer: SingleTransfer) -> None:
        tcp: dict[str, Any] = transfer.sender_tcp
        self.mss = transfer.mss_bytes
        self.size = transfer.size_bytes
        self.cwnd = initial_window_bytes(tcp["initial_window"], self.mss)
        threshold = tcp["initial_ssthresh_segments"]
        self.ssthresh = None if threshold is None else threshold * self.mss
        self.growth: str = tcp["slow_start_growth"]
        self.avoidance: str = tcp["congestion_avoidance"]
        self.counted = 0
        self.limit = _window_limit(transfer)
        # A client has seen the server's window in the SYN-ACK only, when its first data goes out.
        self.first_limit = min(self.limit, LARGEST_UNSCALED) if transfer.upload else self.limit
        self.timer = RetransmissionTimer(tcp["rto"], transfer.start_ns)
        self.sent = 0
        self.acknowledged = 0
        self.segments_sent = 0
        self.first_flight_segments = 0

    def segments(self, now: int) -> list[int]:
        """Lengths of the segments that the window lets out at `now` (ns): full ones, or all that is left."""
        lengths = []
        limit = self.limit if self.acknowledged else self.first_limit
        while self.sent < self.size:
            length = min(self.mss, self.size - self.sent)
            if self.sent + length - self.acknowledged > min(self.cwnd, limit):
                break
            self.sent += length
            self.timer.sent(now, self.sent)
            lengths.append(length)
        self.segments_sent += len(lengths)
        if not self.acknowledged:
            self.first_flight_segments = self.segments_sent
        return lengths

    def on_ack(self, now: int, acknowledged: int) -> None:
        """An ACK of new data arrives. Raises RequestError if the retransmission timer expired before."""
        self.timer.acknowledged(now, acknowledged, outstanding=acknowledged < self.sent)
        new = acknowledged - self.acknowledged
        self.acknowledged = acknowledged
        if self.ssthresh is None or self.cwnd < self.ssthresh:
            # RFC 5681 section 3.1: min(N, SMSS) an ACK, or one SMSS an ACK as before byte counting.
            self.cwnd += min(new, self.mss) if self.growth == "abc_l1" else self.mss
        elif self.avoidance == "per_ack":
            # RFC 5681 section 3.1, equation 3: SMSS^2/cwnd an ACK, at least one byte.
            self.cwnd += max(self.mss**2 // self.cwnd, 1)
        else:
            self.counted += new
            if self.counted >= self.cwnd:
                self.counted -= self.cwnd
                self.cwnd += self.mss


def _window_limit(transfer: SingleTransfer) -> int:
    """Bytes in flight that the receive window and the profile's own bound allow."""
    sender, receiver = transfer.sender_tcp, transfer.receiver_tcp
    window = int(receiver["receive_window_bytes"])
    if sender["window_scaling"] and receiver["window_scaling"]:
        # RFC 7323 section 2.3: the field counts in units of 2^shift.
        shift = max(0, window.bit_length() - LARGEST_UNSCALED.bit_length())
        window = window >> shift << shift
    else:
        window = min(window, LARGEST_UNSCALED)
    if sender["max_send_window_segments"] is not None:
        window = min(window, sender["max_send_window_segments"] * transfer.mss_bytes)
    return window
