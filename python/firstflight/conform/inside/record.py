"""Records connections of the kernel, many at a time, in one loop: the actions of each endpoint, in order of time."""

import contextlib
import heapq
import os
import select
import socket
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Literal

from firstflight.conform.inside.connection import Connection
from firstflight.conform.inside.stage import Stage, settings_found, tick_clock
from firstflight.conform.packet import parse
from firstflight.conform.parameters import Parameters, from_table
from firstflight.conform.peer import MS
from firstflight.engines.emulate.inside.commands import command, kernel
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError

# Connections at a time, and how far apart they begin.
_AT_ONCE, _APART = 300, 12 * MS
# The loop was late by this time: the machine may have affected the recording meanwhile.
STALL = 3 * MS

_stages: dict[tuple[bool, bool, bool], Stage] = {}
_addresses = count(1)


@command
def examine_kernel(testbed: Testbed) -> dict[str, Any]:
    """The recorded system, and whether recording is possible here."""
    return {"kernel": kernel()} | settings_found()


@command
def record(testbed: Testbed, connections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records connections with these parameters, in their order.

    Each: `events`, lists of a kind, a time in ns of CLOCK_MONOTONIC, and a content; `tick_ns` and `clock_ns`, the
    units that the kernel's timers count in and how far that clock is ahead; `stall_ns`, the longest delay of the
    recorder.
    """
    return Recorder([from_table(table) for table in connections]).run()


class Recorder:
    """The loop. Times are CLOCK_MONOTONIC in ns."""

    def __init__(self, parameters: list[Parameters]) -> None:
        self._all = [Connection(self, how, _stage(how), next(_addresses)) for how in parameters]
        self._waiting = self._all[::-1]
        self._live: dict[tuple[bytes, int], Connection] = {}
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
                "events": sorted(one.events, key=lambda e: e[1]),
                "tick_ns": tick,
                "clock_ns": ahead,
                "stall_ns": one.stall,
            }
            for one in self._all
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
            here = (one for one in self._all if one.stage is stage)
            stage.set_routes(action, [(one.address, one.how) for one in here])

    def _end(self, now: int) -> None:
        for connection in [one for one in self._live.values() if one.close_if_over(now)]:
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
