"""The scenario's applications as real programs: a thread a client, which starts curl when the scenario says so, or has
our own TCP fetch, and a program for streams of datagrams: calls, games and constant rates.

Requests and their times are drawn as in the simulator (`..draws`); the measured times are from curl's or our own clock.
"""

import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.inside import exchange
from firstflight.engines.emulate.inside.clients import Fetched, Fetcher, Target, TimedClient
from firstflight.engines.emulate.inside.processes import ending
from firstflight.engines.emulate.inside.servers import PORT, Server
from firstflight.engines.emulate.inside.testbed import Host, Testbed
from firstflight.errors import MachineError, RequestError

# Clients begin so long after the replicate's clock, for their threads to be there.
_AHEAD_S = 0.02
# Below, there is no time left in which a transfer could be asked for.
_LEAST_S = 0.002
# Long enough for every server.
_ANY_FLIGHT = 4096


@dataclass
class Seen:
    """The clients' observations in one replicate. Times are seconds since `origin_s` of CLOCK_MONOTONIC, or since a
    start.
    """

    origin_s: float
    end_s: float
    transfers: list[dict[str, Any]] = field(default_factory=list)
    pages: list[dict[str, Any]] = field(default_factory=list)
    streams: list[dict[str, Any]] = field(default_factory=list)

    def left(self) -> float:
        """Seconds until the end of the run."""
        return self.end_s - time.monotonic()

    def sleep_until(self, at_s: float) -> bool:
        """Wait for a time of the run; False immediately if it will be over by then."""
        at = self.origin_s + at_s
        if at >= self.end_s - _LEAST_S:
            return False
        time.sleep(max(0.0, at - time.monotonic()))
        return True

    def now(self) -> float:
        """Seconds since the origin."""
        return time.monotonic() - self.origin_s


@dataclass(frozen=True)
class Client:
    """One client over TCP: its place, its draws, and how it reaches a server."""

    plan: dict[str, Any]
    index: int
    host: str
    fetcher: Fetcher
    draws: Draws
    servers: tuple[tuple[str, str, Server], ...]
    seen: Seen
    opened: Iterator[int] = field(default_factory=count)

    def run(self) -> None:
        """Run the application until its count or the run's end."""
        if not self.seen.sleep_until(self.draws.seconds(self.plan["start"], "start", 0)):
            return
        kinds: dict[str, Callable[[Client], Generator[float, None, None]]] = {
            "file_transfer": _files,
            "web_page": _pages,
            "request_response": _exchanges,
        }
        with closing(kinds[self.plan["kind"]](self)) as pauses:
            for pause in pauses:
                if self.seen.left() <= _LEAST_S or not self.seen.sleep_until(self.seen.now() + pause):
                    return

    def numbers(self) -> Iterator[int]:
        """Of the files, pages or requests to come, as long as there is time."""
        count = self.plan["count"]
        number = 0
        while (count is None or number < count) and self.seen.left() > _LEAST_S:
            yield number
            number += 1

    def target(self, size: int, index: int) -> tuple[str, Target]:
        """Server host, and where a file of that size is there; `index` numbers the client's connections."""
        host, address, server = self.servers[self.draws.server(self.plan["server_choice"], len(self.servers), index)]
        return host, (address, server.path(size, self.plan["response_header_bytes"]))

    def fetch(self, objects: Sequence[tuple[int, int, int]], page: int | None) -> list[Fetched]:
        """Fetch objects concurrently, each (number, size, index of its connection), and note each transfer."""
        targets = [self.target(size, index) for _, size, index in objects]
        plan = self.plan
        if "handshakes" in plan:
            over = [self.over(host, size) for (host, _), (_, size, _) in zip(targets, objects, strict=True)]
            plan = plan | {"over": over, "connection": None}
        fetched = []
        within = self.seen.left()
        if within <= _LEAST_S:
            return []
        for response in self.fetcher.fetch(plan, [target for _, target in targets], within):
            number, size, _ = objects[response.number]
            self.note(targets[response.number][0], size, page, number, response)
            fetched.append(response)
        return fetched

    def over(self, host: str, size: int) -> dict[str, Any]:
        """What `clients.TimedClient` is told about a request over a new connection."""
        if "handshakes" not in self.plan:
            return {"name": "", "port": PORT, "hello_bytes": 0, "resumed": False, "response_bytes": size}
        kind, flights = self.draws.handshake(self.plan["handshakes"]["kinds"], next(self.opened))
        resumed = kind.get("resumption", "none") != "none"
        server = next(server for name, _, server in self.servers if name == host)
        # A server that resumes looks at no certificate.
        name, port = server.named(_ANY_FLIGHT if resumed else flights[1], self.plan["is_real"])
        return {
            "name": name,
            "port": port,
            "hello_bytes": flights[0],
            "server_bytes": flights[1],
            "resumed": resumed,
            "response_bytes": size,
        }

    def note(self, server: str, size: int, page: int | None, number: int, fetched: Fetched) -> None:
        """A row of `transfers`, as far as the client knows it."""
        header = self.plan["response_header_bytes"]
        self.seen.transfers.append(
            {
                "application": self.plan["name"],
                "client": self.index,
                "page": page,
                "object": number,
                "host": self.host,
                "server": server,
                "port": fetched.port,
                "start_s": fetched.start_s - self.seen.origin_s,
                "handshake_time_s": fetched.connect_s or None,
                "first_byte_time_s": fetched.first_byte_s or None,
                "completion_time_s": fetched.total_s if fetched.completed else None,
                "ended_s": fetched.start_s + fetched.total_s - self.seen.origin_s,
                "bytes": size + header,
                "delivered_bytes": fetched.body_bytes + (fetched.header_bytes if header else 0),
                "response_bytes": fetched.body_bytes + fetched.header_bytes
                if fetched.received_bytes is None
                else fetched.received_bytes,
                "tls_handshake_time_s": fetched.secured_s or None,
                "first_usable_byte_time_s": fetched.usable_s or None,
                "client_bytes": fetched.client_bytes,
                "server_bytes": fetched.server_bytes,
                "resumption": int(fetched.resumed),
                "over_tls": "handshakes" in self.plan,
                "completed": int(fetched.completed),
                "over_quic": "quic" in self.plan,
            }
        )


def run_at_once(clients: Iterable[Callable[[], object]], at_most: int) -> None:
    """Runs all clients, so many concurrently, until all are done. Raises the first error of one of them."""
    with ThreadPoolExecutor(at_most) as threads:
        for done in as_completed([threads.submit(client) for client in clients]):
            done.result()


def clock(duration_s: float) -> Seen:
    """The clock of a replicate that begins now."""
    origin = time.monotonic() + _AHEAD_S
    return Seen(origin, origin + duration_s)


def _files(client: Client) -> Generator[float, None, None]:
    for number in client.numbers():
        size = client.draws.size(client.plan["size"], "response_size", number)
        client.fetch([(0, size, number)], None)
        yield client.draws.seconds(client.plan["gap"], "think", number + 1)


def _pages(client: Client) -> Generator[float, None, None]:
    plan, draws = client.plan, client.draws
    for page in client.numbers():
        inline = draws.inline_objects(plan["inline_count"], page)
        laws = [plan["primary"]] + [plan["inline"]] * inline
        indices = [page << 20 | number for number in range(inline + 1)]
        sizes = [draws.size(law, "response_size", index) for law, index in zip(laws, indices, strict=True)]
        objects = list(zip(range(inline + 1), sizes, indices, strict=True))
        if plan["version"] == "1.1":
            # RFC 2415's rough model of a persistent connection: all objects as one response.
            objects = [(0, sum(sizes), indices[0])]
        began = client.seen.now()
        primary = client.fetch(objects[:1], page)
        fetched = list(primary)
        if primary and primary[0].completed:
            fetched += _inline(client, objects[1:], page)
        _note_page(client, page, 1 + inline, objects, fetched, began)
        yield draws.seconds(plan["think"], "think", page)


def _inline(client: Client, objects: list[tuple[int, int, int]], page: int) -> list[Fetched]:
    """In-line objects: all by one curl, or this number at a time, each by its own curl."""
    parallel = client.plan["parallel"] or len(objects)
    if not objects:
        return []
    if parallel >= len(objects):
        return client.fetch(objects, page)
    fetched: list[Fetched] = []

    def fetch(item: tuple[int, int, int]) -> None:
        fetched.extend(client.fetch([item], page))

    run_at_once([partial(fetch, item) for item in objects], parallel)
    return fetched


def _note_page(
    client: Client, page: int, count: int, objects: list[tuple[int, int, int]], fetched: list[Fetched], began: float
) -> None:
    start = fetched[0].start_s - client.seen.origin_s if fetched else began
    completed = len(fetched) == len(objects) and all(response.completed for response in fetched)
    end = max((response.start_s + response.total_s for response in fetched), default=math.nan) - client.seen.origin_s
    header = client.plan["response_header_bytes"]
    client.seen.pages.append(
        {
            "application": client.plan["name"],
            "client": client.index,
            "page": page,
            "start_s": start,
            "connect_time_s": (fetched[0].connect_s or None) if fetched else None,
            "completion_time_s": end - start if completed else None,
            "objects": count,
            "bytes": sum(size + header for _, size, _ in objects[: len(fetched)]),
            "completed": int(completed),
        }
    )


def _exchanges(client: Client) -> Generator[float, None, None]:
    """Requests in turn on one connection, by our own client: curl cannot wait between two."""
    plan, draws = client.plan, client.draws
    assert isinstance(client.fetcher, TimedClient)
    over: dict[str, Any] = {}
    connection = f"{plan['name']} {client.index}"
    try:
        for number in client.numbers():
            size = draws.size(plan["response"], "response_size", number)
            asked = draws.size(plan["request"], "request_size", number)
            host, target = client.target(size, 0)
            over = (over or client.over(host, size)) | {"response_bytes": size}
            more = {"over": [over], "connection": connection, "request_bytes": asked}
            for response in client.fetcher.fetch(plan | more, [target], max(client.seen.left(), 0.0)):
                client.note(host, size, None, number, response)
            yield draws.seconds(plan["think"], "think", number)
    finally:
        client.fetcher.leave(connection)


class StreamClient:
    """One client of such an application, and its server's end. Its program is there before the replicate begins."""

    def __init__(self, testbed: Testbed, plan: dict[str, Any], index: int, host: str, draws: Draws) -> None:
        """`plan`: with "flows", as `_native.datagram_flows` has them."""
        self._plan = plan
        self._index = index
        self._draws = draws
        server = plan["servers"][draws.server(plan["server_choice"], len(plan["servers"]), 0)]
        hosts = testbed.host(host), testbed.host(server)
        # Other headers of a stream are filler in its payload.
        self._header_bytes = exchange.HEADER_BYTES[hosts[0].family]
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
        request = {"streams": [self._stream(flow, origin_ns) for flow in flows], "patience_s": patience_s}
        output, _ = self._program.communicate(json.dumps(request).encode() + b"\n")
        for end in self._ends:
            end.close()
        if self._program.returncode:
            name = self._plan["name"]
            raise MachineError(f"the program of {name} ended unasked: {ending(self._program.returncode)}")
        times = json.loads(output)
        end_ns = round(seen.end_s * 1e9)
        for flow, sent, arrived in zip(flows, times["sent"], times["arrived"], strict=True):
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

    def _stream(self, flow: dict[str, Any], origin_ns: int) -> dict[str, Any]:
        client, server = self._ends
        source, target = (server, client) if flow["from_server"] else (client, server)
        more = flow["header_bytes"] - self._header_bytes
        sizes = [size + more for size in flow["sizes"]]
        least, most = exchange.MARK_BYTES, self._most_bytes
        for size in sizes:
            if not least <= size <= most:
                raise RequestError(
                    f"application.{self._plan['name']}: a datagram carries {size} B, and the emulator's carry {least} "
                    f"to {most} B; change its payload, or use simulate"
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
    end = exchange.opened(host.family)
    end.bind((host.address, 0))
    return end
