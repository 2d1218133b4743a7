"""A client that asks in turn over one connection and may wait between: curl cannot wait on an open connection.

It runs as a separate program in a client host's namespace, so that no other thread delays its clock:

    python -I requests.py ADDRESS PORT NODELAY

ADDRESS is as in a URL.

For each line {"path", "request_bytes", "response_bytes", "within_s"} on stdin it sends a request and writes a line
{"start_s", "port", "connect_s", "first_byte_s", "total_s", "body_bytes", "header_bytes", "completed"} to stdout, as
`curl.Fetched` has them; `connect_s` is null on a connection that was open. TCP is the kernel's.
"""

import json
import socket
import sys
import time
from typing import Any

_READ_BYTES = 1 << 20
_END_OF_HEADER = b"\r\n\r\n"


class _FailedError(Exception):
    """The connection broke or the time was up."""


class _Client:
    def __init__(self, address: str, port: int, no_delay: bool) -> None:
        self._host = address
        self._server = (address.strip("[]"), port)
        self._no_delay = no_delay
        self._open: socket.socket | None = None

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One request and its response."""
        start = time.monotonic()
        deadline = start + asked["within_s"]
        told: dict[str, Any] = {"start_s": start, "connect_s": None, "first_byte_s": 0.0, "body_bytes": 0}
        told |= {"header_bytes": 0, "completed": False, "port": 0}
        try:
            if self._open is None:
                self._connect(deadline)
                told["connect_s"] = time.monotonic() - start
            assert self._open is not None
            told["port"] = self._open.getsockname()[1]
            self._send(asked, deadline)
            self._receive(asked, told, start, deadline)
            told["completed"] = True
        except (OSError, _FailedError):
            if self._open is not None:
                self._open.close()
            self._open = None
        told["total_s"] = time.monotonic() - start
        return told

    def _connect(self, deadline: float) -> None:
        self._open = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET, socket.SOCK_STREAM)
        if self._no_delay:
            self._open.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait_until(deadline)
        self._open.connect(self._server)

    def _send(self, asked: dict[str, Any], deadline: float) -> None:
        assert self._open is not None
        self._wait_until(deadline)
        self._open.sendall(f"GET {asked['path']} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    def _receive(self, asked: dict[str, Any], told: dict[str, Any], start: float, deadline: float) -> None:
        assert self._open is not None
        received = b""
        while told["body_bytes"] < asked["response_bytes"]:
            self._wait_until(deadline)
            more = self._open.recv(_READ_BYTES)
            if not more:
                raise _FailedError
            if not told["first_byte_s"]:
                told["first_byte_s"] = time.monotonic() - start
            if told["header_bytes"]:
                told["body_bytes"] += len(more)
                continue
            received += more
            if (end := received.find(_END_OF_HEADER)) >= 0:
                told["header_bytes"] = end + len(_END_OF_HEADER)
                told["body_bytes"] = len(received) - told["header_bytes"]

    def _wait_until(self, deadline: float) -> None:
        assert self._open is not None
        left = deadline - time.monotonic()
        if left <= 0:
            raise _FailedError
        self._open.settimeout(left)


def main() -> None:
    """Serve until stdin ends."""
    client = _Client(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1")
    for line in sys.stdin:
        print(json.dumps(client.ask(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
