"""The scenario's streams of datagrams: calls, games and constant rates, between a client's host and its server's."""

import json
import socket
import subprocess
import sys
from typing import Any

from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.inside import exchange
from firstflight.engines.emulate.inside.applications import Seen
from firstflight.engines.emulate.inside.processes import ending
from firstflight.engines.emulate.inside.testbed import Host, Testbed
from firstflight.errors import MachineError, RequestError

# IP and UDP; other headers of a stream are filler in its payload.
_HEADER_BYTES = {socket.AF_INET: 28, socket.AF_INET6: 48}
_BUFFER_BYTES = 1 << 22


class StreamClient:
    """One client of such an application, and its server's end. Its program is there before the replicate begins."""

    def __init__(self, testbed: Testbed, plan: dict[str, Any], index: int, host: str, draws: Draws) -> None:
        """`plan`: with "flows", as `_native.datagram_flows` has them."""
        self._plan = plan
        self._index = index
        self._draws = draws
        server = plan["servers"][draws.server(plan["server_choice"], len(plan["servers"]), 0)]
        hosts = testbed.host(host), testbed.host(server)
        self._header_bytes = _HEADER_BYTES[hosts[0].family]
        self._most_bytes = testbed.mtu - self._header_bytes
        self._ends = [end.namespace.call(_open, end) for end in hosts]
        command = [sys.executable, "-I", exchange.__file__]
        keeps = [end.fileno() for end in self._ends]
        self._program = hosts[0].namespace.spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=keeps)

    def ready(self) -> None:
        """Wait for the program."""
        assert self._program.stdout is not None
        self._program.stdout.readline()

    def run(self, seen: Seen, patience_s: float) -> None:
        """Send to the end of the run, and add each stream to `seen`; datagrams in flight then have `patience_s` to
        arrive.

        Datagrams that arrive after the end count as neither received nor lost. RequestError for a size that the
        emulator cannot send, MachineError if the program fails.
        """
        start = self._draws.seconds(self._plan["start"], "start", 0)
        flows = [flow | self._sizes(flow, start, seen.end_s - seen.origin_s) for flow in self._plan["flows"]]
        origin_ns = round(seen.origin_s * 1e9)
        told = {"streams": [self._told(flow, origin_ns) for flow in flows], "patience_s": patience_s}
        output, _ = self._program.communicate(json.dumps(told).encode() + b"\n")
        for end in self._ends:
            end.close()
        if self._program.returncode:
            name = self._plan["name"]
            raise MachineError(f"the program of {name} ended unasked: {ending(self._program.returncode)}")
        found = json.loads(output)
        end_ns = round(seen.end_s * 1e9)
        for flow, sent, arrived in zip(flows, found["sent"], found["arrived"], strict=True):
            seen.streams.append(
                {
                    "application": self._plan["number"],
                    "arm": self._plan["arm"],
                    "client": self._index,
                    "from_server": flow["from_server"],
                    "sent": list(zip((at - origin_ns for at in sent), flow["sizes"], strict=True)),
                    "arrived": [(number, at - origin_ns) for number, at in arrived if at <= end_ns],
                    "lost": len(sent) - len({number for number, _ in arrived}),
                }
            )

    def _sizes(self, flow: dict[str, Any], start_s: float, end_s: float) -> dict[str, Any]:
        """When the stream begins, in ns of the run, and the payload of each datagram, drawn as the simulator does."""
        interval, start, end = flow["interval_ns"], round(start_s * 1e9), round(end_s * 1e9)
        if flow["at_ticks"]:
            start = -(-start // interval) * interval
        if flow["length_ns"] is not None:
            end = min(end, start + flow["length_ns"])
        purpose = "response_size" if flow["from_server"] else "request_size"
        numbers = range(max(0, -(-(end - start) // interval)))
        sizes = [self._draws.size(flow["payload"], purpose, number) for number in numbers]
        return {"start_ns": start, "sizes": sizes}

    def _told(self, flow: dict[str, Any], origin_ns: int) -> dict[str, Any]:
        client, server = self._ends
        source, target = (server, client) if flow["from_server"] else (client, server)
        more = flow["header_bytes"] - self._header_bytes
        sizes = [size + more for size in flow["sizes"]]
        least, most = exchange.MARK_BYTES, self._most_bytes
        for size in sizes:
            if not least <= size <= most:
                raise RequestError(
                    f"application.{self._plan['name']}: a datagram carries {size} B, and the emulator's carry at least "
                    f"{least} B, to be told apart, and {most} B at most; change its payload, or use simulate"
                )
        return {
            "from": source.fileno(),
            "to": target.fileno(),
            "address": target.getsockname(),
            "start_ns": origin_ns + flow["start_ns"],
            "interval_ns": flow["interval_ns"],
            "sizes": sizes,
        }


def _open(host: Host) -> socket.socket:
    end = socket.socket(host.family, socket.SOCK_DGRAM)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        end.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER_BYTES)
    end.bind((host.address, 0))
    return end
