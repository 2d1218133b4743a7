"""The scripted other end of a recorded connection: a receiver that loses and acknowledges as scripted, or a sender."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from firstflight.conform.packet import CE, CWR, ECE, ECT0, SYN, Packet
from firstflight.conform.parameters import Parameters

MS = 1_000_000
US = 1_000
_WINDOW = 65_535


class Wire(Protocol):
    """The actions of a peer."""

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Call `action` at this time, in ns."""

    def send(
        self, seq: int, ack: int, length: int, blocks: list[tuple[int, int]], echo: int, flags: int = 0, ecn: int = 0
    ) -> None:
        """Send the kernel a segment; numbers count from our first byte and the kernel's, 1. `echo`: TSecr."""


class ReceivingPeer:
    """Receives the kernel's segments, after an RTT, and acknowledges them; and sends its requests."""

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
        self._seq = 1
        self._asked = 0
        self._congested = 0
        # The bytes that it has room for: None if that is not limited.
        self._room = parameters.windows[0][1] if parameters.windows else None

    def window(self, shift: int) -> int:
        """The window field."""
        return _WINDOW if self._room is None else min(_WINDOW, self._room >> shift)

    def greeted(self, packet: Packet, now: int) -> None:
        """`packet` is the kernel's SYN-ACK."""
        self._echo = (packet.stamps() or (0, 0))[0]

    def start(self, now: int) -> None:
        """The handshake is over: windows change, and requests are due, from now on."""
        for at, room in self._how.windows[1:]:
            self._wire.at(now + at * MS, partial(self._change, now + at * MS, room))
        self._next_turn(now)

    def _change(self, now: int, room: int) -> None:
        self._room = room
        self._acknowledge(now, [])

    def _next_turn(self, now: int) -> None:
        """Ask when a pause is over, if the last answer is complete."""
        answers = self._how.writes[: self._asked]
        if self._asked < len(self._how.requests) and self._expected >= 1 + sum(size for _, size in answers):
            self._asked += 1
            at = now + self._how.writes[self._asked - 1][0] * MS
            self._wire.at(at, partial(self._ask, at, self._how.requests[self._asked - 1]))

    def _ask(self, now: int, left: int) -> None:
        self._pending = 0
        self._acknowledged = self._expected
        while left > 0:
            length = min(left, payload_of(self._how))
            self._reply(self._expected, self._blocks([]), self._echo, length)
            left -= length
        self._next_turn(now)

    def on_packet(self, now: int, seq: int, ack: int, packet: Packet) -> None:
        """The kernel sent a segment just now, which begins with byte `seq`."""
        if packet.length == 0:
            if seq < self._expected:
                # A probe of a closed window.
                at = now + self._how.rtt_ms * MS
                self._wire.at(at, partial(self._acknowledge, at, []))
            return
        entry = self._sent.setdefault(seq, [len(self._sent) + 1, 0])
        entry[1] += 1
        if (entry[0], entry[1]) in self._lost:
            return
        arrival = max(now + self._how.rtt_ms * MS, self._next_arrival)
        self._next_arrival = arrival + self._how.spacing_us * US
        stamp = (packet.stamps() or (0, 0))[0]
        marked = CE if entry[1] == 1 and entry[0] in self._how.marks else 0
        self._wire.at(
            arrival, partial(self._arrive, arrival, seq, seq + packet.length, stamp, packet.flags & CWR, marked)
        )

    def has_all(self, written: int) -> bool:
        """Whether this number of bytes was acknowledged."""
        return self._acknowledged == 1 + written

    def _arrive(self, now: int, seq: int, end: int, stamp: int, reduced: int, marked: int) -> None:
        if reduced:
            self._congested = 0
        if marked:
            self._congested = ECE
        if seq <= self._acknowledged:
            self._echo = max(self._echo, stamp)
        duplicate = [(seq, end)] if end <= self._expected or any(a <= seq and end <= b for a, b in self._ahead) else []
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
        if self._asked:
            self._next_turn(now)

    def _delayed(self, now: int, timer: int) -> None:
        if timer == self._timer and self._pending:
            self._acknowledge(now, [])

    def _acknowledge(self, now: int, duplicate: list[tuple[int, int]]) -> None:
        self._pending = 0
        self._timer += 1
        blocks = self._blocks(duplicate)
        new = self._expected - self._acknowledged
        parts = min(self._how.acks.split, new) if new and not duplicate else 1
        first = self._acknowledged
        self._acknowledged = self._expected
        for part in range(1, parts + 1):
            ack, echo = first + new * part // parts, self._echo
            at = now + (part - 1) * self._how.spacing_us * US // parts
            self._wire.at(at, partial(self._reply, ack, blocks, echo))

    def _blocks(self, duplicate: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return (duplicate + self._ahead) if self._how.sack else []

    def _reply(self, ack: int, blocks: list[tuple[int, int]], echo: int, length: int = 0) -> None:
        seq, self._seq = self._seq, self._seq + length
        ecn = ECT0 if self._how.ecn and length else 0
        self._wire.send(seq, ack, length, blocks, echo, self._congested, ecn)


class SendingPeer:
    """Sends the kernel flights of segments at given times, some of them late, twice, or behind the next."""

    def __init__(self, parameters: Parameters, wire: Wire) -> None:
        self._how = parameters
        self._wire = wire
        self._edge = 0
        self._echo = 0
        self._scale = 0
        self._left = 0
        self._reduces = self._reduced = 0

    def window(self, shift: int) -> int:
        """The window field."""
        return _WINDOW

    def greeted(self, packet: Packet, now: int) -> None:
        """`packet` is the kernel's SYN-ACK."""
        self._learn(now, 1, packet, 0)
        self._scale = packet.scale()

    def start(self, now: int) -> None:
        """The handshake is over: the flights are due from now on."""
        how, payload = self._how, payload_of(self._how)
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
                    self._wire.at(at + late, partial(self._send, at + late, seq_, length, number_ in how.marks))
                    at += how.spacing_us * US
            line_free = at

    def on_packet(self, now: int, seq: int, ack: int, packet: Packet) -> None:
        """The kernel sent an ACK, which arrives after a round trip."""
        at = now + self._how.rtt_ms * MS
        self._wire.at(at, partial(self._learn, at, ack, packet, self._scale))

    def has_all(self, written: int) -> bool:
        """Whether everything was sent."""
        return self._left == 0

    def _learn(self, now: int, ack: int, packet: Packet, scale: int) -> None:
        if packet.flags & (ECE | SYN) == ECE and now >= self._reduced + self._how.rtt_ms * MS:
            self._reduces, self._reduced = CWR, now
        self._edge = max(self._edge, ack + (packet.window << scale))
        self._echo = max(self._echo, (packet.stamps() or (0, 0))[0])

    def _send(self, now: int, seq: int, length: int, marked: bool) -> None:
        if seq + length > self._edge:
            # The window is closed: later.
            again = now + max(self._how.rtt_ms, 10) * MS
            self._wire.at(again, partial(self._send, again, seq, length, marked))
            return
        self._left -= 1
        flags, self._reduces = self._reduces, 0
        self._wire.send(seq, 1, length, [], self._echo, flags, (CE if marked else ECT0) if self._how.ecn else 0)


def payload_of(how: Parameters) -> int:
    """The most bytes in a segment of the scripted end."""
    return how.mss - (12 if how.timestamps else 0)


def _inserted(blocks: list[tuple[int, int]], seq: int, end: int) -> list[tuple[int, int]]:
    """The blocks with one more, the one that grew first, as in RFC 2018 section 4."""
    rest = []
    for left, right in blocks:
        if left <= end and seq <= right:
            seq, end = min(seq, left), max(end, right)
        else:
            rest.append((left, right))
    return [(seq, end), *rest]
