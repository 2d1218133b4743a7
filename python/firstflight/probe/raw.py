"""A TCP port of our own: segments are written and read through a raw socket, and the kernel's TCP stays silent.

A listening socket holds the port. A filter that drops everything is on it, so the kernel answers nothing that arrives
there (tcp_v4_rcv and tcp_v6_rcv run the filter before they look at the state). The raw socket needs CAP_NET_RAW;
nothing on the host is changed.
"""

import errno
import secrets
import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Self

from firstflight.conform.packet import ACK, checksum_of
from firstflight.errors import MachineError
from firstflight.netlink import attach_filter

# asm-generic/socket.h; Python does not name it.
_SO_TIMESTAMPNS = 35
# netinet/in.h, linux/in6.h.
_IPV6_CHECKSUM = 7
_CHECKSUM_AT = 16
_RECEIVE_BYTES = 8 << 20
# Classic BPF: load a byte's low half times four into X, load a half-word at X + k, compare, return.
_LDX_HEADER, _LDH_X, _LDH, _JEQ, _RET = 0xB1, 0x48, 0x28, 0x15, 0x06


# How often a waiting connection looks whether it is to stop.
_LOOK_S = 0.1


class StoppedError(Exception):
    """The probe was interrupted."""


@dataclass(frozen=True)
class Segment:
    """Arrived data. `time_s`: by the kernel's clock. `payload` may be several segments that GRO has joined."""

    time_s: float
    seq: int
    ack: int
    flags: int
    options: bytes
    payload: bytes


class RawPort:
    """A port towards one server, to be used in a `with` statement. MachineError where the machine refuses."""

    def __init__(self, family: socket.AddressFamily, server: tuple[str, int], stop: Event) -> None:
        """`stop`: what ends all waiting."""
        self._family = family
        self._stop = stop
        self._server = server
        self._local = _source(family, server)
        self._holder = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._holder.bind((self._local, 0))
            self._port = self._holder.getsockname()[1]
            attach_filter(self._holder, [(_RET, 0, 0, 0)])
            self._holder.listen(1)
            self._raw = self._open()
        except BaseException:
            self._holder.close()
            raise
        self._ends = socket.inet_pton(family, self._local) + socket.inet_pton(family, server[0])
        self.first_seq = secrets.randbits(32)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()
        self._holder.close()

    def send(self, seq: int, ack: int, flags: int, window: int, payload: bytes = b"", options: bytes = b"") -> None:
        """Send a segment; `ack` counts if `flags` has ACK. MachineError where there is no way to the server."""
        header = struct.pack(
            "!HHIIBBHHH",
            self._port,
            self._server[1],
            seq & 0xFFFFFFFF,
            ack & 0xFFFFFFFF if flags & ACK else 0,
            (20 + len(options)) // 4 << 4,
            flags,
            window,
            0,
            0,
        )
        segment = header + options + payload
        if self._family == socket.AF_INET:
            pseudo = self._ends + struct.pack("!HH", socket.IPPROTO_TCP, len(segment))
            total = struct.pack("!H", checksum_of(pseudo + segment))
            segment = segment[:_CHECKSUM_AT] + total + segment[_CHECKSUM_AT + 2 :]
        try:
            self._raw.sendto(segment, (self._server[0], 0))
        except OSError as error:
            raise MachineError(f"{self._server[0]} cannot be reached: {error.strerror}") from None

    def receive(self, until_s: float) -> Iterator[Segment]:
        """Yields arriving data until `time.monotonic()` is `until_s`. StoppedError if all is to end."""
        while (left := until_s - time.monotonic()) > 0:
            if self._stop.is_set():
                raise StoppedError
            if not select.select([self._raw], [], [], min(left, _LOOK_S))[0]:
                continue
            data, ancillary, _, _ = self._raw.recvmsg(1 << 16, 64)
            if (segment := _read(data, ancillary, self._family)) is not None:
                yield segment

    def _open(self) -> socket.socket:
        raw = open_raw(self._family)
        where = 0 if self._family == socket.AF_INET6 else None
        attach_filter(raw, _to_port(self._server[1], self._port, where))
        raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        if self._family == socket.AF_INET6:
            raw.setsockopt(socket.IPPROTO_IPV6, _IPV6_CHECKSUM, _CHECKSUM_AT)
        return raw


def open_raw(family: socket.AddressFamily) -> socket.socket:
    """A socket that takes all TCP segments of this machine. MachineError without CAP_NET_RAW."""
    try:
        return socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
    except PermissionError:
        raise MachineError(
            "a probe writes raw TCP segments, which needs the capability CAP_NET_RAW; run it with sudo"
        ) from None


def _source(family: socket.AddressFamily, server: tuple[str, int]) -> str:
    """The address from which this machine reaches the server; nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(server)
        except OSError as error:
            reason = "no route" if error.errno == errno.ENETUNREACH else error.strerror
            raise MachineError(f"{server[0]} cannot be reached: {reason}") from None
        return str(asking.getsockname()[0])


def _to_port(source: int, destination: int, header_at: int | None) -> list[tuple[int, int, int, int]]:
    """The filter that takes segments between two ports; `header_at`: where TCP's header begins, None behind IPv4's."""
    loads = [(_LDX_HEADER, 0, 0, 0), (_LDH_X, 0, 0, 0), (_LDH_X, 0, 0, 2)]
    if header_at is not None:
        loads = [(_LDH, 0, 0, header_at), (_LDH, 0, 0, header_at + 2)]
    *before, last = loads
    return [*before, (_JEQ, 0, 3, source), last, (_JEQ, 0, 1, destination), (_RET, 0, 0, 0x40000), (_RET, 0, 0, 0)]


def _read(data: bytes, ancillary: list[tuple[int, int, bytes]], family: socket.AddressFamily) -> Segment | None:
    """The segment; None where its headers are broken. Raw sockets give IPv4's header and not IPv6's."""
    start = (data[0] & 15) * 4 if family == socket.AF_INET else 0
    if len(data) < start + 20:
        return None
    _, _, seq, ack, offset, flags, _ = struct.unpack_from("!HHIIBBH", data, start)
    header = (offset >> 4) * 4
    if header < 20 or len(data) < start + header:
        return None
    time_s = time.time()
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("ll", value[:16])
            time_s = seconds + nanoseconds / 1e9
    return Segment(time_s, seq, ack, flags, data[start + 20 : start + header], data[start + header :])
