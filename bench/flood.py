"""A command of a testbed for `bench/linkbox.py`, which its first process reads from this file."""

import math
import socket
import time

from firstflight.engines.emulate.inside.commands import UDP_SEGMENT, command, sockets
from firstflight.engines.emulate.inside.exchange import HEADER_BYTES
from firstflight.engines.emulate.inside.testbed import Testbed

# Segments that one call sends, as many as fit into the largest packet of which the kernel makes them.
_FLOOD_SEGMENTS = 43
# Of a paced flood.
_BURST_S = 0.001


@command
def flood(
    testbed: Testbed, client: str, server: str, packet_bytes: int, duration_s: float, rate_bps: float | None = None
) -> int:
    """Send as many packets as possible, or at a rate in bursts of a millisecond; returns their number."""
    sender, receiver = sockets(testbed, client, server)
    payload_bytes = packet_bytes - HEADER_BYTES[testbed.host(server).family]
    in_a_burst = (rate_bps or math.inf) * _BURST_S / (8 * packet_bytes)
    segments = int(min(max(in_a_burst, 1), _FLOOD_SEGMENTS))
    interval_s = 8 * packet_bytes * segments / rate_bps if rate_bps else 0.0
    payload = bytes(payload_bytes * segments)
    sent = 0
    with sender, receiver:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload_bytes)
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
