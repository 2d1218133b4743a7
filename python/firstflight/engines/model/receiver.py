"""The data receiver: when it acknowledges."""

from __future__ import annotations

from firstflight.engines.model.single_transfer import SingleTransfer
from firstflight.errors import RequestError


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
        self.unannounced = 0
        self.two_segments = 2 * transfer.mss_bytes
        if self.window < min(self.two_segments, transfer.size_bytes):
            raise RequestError(
                f"outside the model's regime: a receive window of {self.window} bytes holds no two segments, and the "
                f"sender cuts them; give {self.two_segments} bytes or more, or use --engine simulate"
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
        # RFC 9293 section 3.8.6.2.2 leaves the moment of a window update open; the simulator's: two segments or half of
        # the buffer are free, and the sender has no room for two segments left.
        free = self.unannounced >= min(self.two_segments, self.window // 2)
        if self.held >= self.segments_per_ack or (free and self.window - self.unannounced < self.two_segments):
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
