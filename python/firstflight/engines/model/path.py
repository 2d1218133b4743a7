"""Links that one flow has to itself, crossed packet by packet in integer nanoseconds."""

from collections import deque
from typing import Any

from firstflight.errors import RequestError

QUEUES = ("drop_tail", "red")
"""Those whose limit it knows."""


class Line:
    """A FIFO link: serialization, then propagation. Refuses to model a packet that its queue would drop."""

    def __init__(self, link: dict[str, Any]) -> None:
        rate = link["rate_bps"]
        # Nanoseconds a byte in 32.32 fixed point, as the simulator rounds them; 0 is an infinitely fast link.
        self._nanos_per_byte = 0 if rate is None else ((8_000_000_000 << 32) + rate // 2) // rate
        self._delay_ns: int = link["delay_ns"]
        self._queue: dict[str, Any] = link["queue"]
        self._free_at = 0
        self._waiting: deque[tuple[int, int]] = deque()
        self._in_service_bytes = 0

    def cross(self, now: int, packet_bytes: int) -> int:
        """When a packet that arrives at `now` (ns) reaches the far end. Calls come in the order of `now`.

        Raises RequestError where the queue would drop the packet, or might (RED).
        """
        while self._waiting and self._waiting[0][0] <= now:
            self._in_service_bytes = self._waiting.popleft()[1]
        start = max(now, self._free_at)
        if self._free_at > now:
            self._admit(packet_bytes)
            self._waiting.append((start, packet_bytes))
        else:
            self._in_service_bytes = packet_bytes
        self._free_at = start + ((self._nanos_per_byte * packet_bytes + (1 << 31)) >> 32)
        return self._free_at + self._delay_ns

    def _admit(self, packet_bytes: int) -> None:
        queue, packets = self._queue, len(self._waiting)
        with_service = queue["counts_packet_in_service"]
        if queue["kind"] == "red":
            limit = min(queue["min_threshold_packets"], queue["limit_packets"])
            fits, shown = packets + 1 < limit, f"RED may drop from {limit:g} packets on"
        elif "packets" in queue["limit"]:
            limit = queue["limit"]["packets"]
            fits, shown = packets + with_service < limit, f"its limit is {limit} packets"
        else:
            limit = queue["limit"]["bytes"]
            held = sum(size for _, size in self._waiting) + with_service * self._in_service_bytes
            fits, shown = held + packet_bytes <= limit, f"its limit is {limit} bytes"
        if not fits:
            raise RequestError(
                f"outside the model's regime: with {packets} packets waiting a queue overflows ({shown}), and "
                "the model knows no loss; enlarge the queue or use --engine simulate"
            )


class Path:
    """Links in a row."""

    def __init__(self, links: tuple[dict[str, Any], ...]) -> None:
        self._lines = [Line(link) for link in links]

    def cross(self, now: int, packet_bytes: int) -> int:
        """When a packet sent at `now` (ns) arrives at the far end. Calls come in the order of `now`."""
        for line in self._lines:
            now = line.cross(now, packet_bytes)
        return now
