"""UDP packets that measure the link box: how long one takes, how far apart those of a burst come, how many pass."""

import math
import socket
import struct
import time
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.inside.commands import command
from firstflight.engines.emulate.inside.devices import DEVICE
from firstflight.engines.emulate.inside.exchange import SO_TIMESTAMPNS, arrivals
from firstflight.engines.emulate.inside.testbed import Testbed

_PORT = 9
# IP and UDP.
_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
_UDP_SEGMENT = 103
# Segments that one call sends, as many as fit into the largest packet of which the kernel makes them.
_FLOOD_SEGMENTS = 43
# Of a paced flood.
_BURST_S = 0.001


@command
def probe_packets(
    testbed: Testbed,
    client: str,
    server: str,
    packet_bytes: int,
    burst: int,
    bursts: int,
    interval_s: float,
    patience_s: float = 2.0,
    at_once: bool = False,
) -> dict[str, Any]:
    """Send bursts from one host to another, one every `interval_s`, packets of `packet_bytes` at IP level, and wait
    `patience_s` for the last. `at_once`: a burst by one system call (at most 64 kB), for lines on which a packet takes
    less time than a call.

    Answers when each was sent and when the other kernel received it, both in ns since 1970: {"sent": [...],
    "received": [...]}, null for one that did not arrive.
    """
    sender, receiver = _sockets(testbed, client, server)
    payload_bytes = packet_bytes - _HEADERS[testbed.host(server).family]
    sent: list[int] = []
    received: list[int | None] = [None] * (burst * bursts)
    padding = bytes(payload_bytes - 4)
    with sender, receiver:
        if at_once:
            sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload_bytes)
        due = time.monotonic()
        for _ in range(bursts):
            due += interval_s
            time.sleep(max(0.0, due - time.monotonic()))
            payloads = [struct.pack("<I", len(sent) + number) + padding for number in range(burst)]
            for payload in [b"".join(payloads)] if at_once else payloads:
                sent.extend([time.time_ns()] * (len(payload) // len(payloads[0])))
                sender.send(payload)
            _collect(receiver, received)
        deadline = time.monotonic() + patience_s
        while received[-1] is None and time.monotonic() < deadline:
            time.sleep(0.01)
            _collect(receiver, received)
    return {"sent": sent, "received": received}


@command
def flood(
    testbed: Testbed, client: str, server: str, packet_bytes: int, duration_s: float, rate_bps: float | None = None
) -> int:
    """Send as many packets as possible, or at a rate in bursts of a millisecond; returns their number."""
    sender, receiver = _sockets(testbed, client, server)
    payload_bytes = packet_bytes - _HEADERS[testbed.host(server).family]
    in_a_burst = (rate_bps or math.inf) * _BURST_S / (8 * packet_bytes)
    segments = int(min(max(in_a_burst, 1), _FLOOD_SEGMENTS))
    interval_s = 8 * packet_bytes * segments / rate_bps if rate_bps else 0.0
    payload = bytes(payload_bytes * segments)
    sent = 0
    with sender, receiver:
        sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload_bytes)
        sender.setblocking(True)
        due = time.monotonic()
        end = due + duration_s
        while time.monotonic() < end:
            try:
                sender.send(payload)
                sent += segments
            except OSError:
                # No room in the device's queue, which is where the packets are to come from.
                time.sleep(0)
            due += interval_s
            if rate_bps:
                time.sleep(max(0.0, due - time.monotonic()))
    return sent


@command
def device_drops(testbed: Testbed) -> dict[str, int]:
    """Packets that each host's device dropped, either way, since it was made."""
    return {name: host.namespace.call(_drops) for name, host in testbed.hosts.items()}


def _sockets(testbed: Testbed, client: str, server: str) -> tuple[socket.socket, socket.socket]:
    def listening() -> socket.socket:
        receiver = socket.socket(testbed.host(server).family, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind((testbed.host(server).address, _PORT))
        return receiver

    def sending() -> socket.socket:
        sender = socket.socket(testbed.host(server).family, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        sender.connect((testbed.host(server).address, _PORT))
        return sender

    receiver = testbed.host(server).namespace.call(listening)
    return testbed.host(client).namespace.call(sending), receiver


def _collect(receiver: socket.socket, received: list[int | None]) -> None:
    for payload, stamp in arrivals(receiver):
        received[struct.unpack_from("<I", payload)[0]] = stamp


def _drops() -> int:
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == DEVICE:
            columns = numbers.split()
            return int(columns[3]) + int(columns[11])
    return 0
