"""Initial windows by rtnetlink: routes of our own, more specific than those there are, which are never touched.

A window for a prefix is a route to it: a copy of the route that the kernel would use, with `initcwnd`, our protocol
number and our metric. The metric is larger than any in use, so a route of the administrator's to the same prefix wins
in the kernel itself, and the key (prefix, metric) never names another program's route.
"""

import errno
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from firstflight.errors import FirstflightError
from firstflight.guard.outcome import Network
from firstflight.netlink import ACK, Asking, attach_filter, attribute, attributes, messages

PROTOCOL = 71
"""The protocol that `ip route` prints as `proto 71`: no routing daemon uses it (linux/rtnetlink.h)."""
METRIC = 2_071_000_000

_FAMILIES = {socket.AF_INET: "ip", socket.AF_INET6: "ip -6"}
_LOCAL, _MAIN, _DEFAULT, _UNICAST = 255, 254, 253, 1
_NEWROUTE, _DELROUTE, _GETROUTE, _NEWRULE, _DELRULE, _GETRULE = 24, 25, 26, 32, 33, 34
_REPLACE, _EXCLUDE, _CREATE = 0x100, 0x200, 0x400
_FIB_MATCH, _CLONED, _ON_LINK = 0x2000, 0x200, 0x4
_DST, _SRC, _OIF, _GATEWAY, _PRIORITY, _PREFSRC, _METRICS, _MULTIPATH, _FLOW = 1, 2, 4, 5, 6, 7, 8, 9, 11
_TABLE, _MARK, _VIA, _PREFERENCE, _ENCAP_TYPE, _ENCAP = 15, 16, 18, 20, 21, 22
_IP_PROTOCOL, _SPORT, _DPORT = 27, 28, 29
_INITCWND = 11
_WAY = (_OIF, _GATEWAY, _PREFSRC, _MULTIPATH, _FLOW, _VIA, _PREFERENCE, _ENCAP_TYPE, _ENCAP)
# RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE, RTMGRP_IPV4_RULE and the bit of RTNLGRP_IPV6_RULE.
_GROUPS = 0x40 | 0x400 | 0x80 | 1 << 18
_SOL_NETLINK, _STRICT_CHECK = 270, 12
_SO_RCVBUFFORCE = 33
_EVENT_BYTES = 8 << 20
# Attributes of a rule (linux/fib_rules.h) that select nothing, and the rules that the kernel begins with.
_RULE_PRIORITY, _RULE_SUPPRESS, _RULE_TABLE, _RULE_PAD, _RULE_PROTOCOL = 6, 14, 15, 18, 21
_KERNEL_RULES = {(0, _LOCAL), (32766, _MAIN), (32767, _DEFAULT)}


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
        value = dict(attributes(self.attributes.get(_METRICS, b""))).get(_INITCWND)
        return None if value is None else int(struct.unpack("=I", value)[0])

    @property
    def is_main(self) -> bool:
        """Whether it is in the main table."""
        return self._number(_TABLE) in (None, _MAIN)

    @property
    def selects(self) -> bool:
        """Whether it is for some sources or types of service alone."""
        return bool(self.header[2] or self.header[3])

    @property
    def is_plain(self) -> bool:
        """Whether packets leave by it: no local, unreachable or blackhole route, and in the main table."""
        return self.header[7] == _UNICAST and self.is_main

    def with_window(self, prefix: Network, segments: int) -> "Route":
        """A route of ours to a prefix, the same way.

        Not by the same nexthop object: the kernel caches one destination for all routes of an object, so the window
        would be that of every prefix (Linux 6.18, nhc_pcpu_rth_output and rt6i_pcpu).
        """
        values = {_DST: prefix.network_address.packed, _PRIORITY: struct.pack("=I", METRIC)}
        values |= {kind: self.attributes[kind] for kind in _WAY if kind in self.attributes}
        metrics = dict(attributes(self.attributes.get(_METRICS, b""))) | {_INITCWND: struct.pack("=I", segments)}
        values[_METRICS] = b"".join(attribute(kind, value) for kind, value in metrics.items())
        flags = int(struct.unpack_from("=I", self.header, 8)[0]) & _ON_LINK
        header = _header(self.header[0], prefix.prefixlen, PROTOCOL, self.header[6], flags)
        return Route(header, values)

    def packed(self) -> bytes:
        """As a netlink message holds it."""
        return self.header + b"".join(attribute(kind, value) for kind, value in self.attributes.items())

    @classmethod
    def read(cls, packed: bytes, requester: int = 0, removed: bool = False) -> "Route":
        """From a netlink message."""
        return cls(packed[:12], dict(attributes(packed[12:])), requester, removed)

    def _number(self, kind: int) -> int | None:
        value = self.attributes.get(kind)
        return None if value is None else int(struct.unpack("=I", value)[0])


class RoutedClient(NamedTuple):
    """What the kernel routes a connection's packets by, addresses as bytes."""

    remote: bytes
    source: bytes = b""
    mark: int = 0
    tos: int = 0
    """Of IPv4; IPv6 routes do not depend on it."""
    ports: tuple[int, int] = (0, 0)
    """This host's and the client's."""


class Routes:
    """The routes of the calling thread's network namespace. Raises OSError where the kernel refuses."""

    def __init__(self) -> None:
        self._asking = Asking(socket.NETLINK_ROUTE)
        # The kernel filters dumps by protocol and table then.
        self._asking.socket.setsockopt(_SOL_NETLINK, _STRICT_CHECK, 1)
        self._events = _events(self._asking.port)
        self._policy: str | None = None
        self._policy_known = False

    def close(self) -> None:
        """Close both sockets."""
        self._asking.socket.close()
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
                (answer,) = self._asking.ask(_GETROUTE, 0, header + attribute(_DST, address.packed), single=True)
            except OSError as error:
                raise RouteError(f"{prefix}: {os.strerror(error.errno or 0)}") from None
            route = Route.read(answer)
            if route.is_plain:
                return route
        raise RouteError(f"{prefix}: no route of the main table leads there")

    def path(self, client: RoutedClient) -> tuple[object, ...]:
        """The way of a connection's packets: device, gateway, own address; or the kernel's error."""
        family = socket.AF_INET if len(client.remote) == 4 else socket.AF_INET6
        bits = 8 * len(client.remote)
        tos = client.tos & 0x1C if family == socket.AF_INET else 0
        header = struct.pack("=8BI", family, bits, bits if client.source else 0, tos, 0, 0, 0, 0, 0)
        values = {_DST: client.remote, _SRC: client.source, _IP_PROTOCOL: bytes([socket.IPPROTO_TCP])}
        values[_MARK] = struct.pack("=I", client.mark) if client.mark else b""
        for kind, port in zip((_SPORT, _DPORT), client.ports, strict=True):
            values[kind] = struct.pack(">H", port) if port else b""
        body = header + b"".join(attribute(kind, value) for kind, value in values.items() if value)
        try:
            (answer,) = self._asking.ask(_GETROUTE, 0, body, single=True)
        except OSError as error:
            return (error.errno,)
        route = Route.read(answer)
        return (route.header[7], *(route.attributes.get(kind) for kind in (_OIF, _GATEWAY, _VIA, _PREFSRC, _ENCAP)))

    def add(self, route: Route) -> None:
        """Set a route of ours that is not there."""
        self._change(_NEWROUTE, _CREATE | _EXCLUDE, route)

    def replace(self, route: Route) -> None:
        """Change a route of ours that is there, in one step."""
        self._change(_NEWROUTE, _REPLACE, route)

    def remove(self, route: Route) -> bool:
        """Remove a route of ours; False if there is none with just these attributes (IPv6: whatever its window)."""
        try:
            self._change(_DELROUTE, 0, route)
        except OSError as error:
            if error.errno in (errno.ESRCH, errno.ENOENT, errno.ENODEV):
                return False
            raise
        return True

    def ours(self) -> dict[Network, Route]:
        """All routes that are ours. While others change routes the kernel's list may lack some."""
        routes = {}
        for family in _FAMILIES:
            for answer in self._asking.dump(_GETROUTE, _header(family, 0, PROTOCOL, 0, 0, kind=0)):
                route = Route.read(answer)
                if route.is_ours:
                    routes[route.network] = route
        return routes

    def changes_by_others(self) -> list[Route] | None:
        """Routes of the main table that others set or removed since the last call; None if events were lost."""
        routes: list[Route] = []
        while True:
            try:
                message = self._events.recv(1 << 16)
            except BlockingIOError:
                return routes
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._policy_known = False
                return None
            for kind, _, port, body in messages(message):
                if kind in (_NEWRULE, _DELRULE):
                    self._policy_known = False
                if (
                    kind not in (_NEWROUTE, _DELROUTE)
                    or len(body) < 12
                    or struct.unpack_from("=I", body, 8)[0] & _CLONED
                ):
                    continue
                route = Route.read(body, port, kind == _DELROUTE)
                if route.is_main:
                    routes.append(route)
                    self._policy_known &= not route.selects

    def policy_routing(self) -> str | None:
        """What makes the way depend on more than the destination; None if nothing does.

        A more specific route of ours would take packets that another rule or route is for. Read again after an event
        that `changes_by_others` has seen.
        """
        if not self._policy_known:
            # First, so that an event during the reading counts.
            self._policy_known = True
            self._policy = self._odd_rule() or self._odd_route()
        return self._policy

    def _odd_rule(self) -> str | None:
        for family, command in _FAMILIES.items():
            for answer in self._asking.dump(_GETRULE, _header(family, 0, 0, 0, 0, table=0, kind=0)):
                values = dict(attributes(answer[12:]))
                number = {kind: struct.unpack("=I", value)[0] for kind, value in values.items() if len(value) == 4}
                priority = number.get(_RULE_PRIORITY, 0)
                if (
                    # Lengths, TOS, action, flags.
                    (answer[1:4], answer[7:12]) != (bytes(3), b"\x01" + bytes(4))
                    or not values.keys() <= {_RULE_PRIORITY, _RULE_SUPPRESS, _RULE_TABLE, _RULE_PAD, _RULE_PROTOCOL}
                    or number.get(_RULE_SUPPRESS, 0xFFFFFFFF) != 0xFFFFFFFF
                    or (priority, number.get(_RULE_TABLE, answer[4])) not in _KERNEL_RULES
                ):
                    return f"`{command} rule` has rule {priority} in addition to local, main and default"
        return None

    def _odd_route(self) -> str | None:
        for family, command in _FAMILIES.items():
            route = None
            for answer in self._asking.dump(_GETROUTE, _header(family, 0, 0, 0, 0, kind=0)):
                if answer[2] or answer[3]:
                    route = Route.read(answer)
            if route is not None:
                by = "source" if route.header[2] else "TOS"
                return f"`{command} route` has a route by {by} to {route.network}"
        return None

    def _change(self, kind: int, flags: int, route: Route) -> None:
        for _ in self._asking.ask(kind, flags | ACK, route.packed()):
            """Nothing follows but the kernel's word."""


def _events(own_port: int) -> socket.socket:
    """Changes of routes and rules. The kernel leaves out those that the socket `own_port` made (linux/filter.h)."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    # Load nlmsg_pid, in network order; drop if it is ours; else accept.
    own = socket.htonl(own_port)
    attach_filter(made, ((0x20, 0, 0, 12), (0x15, 0, 1, own), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)))
    for option in (socket.SO_RCVBUF, _SO_RCVBUFFORCE):
        # Beyond `net.core.rmem_max` for root of the first user namespace alone.
        with suppress(PermissionError):
            made.setsockopt(socket.SOL_SOCKET, option, _EVENT_BYTES)
    made.bind((0, _GROUPS))
    made.setblocking(False)
    return made


def _header(
    family: int, length: int, protocol: int, scope: int, flags: int, *, table: int = _MAIN, kind: int = _UNICAST
) -> bytes:
    """An rtmsg, or a fib_rule_hdr, of which only the family counts in a request."""
    return struct.pack("=8BI", family, length, 0, 0, table, protocol, scope, kind, flags)
