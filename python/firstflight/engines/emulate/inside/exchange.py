"""Sends datagrams between two hosts by a timetable, and notes when each left and when it arrived.

It runs as a separate program, so that no other thread delays its clock, and has the sockets of both hosts, each
opened in its namespace, so that one clock gives both endpoints' times:

    python -I exchange.py

It writes a line when it is there, reads from a line of stdin

    {"streams": [{"from", "to": descriptors, "address", "start_ns", "interval_ns", "sizes": [bytes]}], "patience_s"}

and writes {"sent": [[ns]], "arrived": [[[number, ns]]]}, a list a stream. Times are of CLOCK_MONOTONIC. A datagram
carries its stream and number, so `sizes` must be MARK_BYTES at least.
"""

import heapq
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

_MARK = struct.Struct("<II")
MARK_BYTES = _MARK.size
# IP and UDP.
HEADER_BYTES = {socket.AF_INET: 28, socket.AF_INET6: 48}
_BUFFER_BYTES = 1 << 22
# asm-generic/socket.h; Python has no name for it.
_SO_TIMESTAMPNS = 35
_MAX_BYTES = 1 << 16


class _Exchange:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._streams = plan["streams"]
        self._patience_s = plan["patience_s"]
        ends = {stream[which] for stream in self._streams for which in ("from", "to")}
        self._sockets = {fd: socket.socket(fileno=fd) for fd in ends}
        self.sent: list[list[int]] = [[] for _ in self._streams]
        self.arrived: list[list[tuple[int, int]]] = [[] for _ in self._streams]

    def run(self) -> None:
        """Send all datagrams, then receive until all have arrived or the patience is over."""
        due = [(stream["start_ns"], number) for number, stream in enumerate(self._streams) if stream["sizes"]]
        heapq.heapify(due)
        while due:
            at, stream = due[0]
            self._receive((at - time.monotonic_ns()) / 1e9)
            if time.monotonic_ns() >= at:
                self._send(stream)
                left = len(self.sent[stream]) < len(self._streams[stream]["sizes"])
                following = (at + self._streams[stream]["interval_ns"], stream)
                heapq.heapreplace(due, following) if left else heapq.heappop(due)
        deadline = time.monotonic() + self._patience_s
        while (left_s := deadline - time.monotonic()) > 0:
            distinct = [len({number for number, _ in stream}) for stream in self.arrived]
            if distinct == [len(sent) for sent in self.sent]:
                return
            self._receive(left_s)

    def _send(self, stream: int) -> None:
        plan, number = self._streams[stream], len(self.sent[stream])
        payload = _MARK.pack(stream, number).ljust(plan["sizes"][number], b"\0")
        self.sent[stream].append(time.monotonic_ns())
        self._sockets[plan["from"]].sendto(payload, tuple(plan["address"]))

    def _receive(self, within_s: float) -> None:
        readable, _, _ = select.select(self._sockets.values(), [], [], max(0.0, within_s))
        for end in readable:
            for payload, stamp in arrivals(end):
                stream, number = _MARK.unpack_from(payload)
                # The kernel stamps by the wall clock, which may be set during a run.
                self.arrived[stream].append((number, time.monotonic_ns() - (time.time_ns() - stamp)))


def opened(family: socket.AddressFamily) -> socket.socket:
    """A socket of the calling thread's namespace for datagrams, whose arrivals the kernel stamps."""
    end = socket.socket(family, socket.SOCK_DGRAM)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        end.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return end


def arrivals(end: socket.socket) -> Iterator[tuple[bytes, int]]:
    """Payloads that have arrived at a socket of `opened`, each with the kernel's time stamp, ns since 1970."""
    while True:
        try:
            payload, notes, _, _ = end.recvmsg(_MAX_BYTES, 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        for level, kind, data in notes:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                yield payload, seconds * 1_000_000_000 + nanoseconds


def main() -> None:
    """One timetable."""
    print(flush=True)
    exchange = _Exchange(json.loads(sys.stdin.readline()))
    exchange.run()
    print(json.dumps({"sent": exchange.sent, "arrived": exchange.arrived}))


if __name__ == "__main__":
    main()
