"""Records connections of the kernel, many at a time, in one loop: the actions of each endpoint, in order of time."""

import contextlib
import heapq
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Literal

from firstflight.conform.inside.stage import ADDRESS, PORT, Stage, tick_clock
from firstflight.conform.packet import ACK, CWR, ECE, SYN, Packet, ack_options, build, parse, syn_options
from firstflight.conform.parameters import Parameters, from_table
from firstflight.conform.peer import MS, ReceivingPeer, SendingPeer
from firstflight.engines.emulate.inside.commands import command
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError

# Of a connection: so long, and so many round trips more.
_LONGEST, _ROUNDS = 8_000 * MS, 10
# After the last byte: long enough for a delayed ACK or a probe.
_AFTERWARDS = 350 * MS
_PEER_PORT, _ISN = 40_000, 0
_SERVER_END = socket.inet_aton(ADDRESS), PORT


class RecordedConnection:
    """One recorded connection, and the wire of its scripted peer."""

    def __init__(self, loop: "KernelRecorder", parameters: Parameters, stage: Stage, number: int) -> None:
        self.how = parameters
        self.stage = stage
        self.address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        self.end = socket.inet_aton(self.address), _PEER_PORT
        self.events: list[tuple[str, int, Any]] = []
        self.stall = 0
        self.done = False
        self._loop = loop
        self._remote = 0
        self._socket: socket.socket | None = None
        self._written = self._read = self._greetings = 0
        self._left_writes = len(parameters.writes)
        self._ends = 0
        kind = ReceivingPeer if parameters.direction == "sender" else SendingPeer
        self._peer: ReceivingPeer | SendingPeer = kind(parameters, self)

    def begin(self) -> None:
        """The peer's SYN."""
        self._ends = time.monotonic_ns() + _LONGEST + _ROUNDS * self.how.rtt_ms * MS
        stamp = self._stamp() if self.how.timestamps else None
        flags = SYN | (ECE | CWR if self.how.ecn else 0)
        self._inject(0, 0, flags, syn_options(self.how.mss, self.how.sack, stamp, self.how.wscale), 0)

    def at(self, when: int, action: Callable[[], None]) -> None:
        """Let the peer do something, unless the connection is over by then."""
        self._loop.later(when, lambda: None if self.done else action())

    def send(
        self, seq: int, ack: int, length: int, blocks: list[tuple[int, int]], echo: int, flags: int = 0, ecn: int = 0
    ) -> None:
        """The peer's segment, and its immediate effects."""
        stamps = (self._stamp(), echo) if self.how.timestamps else None
        options = ack_options(stamps, [(a + self._remote, b + self._remote) for a, b in blocks])
        self._inject(seq, ack, ACK | flags, options, length, ecn)
        if self._socket is None:
            self._open()
        elif self.how.direction == "sender":
            self._answer() if length else self._look()
        elif self.how.reads_ms == 0:
            self._take()
        self._end_if_over()

    def on_captured(self, at: int, sent: bool, header: bytes, packet: Packet) -> None:
        """The kernel sent the packet, or took it in."""
        if self.done:
            return
        self.events.append(("out" if sent else "in", at, header))
        if not sent:
            return
        if packet.flags & SYN:
            self._remote = packet.seq
            self._greetings += 1
            if self._greetings <= self.how.synacks_lost:
                return
            self._peer.greeted(packet, at)
            echo = (packet.stamps() or (0, 0))[0]
            self.at(at + self.how.rtt_ms * MS, partial(self._greet, echo))
        else:
            relative = packet.seq - self._remote & 0xFFFFFFFF
            self._peer.on_packet(at, relative, packet.ack - _ISN, packet)

    def _greet(self, echo: int) -> None:
        if self._socket is None:
            self.send(1, 1, 0, [], echo)

    def _open(self) -> None:
        """The handshake is over: the application gets its socket."""
        now = time.monotonic_ns()
        with contextlib.suppress(BlockingIOError):
            self._socket = self._loop.accepted(self.stage, self.end)
        if self._socket is None:
            return
        self.events.append(("accept", now, None))
        self._peer.start(now)
        if self.how.nodelay:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.how.direction == "sender" and not self.how.requests:
            for at, size in self.how.writes:
                self.at(now + at * MS, partial(self._write, size))
        elif self.how.reads_ms:
            self.at(now + self.how.reads_ms * MS, self._take_again)

    def _answer(self) -> None:
        """Read what came, and answer the request that it ends."""
        self._take()
        answered = len(self.how.writes) - self._left_writes
        if self._read < sum(self.how.requests[: answered + 1]):
            self._look()
        else:
            self._write(self.how.writes[answered][1])

    def _write(self, size: int) -> None:
        now = time.monotonic_ns()
        accepted = self._socket.send(bytes(size)) if self._socket and size else 0
        if accepted:
            self.events.append(("write", now, accepted))
        self._written += accepted
        self._left_writes -= 1
        self._loop.drain()
        self._look()

    def _take_again(self) -> None:
        self._take()
        self.at(time.monotonic_ns() + self.how.reads_ms * MS, self._take_again)

    def _take(self) -> None:
        now = time.monotonic_ns()
        with contextlib.suppress(BlockingIOError):
            taken = len(self._socket.recv(1 << 22)) if self._socket else 0
            self._read += taken
            self.events.append(("read", now, taken))
            self._loop.drain()

    def _look(self) -> None:
        if self._socket is None:
            return
        before = time.monotonic_ns()
        raw = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        after = time.monotonic_ns()
        self.events.append(("info", before, raw))
        self.stall = max(self.stall, after - before)

    def _end_if_over(self) -> None:
        over = self._peer.has_all(self._written) and (self._left_writes == 0 or self.how.direction == "receiver")
        if over and self._socket is not None:
            self._ends = min(self._ends, time.monotonic_ns() + _AFTERWARDS)

    def close_if_over(self, now: int) -> bool:
        """Whether it was over and is closed."""
        if now < self._ends:
            return False
        self.done = True
        if self._socket is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.close()
        return True

    def _inject(self, seq: int, ack: int, flags: int, options: bytes, length: int, ecn: int = 0) -> None:
        window = self._peer.window(0 if flags & SYN else max(0, self.how.wscale))
        number = ack + self._remote if flags & ACK else 0
        packet = Packet(self.end, _SERVER_END, _ISN + seq, number, flags, window, options, length, ecn)
        self._loop.inject(self.stage, build(packet))

    def _stamp(self) -> int:
        return time.monotonic_ns() // MS & 0xFFFFFFFF


# Connections at a time, and how far apart they begin.
_AT_ONCE, _APART = 300, 12 * MS
# The loop was late by this time: the machine may have affected the recording meanwhile.
STALL = 3 * MS

_stages: dict[tuple[bool, bool, bool], Stage] = {}
_addresses = count(1)


@command
def record(testbed: Testbed, connections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records connections with these parameters, in their order.

    Each: `events`, lists of a kind, a time in ns of CLOCK_MONOTONIC, and a content; `tick_ns` and `clock_ns`, the
    units that the kernel's timers count in and how far that clock is ahead; `stall_ns`, the longest delay of the
    recorder.
    """
    return KernelRecorder([from_table(table) for table in connections]).run()


class KernelRecorder:
    """The loop. Times are CLOCK_MONOTONIC in ns."""

    def __init__(self, parameters: list[Parameters]) -> None:
        self._all = [RecordedConnection(self, how, _stage(how), next(_addresses)) for how in parameters]
        self._waiting = self._all[::-1]
        self._live: dict[tuple[bytes, int], RecordedConnection] = {}
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._unclaimed: dict[tuple[bytes, int], socket.socket] = {}

    def run(self) -> list[dict[str, Any]]:
        """Everything, recorded."""
        tick, ahead = tick_clock()
        self._set_routes("add")
        poll = select.poll()
        for stage in _stages.values():
            poll.register(stage.capture, select.POLLIN)
        begin_at = 0
        while self._waiting or self._live:
            now = time.monotonic_ns()
            if self._waiting and len(self._live) < _AT_ONCE and now >= begin_at:
                begin_at = now + _APART
                self._begin()
            self._end(now)
            next_at = self._agenda[0][0] if self._agenda else now + 5 * MS
            next_at = min(next_at, now + 5 * MS, max(begin_at, now) if self._waiting else next_at)
            poll.poll(max(0, next_at - time.monotonic_ns()) / 1e6)
            self.drain()
            self._act(next_at)
        self._set_routes("del")
        missed = sum(stage.capture.dropped() for stage in _stages.values())
        if missed:
            raise MachineError(
                f"the capture missed {missed} packets, since the machine is too busy: record again when it is idle"
            )
        return [
            {
                "events": sorted(connection.events, key=lambda e: e[1]),
                "tick_ns": tick,
                "clock_ns": ahead,
                "stall_ns": connection.stall,
            }
            for connection in self._all
        ]

    def later(self, when: int, action: Callable[[], None]) -> None:
        """Call it then."""
        heapq.heappush(self._agenda, (when, next(self._numbers), action))

    def inject(self, stage: Stage, packet: bytes) -> None:
        """A packet for the kernel; its immediate answer is recorded."""
        os.write(stage.tun, packet)
        self.drain()

    def drain(self) -> None:
        """Pass each connection its captured packets."""
        for stage in _stages.values():
            for at, sent, header in stage.packets():
                packet = parse(header)
                connection = self._live.get((packet.destination if sent else packet.source) if packet else (b"", 0))
                if packet and connection:
                    connection.on_captured(at, sent, header, packet)

    def accepted(self, stage: Stage, end: tuple[bytes, int]) -> socket.socket | None:
        """The application's socket."""
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted, (address, port) = stage.server.accept()
                accepted.setblocking(False)
                self._unclaimed[(socket.inet_aton(address), port)] = accepted
        return self._unclaimed.pop(end, None)

    def _begin(self) -> None:
        connection = self._waiting.pop()
        self._live[connection.end] = connection
        connection.begin()

    def _set_routes(self, action: Literal["add", "del"]) -> None:
        for stage in _stages.values():
            here = (connection for connection in self._all if connection.stage is stage)
            stage.set_routes(action, [(connection.address, connection.how) for connection in here])

    def _end(self, now: int) -> None:
        for connection in [live for live in self._live.values() if live.close_if_over(now)]:
            del self._live[connection.end]

    def _act(self, expected: int) -> None:
        now = time.monotonic_ns()
        if now - expected > STALL:
            for connection in self._live.values():
                connection.stall = max(connection.stall, now - expected)
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()


def _stage(how: Parameters) -> Stage:
    settings = (how.restart, how.trains, how.compressed)
    if settings not in _stages:
        _stages[settings] = Stage(len(_stages), *settings)
    return _stages[settings]
