"""The program that fetches on a client host: curl over the host's kernel, or our own TCP."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from firstflight.engines.emulate.inside import curl, timed
from firstflight.engines.emulate.inside.curl import Fetched, Target, padded
from firstflight.engines.emulate.inside.nginx import NEAR_BYTES, PORT
from firstflight.engines.emulate.inside.processes import Namespace, Watched
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.engines.emulate.inside.wire import WireHost
from firstflight.errors import MachineError

# Our client reports a transfer after its timeout by itself; the additional time that this may take.
_PATIENCE_S = 20.0


class Fetcher(Protocol):
    """The client of one host."""

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """Fetch all targets concurrently, each over its own connection; yields each as soon as it ended.

        `plan`: the application's; of it, "request_bytes", 0 for as few as it takes. RequestError if it takes more.
        """
        ...


class KernelClient:
    """Curl in the host's namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "no_delay" too."""
        yield from curl.fetch(self._namespace, targets, plan["request_bytes"], plan["no_delay"], within_s)


class TimedClient:
    """`timed` in the host's namespace, for all threads that fetch over TLS, or ask in turn, from there."""

    def __init__(self, namespace: Namespace, kind: str, on_death: Callable[[str], None]) -> None:
        command = [sys.executable, "-I", str(Path(timed.__file__)), kind]
        said = os.memfd_create("client")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
        self._program = namespace.spawn(command, **pipes)
        Watched(f"the client on host {namespace.name}", self._program, on_death, said)
        self._numbers = count()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._deliver, name=f"responses to {namespace.name}", daemon=True).start()

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "no_delay" too, "connection" as `timed` has it, and for each target in "over" what
        `timed` is told about its handshake, its "server_bytes", and "response_bytes".
        """
        responses: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        begun = {}
        for place, ((address, path), over) in enumerate(zip(targets, plan["over"], strict=True)):
            number = next(self._numbers)
            begun[number] = place
            asked = over | {
                "number": number,
                "connection": plan["connection"],
                "address": address,
                "no_delay": plan["no_delay"],
                "path": padded(address, path, plan["request_bytes"]),
                "within_s": within_s,
            }
            self._waiting[number] = responses
            self._tell(asked)
        for _ in targets:
            try:
                told = responses.get(timeout=within_s + _PATIENCE_S)
            except queue.Empty:
                raise MachineError("the client does not report the result of a transfer") from None
            place = begun[told["number"]]
            if reason := told.pop("reason", None):
                raise MachineError(f"TLS failed: {reason}")
            _check(told, plan["over"][place])
            yield Fetched(**told | {"number": place})

    def leave(self, connection: str) -> None:
        """Close a connection that was kept."""
        self._tell({"connection": connection, "path": None})

    def _tell(self, line: Mapping[str, Any]) -> None:
        assert self._program.stdin is not None
        with self._lock:
            self._program.stdin.write(json.dumps(line).encode() + b"\n")
            self._program.stdin.flush()

    def _deliver(self) -> None:
        """Hand each response to the thread that asked for it."""
        assert self._program.stdout is not None
        for line in self._program.stdout:
            told = json.loads(line)
            self._waiting.pop(told["number"]).put(told)


def _check(told: Mapping[str, Any], over: Mapping[str, Any]) -> None:
    """MachineError if the server's flight on the wire was not the scenario's."""
    if not told["secured_s"] or told["connect_s"] is None:
        return
    if told["resumed"] != over["resumed"]:
        raise MachineError("tls: the server did not resume a connection as the scenario wants it")
    if not over["resumed"] and abs(told["server_bytes"] - over["server_bytes"]) > NEAR_BYTES:
        raise MachineError(
            f"tls: the server's flight should have {over['server_bytes']} bytes and had {told['server_bytes']}"
        )


class OurClient:
    """Our own TCP with its own HTTP, for all threads that fetch from this host."""

    def __init__(self, testbed: Testbed, host: str) -> None:
        target = testbed.host(host)
        self._host = host
        self._wire = WireHost({"address": target.address, "mtu": testbed.mtu}, target.namespace.spawn, testbed.on_death)
        testbed.raise_priority(self._wire.pid)
        self._numbers = count()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        threading.Thread(target=self._deliver, name=f"responses to {host}", daemon=True).start()

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "client_profile" too: the complete TCP profile of these connections."""
        responses: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        begun: dict[int, tuple[int, int]] = {}
        deadline = time.monotonic() + within_s
        for place, (address, path) in enumerate(targets):
            number = next(self._numbers)
            self._waiting[number] = responses
            what = {
                "fetch": number,
                "server": f"{address}:{PORT}",
                "paths": [path],
                "request_bytes": plan["request_bytes"],
                "most_ns": max(0, round((deadline - time.monotonic()) * 1e9)),
            }
            answer = self._wire.ask("fetch", profile=plan["client_profile"], what=what)
            begun[number] = place, answer["port"]
        for _ in targets:
            try:
                response = responses.get(timeout=max(0.0, deadline - time.monotonic()) + _PATIENCE_S)
            except queue.Empty:
                raise MachineError(
                    f"firstflight's TCP on {self._host} does not report the result of a transfer"
                ) from None
            place, port = begun[response["fetch"]]
            yield _fetched(response, place, port)

    def _deliver(self) -> None:
        """Hand each response to the thread that asked for it; the outcome of a connection comes from the server."""
        while True:
            report = self._wire.reports.get()
            if report["report"] == "response":
                self._waiting.pop(report["fetch"]).put(report)


def _fetched(response: Mapping[str, Any], place: int, port: int) -> Fetched:
    start = response["started_at_ns"]
    completed = response["error"] is None
    if completed and response["status"] != 200:
        raise MachineError(
            f"firstflight's TCP asked for {response['path']} and was answered with HTTP status {response['status']}"
        )

    def since(event: str) -> float:
        at = response[event]
        return 0.0 if at is None else (at - start) / 1e9

    return Fetched(
        number=place,
        start_s=start / 1e9,
        port=port,
        connect_s=since("connected_at_ns"),
        first_byte_s=since("first_byte_at_ns"),
        total_s=since("completed_at_ns") if completed else time.monotonic() - start / 1e9,
        body_bytes=response["body_bytes"],
        header_bytes=response["header_bytes"],
        completed=completed,
    )
