"""One recorded connection: the kernel's end with its application, and the wire of the scripted peer."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from firstflight.conform.inside.stage import ADDRESS, PORT, Stage
from firstflight.conform.packet import ACK, CWR, ECE, SYN, Packet, ack_options, build, syn_options
from firstflight.conform.parameters import Parameters
from firstflight.conform.peer import MS, Receiver, Sender

# Of a connection: so long, and so many round trips more.
_LONGEST, _ROUNDS = 8_000 * MS, 10
# After the last byte: long enough for a delayed ACK or a probe.
_AFTERWARDS = 350 * MS
_PEER_PORT, _ISN = 40_000, 0
_SERVER_END = socket.inet_aton(ADDRESS), PORT


class Loop(Protocol):
    """The interface of the loop for a connection."""

    def later(self, when: int, action: Callable[[], None]) -> None:
        """Call it then."""

    def inject(self, stage: Stage, packet: bytes) -> None:
        """A packet for the kernel; its immediate answer is recorded."""

    def drain(self) -> None:
        """Pass each connection its captured packets."""

    def accepted(self, stage: Stage, end: tuple[bytes, int]) -> socket.socket | None:
        """The application's socket."""


class Connection:
    """One recorded connection, and the wire of its scripted peer."""

    def __init__(self, loop: Loop, parameters: Parameters, stage: Stage, number: int) -> None:
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
        kind = Receiver if parameters.direction == "sender" else Sender
        self._peer: Receiver | Sender = kind(parameters, self)

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
