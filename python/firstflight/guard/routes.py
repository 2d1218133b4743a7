"""Initial windows by rtnetlink: routes of our own, more specific than those there are, which are never touched.

A window for a prefix is a route to it: a copy of the route that the kernel would use, with `initcwnd`, our protocol
number and our metric. The metric is larger than any in use, so a route of the administrator's to the same prefix wins
in the kernel itself, and the key (prefix, metric) never names another program's route.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from firstflight.errors import FirstflightError
from firstflight.guard.outcome import Network

PROTOCOL = 71
"""The protocol that `ip route` prints as `proto 71`: no routing daemon uses it (linux/rtnetlink.h)."""
METRIC = 2_071_000_000

_MAIN, _UNICAST = 254, 1
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_REQUEST, _ACK, _REPLACE, _EXCLUDE, _CREATE, _DUMP = 0x1, 0x4, 0x100, 0x200, 0x400, 0x300
_ERROR, _DONE = 2, 3
_FIB_MATCH, _CLONED, _ON_LINK = 0x2000, 0x200, 0x4
_DST, _OIF, _GATEWAY, _PRIORITY, _PREFSRC, _METRICS, _MULTIPATH, _TABLE = 1, 4, 5, 6, 7, 8, 9, 15
_VIA, _PREFERENCE, _ENCAP_TYPE, _ENCAP, _NEXT_HOP = 18, 20, 21, 22, 30
_INITCWND = 11
_WAY = (_OIF, _GATEWAY, _PREFSRC, _MULTIPATH, _VIA, _PREFERENCE, _ENCAP_TYPE, _ENCAP)
_GROUPS = 0x40 | 0x400  # RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE
_SOL_NETLINK, _STRICT_CHECK = 270, 12


class RouteError(FirstflightError):
    """A route that is not set, and why."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the kernel's, its attributes as bytes."""

    header: bytes
    """The rtmsg."""
    attributes: dict[int, bytes]
    requester: int = 0
    """Netlink port of who asked for the change, in an event."""
    removed: bool = False

    @property
    def network(self) -> Network:
        """The destination."""
        family, length = self.header[0], self.header[1]
        address = self.attributes.get(_DST, bytes(4 if family == socket.AF_INET else 16))
        return ip_network((ip_address(address), length))

    @property
    def is_ours(self) -> bool:
        """Whether it has our protocol number and our metric."""
        return self.header[5] == PROTOCOL and self._number(_PRIORITY) == METRIC

    @property
    def initial_window(self) -> int | None:
        """Its `initcwnd`."""
        found = dict(_attributes(self.attributes.get(_METRICS, b""))).get(_INITCWND)
        return None if found is None else int(struct.unpack("=I", found)[0])

    @property
    def is_main(self) -> bool:
        """Whether it is in the main table."""
        return self._number(_TABLE) in (None, _MAIN)

    @property
    def is_plain(self) -> bool:
        """Whether packets leave by it: no local, unreachable or blackhole route, and in the main table."""
        return self.header[7] == _UNICAST and self.is_main

    def with_window(self, prefix: Network, segments: int) -> "Route":
        """A route of ours to a prefix, the same way."""
        way = (_NEXT_HOP,) if _NEXT_HOP in self.attributes else _WAY
        attributes = {_DST: prefix.network_address.packed, _PRIORITY: struct.pack("=I", METRIC)}
        attributes |= {kind: self.attributes[kind] for kind in way if kind in self.attributes}
        metrics = dict(_attributes(self.attributes.get(_METRICS, b""))) | {_INITCWND: struct.pack("=I", segments)}
        attributes[_METRICS] = b"".join(_attribute(kind, value) for kind, value in metrics.items())
        flags = int(struct.unpack_from("=I", self.header, 8)[0]) & _ON_LINK
        header = _header(self.header[0], prefix.prefixlen, PROTOCOL, self.header[6], flags)
        return Route(header, attributes)

    def packed(self) -> bytes:
        """As a netlink message holds it."""
        return self.header + b"".join(_attribute(kind, value) for kind, value in self.attributes.items())

    @classmethod
    def read(cls, packed: bytes, requester: int = 0, removed: bool = False) -> "Route":
        """From a netlink message."""
        return cls(packed[:12], dict(_attributes(packed[12:])), requester, removed)

    def _number(self, kind: int) -> int | None:
        found = self.attributes.get(kind)
        return None if found is None else int(struct.unpack("=I", found)[0])


class Routes:
    """The routes of the calling thread's network namespace. Raises OSError where the kernel refuses."""

    def __init__(self) -> None:
        self._asking = _socket(0)
        self._asking.settimeout(5)
        self._events = _socket(_GROUPS)
        self._events.setblocking(False)
        self._sequence = 0
        self._port: int = self._asking.getsockname()[0]

    def close(self) -> None:
        """Close both sockets."""
        self._asking.close()
        self._events.close()

    def used_for(self, prefix: Network) -> Route:
        """The route by which packets to the prefix leave. Raises RouteError if none of the main table leads there."""
        first = int(prefix.network_address)
        # The first addresses may be this host's own or a broadcast address.
        for place in range(min(prefix.num_addresses, 4)):
            address = ip_address(type(prefix.network_address)(first + place))
            family = socket.AF_INET if prefix.version == 4 else socket.AF_INET6
            header = _header(family, address.max_prefixlen, 0, 0, _FIB_MATCH, table=0, kind=0)
            try:
                (route,) = self._ask(_GETROUTE, 0, header + _attribute(_DST, address.packed))
            except OSError as error:
                raise RouteError(f"{prefix}: {os.strerror(error.errno or 0)}") from None
            if route.is_plain:
                return route
        raise RouteError(f"{prefix}: no route of the main table leads there")

    def add(self, route: Route) -> None:
        """Set a route of ours that is not there."""
        self._ask(_NEWROUTE, _CREATE | _EXCLUDE, route.packed())

    def replace(self, route: Route) -> None:
        """Change a route of ours that is there, in one step."""
        self._ask(_NEWROUTE, _REPLACE, route.packed())

    def remove(self, route: Route) -> bool:
        """Remove a route of ours; False if there is none with just these attributes."""
        try:
            self._ask(_DELROUTE, 0, route.packed())
        except OSError as error:
            if error.errno in (errno.ESRCH, errno.ENOENT, errno.ENODEV):
                return False
            raise
        return True

    def ours(self) -> dict[Network, Route]:
        """All routes that are ours."""
        found: list[Route] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            header = _header(family, 0, PROTOCOL, 0, 0, kind=0)
            try:
                found += self._ask(_GETROUTE, _DUMP, header)
            except OSError as error:
                # No route has this protocol and table yet, or the kernel lacks IPv6.
                if error.errno not in (errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP):
                    raise
        return {route.network: route for route in found if route.is_ours}

    def changes_by_others(self) -> list[Route] | None:
        """Routes of the main table that others set or removed since the last call; None if events were lost."""
        found: list[Route] = []
        while True:
            try:
                message = self._events.recv(1 << 16)
            except BlockingIOError:
                return found
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                return None
            for kind, _, port, body in _messages(message):
                flags = struct.unpack_from("=I", body, 8)[0] if len(body) >= 12 else _CLONED
                if kind in (_NEWROUTE, _DELROUTE) and port != self._port and not flags & _CLONED:
                    route = Route.read(body, port, kind == _DELROUTE)
                    if route.is_main:
                        found.append(route)

    def _ask(self, kind: int, flags: int, body: bytes) -> list[Route]:
        """The routes of the answer. Raises OSError as the kernel's error says."""
        self._sequence += 1
        flags |= _REQUEST if kind == _GETROUTE else _REQUEST | _ACK
        self._asking.send(struct.pack("=IHHII", 16 + len(body), kind, flags, self._sequence, 0) + body)
        found: list[Route] = []
        while True:
            for answer, sequence, _, payload in _messages(self._asking.recv(1 << 18)):
                if sequence != self._sequence:
                    continue
                if answer in (_ERROR, _DONE):
                    code = -struct.unpack_from("=i", payload)[0] if len(payload) >= 4 else 0
                    if code:
                        raise OSError(code, os.strerror(code))
                    return found
                found.append(Route.read(payload))
                if kind == _GETROUTE and flags & _DUMP != _DUMP:
                    return found


def _socket(groups: int) -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    made.bind((0, groups))
    # The kernel filters dumps by protocol then.
    made.setsockopt(_SOL_NETLINK, _STRICT_CHECK, 1)
    return made


def _header(
    family: int, length: int, protocol: int, scope: int, flags: int, *, table: int = _MAIN, kind: int = _UNICAST
) -> bytes:
    """An rtmsg."""
    return struct.pack("=8BI", family, length, 0, 0, table, protocol, scope, kind, flags)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(run: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(run):
        length, kind = struct.unpack_from("=HH", run, place)
        if length < 4:
            return
        # The two upper bits say how to read a value (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        yield kind & 0x3FFF, run[place + 4 : place + length]
        place += (length + 3) & ~3


def _messages(run: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, sequence number, port and body of each message."""
    place = 0
    while place + 16 <= len(run):
        length, kind, _, sequence, port = struct.unpack_from("=IHHII", run, place)
        if length < 16:
            return
        yield kind, sequence, port, run[place + 16 : place + length]
        place += (length + 3) & ~3
