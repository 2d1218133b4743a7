"""The testbed as its first process sees it: hosts with their namespaces and devices, the link box, and its programs."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyroute2.iproute.linux import IPRoute

from firstflight.engines.emulate.inside import settings
from firstflight.engines.emulate.inside.processes import DEVICE, Box, Namespace, Watched
from firstflight.errors import RequestError

_BOX_FIRST_S = 0.1
_IFA_F_NODAD = 0x02


@dataclass
class Host:
    """A host: its namespace, address, and the index of its device there."""

    name: str
    address: str
    stack: str
    namespace: Namespace
    device: int = 0

    @property
    def family(self) -> socket.AddressFamily:
        """The address family: IPv4 or IPv6."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    @property
    def in_url(self) -> str:
        """The address in the syntax of URLs (RFC 3986 section 3.2.2)."""
        return f"[{self.address}]" if ":" in self.address else self.address


class Testbed:
    """The hosts, the link box and the settings of a testbed, in its first process."""

    def __init__(self, end: Callable[[str], None]) -> None:
        """`end` ends it all, with a sentence for the user."""
        self._end = end
        Watched.on_death = self._on_death
        self.hosts: dict[str, Host] = {}
        self.network = ""
        self.backend = ""
        self.mtu = 0
        self._box: Box | None = None
        self._real_time: list[int] = []
        self._lock = threading.Lock()

    def raise_priority(self, pid: int) -> None:
        """Have the runner give the process `pid`, which keeps time for packets, the real-time class."""
        with self._lock:
            self._real_time.append(pid)

    def take_real_time(self) -> list[int]:
        """The processes of `raise_priority` since the last call."""
        with self._lock:
            pids, self._real_time = self._real_time, []
            return pids

    @property
    def box(self) -> Box:
        """The link box; RequestError before it is started."""
        if self._box is None:
            raise RequestError("the testbed is not built yet: call build first")
        return self._box

    def _on_death(self, process: subprocess.Popen[bytes], sentence: str) -> None:
        """End it all, with this reason: a process that must not end did."""
        # If the link box ended as well, the devices went with it, and its reason is the one to report.
        if self._box is None or process is not self._box.process:
            time.sleep(_BOX_FIRST_S)
        self._end(sentence)

    def host(self, name: str) -> Host:
        """The host of that name; RequestError if there is none."""
        if name not in self.hosts:
            raise RequestError(f'there is no host "{name}" in the testbed; it has {", ".join(self.hosts)}')
        return self.hosts[name]

    def build(
        self, hosts: Sequence[dict[str, str]], mac: str, network: str, backend: str, plan: dict[str, Any]
    ) -> None:
        """Make the hosts, their devices and the box. `backend` is "tun" or "packet"; `mac` the link-layer addresses of
        the hosts' devices where they have a link layer; `network` the destination of every host's route; `plan` the
        link box's.

        MachineError, with the host, for each refusal of the kernel.
        """
        self.network, self.backend, self.mtu = network, backend, plan["mtu"]
        middle = Namespace("the middle")
        middle.call(_prepare_middle)
        for entry in hosts:
            self.hosts[entry["name"]] = Host(entry["name"], entry["address"], entry["stack"], Namespace(entry["name"]))
        fds = [self._attach(host, middle, f"h{place}", mac) for place, host in enumerate(self.hosts.values())]
        self._box = Box(plan, fds)
        self.raise_priority(self._box.process.pid)

    def _attach(self, host: Host, middle: Namespace, end: str, mac: str) -> tuple[str, int]:
        """The host's device, up; and the box's side of it."""
        veth = self.backend == "packet"
        host.namespace.call(settings.set_sysctls, host.name, settings.everywhere(host.family))
        if veth:
            fd = middle.call(settings.open_pair, host.namespace, end, mac, self.mtu)
        else:
            fd = middle.call(settings.open_tun, host.namespace, end)
        host.device = host.namespace.call(_configure, host, self.network, self.mtu, veth=veth)
        return self.backend, fd

    def set(
        self,
        host: str,
        sysctls: dict[str, str],
        route: dict[str, Any],
        peers: dict[str, dict[str, Any]],
        missing: Sequence[str],
    ) -> None:
        """Give a host its kernel settings: sysctls, attributes of the route to everyone, and of those to single peers.
        The kernel may lack the sysctls in `missing`.

        Attributes that an earlier call gave to a route and this one does not are gone.
        """
        target = self.host(host)
        bits = 32 if target.family == socket.AF_INET else 128
        addressed = {f"{self.host(peer).address}/{bits}": attributes for peer, attributes in peers.items()}
        target.namespace.call(settings.set_sysctls, host, sysctls, missing)
        target.namespace.call(_set_routes, target, {self.network: route} | addressed)


def _configure(host: Host, network: str, mtu: int, veth: bool) -> int:
    """Bring up a host's device, with its address and route if its kernel answers there; the device's index."""
    with IPRoute() as netlink:
        netlink.link("set", index=socket.if_nametoindex("lo"), state="up")
        if veth:
            settings.offloads_off(host.name, DEVICE)
        index = settings.bring_up(netlink, DEVICE, mtu, without_arp=veth)
        if host.stack == "kernel":
            # Without duplicate address detection, which would keep routes waiting.
            alone = {"prefixlen": 32} if host.family == socket.AF_INET else {"prefixlen": 128, "flags": _IFA_F_NODAD}
            netlink.addr("add", index=index, family=host.family, address=host.address, **alone)
            settings.set_route(netlink, host.name, host.address, network, index, {})
    return index


def _set_routes(host: Host, routes: dict[str, dict[str, Any]]) -> None:
    with IPRoute() as netlink:
        settings.keep_only_routes(netlink, set(routes))
        for to, attributes in routes.items():
            settings.set_route(netlink, host.name, host.address, to, host.device, attributes)


def _prepare_middle() -> None:
    settings.set_sysctls("the middle", settings.no_ipv6())
    # The room of the box's sockets; where it is not the namespace's own it stays the machine's.
    limit = Path("/proc/sys/net/core/rmem_max")
    if os.access(limit, os.W_OK):
        settings.set_sysctls("the middle", {"net.core.rmem_max": str(64 << 20)})
