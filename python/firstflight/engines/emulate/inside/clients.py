"""The program that fetches on a client host: curl or `timed` over the host's kernel, our own TCP, or a QUIC stack's."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from firstflight.engines.emulate.inside import processes, timed
from firstflight.engines.emulate.inside.processes import Namespace, Watched, WireHost, ending, reason
from firstflight.engines.emulate.inside.servers import NEAR_BYTES, PORT, SECURE_PORT
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError, RequestError

T = TypeVar("T")

# Clients report a transfer after its timeout by themselves; the additional time that this may take.
_PATIENCE_S = 20.0
# curl does no more concurrently (CURL_MAX_PARALLEL).
MOST_PARALLEL = 300
# Exit codes of curl for a failure of the path or a timeout, not of the request: see "EXIT CODES" of curl(1).
_INCOMPLETE = {5, 6, 7, 18, 28, 52, 55, 56}

_FIELDS = {
    "exit": "exitcode",
    "number": "urlnum",
    "port": "local_port",
    "connect_s": "time_connect",
    "first_byte_s": "time_starttransfer",
    "total_s": "time_total",
    "body_bytes": "size_download",
    "header_bytes": "size_header",
    "status": "response_code",
}
# To stderr, which curl does not buffer: a line shows that its transfer has ended. In quotes, because curl
# writes no status as 000, which is not valid JSON.
_WRITE_OUT = "%{stderr}{" + ",".join(f'"{key}":"%{{{name}}}"' for key, name in _FIELDS.items()) + "}\n"


Target = tuple[str, str]
"""Address of the server as in a URL, and path."""


@dataclass(frozen=True)
class Fetched:
    """One transfer as curl saw it: times in seconds since `start_s` (of CLOCK_MONOTONIC), sizes in bytes.

    `connect_s` is 0 if there was no handshake, `first_byte_s` if there was no answer; over TLS, as `timed` has it,
    `secured_s` if its handshake was not complete, `usable_s` if no record came, `received_bytes` all of the stream.
    """

    number: int
    start_s: float
    port: int
    connect_s: float | None
    first_byte_s: float
    total_s: float
    body_bytes: int
    completed: bool
    header_bytes: int = 0
    secured_s: float = 0.0
    usable_s: float = 0.0
    client_bytes: int = 0
    server_bytes: int = 0
    received_bytes: int | None = None
    resumed: bool = False


class Fetcher(Protocol):
    """The client of one host."""

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """Fetch all targets concurrently, each over its own connection; yields each as soon as it ended.

        `plan`: the application's; of it, "request_bytes", 0 for as few as it takes. RequestError if it takes more.
        """
        ...


class _Responses:
    """Of a program that all threads fetch by: each gets the responses to its own requests."""

    def __init__(self, who: str, reports: Iterable[dict[str, Any]], key: str) -> None:
        """`who`: the program, for messages; `reports`: each with the number of a request as `key`, read in a thread."""
        self._who = who
        self._numbers = count()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._key = key
        threading.Thread(target=self._deliver, args=(reports,), name=f"responses of {who}", daemon=True).start()

    def to(
        self, targets: Sequence[Target], within_s: float, begin: Callable[[int, int, float], T]
    ) -> Iterator[tuple[int, T, dict[str, Any]]]:
        """Begin a request for each target by its place, the number that the program is to report and what is left of
        `within_s`, which all have together;
        yields, as each is over, its place, what `begin` returned, and the report. MachineError if one does not come.
        """
        responses: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        begun: dict[int, tuple[int, T]] = {}
        deadline = time.monotonic() + within_s
        for place in range(len(targets)):
            number = next(self._numbers)
            self._waiting[number] = responses
            begun[number] = place, begin(place, number, max(0.0, deadline - time.monotonic()))
        for _ in targets:
            try:
                report = responses.get(timeout=max(0.0, deadline - time.monotonic()) + _PATIENCE_S)
            except queue.Empty:
                raise MachineError(f"{self._who} does not report the result of a transfer") from None
            yield *begun[report[self._key]], report

    def _deliver(self, reports: Iterable[dict[str, Any]]) -> None:
        for report in reports:
            self._waiting.pop(report[self._key]).put(report)


class KernelClient:
    """Curl in the host's namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "no_delay" too. MachineError if curl fails for a reason that is not the path's."""
        process = processes.spawn(
            self._namespace,
            _command(targets, plan["request_bytes"], plan["no_delay"], within_s),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        other = ""
        try:
            for line in process.stderr:
                ended_at = time.monotonic()
                if not line.startswith(b"{"):
                    other = line.decode(errors="replace").strip() or other
                    continue
                yield _curl_fetched(json.loads(line), ended_at, other)
            status = process.wait()
            if status < 0:
                raise MachineError(f"curl on host {self._namespace.name} ended unasked: {ending(status)}")
        finally:
            if process.poll() is None:
                process.kill()
            process.stderr.close()
            process.wait()


def request_bytes(address: str, path: str) -> int:
    """Minimum bytes of a request for `path`."""
    return len(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")


def _curl_fetched(line: dict[str, str], ended_at: float, other: str) -> Fetched:
    status = int(line["exit"])
    completed = status == 0 and line["status"] == "200"
    if not completed and status not in _INCOMPLETE:
        raise MachineError(f"curl ended with {status} and HTTP status {line['status']}: {other or 'no reason given'}")
    kept = {key: text for key, text in line.items() if key not in ("exit", "status")}
    numbers: dict[str, Any] = {key: float(text) if key.endswith("_s") else int(text) for key, text in kept.items()}
    return Fetched(start_s=ended_at - numbers["total_s"], completed=completed, **numbers)


def _command(targets: Sequence[Target], request: int, no_delay: bool, within_s: float) -> list[str]:
    program = processes.find("curl", "curl")
    if len(targets) > MOST_PARALLEL:
        raise RequestError(f"curl does at most {MOST_PARALLEL} transfers at once, and this asks for {len(targets)}")
    command = [program, "--disable", "--silent", "--no-progress-meter", "--show-error"]
    command += ["--http1.1", "--globoff", "--noproxy", "*", "--max-time", f"{within_s:.3f}", "--write-out", _WRITE_OUT]
    command += ["--header", "User-Agent:", "--header", "Accept:", "--tcp-nodelay" if no_delay else "--no-tcp-nodelay"]
    if len(targets) > 1:
        command += ["--parallel", "--parallel-immediate", "--parallel-max", str(len(targets))]
    for address, path in targets:
        command += ["--output", "/dev/null", f"http://{address}{padded(address, path, request)}"]
    return command


def padded(address: str, path: str, request: int) -> str:
    """The path with a query that makes the request as long as asked; nginx does not look at it."""
    missing = request - request_bytes(address, path)
    if request == 0 or missing == 0:
        return path
    if missing < 0:
        raise RequestError(f"request: curl's own for {path} has {request - missing} bytes already, so not {request}")
    return path + "?".ljust(missing, "x")


class TimedClient:
    """`timed` in the host's namespace, for all threads that fetch over TLS, or ask in turn, from there."""

    def __init__(self, namespace: Namespace, kind: str) -> None:
        command = [sys.executable, "-I", str(Path(timed.__file__)), kind]
        said = os.memfd_create("client")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
        self._program = namespace.spawn(command, **pipes)
        self._name = f"the client on host {namespace.name}"
        Watched(self._name, self._program, said)
        assert self._program.stdout is not None
        self._responses = _Responses(self._name, map(json.loads, self._program.stdout), "number")
        self._lock = threading.Lock()

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "no_delay" too, "connection" as `timed` has it, and for each target in "over" what
        `timed` is told about its handshake, its "server_bytes", and "response_bytes".
        """

        def begin(place: int, number: int, left_s: float) -> None:
            address, path = targets[place]
            request = {
                "number": number,
                "connection": plan["connection"],
                "address": address,
                "no_delay": plan["no_delay"],
                "path": padded(address, path, plan["request_bytes"]),
                "within_s": left_s,
            }
            self._tell(plan["over"][place] | request)

        for place, _, report in self._responses.to(targets, within_s, begin):
            if failure := report.pop("reason", None):
                raise MachineError(f"TLS failed: {failure}")
            _check(report, plan["over"][place])
            yield Fetched(**report | {"number": place})

    def leave(self, connection: str) -> None:
        """Close a connection that was kept."""
        self._tell({"connection": connection, "path": None})

    def _tell(self, line: Mapping[str, Any]) -> None:
        assert self._program.stdin is not None
        try:
            with self._lock:
                self._program.stdin.write(json.dumps(line).encode() + b"\n")
                self._program.stdin.flush()
        except BrokenPipeError:
            raise MachineError(f"{self._name} ended unasked: {ending(self._program.wait())}") from None


def _check(report: Mapping[str, Any], over: Mapping[str, Any]) -> None:
    """MachineError if the server's flight on the wire was not the scenario's."""
    if not report["secured_s"] or report["connect_s"] is None:
        return
    if report["resumed"] != over["resumed"]:
        raise MachineError("tls: the server did not resume a connection as the scenario wants it")
    if not over["resumed"] and abs(report["server_bytes"] - over["server_bytes"]) > NEAR_BYTES:
        raise MachineError(
            f"tls: the server's flight should have {over['server_bytes']} bytes and had {report['server_bytes']}"
        )


class OurClient:
    """Our own TCP with its own HTTP, for all threads that fetch from this host."""

    def __init__(self, testbed: Testbed, host: str) -> None:
        target = testbed.host(host)
        self._wire = WireHost({"address": target.address, "mtu": testbed.mtu}, target.namespace.spawn)
        testbed.raise_priority(self._wire.process.pid)
        # The outcome of a connection comes from the server.
        reports = (report for report in iter(self._wire.reports.get, None) if report["report"] == "response")
        self._responses = _Responses(f"firstflight's TCP on {host}", reports, "fetch")

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan, "client_profile" too: the complete TCP profile of these connections."""

        def begin(place: int, number: int, left_s: float) -> int:
            address, path = targets[place]
            what = {
                "fetch": number,
                "server": f"{address}:{PORT}",
                "paths": [path],
                "request_bytes": plan["request_bytes"],
                "most_ns": round(left_s * 1e9),
            }
            port: int = self._wire.ask("fetch", profile=plan["client_profile"], what=what)["port"]
            return port

        for place, port, response in self._responses.to(targets, within_s, begin):
            yield _fetched(response, place, port)


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


class QuicClient:
    """One program per connection, as with curl."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan "quic": "command" of the program, and its "client" settings."""
        for number, (address, size) in enumerate(targets):
            asked = plan["quic"]["client"] | {"response_bytes": int(size), "within_s": within_s}
            command = [*plan["quic"]["command"], "fetch", f"{address}:{SECURE_PORT}", json.dumps(asked)]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with self._namespace.spawn(command, **pipes) as process:
                assert process.stdout is not None
                line = process.stdout.readline()
                ended_at = time.monotonic()
                try:
                    _, said = process.communicate(timeout=_PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    who = f"the QUIC client on host {self._namespace.name}"
                    raise MachineError(f"{who} reported its transfer and did not end") from None
            if not line:
                why = reason(process.returncode, said)
                raise MachineError(f"the QUIC client on host {self._namespace.name} failed: {why}")
            report = json.loads(line)
            kept = ("port", "connect_s", "first_byte_s", "total_s", "body_bytes", "completed")
            # The handshake is that of TLS, and no byte waits for the end of a record.
            times = {"secured_s": report["connect_s"], "usable_s": report["first_byte_s"]}
            yield Fetched(number, ended_at - report["total_s"], **{name: report[name] for name in kept}, **times)
