"""The data receiver: when it acknowledges."""

from __future__ import annotations

from firstflight.errors import RequestError

from .single_transfer import SingleTransfer

# RFC 7323 section 2.2: without the window scale option, and in a SYN in any case, a window is 16 bits.
LARGEST_UNSCALED = 65535


class Receiver:
    """Counts segments towards the next ACK; the application reads at once, so the window stays open."""

    def __init__(self, transfer: SingleTransfer) -> None:
        tcp = transfer.receiver_tcp
        self.policy = tcp["ack"]
        self.start_ns = transfer.start_ns
        self.received = 0
        self.held = 0
        self.deadline: int | None = None
        self.window = int(tcp["receive_window_bytes"])
        # A server's SYN-ACK could announce no more than 16 bits; the rest waits for its first ACK.
        self.unannounced = max(0, self.window - LARGEST_UNSCALED) if transfer.upload else 0
        # Below one segment the sender sends pieces; a policy beyond RFC 5681's two segments an ACK meets the
        # other rule for window updates, that of a window almost used up.
        needed = transfer.mss_bytes * (2 * self.segments_per_ack if self.segments_per_ack > 2 else 1)
        if self.window < min(needed, transfer.size_bytes):
            raise RequestError(
                f"outside the model's regime: a receive window of {self.window} bytes is too small; give {needed} "
                "bytes or more, or use --engine simulate"
            )

    @property
    def segments_per_ack(self) -> int:
        """b: segments an ACK covers, timers aside."""
        return 1 if self.policy["policy"] == "every_segment" else int(self.policy["segments"])

    def on_segment(self, now: int, length: int) -> bool:
        """A segment of `length` bytes arrives; whether to acknowledge at once, else by `deadline` (ns)."""
        self.received += length
        self.held += 1
        self.unannounced += length
        # As BSD does, a window update goes out when it opens half of the buffer.
        if self.held >= self.segments_per_ack or 2 * self.unannounced >= self.window:
            return True
        if self.deadline is None:
            if self.policy["policy"] == "delayed":
                self.deadline = now + self.policy["timer_ns"]
            else:
                # The heartbeat's clock starts with the run, not with the connection.
                interval = self.policy["interval_ns"]
                self.deadline = ((now + self.start_ns) // interval + 1) * interval - self.start_ns
        return False

    def acknowledge(self) -> int:
        """An ACK leaves: the position up to which it acknowledges."""
        self.held = 0
        self.unannounced = 0
        self.deadline = None
        return self.received
