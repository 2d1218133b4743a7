"""TCP sockets of this host as they are now (sock_diag): who is connected and how it is routed, who never answered."""

import socket
import struct
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import islice

from firstflight.guard.netlink import Asking, attributes
from firstflight.guard.outcome import Network
from firstflight.guard.routes import Client

_SOCK_DIAG, _BY_FAMILY = 4, 20
# linux/inet_diag.h: attributes, asked for by a bit each; states as bits.
_TOS, _MARK = 5, 15
_ESTABLISHED, _SYN_RECV = 1 << 1, 1 << 3
# So that a host with very many connections is read within some milliseconds.
_MOST_CONNECTED, _MOST_UNFINISHED = 2000, 4000
_MAPPED = bytes(10) + b"\xff\xff"


class Sockets:
    """Connections of some local ports, of all without any."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._seen: dict[bytes, int] = {}
        """Looks at each unfinished handshake."""

    def look(self, network: Callable[[bytes], Network]) -> tuple[dict[Network, list[Client]], list[Network]]:
        """Some of the connected clients by prefix, and the prefixes of handshakes that are unfinished for longer than
        since the last look. A client that does not answer the SYN/ACK within that time counts once.
        """
        clients: defaultdict[Network, list[Client]] = defaultdict(list)
        waiting: dict[bytes, bytes] = {}
        for family in (socket.AF_INET, socket.AF_INET6):
            for port in self._ports or [0]:
                for client, _ in _sockets(family, port, _ESTABLISHED, _MOST_CONNECTED):
                    clients[network(client.remote)].append(client)
                for client, name in _sockets(family, port, _SYN_RECV, _MOST_UNFINISHED):
                    waiting[name] = client.remote
        # Each is old at its second look and is reported then; at later ones it is known.
        late = [network(remote) for name, remote in waiting.items() if self._seen.get(name) == 1]
        self._seen = {name: self._seen.get(name, 0) + 1 for name in waiting}
        return clients, late


def _sockets(family: int, port: int, states: int, most: int) -> list[tuple[Client, bytes]]:
    """The sockets in these states, and a name for each handshake."""
    # struct inet_diag_req_v2, its inet_diag_sockid with the local port alone.
    body = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << _TOS - 1, 0, states)
    body += struct.pack(">H", port) + bytes(46)
    found = []
    asking = Asking(_SOCK_DIAG)
    with closing(asking.socket):
        for message in islice(asking.dump(_BY_FAMILY, body), most):
            size = 4 if family == socket.AF_INET else 16
            local, remote = (_address(message[place : place + size]) for place in (8, 24))
            if remote[:1] == b"\x7f" or remote == bytes(15) + b"\1":
                continue
            values = dict(attributes(message[72:]))
            mark = struct.unpack("=I", values.get(_MARK, bytes(4)))[0]
            ports = struct.unpack_from(">HH", message, 4)
            found.append((Client(remote, local, mark, values.get(_TOS, b"\0")[0], ports), message[4:40]))
    return found


def _address(packed: bytes) -> bytes:
    return packed[12:] if packed.startswith(_MAPPED) else packed
