"""Captures: how fast `observe` reads them, and how much memory that takes, for a file of a gigabyte and a tenth of it.

The files are made here: connections of 30 data segments, 500 at a time, on Ethernet with time stamps, once with all the
data and once cut to 96 bytes a packet, as `tcpdump -s 96` does.
"""

import json
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.process import run
from bench.row import Goal, Row
from firstflight.errors import MachineError

_BYTES = 1 << 30
_TOGETHER = 500
_SEGMENTS, _MSS = 30, 1448
_ROUND_TRIP_S = 0.04
_SNAPLEN = 96
_ROUNDS = 3
_READ = """
import json, resource, sys, time
from firstflight import _native
reader = _native.CaptureReader(sys.argv[1])
began, rows = time.process_time(), 0
while (tables := reader.read(65536)) is not None:
    rows += len(tables["connections"]["rtt_s"][1]) // 8
cpu_s = time.process_time() - began
packets = reader.counts()[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"cpu_s": cpu_s, "rows": rows, "packets": packets, "peak_bytes": peak}))
"""


@dataclass(frozen=True)
class _Read:
    cpu_s: float
    rows: int
    packets: int
    peak_bytes: int


def rows() -> list[Row]:
    """Speed and memory; nothing, and why on stderr, without room for a file of that size."""
    made = []
    with tempfile.TemporaryDirectory() as directory:
        free = shutil.disk_usage(directory).free
        if free < 2 * _BYTES:
            print(
                f"captures: not measured: {directory} has {free / 2**30:.1f} GiB free and they take 2; set TMPDIR",
                file=sys.stderr,
            )
            return []
        for name, snaplen in (("whole packets", None), (f"packets cut to {_SNAPLEN} bytes", _SNAPLEN)):
            path = Path(directory) / "made.pcap"
            connections = write_capture(path, _BYTES, snaplen)
            size = path.stat().st_size
            found = min((_read(path) for _ in range(_ROUNDS)), key=lambda read: read.cpu_s)
            if found.rows != connections:
                raise MachineError(f"a capture of {connections} connections was read as {found.rows}")
            write_capture(path, _BYTES // 10, snaplen)
            tenth = _read(path)
            rate = size / found.cpu_s / 1e6
            note = (
                f"{size / 1e6:,.0f} MB, {found.packets:,} packets, {found.packets / found.cpu_s / 1e6:.2g} M packets/s"
            )
            work = f"capture, {name}"
            made.append(Row(work, rate, "MB / CPU s", goals=(Goal(200),), goals_of_ratio=False, note=note))
            made.append(
                Row(
                    f"{work}, memory",
                    found.peak_bytes / 2**20,
                    "MiB at most",
                    peer="a tenth of it",
                    peer_value=tenth.peak_bytes / 2**20,
                    goals=(Goal(1.1, at_least=False),),
                )
            )
    return made


def _read(path: Path) -> _Read:
    return _Read(**json.loads(run([sys.executable, "-c", _READ, str(path)]).output))


def write_capture(path: Path, size: int, snaplen: int | None) -> int:
    """Write a pcap file of at least `size` bytes; how many connections are in it."""
    connections = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        packets = list(_packets())
        wave = 0
        while file.tell() < size:
            # Half a second from one set of connections to the next, which begins when those have ended.
            file.writelines(_records(packet, at_s, wave, snaplen).tobytes() for at_s, packet in packets)
            connections += _TOGETHER
            wave += 1
    return connections


def _packets() -> Iterator[tuple[float, bytes]]:
    """One connection as a server sees it: moment and packet, whose client's address and port are yet to come."""
    acknowledged, sent, now = 0, 0, 0.0
    yield now, _packet(False, 0, 0, 2, 0)
    yield now, _packet(True, 0, 1, 18, 0)
    now += _ROUND_TRIP_S
    yield now, _packet(False, 1, 1, 16, 0)
    yield now, _packet(False, 1, 1, 24, 120)
    window = 10
    while acknowledged < _SEGMENTS:
        flight = min(window, _SEGMENTS - sent)
        for _ in range(flight):
            yield now, _packet(True, 1 + sent * _MSS, 121, 16, _MSS)
            sent += 1
        now += _ROUND_TRIP_S
        while acknowledged < sent:
            acknowledged = min(acknowledged + 2, sent)
            yield now, _packet(False, 121, 1 + acknowledged * _MSS, 16, 0)
            now += 0.0005
        window *= 2
    end = 1 + sent * _MSS
    yield now, _packet(True, end, 121, 17, 0)
    yield now + _ROUND_TRIP_S, _packet(False, 121, end + 1, 17, 0)
    yield now + _ROUND_TRIP_S, _packet(True, end + 1, 122, 16, 0)


def _packet(from_server: bool, seq: int, ack: int, flags: int, payload: int) -> bytes:
    options = bytes((2, 4, 5, 0xB4)) if flags & 2 else bytes(12)
    stamps = b"" if flags & 2 else bytes((1, 1, 8, 10)) + struct.pack(">II", 1, 1)
    options = options if flags & 2 else stamps
    ports = (443, 0) if from_server else (0, 443)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) << 2, flags, 65535, 0, 0) + options
    addresses = (b"\xc0\x00\x02\x01", bytes(4)) if from_server else (bytes(4), b"\xc0\x00\x02\x01")
    total = 20 + len(tcp) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + b"".join(addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)


def _records(packet: bytes, at_s: float, wave: int, snaplen: int | None) -> NDArray[np.uint8]:
    """The packet on each of the connections of a wave, as records of the file, one after the other."""
    kept = packet[:snaplen]
    time_ns = round((1_700_000_000 + wave * 0.5 + at_s) * 1e9)
    head = struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(kept), len(packet))
    records = np.tile(np.frombuffer(head + kept, dtype=np.uint8), (_TOGETHER, 1))
    from_server = kept[14 + 20 : 14 + 22] == b"\x01\xbb"
    address, port = (16 + 30, 16 + 36) if from_server else (16 + 26, 16 + 34)
    records[:, address : address + 4] = np.frombuffer((0x0B000000 + wave).to_bytes(4), dtype=np.uint8)
    ports = (20_000 + np.arange(_TOGETHER)).astype(">u2")
    records[:, port : port + 2] = ports.view(np.uint8).reshape(-1, 2)
    return records
