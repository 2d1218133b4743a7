"""One loss-free transfer, segment by segment, in integer nanoseconds.

An exact computation, not an approximation: each segment is serialized on each link, each ACK goes back the
same way, and the window grows with each ACK. It shares no code with the simulator, so that either checks the
other; where its regime holds, both give the same nanosecond.

Regime: one connection alone on its links; nothing lost, so every queue must hold the backlog of the window; no
retransmission timer fires; the request fits one segment. Any other scenario raises RequestError, which names the
failed condition.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from firstflight.engines.model.single_transfer import SingleTransfer
from firstflight.errors import RequestError
from firstflight.scenario.tcp import initial_window_bytes

# Links that one flow has to itself, crossed packet by packet.


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


class RetransmissionTimer:
    """Smoothed round trip, its variation, and the deadline; all in ns. One segment is timed at a time."""

    def __init__(self, rules: dict[str, Any], start_ns: int) -> None:
        self.rules = rules
        self.start_ns = start_ns
        self.rto = float(rules["initial_ns"])
        self.smoothed: float | None = None
        self.variation = 0.0
        self.deadline: float | None = None
        self.timed: tuple[int, int] | None = None

    def sent(self, now: int, end: int) -> None:
        """A segment that ends before position `end` leaves."""
        if self.timed is None:
            self.timed = (now, end)
        if self.deadline is None:
            self.deadline = now + self.rto

    def acknowledged(self, now: int, position: int, outstanding: bool) -> None:
        """Everything before `position` is acknowledged at `now`; `outstanding`: something beyond it is not.

        Raises RequestError if the timer had expired before.
        """
        self.check(now)
        if self.timed is not None and position >= self.timed[1]:
            self._sample(self.timed[0], now)
            self.timed = None
        # RFC 6298 section 5.2 and 5.3: stop when all is acknowledged, else start again.
        self.deadline = now + self.rto if outstanding else None

    def stop(self) -> None:
        """Everything is acknowledged."""
        self.deadline = None

    def check(self, now: int) -> None:
        """Raises RequestError if the timer has expired by `now`."""
        if self.deadline is not None and now >= self.deadline:
            raise RequestError(
                f"outside the model's regime: a retransmission timer of {self.rto / 1e9:g} s expires "
                f"{self.deadline / 1e9:g} s after the connection was opened, before an ACK returns, and the model "
                "has no retransmission; use --engine simulate"
            )

    def _sample(self, sent: int, now: int) -> None:
        measured = float(now - sent)
        if self.rules["estimator"]["rfc6298"]["quantized_rtt"]:
            # A free-running clock: whole ticks of it that fall within the round trip.
            tick = self.rules["granularity_ns"]
            measured = float(((now + self.start_ns) // tick - (sent + self.start_ns) // tick) * tick)
            measured = max(measured, tick)
        if self.smoothed is None:
            self.smoothed, self.variation = measured, measured / 2
        else:
            self.variation += (abs(self.smoothed - measured) - self.variation) / 4
            self.smoothed += (measured - self.smoothed) / 8
        rto = self.smoothed + max(self.rules["granularity_ns"], 4 * self.variation)
        self.rto = min(max(rto, self.rules["minimum_ns"]), self.rules["maximum_ns"])


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


@dataclass(frozen=True)
class ModeledTransfer:
    """Times of events, in ns since the SYN; None for an event after the end of the run."""

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


def compute(transfer: SingleTransfer) -> ModeledTransfer:
    """Completion of `transfer`, or its state when the run ends. RequestError outside the model's conditions."""
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

    def run(self) -> ModeledTransfer:
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
        return ModeledTransfer(
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
