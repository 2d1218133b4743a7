"""QUIC over real stacks: their programs and settings, and what the packets at the server's end of the path show."""

import importlib.util
import struct
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.engines.emulate.kernel import segment_bytes
from firstflight.engines.emulate.layout import Ends
from firstflight.errors import MachineError, RequestError
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.tcp import initial_window_bytes

_CHECKOUT = Path(__file__).resolve().parents[4]
_QUINN = _CHECKOUT / "crates/quic/target/release/firstflight-quic"
_AIOQUIC = Path(__file__).parent / "inside" / "aioquic_programs.py"
# CRYPTO_BUFFER_SIZE of aioquic 1.7.
_AIOQUIC_FLIGHT_BYTES = 16_384
# RFC 9000 section 14: the smallest datagrams that QUIC allows.
_LEAST_DATAGRAM_BYTES = 1200
_UDP = 17
_UDP_HEADER_BYTES = 8
# A link that was idle for less between two datagrams got them back to back.
_BACK_TO_BACK_NS = 1_000_000
# The first answers to a flight arrive an RTT after its beginning; the rest is a margin.
_FLIGHT_RTTS = 0.9
# A packet's block in a pcapng file; a long header and its packet types (RFC 9000 section 17.2).
_PACKET = 6
_LONG, _TYPE, _INITIAL = 0x80, 0x30, 0x00


def settings(plan: Mapping[str, Any], application: FileTransfer, where: str) -> dict[str, Any]:
    """Of a plan's application over QUIC: "command" of the stack's program, "server" and "client" settings.

    The datagrams have as many bytes as a segment of TCP, and so has IW. RequestError for settings that the
    stack lacks, MachineError if it is not there.
    """
    server = plan["server_tcp"]
    datagram = segment_bytes(server)
    hello, flight = _flights(plan, where)
    if application.direction == "upload":
        raise RequestError(f'{where}.direction: the emulator does downloads only; write "download"')
    if datagram < _LEAST_DATAGRAM_BYTES:
        raise RequestError(
            f"{where}.server_tcp.mss: its segments have {datagram}B, but datagrams of QUIC have "
            f"{_LEAST_DATAGRAM_BYTES}B at least (RFC 9000 section 14); write a larger one"
        )
    window = initial_window_bytes(server["initial_window"], datagram)
    control = server["congestion_control"]["algorithm"]
    of_server = {"datagram_bytes": datagram, "congestion_control": control, "flight_bytes": flight}
    if application.quic_stack != "aioquic":
        of_server |= {"initial_window_bytes": window}
    elif window != 10 * datagram:
        raise RequestError(
            f"{where}.server_tcp.initial_window: that of aioquic is a constant, 10 datagrams; write 10, or "
            'quic_stack = "quinn"'
        )
    elif flight > _AIOQUIC_FLIGHT_BYTES:
        raise RequestError(
            f"{where}.tls: the server's flight has {flight}B, and aioquic's at most {_AIOQUIC_FLIGHT_BYTES}B; name a "
            'smaller chain, or quic_stack = "quinn"'
        )
    client = {"datagram_bytes": datagram, "hello_bytes": hello, "request_bytes": plan["request_bytes"]}
    return {"command": command(application), "server": of_server, "client": client}


def _flights(plan: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Bytes of the ClientHello and of the server's flight."""
    kinds = plan["handshakes"]["kinds"]
    flights = kinds[0]["flights"]
    sizes = [flight["bytes"] for flight in flights]
    if len(kinds) > 1 or kinds[0].get("resumption", "none") != "none":
        raise RequestError(
            f"{where}.tls: over QUIC all handshakes are full ones of one chain; write one, such as ecdsa"
        )
    if [flight["from"] for flight in flights] != ["client", "server", "client"]:
        raise RequestError(
            f"{where}.tls.flights: a handshake of QUIC has a flight of the client, one of the server, and "
            "one of the client; write these three"
        )
    if any(size["distribution"] != "constant" for size in sizes):
        raise RequestError(f"{where}.tls: over QUIC all handshakes have the same bytes; write a number for each")
    hello, flight = (int(size["value"]) for size in sizes[:2])
    return hello, flight


def command(application: FileTransfer) -> list[str]:
    """The stack's program. MachineError if it is not there."""
    if application.quic_stack == "aioquic":
        if importlib.util.find_spec("aioquic") is None:
            raise MachineError("aioquic is not installed", 'pip install "firstflight[quic]", or quic_stack = "quinn"')
        return [sys.executable, "-I", str(_AIOQUIC)]
    if not _QUINN.exists():
        raise MachineError("the programs over QUIC (quinn) are not built", "make quic, in a checkout of firstflight")
    return [str(_QUINN)]


class SeenDatagram(NamedTuple):
    """A datagram at the server's end of the path, its own behind the first link: payload bytes and beginning."""

    time_ns: int
    from_server: bool
    size: int
    head: bytes


def seen_by_links(pcapng: bytes, servers: Container[str]) -> dict[Ends, list[SeenDatagram]]:
    """Datagrams by the ends of their connection. `pcapng`: packets at the servers' ends; `servers`: their addresses."""
    datagrams: dict[Ends, list[SeenDatagram]] = {}
    for time_ns, packet in _packets(pcapng):
        if (datagram := _datagram(packet)) is None:
            continue
        (source, source_port), (target, target_port), payload_bytes, head = datagram
        from_server = source in servers
        ends = (source, target, target_port) if from_server else (target, source, source_port)
        datagrams.setdefault(ends, []).append(SeenDatagram(time_ns, from_server, payload_bytes, head))
    return datagrams


def columns(seen: Sequence[SeenDatagram], rtt_s: float, rate_bps: float | None) -> dict[str, Any]:
    """The columns of `quic` for a connection's datagrams. `rate_bps`: of the server's first link; None: unlimited."""
    # Before the server has sent anything, a client has no keys for a Handshake packet; it may pad behind an Initial.
    first_sent = next((place for place, datagram in enumerate(seen) if datagram.from_server), len(seen))
    answers = takewhile(lambda datagram: datagram.from_server or _is_initial_alone(datagram), seen[first_sent:])
    unvalidated = [*seen[:first_sent], *answers]
    received = sent = 0
    amplification = 0.0
    for datagram in unvalidated:
        if not datagram.from_server:
            received += datagram.size
            continue
        sent += datagram.size
        if received:
            amplification = max(amplification, sent / received)
    is_validated = len(unvalidated) < len(seen)
    server = [datagram for datagram in seen if datagram.from_server]
    flight = _first_flight(server, rtt_s)
    initials = [datagram.size for datagram in seen if not datagram.from_server and _is_long(datagram.head, _INITIAL)]
    return {
        "validation_s": (seen[len(unvalidated)].time_ns - seen[0].time_ns) / 1e9 if is_validated else None,
        "client_bytes": received,
        "server_bytes": sent,
        "amplification": amplification,
        "min_initial_bytes": min(initials, default=None),
        "flight_bytes": sum(datagram.size for datagram in flight),
        "flight_s": (flight[-1].time_ns - flight[0].time_ns) / 1e9 if flight else None,
        "burst_bytes": _longest_burst(flight, 8e9 / rate_bps if rate_bps else 0.0),
    }


def _first_flight(server: list[SeenDatagram], rtt_s: float) -> list[SeenDatagram]:
    """The server's datagrams from the first full one with a short header on, before an answer can have come. Smaller
    ones come before the request does: new connection IDs, tickets.
    """
    begun = [datagram for datagram in server if datagram.size >= _LEAST_DATAGRAM_BYTES and not datagram.head[0] & _LONG]
    if not begun:
        return []
    first = begun[0].time_ns
    return [datagram for datagram in server if 0 <= datagram.time_ns - first < _FLIGHT_RTTS * rtt_s * 1e9]


def _longest_burst(flight: list[SeenDatagram], byte_ns: float) -> int:
    """`byte_ns`: time that a byte takes on the link."""
    longest = run = flight[0].size if flight else 0
    for before, datagram in pairwise(flight):
        idle_ns = datagram.time_ns - before.time_ns - datagram.size * byte_ns
        run = datagram.size + (run if idle_ns < _BACK_TO_BACK_NS else 0)
        longest = max(longest, run)
    return longest


def _is_long(head: bytes, kind: int) -> bool:
    return bool(head) and bool(head[0] & _LONG) and head[0] & _TYPE == kind


def _is_initial_alone(datagram: SeenDatagram) -> bool:
    """Whether the datagram holds an Initial packet and no other: then it does not validate the client's address."""
    if not _is_long(datagram.head, _INITIAL):
        return False
    at = 5
    for _ in ("destination", "source"):
        at += 1 + datagram.head[at]
    token, at = _varint(datagram.head, at)
    length, at = _varint(datagram.head, at + token)
    return at + length >= datagram.size


def _varint(head: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (RFC 9000 section 16), and where it ends."""
    size = 1 << (head[at] >> 6)
    return int.from_bytes(head[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def _packets(pcapng: bytes) -> Iterator[tuple[int, bytes]]:
    """Time in ns and kept bytes of each packet of a capture file as the link emulator writes it."""
    at = 0
    while at < len(pcapng):
        kind, size = struct.unpack_from("<II", pcapng, at)
        if kind == _PACKET:
            _, high, low, kept = struct.unpack_from("<IIII", pcapng, at + 8)
            yield high << 32 | low, pcapng[at + 28 : at + 28 + kept]
        at += size


def _datagram(packet: bytes) -> tuple[tuple[str, int], tuple[str, int], int, bytes] | None:
    """Source, destination, payload bytes and beginning of the payload of a UDP packet."""
    if packet[0] >> 4 == 4:
        header, protocol, addresses = 4 * (packet[0] & 15), packet[9], (packet[12:16], packet[16:20])
    else:
        header, protocol, addresses = 40, packet[6], (packet[8:24], packet[24:40])
    if protocol != _UDP:
        return None
    source, target, size = struct.unpack_from(">HHH", packet, header)
    ends = [(str(ip_address(address)), port) for address, port in zip(addresses, (source, target), strict=True)]
    return ends[0], ends[1], size - _UDP_HEADER_BYTES, packet[header + _UDP_HEADER_BYTES :]
