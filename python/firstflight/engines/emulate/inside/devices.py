"""The one device of each host, `ff0`: a TUN device, or an end of a veth pair whose other end the box reads."""

import array
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path
from typing import Any

from pyroute2.iproute.linux import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from firstflight import _native
from firstflight.engines.emulate.inside.processes import Namespace
from firstflight.errors import MachineError

DEVICE = "ff0"
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


def look() -> dict[str, Any]:
    """The device of the calling thread's namespace as the kernel reports it: `mtu` in bytes, `queue_packets`,
    `offloads` that are on, and whether it speaks IPv6.
    """
    with IPRoute() as netlink:
        link = netlink.get_links(ifname=DEVICE)[0]
    ipv6 = Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6")
    return {
        "mtu": link.get("mtu"),
        "queue_packets": link.get("txqlen"),
        "offloads": offloads_on(DEVICE),
        "ipv6": ipv6.exists() and ipv6.read_text(encoding="ascii").strip() == "0",
    }


def _ethtool(control: socket.socket, device: str, command: int, value: int) -> int:
    buffer = array.array("I", [command, value])
    address, _ = buffer.buffer_info()
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", device.encode(), address))
    return buffer[1]
