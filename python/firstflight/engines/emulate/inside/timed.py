"""A client that asks in turn over a connection, may wait between, and notes when each byte arrives.

curl cannot wait on an open connection, tells neither the first byte over TLS 1.3 from the first record nor how long a
flight was, and cannot make a ClientHello as long as the scenario's.

It runs as a separate program in a client host's namespace, for all connections from there:

    python -I timed.py plain|padded|real

Without TLS, with Python's own if flights are padded, and with pyOpenSSL's for chains of ML-DSA.
For each line {"number", "connection", "address", "port", "no_delay", "name", "hello_bytes", "resumed", "path",
"response_bytes", "within_s"} on stdin it sends a request and writes a line {"number", ...} to stdout, the rest as
`clients.Fetched` has it. A `connection` is opened by its first request and, unless it is null, kept for the next, until
a line with "path" null. `name` is the server's name in the ClientHello, which has `hello_bytes` if it can be made so
long. A resumed connection uses the tickets of an earlier one, or of an extra one.
"""

import contextlib
import json
import socket
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

_READ_BYTES = 1 << 20
_END_OF_HEADER = b"\r\n\r\n"
_RECORD_HEADER_BYTES = 5
# Ignored by the server beside the one that it speaks.
_SPOKEN, _LONGEST_PROTOCOL = b"http/1.1", 255
# Pads ClientHellos of 256 to 511 bytes to 512; Python has no name for it.
_SSL_OP_TLSEXT_PADDING = 1 << 4


class FailedError(Exception):
    """The connection broke, or the run ended."""


class Plain:
    """One connection's TLS, which gets its bytes from and gives them to its caller; here none."""

    resumed = False

    def __init__(self, name: str, protocols: list[bytes], session: Any) -> None:
        self._written = b""

    def shake(self, data: bytes = b"") -> bool:
        """Whether the handshake is complete with these bytes."""
        return True

    def feed(self, data: bytes) -> bytes:
        """The plaintext of these bytes."""
        return data

    def write(self, data: bytes) -> None:
        """Encrypt."""
        self._written += data

    def take(self) -> bytes:
        """Bytes to send."""
        out, self._written = self._written, b""
        return out

    def session(self) -> Any:
        """The session for a later connection; None if it cannot be resumed."""
        return None


class Padded(Plain):
    """Python's own TLS."""

    _context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _context.check_hostname = False
    _context.verify_mode = ssl.CERT_NONE
    _context.minimum_version = ssl.TLSVersion.TLSv1_3
    _context.set_ecdh_curve("X25519")
    _context.options &= ~_SSL_OP_TLSEXT_PADDING

    def __init__(self, name: str, protocols: list[bytes], session: Any) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._context.set_alpn_protocols([protocol.decode() for protocol in protocols])
        self._tls = self._context.wrap_bio(self._in, self._out, server_hostname=name, session=session)

    def shake(self, data: bytes = b"") -> bool:
        """As Plain."""
        self._in.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.resumed = bool(self._tls.session_reused)
        return True

    def feed(self, data: bytes) -> bytes:
        """As Plain."""
        self._in.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            return self._tls.read(_READ_BYTES)
        return b""

    def write(self, data: bytes) -> None:
        """As Plain."""
        self._tls.write(data)

    def take(self) -> bytes:
        """As Plain."""
        return self._out.read()

    def session(self) -> Any:
        """As Plain."""
        return self._tls.session


class Real(Plain):
    """PyOpenSSL's TLS, whose OpenSSL knows ML-DSA and X25519MLKEM768. Connections are resumed by others only."""

    def __init__(self, name: str, protocols: list[bytes], session: Any) -> None:
        self._tls = SSL.Connection(_REAL, None)
        self._tls.set_connect_state()
        self._tls.set_tlsext_host_name(name.encode())
        self._tls.set_alpn_protos(protocols)

    def shake(self, data: bytes = b"") -> bool:
        """As Plain."""
        if data:
            self._tls.bio_write(data)
        try:
            self._tls.do_handshake()
        except SSL.WantReadError:
            return False
        return True

    def feed(self, data: bytes) -> bytes:
        """As Plain."""
        self._tls.bio_write(data)
        with contextlib.suppress(SSL.WantReadError):
            return bytes(self._tls.recv(_READ_BYTES))
        return b""

    def write(self, data: bytes) -> None:
        """As Plain."""
        self._tls.sendall(data)

    def take(self) -> bytes:
        """As Plain."""
        with contextlib.suppress(SSL.WantReadError):
            return bytes(self._tls.bio_read(_READ_BYTES))
        return b""


_KINDS: dict[str, type[Plain]] = {"plain": Plain, "padded": Padded, "real": Real}
_LOCK = threading.Lock()


def opened(kind: str, name: str, hello_bytes: int, session: Any = None) -> Plain:
    """TLS of a new connection, whose ClientHello has `hello_bytes` if its own has fewer."""
    with _LOCK:
        bare = _KINDS[kind](name, [_SPOKEN], session)
        bare.shake()
        missing = hello_bytes - len(bare.take())
        more = [b"x" * min(_LONGEST_PROTOCOL, missing - at - 1) for at in range(0, missing - 1, _LONGEST_PROTOCOL + 1)]
        return _KINDS[kind](name, [_SPOKEN, *more], session)


def shaken(tls: Plain, end: socket.socket) -> tuple[int, int]:
    """Complete the handshake over a connected socket; bytes of the client's flights and of the server's. OSError and
    FailedError if that fails.
    """
    sent = received = 0
    is_complete = tls.shake()
    while True:
        flight = tls.take()
        end.sendall(flight)
        sent += len(flight)
        if is_complete:
            return sent, received
        data = end.recv(_READ_BYTES)
        if not data:
            raise FailedError
        received += len(data)
        is_complete = tls.shake(data)


class _TimedConnection:
    sessions: ClassVar[dict[str, Any]] = {}
    """Sessions by server, each of its last connection."""

    def __init__(self, kind: str, asked: dict[str, Any]) -> None:
        self._server = asked["address"]
        session = self.sessions.get(self._server) if asked["resumed"] else None
        if asked["resumed"] and session is None:
            _TimedConnection(kind, asked | {"resumed": False}).ask(asked | {"connection": None}, _empty_report())
            session = self.sessions.get(self._server)
        self._tls = opened(kind, asked["name"], asked["hello_bytes"], session)
        self._is_plain = kind == "plain"
        self._end = socket.socket(socket.AF_INET6 if ":" in self._server else socket.AF_INET, socket.SOCK_STREAM)
        if asked["no_delay"]:
            self._end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_open = False
        self._left = bytearray()
        # Ends of what was received, in bytes of the stream, and when it was there.
        self._received = 0
        self._arrivals: deque[tuple[int, float]] = deque()

    def ask(self, asked: dict[str, Any], report: dict[str, Any]) -> None:
        """One request and its response; `report` is filled as far as it comes."""
        began = report["start_s"] = time.monotonic()
        self._deadline = began + asked["within_s"]
        before = self._received
        try:
            if not self._is_open:
                self._connect(asked, report)
            report["port"] = self._end.getsockname()[1]
            self._tls.write(f"GET {asked['path']} HTTP/1.1\r\nHost: {self._server}\r\n\r\n".encode())
            self._wait_until()
            self._end.sendall(self._tls.take())
            self._receive(asked, report)
            report["completed"] = True
            self.sessions[self._server] = self._tls.session()
        finally:
            report["total_s"] = time.monotonic() - began
            report["received_bytes"] = self._received - before
            if asked["connection"] is None or not report["completed"]:
                self.close()

    def close(self) -> None:
        """Close the connection without a TLS alert."""
        self._end.close()

    def _connect(self, asked: dict[str, Any], report: dict[str, Any]) -> None:
        began = report["start_s"]
        self._wait_until()
        self._end.connect((self._server.strip("[]"), asked["port"]))
        report["connect_s"] = time.monotonic() - began
        report["port"] = self._end.getsockname()[1]
        self._is_open = True
        if self._is_plain:
            return
        report["client_bytes"], report["server_bytes"] = shaken(self._tls, self._end)
        report["secured_s"] = time.monotonic() - began
        self._received = report["server_bytes"]
        report["resumed"] = self._tls.resumed

    def _receive(self, asked: dict[str, Any], report: dict[str, Any]) -> None:
        head = b""
        for began_at, data in self._records():
            if not report["first_byte_s"]:
                report["first_byte_s"] = began_at - report["start_s"]
                report["usable_s"] = 0.0 if self._is_plain else time.monotonic() - report["start_s"]
            if report["header_bytes"]:
                report["body_bytes"] += len(data)
            else:
                head += data
                if (end := head.find(_END_OF_HEADER)) >= 0:
                    report["header_bytes"] = end + len(_END_OF_HEADER)
                    report["body_bytes"] = len(head) - report["header_bytes"]
            if report["body_bytes"] >= asked["response_bytes"]:
                return

    def _records(self) -> Iterator[tuple[float, bytes]]:
        """Contents of records that are not tickets, or all without TLS, and when the first byte of each was there."""
        while True:
            whole = _RECORD_HEADER_BYTES + int.from_bytes(self._left[3:5])
            least = max(whole, _RECORD_HEADER_BYTES + 1)
            if self._is_plain:
                whole, least = len(self._left), 1
            if len(self._left) >= least:
                at = self._received - len(self._left)
                while self._arrivals[0][0] <= at:
                    self._arrivals.popleft()
                record = bytes(self._left[:whole])
                del self._left[:whole]
                if data := self._tls.feed(record):
                    yield self._arrivals[0][1], data
                continue
            self._wait_until()
            data = self._end.recv(_READ_BYTES)
            if not data:
                raise FailedError
            self._received += len(data)
            self._arrivals.append((self._received, time.monotonic()))
            self._left += data

    def _wait_until(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise FailedError
        self._end.settimeout(left)


def _empty_report() -> dict[str, Any]:
    times = {"start_s": 0.0, "connect_s": None, "secured_s": 0.0, "first_byte_s": 0.0, "usable_s": 0.0}
    counts = dict.fromkeys(("port", "client_bytes", "server_bytes", "body_bytes", "header_bytes"), 0)
    return times | counts | {"completed": False, "resumed": False}


class _Client:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._open: dict[str, _TimedConnection] = {}
        self._writing = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> None:
        """One line."""
        report = _empty_report()
        connection = self._open.pop(asked["connection"], None)
        if asked["path"] is None:
            if connection is not None:
                connection.close()
            return
        try:
            connection = connection or _TimedConnection(self._kind, asked)
            connection.ask(asked, report)
            if asked["connection"] is not None:
                self._open[asked["connection"]] = connection
        except _ERRORS as error:
            report["reason"] = str(error)
        except (OSError, FailedError):
            pass
        with self._writing:
            print(json.dumps({"number": asked["number"]} | report), flush=True)


if sys.argv[1:] == ["real"]:
    from OpenSSL import SSL

    _REAL = SSL.Context(SSL.TLS_CLIENT_METHOD)
    _REAL.set_min_proto_version(SSL.TLS1_3_VERSION)
    _ERRORS: tuple[type[Exception], ...] = (SSL.Error,)
else:
    _ERRORS = (ssl.SSLError,)


def main() -> None:
    """Serve until stdin ends."""
    client = _Client(sys.argv[1])
    for line in sys.stdin:
        threading.Thread(target=client.answer, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
