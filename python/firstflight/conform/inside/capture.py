"""Captures the packets of a device in a ring of frames in shared memory (packet_mmap, TPACKET_V2).

A packet that waits in an ordinary packet socket is a clone of the one that TCP gets, and the kernel does not merge the
next segment into a clone (`skb_try_coalesce`): the receive window would differ. The ring holds copies.
"""

import mmap
import socket
import struct
import time

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


class Capture:
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
