"""Messages of netlink as bytes: a header, a fixed part and attributes (linux/netlink.h); and the devices, addresses and
routes of a namespace by rtnetlink.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Self

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
_NEWLINK, _NEWADDR, _NEWROUTE, _DELROUTE, _GETROUTE = 16, 20, 24, 25, 26
_REPLACE, _EXCLUDE, _CREATE = 0x100, 0x200, 0x400
# Of a device (linux/if_link.h), of a veth pair, of an address, of a route.
_LINK = {"address": 1, "name": 3, "mtu": 4, "queue_packets": 13, "namespace": 28}
_LINKINFO, _INFO_KIND, _INFO_DATA, _VETH_PEER = 18, 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_F_NODAD = 1, 2, 0x02
_DST, _OIF, _PREFSRC, _METRICS = 1, 4, 7, 8
_MAIN_TABLE, _STATIC, _SCOPE_LINK, _UNICAST = 254, 4, 253, 1
# Metrics of a route by iproute2's names.
_METRIC = {"mtu": 2, "advmss": 8, "initcwnd": 11, "rto_min": 13, "quickack": 15, "congctl": 16}
IFF_UP, IFF_NOARP = 0x01, 0x80


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


class Asking:
    """A socket for requests, which waits for each answer."""

    def __init__(self, protocol: int) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self.socket.bind((0, 0))
        self.socket.settimeout(5)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

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

    def change(self, kind: int, flags: int, body: bytes) -> None:
        """Have the kernel change something. Raises OSError as its error says."""
        for _ in self.ask(kind, flags | ACK, body):
            """Nothing follows but the kernel's word."""

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """All objects of a kind; none where the kernel lacks it."""
        try:
            yield from self.ask(kind, DUMP, body)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP):
                raise


class Network(Asking):
    """Devices, addresses and routes of the calling thread's namespace. Raises OSError as the kernel's error says."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def set_link(self, device: str, flags: int = 0, **values: int | str) -> None:
        """Set flags and values of a device: `name`, `mtu` in bytes, `queue_packets`, `namespace` (a descriptor)."""
        self.change(_NEWLINK, 0, _link(socket.if_nametoindex(device), flags, values))

    def add_pair(self, device: str, **peer: int | str | bytes) -> None:
        """Make a veth pair; the values of its other end as for `set_link`, and its Ethernet `address`."""
        other = attribute(_INFO_DATA, attribute(_VETH_PEER, _link(0, 0, peer)))
        info = attribute(_LINKINFO, attribute(_INFO_KIND, b"veth\0") + other)
        self.change(_NEWLINK, _CREATE | _EXCLUDE, _link(0, 0, {"name": device}) + info)

    def add_address(self, device: str, address: str) -> None:
        """Give a device an address alone, without duplicate address detection, which would keep routes waiting."""
        packed, index = ip_address(address).packed, socket.if_nametoindex(device)
        family, flags = (socket.AF_INET, 0) if len(packed) == 4 else (socket.AF_INET6, _IFA_F_NODAD)
        header = struct.pack("=4BI", family, 8 * len(packed), flags, 0, index)
        values = attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
        self.change(_NEWADDR, _CREATE | _EXCLUDE, header + values)

    def set_route(self, to: str, device: str, metrics: Mapping[str, int | str], source: str | None = None) -> None:
        """Set the route to a network by a device, with these metrics and no others, instead of one that there is."""
        values = attribute(_OIF, struct.pack("=I", socket.if_nametoindex(device)))
        if source is not None:
            values += attribute(_PREFSRC, ip_address(source).packed)
        if metrics:
            values += attribute(_METRICS, _packed(_METRIC, metrics))
        self.change(_NEWROUTE, _CREATE | _REPLACE, _route(to) + values)

    def remove_route(self, to: str) -> None:
        """Remove a route that `set_route` set."""
        self.change(_DELROUTE, 0, _route(to))

    def routes(self) -> dict[str, dict[str, int | str]]:
        """The metrics of each route of the main table that is not the kernel's own, by destination."""
        names = {kind: name for name, kind in _METRIC.items()}
        found = {}
        for family in (socket.AF_INET, socket.AF_INET6):
            for answer in self.dump(_GETROUTE, struct.pack("=8BI", family, 0, 0, 0, 0, 0, 0, 0, 0)):
                if (answer[4], answer[5]) == (_MAIN_TABLE, _STATIC):
                    values = dict(attributes(answer[12:]))
                    to = ip_network((values.get(_DST, bytes(4 if family == socket.AF_INET else 16)), answer[1]))
                    metrics = attributes(values.get(_METRICS, b""))
                    found[str(to)] = {names[kind]: _metric(kind, value) for kind, value in metrics if kind in names}
        return found


def _metric(kind: int, value: bytes) -> int | str:
    return value.rstrip(b"\0").decode() if kind == _METRIC["congctl"] else int(struct.unpack("=I", value)[0])


def _link(index: int, flags: int, values: Mapping[str, int | str | bytes]) -> bytes:
    return struct.pack("=BxHiII", 0, 0, index, flags, flags) + _packed(_LINK, values)


def _route(to: str) -> bytes:
    network = ip_network(to)
    # IPv6's routes have no scope.
    family, scope = (socket.AF_INET, _SCOPE_LINK) if network.version == 4 else (socket.AF_INET6, 0)
    header = struct.pack("=8BI", family, network.prefixlen, 0, 0, _MAIN_TABLE, _STATIC, scope, _UNICAST, 0)
    return header + attribute(_DST, network.network_address.packed)


def _packed(kinds: Mapping[str, int], values: Mapping[str, int | str | bytes]) -> bytes:
    """Attributes by name: numbers in 32 bits, texts with their end, bytes as they are."""

    def content(value: Any) -> bytes:
        if isinstance(value, int):
            return struct.pack("=I", value)
        return value if isinstance(value, bytes) else f"{value}\0".encode()

    return b"".join(attribute(kinds[name], content(value)) for name, value in values.items())
