"""A probe's messages to a server: a request over HTTP/1.1 or HTTP/2, plain or in TLS. Bytes in, bytes out."""

import ipaddress
import re
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urljoin, urlsplit

from firstflight.errors import RequestError
from firstflight.records.machine import version

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS_TYPE, _RST_STREAM, _SETTINGS, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_ENABLE_PUSH, _INITIAL_WINDOW_SIZE = 2, 4
_LARGEST_WINDOW, _DEFAULT_WINDOW = (1 << 31) - 1, 65_535
_STREAM = 1
_LARGEST_FRAME = 1 << 14
# RFC 7541: changes of the table's size (section 6.3), then `:status` as an entry of the static table or as a literal
# with its name from there (sections 6.1, 6.2), in digits or in Huffman's code.
_STATUS = re.compile(
    rb"(?:[\x20-\x3e]|\x3f[\x80-\xff]*[\x00-\x7f])*"
    rb"(?:([\x88-\x8e])|[\x08-\x0e\x18-\x1e\x48-\x4e](?:\x03(\d{3})|\x82(..)|\x83(...)))",
    re.DOTALL,
)
_STATIC = (200, 204, 206, 304, 400, 404, 500)


class Http2:
    """One request on its own connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self.status: int | None = None
        self.is_over = False

    def ask(self, host: str, path: str, headers: Mapping[str, str]) -> bytes:
        """The connection's beginning and the request. The server may send as much as TCP's window lets it."""
        fields = {":method": "GET", ":scheme": "https", ":authority": host, ":path": path, **headers}
        block = b"".join(b"\0" + _string(name) + _string(value) for name, value in fields.items())
        settings = struct.pack("!HIHI", _ENABLE_PUSH, 0, _INITIAL_WINDOW_SIZE, _LARGEST_WINDOW)
        return (
            _PREFACE
            + _frame(_SETTINGS, 0, 0, settings)
            + _frame(_WINDOW_UPDATE, 0, 0, struct.pack("!I", _LARGEST_WINDOW - _DEFAULT_WINDOW))
            + _frame(_HEADERS_TYPE, _END_STREAM | _END_HEADERS, _STREAM, block)
        )

    def hear(self, data: bytes) -> bytes:
        """Take the server's next bytes; returns the required answer."""
        self._buffer += data
        if len(self._buffer) >= 3 and int.from_bytes(self._buffer[:3]) > _LARGEST_FRAME:
            # RFC 9113 section 4.2: larger than we allow. What follows cannot be read.
            self._buffer, self.is_over = b"", True
        reply = b""
        while len(self._buffer) >= 9 and len(self._buffer) >= (end := 9 + int.from_bytes(self._buffer[:3])):
            kind, flags, payload = self._buffer[3], self._buffer[4], self._buffer[9:end]
            self._buffer = self._buffer[end:]
            if kind == _SETTINGS and not flags & _ACK:
                reply += _frame(_SETTINGS, _ACK, 0, b"")
            elif kind == _HEADERS_TYPE:
                self.status = _status(payload[bool(flags & _PADDED) + (5 if flags & _PRIORITY else 0) :]) or self.status
            self.is_over |= kind in (_RST_STREAM, _GOAWAY) or (
                kind in (_DATA, _HEADERS_TYPE) and bool(flags & _END_STREAM)
            )
        return reply


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + struct.pack("!BBI", kind, flags, stream) + payload


def _string(text: str) -> bytes:
    """RFC 7541 section 5.2, without Huffman's code; the length as in section 5.1."""
    length = len(text)
    if length < 0x7F:
        return bytes([length]) + text.encode("ascii")
    length, coded = length - 0x7F, b"\x7f"
    while length >= 0x80:
        length, coded = length >> 7, coded + bytes([length & 0x7F | 0x80])
    return coded + bytes([length]) + text.encode("ascii")


def _status(block: bytes) -> int | None:
    if (match := _STATUS.match(block)) is None:
        return None
    static, digits, two, three = match.groups()
    if static is not None:
        return _STATIC[static[0] - 0x88]
    return int(digits) if digits is not None else _HUFFMAN.get(two or three)


def _huffman(status: int) -> bytes:
    """RFC 7541 appendix B: digits up to 2 have codes of five bits, the others of six."""
    bits = "".join(f"{digit:05b}" if digit < 3 else f"{digit + 22:06b}" for digit in map(int, str(status)))
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8)


_HUFFMAN = {_huffman(status): status for status in range(100, 600)}


# A colon and a number follow a name.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
# A redirection's head is shorter; a body is not kept.
_HEAD_BYTES = 16384
_HTTP = b"HTTP/"
# Of a name in ASCII or an address, of IPv6 with a zone.
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+(%[a-z0-9_.-]+)?", re.IGNORECASE)
HTTP2, NO_HTTP = "HTTP/2", "no HTTP"
Hello = Literal["usual", "long", "short"]
# RFC 7301 section 3.1. As many make more than a segment.
_LONGEST_NAME, _PADDING = 255, 5
_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "identity",
    "user-agent": f"firstflight/{version()} (measures the initial window; reads nothing)",
}


@dataclass(frozen=True)
class Target:
    """An object on a server. `url` is the whole, `path` the part in the request."""

    url: str
    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> "Target":
        """`url`: http or https; a name alone is https. RequestError for anything else."""
        # Names, addresses and ports are read when they are asked for, each with its own errors.
        try:
            parts = urlsplit(url if _SCHEME.match(url) else f"https://{url}")
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
            if "[" in parts.netloc:
                ipaddress.ip_address(host.partition("%")[0])
                if re.search(r"\][^:]", parts.netloc):
                    raise ValueError("there is text behind the address")
        except ValueError as error:
            raise RequestError(f"{url} is no URL: {error}") from None
        if parts.scheme not in _PORTS or _HOST.fullmatch(host) is None or port == 0:
            raise RequestError(f"{url} is no address of a web server; give one such as https://example.org/large.jpg")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not path.isascii() or any(not " " < character < "\x7f" for character in path):
            raise RequestError(f"the path of {url} has characters that a URL must write as %XX")
        return cls(parts.geturl(), parts.scheme, host, port or _PORTS[parts.scheme], path)


class Speech:
    """One conversation: `begin` and `hear` return the next bytes to send."""

    def __init__(self, target: Target, tls: ssl.SSLContext) -> None:
        """`tls` of `client_context`."""
        self._target = target
        self._head = b""
        self._secure: ssl.SSLObject | None = None
        self._http2: Http2 | None = None
        self.has_asked = False
        if target.scheme == "https":
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._secure = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=target.host)

    @property
    def is_over(self) -> bool:
        """Whether the response has ended. HTTP/2 alone says so; HTTP/1.1 is asked to close the connection."""
        return self._http2 is not None and self._http2.is_over

    def begin(self) -> bytes:
        """The first bytes."""
        return self.hear(b"")

    def hear(self, data: bytes) -> bytes:
        """The answer to the server's next bytes. RequestError where TLS fails."""
        if self._secure is None:
            self._keep(data)
            return self._ask()
        self._incoming.write(data)
        try:
            if not self.has_asked:
                self._secure.do_handshake()
                if self._secure.selected_alpn_protocol() == "h2":
                    self._http2 = Http2()
                self._secure.write(self._ask())
            while decrypted := self._secure.read(1 << 16):
                if self._http2 is None:
                    self._keep(decrypted)
                elif reply := self._http2.hear(decrypted):
                    self._secure.write(reply)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass
        except ssl.SSLError as error:
            raise RequestError(f"{self._target.url}: TLS failed: {error.reason or error}") from None
        return self._outgoing.read()

    def redirection(self) -> str | None:
        """The target of the response, if it is a redirection. RequestError if it is no URL."""
        status, _, fields = self._head.partition(b"\r\n")
        if status[9:12] not in (b"301", b"302", b"303", b"307", b"308"):
            return None
        for line in fields.partition(b"\r\n\r\n")[0].split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"location":
                location = value.strip().decode("latin-1")
                try:
                    return urljoin(self._target.url, location)
                except ValueError as error:
                    raise RequestError(f"it redirects to {location}, which is no URL: {error}") from None
        return None

    def status(self) -> int | None:
        """The response's status, if it came."""
        if self._http2 is not None:
            return self._http2.status
        code = self._head[9:12]
        return int(code) if self._head.startswith(_HTTP) and code.isdigit() else None

    def protocol(self) -> str:
        """The version of TLS, if any, and that of HTTP: "no HTTP" if something else answered."""
        http = "HTTP/1.1" if _HTTP.startswith(self._head[: len(_HTTP)]) else NO_HTTP
        if self._secure is None:
            return http
        return f"{(self._secure.version() or 'TLS').replace('v', ' ')}, {http if self._http2 is None else HTTP2}"

    def certificates(self) -> tuple[str, list[bytes]]:
        """The version of TLS and the certificates that the server sent, its own first; none without TLS."""
        if self._secure is None:
            return "", []
        # `get_unverified_chain` of Python 3.13.
        chain = self._secure._sslobj.get_unverified_chain() or []  # type: ignore[attr-defined]
        return self._secure.version() or "", [ssl.PEM_cert_to_DER_cert(cert.public_bytes()) for cert in chain]

    def _ask(self) -> bytes:
        if self.has_asked:
            return b""
        self.has_asked = True
        host, port = self._target.host, self._target.port
        host = (f"[{host}]" if ":" in host else host) + ("" if port == _PORTS[self._target.scheme] else f":{port}")
        if self._http2 is not None:
            return self._http2.ask(host, self._target.path, _HEADERS)
        lines = [f"GET {self._target.path} HTTP/1.1", f"host: {host}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in _HEADERS.items()]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii")

    def _keep(self, data: bytes) -> None:
        self._head += data[: _HEAD_BYTES - len(self._head)]


def client_context(protocols: Sequence[str] = ("h2", "http/1.1"), hello: Hello = "usual") -> ssl.SSLContext:
    """TLS that accepts any certificate: the window is measured, no content is trusted. `protocols`: ALPN's offer;
    `hello`: a ClientHello as OpenSSL sends it, of two segments by names in that offer, or of one by a single curve.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if hello == "short":
        context.set_ecdh_curve("prime256v1")
    padding = [f"padding-{number}".ljust(_LONGEST_NAME, "-") for number in range(_PADDING)] if hello == "long" else []
    context.set_alpn_protocols([*protocols, *padding])
    return context
