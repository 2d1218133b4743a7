"""The scenario's applications as real programs: a thread a client, which starts curl when the scenario says so, or has
our own TCP fetch.

Requests and their times are drawn as in the simulator (`..draws`); the measured times are from curl's or our own clock.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.inside import curl
from firstflight.engines.emulate.inside.clients import Fetcher, TimedClient
from firstflight.engines.emulate.inside.curl import Fetched
from firstflight.engines.emulate.inside.nginx import PORT
from firstflight.engines.emulate.inside.servers import Server

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
        kinds: dict[str, Callable[[Client], Iterator[float]]] = {
            "file_transfer": _files,
            "web_page": _pages,
            "request_response": _exchanges,
        }
        pauses = kinds[self.plan["kind"]](self)
        try:
            for pause in pauses:
                if self.seen.left() <= _LEAST_S or not self.seen.sleep_until(self.seen.now() + pause):
                    return
        finally:
            pauses.close()  # type: ignore[attr-defined]

    def numbers(self) -> Iterator[int]:
        """Of the files, pages or requests to come, as long as there is time."""
        count = self.plan["count"]
        number = 0
        while (count is None or number < count) and self.seen.left() > _LEAST_S:
            yield number
            number += 1

    def target(self, size: int, index: int) -> tuple[str, curl.Target]:
        """Server host, and where a file of that size is there; `index` numbers the client's connections."""
        host, address, server = self.servers[self.draws.server(self.plan["server_choice"], len(self.servers), index)]
        return host, (address, server.path(size, self.plan["response_header_bytes"]))

    def fetch(self, objects: Sequence[tuple[int, int, int]], page: int | None) -> list[Fetched]:
        """Fetch objects concurrently, each (number, size, index of its connection), and note each transfer."""
        found = [self.target(size, index) for _, size, index in objects]
        plan = self.plan
        if "handshakes" in plan:
            over = [self.over(host, size) for (host, _), (_, size, _) in zip(found, objects, strict=True)]
            plan = plan | {"over": over, "connection": None}
        fetched = []
        within = self.seen.left()
        if within <= _LEAST_S:
            return []
        for one in self.fetcher.fetch(plan, [target for _, target in found], within):
            number, size, _ = objects[one.number]
            self.note(found[one.number][0], size, page, number, one)
            fetched.append(one)
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

    def note(self, server: str, size: int, page: int | None, number: int, one: Fetched) -> None:
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
                "port": one.port,
                "start_s": one.start_s - self.seen.origin_s,
                "handshake_time_s": one.connect_s or None,
                "first_byte_time_s": one.first_byte_s or None,
                "completion_time_s": one.total_s if one.completed else None,
                "ended_s": one.start_s + one.total_s - self.seen.origin_s,
                "bytes": size + header,
                "delivered_bytes": one.body_bytes + (one.header_bytes if header else 0),
                "response_bytes": one.body_bytes + one.header_bytes
                if one.received_bytes is None
                else one.received_bytes,
                "tls_handshake_time_s": one.secured_s or None,
                "first_usable_byte_time_s": one.usable_s or None,
                "client_bytes": one.client_bytes,
                "server_bytes": one.server_bytes,
                "resumption": int(one.resumed),
                "over_tls": "handshakes" in self.plan,
                "completed": int(one.completed),
                "over_quic": "quic" in self.plan,
            }
        )


def run_at_once(clients: Sequence[Callable[[], None]]) -> None:
    """Runs all clients concurrently until all are done. Raises the first error of one of them."""
    errors: list[BaseException] = []

    def work(client: Callable[[], None]) -> None:
        try:
            client()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def clock(duration_s: float) -> Seen:
    """The clock of a replicate that begins now."""
    origin = time.monotonic() + _AHEAD_S
    return Seen(origin, origin + duration_s)


def _files(client: Client) -> Iterator[float]:
    for number in client.numbers():
        size = client.draws.size(client.plan["size"], "response_size", number)
        client.fetch([(0, size, number)], None)
        yield client.draws.seconds(client.plan["gap"], "think", number + 1)


def _pages(client: Client) -> Iterator[float]:
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
    """In-line objects: all together by one curl, or this number concurrently, each by its own curl when one before has
    ended.
    """
    parallel = client.plan["parallel"] or len(objects)
    if not objects:
        return []
    if parallel >= len(objects):
        return client.fetch(objects, page)
    fetched: list[Fetched] = []
    errors: list[BaseException] = []
    waiting = iter(objects)
    lock = threading.Lock()

    def work() -> None:
        try:
            while True:
                with lock:
                    one = next(waiting, None)
                if one is None:
                    return
                fetched.extend(client.fetch([one], page))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return fetched


def _note_page(
    client: Client, page: int, count: int, objects: list[tuple[int, int, int]], fetched: list[Fetched], began: float
) -> None:
    start = fetched[0].start_s - client.seen.origin_s if fetched else began
    completed = len(fetched) == len(objects) and all(one.completed for one in fetched)
    end = max((one.start_s + one.total_s for one in fetched), default=math.nan) - client.seen.origin_s
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


def _exchanges(client: Client) -> Iterator[float]:
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
            for one in client.fetcher.fetch(plan | more, [target], max(client.seen.left(), 0.0)):
                client.note(host, size, None, number, one)
            yield draws.seconds(plan["think"], "think", number)
    finally:
        client.fetcher.leave(connection)
