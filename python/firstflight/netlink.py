"""Messages of netlink as bytes: a header, a fixed part and attributes (linux/netlink.h); and filters of sockets."""

import array
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
# asm-generic/socket.h; Python does not name it.
_SO_ATTACH_FILTER = 26


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute, aligned."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(run: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and value of each attribute."""
    place = 0
    while place + 4 <= len(run):
        length, kind = struct.unpack_from("=HH", run, place)
        if length < 4:
            return
        # The two upper bits say how to read a value (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        yield kind & 0x3FFF, run[place + 4 : place + length]
        place += (length + 3) & ~3


def messages(run: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, sequence number, port and body of each message."""
    place = 0
    while place + 16 <= len(run):
        length, kind, _, sequence, port = struct.unpack_from("=IHHII", run, place)
        if length < 16:
            return
        yield kind, sequence, port, run[place + 16 : place + length]
        place += (length + 3) & ~3


def attach_filter(to: socket.socket, program: Sequence[tuple[int, int, int, int]]) -> None:
    """A program of classic BPF, by which the kernel drops or accepts what comes for a socket (linux/filter.h)."""
    code = array.array("B", b"".join(struct.pack("=HBBI", *step) for step in program))
    to.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), code.buffer_info()[0]))


class Asking:
    """A socket for requests, which waits for each answer."""

    def __init__(self, protocol: int) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self.socket.bind((0, 0))
        self.socket.settimeout(5)
        self._sequence = 0

    @property
    def port(self) -> int:
        """The number by which the kernel names this socket in events."""
        return int(self.socket.getsockname()[0])

    def ask(self, kind: int, flags: int, body: bytes, single: bool = False) -> Iterator[bytes]:
        """The bodies of the answer, only the first with `single`. Raises OSError as the kernel's error says.

        An answer that is not taken to its end is skipped by the next request.
        """
        self._sequence += 1
        self.socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags | REQUEST, self._sequence, 0) + body)
        while True:
            for answer, sequence, _, payload in messages(self.socket.recv(1 << 18)):
                if sequence != self._sequence:
                    continue
                if answer in (_ERROR, _DONE):
                    code = -struct.unpack_from("=i", payload)[0] if len(payload) >= 4 else 0
                    if code:
                        raise OSError(code, os.strerror(code))
                    return
                yield payload
                if single:
                    return

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """All objects of a kind; none where the kernel lacks it."""
        try:
            yield from self.ask(kind, DUMP, body)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP):
                raise
