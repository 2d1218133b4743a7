"""One loss-free transfer, segment by segment, in integer nanoseconds.

An exact computation, not an approximation: each segment is serialized on each link, each ACK goes back the
same way, and the window grows with each ACK. It shares no code with the simulator, so that either checks the
other; where its regime holds, both give the same nanosecond.

Regime: one connection alone on its links; nothing lost, so every queue must hold the backlog of the window; no
retransmission timer fires; the request fits one segment. Any other scenario raises RequestError, which names the
failed condition.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

from firstflight.engines.model.path import Path
from firstflight.engines.model.receiver import Receiver
from firstflight.engines.model.sender import Sender
from firstflight.engines.model.single_transfer import SingleTransfer
from firstflight.engines.model.timer import RetransmissionTimer
from firstflight.errors import RequestError


@dataclass(frozen=True)
class Outcome:
    """Times of events, in ns since the client opened the connection; None where one did not happen in time."""

    handshake_ns: int | None
    first_byte_ns: int | None
    completion_ns: int | None
    segments_sent: int
    first_flight_segments: int
    deliveries: list[tuple[int, int]] = field(repr=False)
    """(time in ns, bytes delivered by then), one entry a segment."""
    ties: int
    """Segments that arrive in the very nanosecond in which the delayed-ACK timer expires. No rule says which
    comes first; here the one that was scheduled first does, and the simulator may decide otherwise."""

    @property
    def delivered_bytes(self) -> int:
        """Bytes that reached the receiver before the run ended."""
        return self.deliveries[-1][1] if self.deliveries else 0


def compute(transfer: SingleTransfer) -> Outcome:
    """Follows `transfer` to its last byte or the end of the run. Raises RequestError outside the regime."""
    return _Connection(transfer).run()


class _Connection:
    """State of the transfer: handshake and request, then a loop over arrivals and the ACK timer."""

    def __init__(self, transfer: SingleTransfer) -> None:
        self.transfer = transfer
        self.header = transfer.header_bytes
        self.to_server, self.to_client = Path(transfer.to_server), Path(transfer.to_client)
        upload = transfer.upload
        self.data_path = self.to_server if upload else self.to_client
        self.ack_path = self.to_client if upload else self.to_server
        self.end = transfer.duration_ns - transfer.start_ns
        self.sender = Sender(transfer)
        self.receiver = Receiver(transfer)
        self.events: list[tuple[int, int, str, int]] = []
        self.order = count()
        self.deliveries: list[tuple[int, int]] = []
        self.ties = 0

    def run(self) -> Outcome:
        handshake, start, answer_due = self._open()
        if start <= self.end:
            self._send(start)
        completion, last_timer = None, -1
        while completion is None:
            # Events may have run out: a lone segment waits for an ACK that no timer sends before the run
            # ends.
            now, _, event, value = heapq.heappop(self.events) if self.events else (self.end + 1, 0, "end", 0)
            for timer in (self.sender.timer, answer_due):
                timer.check(min(now, self.end))
            if now > self.end:
                break
            if event == "data":
                answer_due.stop()
                self.ties += now in (self.receiver.deadline, last_timer)
                self._data(now, value)
                if self.receiver.received == self.transfer.size_bytes:
                    completion = now
            elif event == "ack":
                self.sender.on_ack(now, value)
                self._send(now)
            elif self.receiver.deadline == value:
                last_timer = now
                self._acknowledge(now)
        return Outcome(
            handshake_ns=handshake if handshake <= self.end else None,
            first_byte_ns=self.deliveries[0][0] if self.deliveries else None,
            completion_ns=completion,
            segments_sent=self.sender.segments_sent,
            first_flight_segments=self.sender.first_flight_segments,
            deliveries=self.deliveries,
            ties=self.ties,
        )

    def _open(self) -> tuple[int, int, RetransmissionTimer]:
        """Handshake and request: when the client is connected, when the sender may start, and the client's
        timer for the request, which the first data answers.
        """
        transfer, header = self.transfer, self.header
        client, server = (
            RetransmissionTimer(tcp["rto"], transfer.start_ns) for tcp in (transfer.client_tcp, transfer.server_tcp)
        )
        if transfer.upload:
            client = self.sender.timer
        else:
            server = self.sender.timer
        client.sent(0, 0)
        syn = self.to_server.cross(0, header)
        server.sent(syn, 0)
        handshake = self.to_client.cross(syn, header)
        client.acknowledged(handshake, 0, outstanding=False)
        rides = transfer.client_tcp["data_on_handshake_ack"]
        third = None if rides else self.to_server.cross(handshake, header)
        if transfer.upload:
            if third is not None:
                server.acknowledged(third, 0, outstanding=False)
            return handshake, handshake, server
        if transfer.request_bytes > transfer.mss_bytes:
            raise RequestError(
                f"outside the model's regime: a request of {transfer.request_bytes} bytes does not fit one "
                f"segment of {transfer.mss_bytes} bytes; use --engine simulate"
            )
        client.sent(handshake, transfer.request_bytes)
        asked = self.to_server.cross(handshake, header + transfer.request_bytes)
        server.acknowledged(asked if third is None else third, 0, outstanding=False)
        return handshake, asked, client

    def _send(self, now: int) -> None:
        for length in self.sender.segments(now):
            self._schedule(self.data_path.cross(now, self.header + length), "data", length)

    def _data(self, now: int, length: int) -> None:
        running = self.receiver.deadline
        if self.receiver.on_segment(now, length):
            self._acknowledge(now)
        elif running is None and self.receiver.deadline is not None:
            self._schedule(self.receiver.deadline, "timer", self.receiver.deadline)
        self.deliveries.append((now, self.receiver.received))

    def _acknowledge(self, now: int) -> None:
        position = self.receiver.acknowledge()
        self._schedule(self.ack_path.cross(now, self.header), "ack", position)

    def _schedule(self, time: int, event: str, value: int) -> None:
        heapq.heappush(self.events, (time, next(self.order), event, value))
