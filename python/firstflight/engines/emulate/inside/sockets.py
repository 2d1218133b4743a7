"""The kernel's data on a TCP connection when it closes: the destroy multicast of sock_diag, and a dump of the rest.

For each TCP socket that goes, the kernel sends one message with the complete TCP_INFO to those who listen in its
namespace (`SKNLGRP_INET_TCP_DESTROY`, Linux 4.5), so that no connection is too short to be seen. Structures:
`linux/inet_diag.h`, `linux/sock_diag.h`, `linux/tcp.h`.
"""

import socket
import struct
import threading
import time
from collections.abc import Container, Iterable, Iterator

from firstflight.netlink import Asking, attributes, messages

_NETLINK_SOCK_DIAG = 4
# SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY, as bits.
_DESTROY_GROUPS = {socket.AF_INET: 1, socket.AF_INET6: 4}
_ADDRESS_BYTES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_BUFFER_BYTES = 8 << 20
_SO_RCVBUFFORCE = 33
_DATAGRAM_BYTES = 1 << 18
# How often the listening thread looks whether it should end.
_LOOK_UP_S = 0.2

_SOCK_DIAG_BY_FAMILY = 20
_INET_DIAG_INFO = 2
_LISTEN = 10

_DIAG = struct.Struct("=BBBB 2s2s 16s16s III IIIII")
_REQUEST = struct.Struct("=BBBBI 48s")

# (struct code, names) in the kernel's order; a kernel that is older ends earlier.
_FIELDS: tuple[tuple[str, str], ...] = (
    ("B", "state ca_state retransmits probes backoff options wscale app_limited"),
    (
        "I",
        "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv "
        "last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space "
        "total_retrans",
    ),
    ("Q", "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    ("I", "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    ("Q", "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    ("I", "delivered delivered_ce"),
    ("Q", "bytes_sent bytes_retrans"),
    ("I", "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash"),
    ("H", "total_rto total_rto_recoveries"),
    ("I", "total_rto_time"),
)

End = tuple[str, int]
"""Address and port of the other end."""


def end_of(text: str) -> End:
    """The end that is written ADDRESS:PORT, an address of IPv6 in brackets."""
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


class ClosingSockets:
    """Listens, in a thread, for TCP sockets on `ports` of the calling thread's namespace that close."""

    def __init__(self, ports: Container[int], family: socket.AddressFamily = socket.AF_INET) -> None:
        """OSError where the kernel does not allow listening; then `listening` would be false."""
        self._ports = ports
        self._family = family
        self._closed: dict[End, dict[str, int]] = {}
        self._arrived = threading.Condition()
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._events = socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG)
        try:
            self._events.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:
            self._events.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._events.bind((0, _DESTROY_GROUPS[family]))
        self._events.settimeout(_LOOK_UP_S)
        self._gone = False
        # A namespace's sockets are asked for by a socket of the namespace, whichever thread uses it.
        self._questions = Asking(_NETLINK_SOCK_DIAG)
        self._thread = threading.Thread(target=self._listen, name="sockets", daemon=True)
        self._thread.start()

    def take(self, ends: set[End], within_s: float) -> dict[End, dict[str, int]]:
        """TCP_INFO by the client's end, all that closed since the last call; waits until all of `ends` did.

        A connection that is open after the timeout is returned in its current state, with `closed` 0.
        """
        deadline = time.monotonic() + within_s
        with self._arrived:
            while not ends <= self._closed.keys() and (left := deadline - time.monotonic()) > 0:
                self._arrived.wait(left)
            infos, self._closed = self._closed, {}
        if not ends <= infos.keys():
            infos = dict(self._open()) | infos
        return infos

    def close(self) -> None:
        """Stop listening."""
        self._gone = True
        self._thread.join()
        self._events.close()
        self._questions.socket.close()

    def _listen(self) -> None:
        while not self._gone:
            try:
                data = self._events.recv(_DATAGRAM_BYTES)
            except OSError:
                # Nothing for a while; or ENOBUFS, more closed at once than there was room for: the dump lists those
                # that are still there.
                continue
            with self._arrived:
                for end, info in self._connections(
                    body for kind, *_, body in messages(data) if kind == _SOCK_DIAG_BY_FAMILY
                ):
                    self._closed[end] = info | {"closed": 1}
                self._arrived.notify_all()

    def _open(self) -> Iterator[tuple[End, dict[str, int]]]:
        """The sockets that are open now."""
        request = _REQUEST.pack(self._family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, 0xFFFFFFFF, b"")
        for end, info in self._connections(self._questions.dump(_SOCK_DIAG_BY_FAMILY, request)):
            yield end, info | {"closed": 0}

    def _connections(self, bodies: Iterable[bytes]) -> Iterator[tuple[End, dict[str, int]]]:
        for body in bodies:
            family, state, _, _, port, other, _, destination, *_ = _DIAG.unpack_from(body)
            if family != self._family or state == _LISTEN or int.from_bytes(port) not in self._ports:
                continue
            info = dict(attributes(body[_DIAG.size :])).get(_INET_DIAG_INFO)
            if info is not None:
                address = socket.inet_ntop(self._family, destination[: _ADDRESS_BYTES[self._family]])
                yield (address, int.from_bytes(other)), tcp_info(info)


def tcp_info(raw: bytes) -> dict[str, int]:
    """The kernel's `struct tcp_info` by its names less `tcpi_`, as far as this kernel fills it."""
    info: dict[str, int] = {}
    at = 0
    for code, names in _FIELDS:
        size = struct.calcsize(code)
        for name in names.split():
            if at + size > len(raw):
                return info
            (info[name],) = struct.unpack_from(f"={code}", raw, at)
            at += size
    return info
