"""The scripted other end of a recorded connection: a receiver that loses and acknowledges as scripted, or a sender."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from firstflight.conform.packet import Packet
from firstflight.conform.parameters import Parameters

MS = 1_000_000
US = 1_000
WINDOW = 65_535


class Wire(Protocol):
    """The actions of a peer."""

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Call `action` at this time, in ns."""

    def send(self, seq: int, ack: int, length: int, blocks: list[tuple[int, int]], echo: int) -> None:
        """Send the kernel a segment; numbers count from our first byte and the kernel's, 1. `echo`: TSecr."""


class Receiver:
    """Receives the kernel's segments, after an RTT, and acknowledges them."""

    def __init__(self, parameters: Parameters, wire: Wire) -> None:
        self._how = parameters
        self._wire = wire
        self._sent: dict[int, list[int]] = {}
        self._lost = set(parameters.losses)
        self._next_arrival = 0
        self._expected = 1
        self._acknowledged = 1
        self._ahead: list[tuple[int, int]] = []
        self._pending = 0
        self._timer = 0
        self._echo = 0

    def greeted(self, packet: Packet, now: int) -> None:
        """`packet` is the kernel's SYN-ACK."""
        self._echo = (packet.stamps() or (0, 0))[0]

    def start(self, now: int) -> None:
        """The handshake is over; there is nothing to do before data comes."""

    def on_packet(self, now: int, seq: int, ack: int, packet: Packet) -> None:
        """The kernel sent a segment just now, which begins with byte `seq`."""
        if packet.length == 0:
            return
        entry = self._sent.setdefault(seq, [len(self._sent) + 1, 0])
        entry[1] += 1
        if (entry[0], entry[1]) in self._lost:
            return
        arrival = max(now + self._how.rtt_ms * MS, self._next_arrival)
        self._next_arrival = arrival + self._how.spacing_us * US
        stamp = (packet.stamps() or (0, 0))[0]
        self._wire.at(arrival, partial(self._arrive, arrival, seq, seq + packet.length, stamp))

    def has_all(self, written: int) -> bool:
        """Whether this number of bytes was acknowledged."""
        return self._acknowledged == 1 + written

    def _arrive(self, now: int, seq: int, end: int, stamp: int) -> None:
        if seq <= self._acknowledged:
            self._echo = max(self._echo, stamp)
        duplicate = [(seq, end)] if end <= self._expected or _covered(self._ahead, seq, end) else []
        had_hole = bool(self._ahead)
        if seq > self._expected:
            self._ahead = _inserted(self._ahead, seq, end)
        else:
            self._expected = max(self._expected, end)
            while reached := [block for block in self._ahead if block[0] <= self._expected]:
                self._expected = max(self._expected, reached[0][1])
                self._ahead.remove(reached[0])
        self._pending += 1
        if duplicate or self._ahead or had_hole or self._pending >= self._how.acks.every:
            self._acknowledge(now, duplicate)
        elif self._pending == 1:
            self._timer += 1
            timer = self._timer
            self._wire.at(now + self._how.acks.delay_ms * MS, partial(self._delayed, now, timer))

    def _delayed(self, now: int, timer: int) -> None:
        if timer == self._timer and self._pending:
            self._acknowledge(now, [])

    def _acknowledge(self, now: int, duplicate: list[tuple[int, int]]) -> None:
        self._pending = 0
        self._timer += 1
        blocks = (duplicate + self._ahead) if self._how.sack else []
        new = self._expected - self._acknowledged
        parts = min(self._how.acks.split, new) if new and not duplicate else 1
        first = self._acknowledged
        self._acknowledged = self._expected
        for part in range(1, parts + 1):
            ack, echo = first + new * part // parts, self._echo
            at = now + (part - 1) * self._how.spacing_us * US // parts
            self._wire.at(at, partial(self._wire.send, 1, ack, 0, blocks, echo))


class Sender:
    """Sends the kernel flights of segments at given times, some of them late, twice, or behind the next."""

    def __init__(self, parameters: Parameters, wire: Wire) -> None:
        self._how = parameters
        self._wire = wire
        self._edge = 0
        self._echo = 0
        self._scale = 0
        self._left = 0

    def greeted(self, packet: Packet, now: int) -> None:
        """`packet` is the kernel's SYN-ACK."""
        self._learn(1, packet, 0)
        self._scale = packet.scale()

    def start(self, now: int) -> None:
        """The handshake is over: the flights are due from now on."""
        how, payload = self._how, self._how.mss - (12 if self._how.timestamps else 0)
        number, seq, line_free = 0, 1, 0
        for at_ms, count in how.writes:
            flight = []
            end = seq + count
            while seq < end:
                number += 1
                length = min(payload, end - seq)
                flight.append((number, seq, length))
                seq += length
            for place in range(len(flight) - 1):
                if flight[place][0] in how.swaps:
                    flight[place], flight[place + 1] = flight[place + 1], flight[place]
            at = max(now + at_ms * MS, line_free)
            for number_, seq_, length in flight:
                lost = (number_, 1) in how.losses
                for _ in range(2 if number_ in how.repeats else 1):
                    self._left += 1
                    late = (how.rtt_ms + 10) * MS if lost else 0
                    self._wire.at(at + late, partial(self._send, at + late, seq_, length))
                    at += how.spacing_us * US
            line_free = at

    def on_packet(self, now: int, seq: int, ack: int, packet: Packet) -> None:
        """The kernel sent an ACK, which arrives after a round trip."""
        self._wire.at(now + self._how.rtt_ms * MS, partial(self._learn, ack, packet, self._scale))

    def has_all(self, written: int) -> bool:
        """Whether everything was sent."""
        return self._left == 0

    def _learn(self, ack: int, packet: Packet, scale: int) -> None:
        self._edge = max(self._edge, ack + (packet.window << scale))
        self._echo = max(self._echo, (packet.stamps() or (0, 0))[0])

    def _send(self, now: int, seq: int, length: int) -> None:
        if seq + length > self._edge:
            # The window is closed: later.
            again = now + max(self._how.rtt_ms, 10) * MS
            self._wire.at(again, partial(self._send, again, seq, length))
            return
        self._left -= 1
        self._wire.send(seq, 1, length, [], self._echo)


def _covered(blocks: list[tuple[int, int]], seq: int, end: int) -> bool:
    return any(left <= seq and end <= right for left, right in blocks)


def _inserted(blocks: list[tuple[int, int]], seq: int, end: int) -> list[tuple[int, int]]:
    """The blocks with one more, the one that grew first, as in RFC 2018 section 4."""
    rest = []
    for left, right in blocks:
        if left <= end and seq <= right:
            seq, end = min(seq, left), max(end, right)
        else:
            rest.append((left, right))
    return [(seq, end), *rest]
