"""A network namespace whose kernel is recorded: a TUN device with a capture, and a listening server."""

import contextlib
import mmap
import os
import socket
import struct
import time
from collections.abc import Iterable
from typing import Literal

from pyroute2.iproute.linux import IPRoute

from firstflight.conform.parameters import Parameters
from firstflight.conform.writer import JUMBO, SYSCTLS
from firstflight.engines.emulate.inside import settings
from firstflight.engines.emulate.inside.processes import DEVICE, Namespace
from firstflight.errors import MachineError

_SOL_PACKET, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 263, 5, 6, 10
_TPACKET_V2 = 1
_SO_TIMESTAMPNS = 35
# A socket for all protocols also gets the packets that are sent.
_ETH_P_ALL = 3
# A frame has room for struct tpacket2_hdr, struct sockaddr_ll and the headers of a packet.
_FRAME, _FRAMES, _BLOCK = 256, 1 << 14, 1 << 16
# From struct tpacket2_hdr: tp_status; tp_snaplen, tp_mac; tp_sec, tp_nsec.
_STATUS, _PLACE, _TIME = struct.Struct("=I"), struct.Struct("=8xIH"), struct.Struct("=16xII")
# sll_pkttype of the struct sockaddr_ll behind it.
_PACKET_TYPE = 32 + 10
_FREE = 0


class DeviceCapture:
    """Of a device in the network namespace of the calling thread."""

    def __init__(self, device: str) -> None:
        """MachineError where the kernel refuses the ring."""
        size = _FRAMES * _FRAME
        ring = struct.pack("=4I", _BLOCK, size // _BLOCK, _FRAME, _FRAMES)
        try:
            # Protocol 0: nothing comes before the socket is bound to its device.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), size)
        except OSError as error:
            raise MachineError(
                f"the kernel refuses a packet ring of {size >> 20} MiB at {device} ({error.strerror}): it needs a "
                "kernel with packet_mmap, and that much free memory"
            ) from None
        self._next = 0
        # A packet is stamped when it comes to the device, not when it is copied.
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind((device, _ETH_P_ALL))

    def fileno(self) -> int:
        """For poll: it is readable while packets wait."""
        return self._socket.fileno()

    def packets(self) -> list[tuple[int, bool, bytes]]:
        """Packets since the last call: when (ns of CLOCK_MONOTONIC), whether the kernel sent it, its headers."""
        packets: list[tuple[int, bool, bytes]] = []
        ahead: int | None = None
        while _STATUS.unpack_from(self._ring, self._next)[0] != _FREE:
            if ahead is None:
                ahead = _realtime_ahead()
            frame = self._next
            length, begins = _PLACE.unpack_from(self._ring, frame)
            seconds, nanoseconds = _TIME.unpack_from(self._ring, frame)
            sent = self._ring[frame + _PACKET_TYPE] == socket.PACKET_OUTGOING
            header = self._ring[frame + begins : frame + begins + length]
            packets.append((seconds * 1_000_000_000 + nanoseconds - ahead, sent, header))
            _STATUS.pack_into(self._ring, frame, _FREE)
            self._next = (frame + _FRAME) % len(self._ring)
        return packets

    def dropped(self) -> int:
        """Packets since the last call for which the ring had no room."""
        return int(struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[1])


def _realtime_ahead() -> int:
    """By how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, in ns."""
    readings: list[tuple[int, int]] = []
    for _ in range(3):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, real - (before + after) // 2))
    return min(readings)[1]


ADDRESS, PORT = "192.168.0.1", 8080
# Its resolution is a tick.
_CLOCK_MONOTONIC_COARSE = 6
_HEADERS = 128

_ahead = 0


class Stage:
    """One for each set of sysctls that sockets and routes cannot carry."""

    def __init__(self, number: int, restart: bool, trains: bool, compressed: bool) -> None:
        """MachineError where the kernel refuses the namespace, the device or a setting."""
        self._namespace = Namespace(f"conform {number}")
        self.tun = settings.open_tun(self._namespace, f"conform{number}")
        sysctls = settings.everywhere() | SYSCTLS
        sysctls |= {"net.ipv4.tcp_slow_start_after_idle": str(int(restart))}
        sysctls |= {"net.ipv4.tcp_min_tso_segs": "2" if trains else "1"}
        sysctls |= {"net.ipv4.tcp_comp_sack_nr": "44" if compressed else "0"}
        self._namespace.call(self._build, sysctls)

    def _build(self, sysctls: dict[str, str]) -> None:
        settings.set_sysctls("of the recorded kernel", sysctls)
        self._routes = IPRoute()
        self._routes.link("set", index=socket.if_nametoindex("lo"), state="up")
        self._device = settings.bring_up(self._routes, DEVICE, JUMBO)
        self._routes.addr("add", index=self._device, address=ADDRESS, prefixlen=32)
        self.capture = DeviceCapture(DEVICE)
        self.server = socket.create_server((ADDRESS, PORT), backlog=4096)
        self.server.setblocking(False)

    def set_routes(self, action: Literal["add", "del"], ways: Iterable[tuple[str, Parameters]]) -> None:
        """Routes to peers come or go: by address, with initial window, congestion control and MTU."""

        def change() -> None:
            for address, how in ways:
                metrics = {"initcwnd": how.iw, "cc_algo": how.cc, "mtu": JUMBO if how.jumbo else 1500}
                self._routes.route(action, dst=f"{address}/32", oif=self._device, scope="link", metrics=metrics)

        self._namespace.call(change)

    def packets(self) -> list[tuple[int, bool, bytes]]:
        """As `DeviceCapture.packets`. The packets at the other end of the device are discarded."""
        with contextlib.suppress(BlockingIOError):
            while True:
                os.read(self.tun, _HEADERS)
        return self.capture.packets()


def tick_clock() -> tuple[int, int]:
    """Nanoseconds of a tick, and the offset to add to CLOCK_MONOTONIC so that it is the time that timers count in:
    the number of the tick times its length.

    times(2) gives the tick's number in hundredths of a second, so its steps show when a tick begins; CLOCK_MONOTONIC
    itself begins with one. A busy machine counts ticks late, for a while: the largest difference ever seen is right.
    """
    global _ahead
    tick = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)
    last, seen = _hundredths(), 0
    while seen < 25:
        hundredths, now = _hundredths(), time.monotonic_ns()
        if hundredths != last and hundredths * 10_000_000 % tick == 0:
            _ahead = max(_ahead, hundredths * 10_000_000 - now // tick * tick)
            seen += 1
        last = hundredths
    return tick, _ahead


def _hundredths() -> int:
    return round(os.times().elapsed * 100)
