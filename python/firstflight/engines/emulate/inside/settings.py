"""What a host is made of: its kernel's settings (sysctls of its namespace, attributes of its routes), each set and
read back, and its one device `ff0`, a TUN device or an end of a veth pair whose other end the box reads.
"""

import array
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Container
from pathlib import Path
from typing import Any

from pyroute2.iproute.linux import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from firstflight import _native
from firstflight.engines.emulate.inside.processes import DEVICE, Namespace
from firstflight.errors import MachineError

SYS = Path("/proc/sys")
TCP = SYS / "net/ipv4"
_CUBIC = Path("/sys/module/tcp_cubic/parameters")

# Settings of every host in every testbed, with any TCP: nothing remembered from one connection to the next, no
# second address family, no packet that the scenario does not have.
_EVERYWHERE = {
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_no_ssthresh_metrics_save": "1",
    "net.ipv4.tcp_fastopen": "0",
    "net.ipv4.ip_forward": "0",
    # A web server needs no privilege for its port.
    "net.ipv4.ip_unprivileged_port_start": "0",
    # Nor does `ping`: group 0 here is that of the user who runs the testbed.
    "net.ipv4.ping_group_range": "0 0",
}
_NO_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
# The addresses that are given and no others, and no packet about neighbors, routers or groups.
_QUIET_IPV6 = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
    "net.ipv6.conf.all.forwarding": "0",
}

_MAIN_TABLE = 254
_STATIC = 4
# Route attributes by iproute2's names, and pyroute2's where they differ.
_ATTRIBUTES = {"congctl": "cc_algo"}

_MTU = 1500
# The kernel's default of 500 packets would drop before the box can count.
QUEUE = 10_000

_TUN = "/dev/net/tun"
_IFF_UP, _IFF_NOARP = 0x01, 0x80
_SIOCETHTOOL = 0x8946

# Offloads that would let "packets" be larger than the wire's or leave their checksums unfilled: (name, set, get) of
# ethtool.
_OFFLOADS = (
    ("rx-checksumming", 0x15, 0x14),
    ("generic-receive-offload", 0x2C, 0x2B),
    ("tcp-segmentation-offload", 0x1F, 0x1E),
    ("generic-segmentation-offload", 0x24, 0x23),
    ("scatter-gather", 0x19, 0x18),
    ("tx-checksumming", 0x17, 0x16),
)


def everywhere(family: socket.AddressFamily = socket.AF_INET) -> dict[str, str]:
    """The sysctls of every host with an address of this family."""
    return _EVERYWHERE | (no_ipv6() if family == socket.AF_INET else _QUIET_IPV6)


def no_ipv6() -> dict[str, str]:
    """The sysctls that keep IPv6 from speaking; none where the kernel has no IPv6."""
    return _NO_IPV6 if (SYS / "net/ipv6").is_dir() else {}


def set_sysctls(host: str, sysctls: dict[str, str], missing: Container[str] = ()) -> None:
    """Write and read back, in the calling thread's namespace. MachineError with the value found instead, and for a
    sysctl that the kernel lacks and that is not in `missing`.
    """
    for name, value in sysctls.items():
        # As root, files outside of net would be the machine's own.
        if not name.startswith("net."):
            raise MachineError(f"host {host}: {name} is no setting of a host's network")
        path = SYS / name.replace(".", "/")
        try:
            path.write_text(f"{value}\n", encoding="ascii")
        except FileNotFoundError:
            if name in missing:
                continue
            raise MachineError(f"host {host}: this kernel has no {name} within a namespace (asked: {value})") from None
        except OSError as error:
            actual = sysctl(path)
            raise MachineError(
                f"host {host}: the kernel refuses {name} = {value} ({error.strerror}); it is {actual}"
            ) from None
        actual = sysctl(path)
        if actual.split() != value.split():
            raise MachineError(f"host {host}: {name} was set to {value} and reads {actual}")


def sysctl(path: Path) -> str:
    """The value in one file, its fields apart by one blank; "unreadable" where it cannot be read."""
    try:
        return " ".join(path.read_text(encoding="ascii").split())
    except OSError:
        return "unreadable"


def dump() -> dict[str, str]:
    """Every net.ipv4.tcp_* of the calling thread's namespace, and its other settings that affect a transfer."""
    sysctls = {f"net.ipv4.{path.name}": sysctl(path) for path in sorted(TCP.glob("tcp_*"))}
    for name in ("net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc", "net.ipv4.ip_no_pmtu_disc"):
        path = SYS / name.replace(".", "/")
        if path.exists():
            sysctls[name] = sysctl(path)
    return sysctls


def set_route(netlink: IPRoute, host: str, address: str, to: str, device: int, attributes: dict[str, Any]) -> None:
    """The route to `to` over the only device, with these attributes and no others, read back.

    MachineError for an attribute that the kernel refuses or keeps otherwise, and for a congestion control that it does
    not have.
    """
    metrics = {_ATTRIBUTES.get(name, name): value for name, value in attributes.items()}
    route = {"family": _family(to), "dst": to, "oif": device, "prefsrc": address, "proto": "static"} | _scope(to)
    try:
        netlink.route("replace", **route, **({"metrics": metrics} if metrics else {}))
    except NetlinkError as error:
        control = attributes.get("congctl")
        available = sysctl(TCP / "tcp_available_congestion_control").split()
        if control is not None and control not in available:
            raise MachineError(
                f"host {host}: this kernel has no congestion control {control!r}; it has {', '.join(available)}; "
                f"a module may bring it: modprobe tcp_{control}"
            ) from None
        raise MachineError(f"host {host}: the kernel refuses a route to {to} with {attributes}: {error}") from None
    actual = route_attributes(netlink).get(to)
    if actual != metrics:
        raise MachineError(f"host {host}: the route to {to} was given {metrics} and has {actual}")


def route_attributes(netlink: IPRoute) -> dict[str, dict[str, Any]]:
    """The attributes by pyroute2's names of each route of the main table but the kernel's own, by destination."""
    routes = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        for route in netlink.get_routes(family=family, table=_MAIN_TABLE):
            if route["proto"] != _STATIC:
                continue
            metrics = route.get("metrics")
            attributes = metrics["attrs"] if metrics else []
            to = f"{route.get('dst')}/{route['dst_len']}"
            routes[to] = {name.removeprefix("RTAX_").lower(): value for name, value in attributes}
    return routes


def _family(to: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in to else socket.AF_INET


def _scope(to: str) -> dict[str, str]:
    """Nothing is behind a gateway; IPv6's routes have no scope."""
    return {"scope": "link"} if _family(to) == socket.AF_INET else {}


def route_takes(control: str) -> bool:
    """Whether a route in the calling thread's namespace can name this congestion control."""
    with IPRoute() as netlink:
        loopback = socket.if_nametoindex("lo")
        netlink.link("set", index=loopback, state="up")
        try:
            netlink.route("replace", dst="192.0.2.0/24", oif=loopback, scope="link", metrics={"cc_algo": control})
        except NetlinkError:
            return False
    return True


def keep_only_routes(netlink: IPRoute, kept: set[str]) -> None:
    """Delete every route to the testbed that an earlier call made and this one does not have."""
    for to in route_attributes(netlink).keys() - kept:
        netlink.route("del", family=_family(to), dst=to, table=_MAIN_TABLE, **_scope(to))


def cubic() -> dict[str, str]:
    """Parameters of CUBIC, HyStart's among them: the whole machine's, so they are read and never set."""
    return {path.name: sysctl(path) for path in sorted(_CUBIC.glob("*"))} if _CUBIC.is_dir() else {}


def tun_refusal() -> str | None:
    """Why this process cannot open TUN devices, or None if it can."""
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{_TUN}: {error.strerror}"
    return None


def open_tun(host: Namespace, end: str) -> int:
    """A new TUN device in the host's namespace, as the descriptor that keeps it: the device goes with it.

    It is made in the calling thread's namespace, there called `end`, and moved: a descriptor keeps the namespace alive
    that it was opened in, and a hundred devices go at once if that is not the host's, else one by one in seconds.
    """
    try:
        fd = _native.open_device("tun", end)
    except OSError as error:
        raise MachineError(f"host {host.name}: the kernel makes no TUN device: {error.strerror}") from None
    with IPRoute() as netlink:
        netlink.link("set", index=socket.if_nametoindex(end), net_ns_fd=host.fd, ifname=DEVICE)
    return fd


def open_pair(host: Namespace, end: str, mac: str, mtu: int = _MTU) -> int:
    """A veth pair: the device, with this Ethernet address, in the host's namespace, `end` in the calling thread's; a
    packet socket on `end`, as a descriptor.
    """
    peer = {"ifname": DEVICE, "address": mac, "net_ns_fd": host.fd}
    with IPRoute() as netlink:
        try:
            netlink.link("add", ifname=end, kind="veth", peer=peer)
        except NetlinkError as error:
            raise MachineError(f"host {host.name}: the kernel makes no veth pair: {error}") from None
        offloads_off(host.name, end)
        bring_up(netlink, end, mtu)
    try:
        return _native.open_device("packet", end)
    except OSError as error:
        raise MachineError(f"host {host.name}: the kernel opens no packet socket: {error.strerror}") from None


def bring_up(netlink: IPRoute, device: str, mtu: int = _MTU, without_arp: bool = False) -> int:
    """Set a device's queue and packet size, and up; its index."""
    index = socket.if_nametoindex(device)
    flags = _IFF_UP | _IFF_NOARP if without_arp else _IFF_UP
    netlink.link("set", index=index, mtu=mtu, txqlen=QUEUE, flags=flags, change=flags)
    return index


def offloads_off(where: str, device: str) -> None:
    """Switch every offload off and read it back; MachineError for one that stays on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, setting, _ in _OFFLOADS:
            try:
                _ethtool(control, device, setting, 0)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise MachineError(
                        f"host {where}: {name} of {device} cannot be switched off: {error.strerror}"
                    ) from None
        for name, _, getting in _OFFLOADS:
            if _ethtool(control, device, getting, 0):
                raise MachineError(f"host {where}: {name} of {device} was switched off and is still on")


def offloads_on(device: str) -> list[str]:
    """The names of the offloads of a device that are on. OSError where it has none to ask for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return [name for name, _, getting in _OFFLOADS if _ethtool(control, device, getting, 0)]


def _ethtool(control: socket.socket, device: str, command: int, value: int) -> int:
    buffer = array.array("I", [command, value])
    address, _ = buffer.buffer_info()
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", device.encode(), address))
    return buffer[1]
