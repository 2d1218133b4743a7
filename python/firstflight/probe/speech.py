"""What a probe says to a server: a request over HTTP/1.1, plain or in TLS. Bytes in, bytes out; no socket."""

import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from firstflight.errors import RequestError
from firstflight.records.machine import version

_PORTS = {"http": 80, "https": 443}
# A redirection's head is shorter; a body is not kept.
_HEAD_BYTES = 16384
# RFC 7301 section 3.2, in OpenSSL's words.
_NOT_OFFERED = "no application protocol"
_HTTP = b"HTTP/"


@dataclass(frozen=True)
class Target:
    """An object on a server. `url` is the whole, `path` what is asked for."""

    url: str
    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> "Target":
        """`url`: http or https; a name alone is https. RequestError for anything else."""
        parts = _split(url if "://" in url else f"https://{url}")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise RequestError(f"{url} is no address of a web server; give one such as https://example.org/large.jpg")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not path.isascii() or any(character <= " " for character in path):
            raise RequestError(f"the path of {url} has characters that a URL must write as %XX")
        host = parts.hostname.encode("idna").decode()
        return cls(parts.geturl(), parts.scheme, host, parts.port or _PORTS[parts.scheme], path)


class Speech:
    """One conversation: `begin` and `hear` return what is to be sent next."""

    def __init__(self, target: Target, tls: ssl.SSLContext) -> None:
        """`tls` of `client_context`."""
        literal = f"[{target.host}]" if ":" in target.host else target.host
        self._request = (
            f"GET {target.path} HTTP/1.1\r\nHost: {literal}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
            f"User-Agent: firstflight/{version()} (measures the initial window; reads nothing)\r\n"
            "Connection: close\r\n\r\n"
        ).encode("ascii")
        self._url = target.url
        self._head = b""
        self._secure: ssl.SSLObject | None = None
        self.has_asked = False
        if target.scheme == "https":
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._secure = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=target.host)

    @property
    def is_secure(self) -> bool:
        """Whether TLS is spoken."""
        return self._secure is not None

    def begin(self) -> bytes:
        """The first bytes."""
        return self.hear(b"")

    def hear(self, data: bytes) -> bytes:
        """What to answer to the server's next bytes. RequestError where TLS fails."""
        if self._secure is None:
            self._keep(data)
            return self._ask()
        self._incoming.write(data)
        try:
            if not self.has_asked:
                self._secure.do_handshake()
                self._secure.write(self._ask())
            while decrypted := self._secure.read(1 << 16):
                self._keep(decrypted)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass
        except ssl.SSLError as error:
            if _NOT_OFFERED in str(error):
                raise RequestError(
                    f"{self._url}: the server refuses HTTP/1.1, the only protocol that is offered (it may speak HTTP/2 "
                    "alone); name another of its host names"
                ) from None
            raise RequestError(f"{self._url}: TLS failed: {error.reason or error}") from None
        return self._outgoing.read()

    def redirection(self) -> str | None:
        """Where the response leads to, if it is a redirection."""
        status, _, fields = self._head.partition(b"\r\n")
        if status[9:12] not in (b"301", b"302", b"303", b"307", b"308"):
            return None
        for line in fields.partition(b"\r\n\r\n")[0].split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"location":
                return urljoin(self._url, value.strip().decode("latin-1"))
        return None

    def status(self) -> int | None:
        """The response's status, if it came."""
        code = self._head[9:12]
        return int(code) if self._head.startswith(_HTTP) and code.isdigit() else None

    def is_other(self) -> bool:
        """Whether the response is of another protocol: HTTP/2 without having been offered (RFC 9113 section 3.4)."""
        return not _HTTP.startswith(self._head[: len(_HTTP)])

    def _ask(self) -> bytes:
        if self.has_asked:
            return b""
        self.has_asked = True
        return self._request

    def _keep(self, data: bytes) -> None:
        self._head += data[: _HEAD_BYTES - len(self._head)]


def client_context() -> ssl.SSLContext:
    """TLS that takes any certificate: the window is measured, nothing is believed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise RequestError(f"{url} is no URL: {error}") from None
    return parts
