"""Real curl: its command lines, and its own clock."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firstflight.engines.emulate.inside import processes
from firstflight.engines.emulate.inside.processes import Namespace, ending
from firstflight.errors import MachineError, RequestError

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
    "request_bytes": "size_request",
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
    header_bytes: int
    completed: bool
    secured_s: float = 0.0
    usable_s: float = 0.0
    client_bytes: int = 0
    server_bytes: int = 0
    received_bytes: int | None = None
    resumed: bool = False


def request_bytes(address: str, path: str) -> int:
    """The least that a request for `path` takes."""
    return len(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")


def fetch(
    namespace: Namespace, targets: Sequence[Target], request: int, no_delay: bool, within_s: float
) -> Iterator[Fetched]:
    """Fetch all targets concurrently, each over its own connection, from a host's namespace; yields each as soon as it
    ended.

    `request`: bytes of each request, 0 for as few as it takes. RequestError if it takes more; MachineError if curl
    fails for a reason that is not the path's.
    """
    process = processes.spawn(
        namespace,
        _command(targets, request, no_delay, within_s),
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
            yield _fetched(json.loads(line), ended_at, other)
        status = process.wait()
        if status < 0:
            raise MachineError(f"curl on host {namespace.name} ended unasked: {ending(status)}")
    finally:
        if process.poll() is None:
            process.kill()
        process.stderr.close()
        process.wait()


def _fetched(line: dict[str, str], ended_at: float, other: str) -> Fetched:
    status = int(line["exit"])
    completed = status == 0 and line["status"] == "200"
    if not completed and status not in _INCOMPLETE:
        raise MachineError(f"curl ended with {status} and HTTP status {line['status']}: {other or 'no reason given'}")
    return Fetched(
        number=int(line["number"]),
        start_s=ended_at - float(line["total_s"]),
        port=int(line["port"]),
        connect_s=float(line["connect_s"]),
        first_byte_s=float(line["first_byte_s"]),
        total_s=float(line["total_s"]),
        body_bytes=int(line["body_bytes"]),
        header_bytes=int(line["header_bytes"]),
        completed=completed,
    )


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
