"""IPv4 and TCP headers: made for a scripted peer, and read from the kernel's packets."""

import struct
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128
_LETTERS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ECE, "E"), (CWR, "W"), (ACK, "."))
# The ECN field of the IP header: not capable, ECT(1), ECT(0), congestion experienced.
ECT0, CE = 2, 3
_MARKS = ("noecn", "ect1", "ect0", "ce")
_NOP, _MSS, _SCALE, _SACK_OK, _SACK, _STAMPS = 1, 2, 3, 4, 5, 8


@dataclass(frozen=True)
class Packet:
    """One TCP segment. `source`, `destination`: address (4 bytes), port. `options`: raw, whole words. `ecn`: of IP."""

    source: tuple[bytes, int]
    destination: tuple[bytes, int]
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes = b""
    length: int = 0
    ecn: int = 0

    def mark(self) -> str:
        """The ECN field as a packet script writes it."""
        return f"[{_MARKS[self.ecn]}] "

    def letters(self) -> str:
        """The flags as a packet script writes them."""
        return "".join(letter for bit, letter in _LETTERS if self.flags & bit)

    def stamps(self) -> tuple[int, int] | None:
        """TSval and TSecr."""
        for kind, value in read_options(self.options):
            if kind == _STAMPS:
                return struct.unpack("!II", value)
        return None

    def scale(self) -> int:
        """The shift of the window scale option; 0 without one."""
        return next((value[0] for kind, value in read_options(self.options) if kind == _SCALE), 0)

    def written_options(self, origin: int) -> str:
        """The options as a packet script writes them; `origin`: the base of the edges of SACK blocks."""
        parts = []
        for kind, value in read_options(self.options):
            if kind == _MSS:
                parts.append(f"mss {int.from_bytes(value)}")
            elif kind == _SCALE:
                parts.append(f"wscale {value[0]}")
            elif kind == _STAMPS:
                parts.append("TS val {} ecr {}".format(*struct.unpack("!II", value)))
            elif kind == _SACK:
                edges = [number - origin & 0xFFFFFFFF for number in struct.unpack(f"!{len(value) // 4}I", value)]
                parts.append("sack " + " ".join(f"{a}:{b}" for a, b in zip(edges[::2], edges[1::2], strict=True)))
            else:
                parts.append({_NOP: "nop", _SACK_OK: "sackOK"}.get(kind, "eol"))
        return ",".join(parts)


def parse(data: bytes) -> Packet | None:
    """The segment in an IPv4 packet whose payload may be cut off; None for anything else."""
    if len(data) < 40 or data[0] >> 4 != 4 or data[9] != 6:
        return None
    start = (data[0] & 15) * 4
    total = int.from_bytes(data[2:4])
    source, destination, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", data, start)
    header = (offset >> 4) * 4
    options = bytes(data[start + 20 : start + header])
    ends = (bytes(data[12:16]), source), (bytes(data[16:20]), destination)
    return Packet(*ends, seq, ack, flags, window, options, total - start - header, data[1] & 3)


def build(packet: Packet) -> bytes:
    """The IPv4 packet, its payload zeros."""
    header = 20 + len(packet.options)
    total = 20 + header + packet.length
    ends = packet.source[0] + packet.destination[0]
    ip = struct.pack("!BBHHHBBH", 0x45, packet.ecn, total, 0, 0x4000, 64, 6, 0) + ends
    ip = ip[:10] + struct.pack("!H", checksum_of(ip)) + ip[12:]
    tcp = struct.pack(
        "!HHIIBBHHH",
        packet.source[1],
        packet.destination[1],
        packet.seq & 0xFFFFFFFF,
        packet.ack & 0xFFFFFFFF,
        header // 4 << 4,
        packet.flags,
        packet.window,
        0,
        0,
    )
    tcp += packet.options
    # Zeros add nothing to the sum.
    checksum = checksum_of(ends + struct.pack("!HH", 6, header + packet.length) + tcp)
    return ip + tcp[:16] + struct.pack("!H", checksum) + tcp[18:] + bytes(packet.length)


def syn_options(mss: int, sack: bool, stamp: int | None, scale: int) -> bytes:
    """The options that a Linux client offers; a `scale` below 0: without window scaling."""
    offered = struct.pack("!BBH", _MSS, 4, mss)
    permitted = bytes([_SACK_OK, 2])
    if stamp is not None:
        offered += (permitted if sack else bytes([_NOP, _NOP])) + struct.pack("!BBII", _STAMPS, 10, stamp, 0)
    elif sack:
        offered += bytes([_NOP, _NOP]) + permitted
    return offered + (bytes([_NOP, _SCALE, 3, scale]) if scale >= 0 else b"")


def ack_options(stamps: tuple[int, int] | None, blocks: list[tuple[int, int]]) -> bytes:
    """Timestamps, and as many SACK blocks as fit."""
    options = b"" if stamps is None else struct.pack("!BBBBII", _NOP, _NOP, _STAMPS, 10, *stamps)
    blocks = blocks[: 4 if stamps is None else 3]
    if blocks:
        options += bytes([_NOP, _NOP, _SACK, 2 + 8 * len(blocks)])
        options += b"".join(struct.pack("!II", a & 0xFFFFFFFF, b & 0xFFFFFFFF) for a, b in blocks)
    return options


def read_options(raw: bytes) -> list[tuple[int, bytes]]:
    """Kind and value of each option of a TCP header."""
    options, at = [], 0
    while at < len(raw):
        kind = raw[at]
        size = 1 if kind <= _NOP or at + 1 >= len(raw) else max(2, raw[at + 1])
        options.append((kind, raw[at + 2 : at + size]))
        at += size
    return options


def checksum_of(data: bytes) -> int:
    """The Internet checksum of these bytes (RFC 1071)."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
