"""As little of HTTP/2 (RFC 9113) as asks for one object, lets all of it come, and reads the response's status."""

import re
import struct
from collections.abc import Mapping

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
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
            + _frame(_HEADERS, _END_STREAM | _END_HEADERS, _STREAM, block)
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
            elif kind == _HEADERS:
                self.status = _status(payload[bool(flags & _PADDED) + (5 if flags & _PRIORITY else 0) :]) or self.status
            self.is_over |= kind in (_RST_STREAM, _GOAWAY) or (kind in (_DATA, _HEADERS) and bool(flags & _END_STREAM))
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
    if (found := _STATUS.match(block)) is None:
        return None
    static, digits, two, three = found.groups()
    if static is not None:
        return _STATIC[static[0] - 0x88]
    return int(digits) if digits is not None else _HUFFMAN.get(two or three)


def _huffman(status: int) -> bytes:
    """RFC 7541 appendix B: digits up to 2 have codes of five bits, the others of six."""
    bits = "".join(f"{digit:05b}" if digit < 3 else f"{digit + 22:06b}" for digit in map(int, str(status)))
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8)


_HUFFMAN = {_huffman(status): status for status in range(100, 600)}
