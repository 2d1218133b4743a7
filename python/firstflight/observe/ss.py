"""`ss -tin`: what the kernel says of its TCP sockets, once or again and again. The last that was said of one counts."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from .lines import pieces
from .problem import Problems
from .tables import HEADER_BYTES, Parts, subnets

# State, which ss leaves out if it was asked for one state only, two queues, and the two ends.
_HEAD = re.compile(r"(?:[A-Z][A-Z0-9-]*\s+)?\d+\s+\d+\s+(\S+:\d+)\s+(\S+):(\d+)(?:\s|$)")
# Titles without -H; what `date +%s.%N` or `date -Ins` write between snapshots.
_PASSED = re.compile(r"(?:State|Netid|Recv-Q)\s|\d{9,11}(?:\.\d+)?\s*$|\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_NUMBERS = re.compile(r"(?<=\s)(minrtt|mss|cwnd|bytes_sent|bytes_retrans|bytes_acked|data_segs_out|busy):([\d.]+)")
_ROUND_TRIP = re.compile(r"\srtt:([\d.]+)/")
_RETRANSMISSIONS = re.compile(r"\sretrans:\d+/(\d+)")
_DELIVERY = re.compile(r"\sdelivery_rate ([\d.]+)([KMG]?)bps")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
# A round trip of so many times the least one has waited in a queue.
_QUEUED = 1.3
# Of window / round trip: so close the delivery rate must be to it for the window to be what limits, and be full.
_AGREED = 0.15
# Fewer segments delivered are too few for a rate.
_FEWEST_SEGMENTS = 20

# No number is as large; those that count segments have 32 bits.
_BEYOND = 1e15
_COUNTED = ("data_segs_out", "retrans")

_SCHEMA = {
    "client": pl.Int64,
    "address": pl.String,
    "rtt_s": pl.Float64,
    "most_rtt_s": pl.Float64,
    "down_bps": pl.Float64,
    "least_down_bps": pl.Float64,
    "bytes": pl.Int64,
    "delivered_bytes": pl.Int64,
    "segments_sent": pl.Int64,
    "retransmissions": pl.Int64,
}


def recognises(lines: list[str]) -> bool:
    """Whether lines are such an output."""
    return any(" cwnd:" in line and " mss:" in line and " rtt:" in line for line in lines)


class _Socket:
    """What is kept of a socket from snapshot to snapshot."""

    __slots__ = ("address", "delivered_segments", "down_bps", "last", "least_bps", "most_rtt_ms", "number")

    def __init__(self, number: int, address: str) -> None:
        self.number = number
        self.address = address
        self.last: dict[str, float] = {}
        self.most_rtt_ms = 0.0
        self.down_bps: float | None = None
        self.least_bps: float | None = None

    def continues(self, told: dict[str, float]) -> bool:
        """Whether it can be the same connection: what it has sent never becomes less, nor its least round trip more."""
        return all(told.get(name, 0) >= self.last.get(name, 0) for name in ("bytes_sent", "data_segs_out"))

    def add(self, told: dict[str, float]) -> None:
        """Another snapshot."""
        self.last = told
        self.most_rtt_ms = max(self.most_rtt_ms, told["rtt"])
        rate = _full_rate_bps(told)
        if rate is not None:
            self.down_bps = max(self.down_bps or 0.0, rate)
        if told.get("busy") and told.get("bytes_acked"):
            self.least_bps = told["bytes_acked"] * 8000 / told["busy"]


def read(path: Path, problems: Problems) -> Parts:
    """The parts of one snapshot or many. A socket that has sent nothing is not among them."""
    sockets: dict[tuple[str, str, str], _Socket] = {}
    over: list[_Socket] = []
    for (own, other, port), told in _told(path, problems):
        socket = sockets.get((own, other, port))
        if socket is None or not socket.continues(told):
            if socket is not None:
                over.append(socket)
            socket = sockets[own, other, port] = _Socket(len(sockets) + len(over), other)
        socket.add(told)
    rows = [_row(socket) for socket in (*over, *sockets.values())]
    frame = pl.DataFrame([row for row in rows if row["bytes"]], schema=_SCHEMA, orient="row").sort("client")
    frame = frame.with_columns(client=pl.int_range(pl.len()), subnet=subnets(frame["address"]))
    responses = frame.select("client", "bytes", "delivered_bytes", "segments_sent", "retransmissions")
    silent = len(rows) - frame.height
    notes = (f"{silent:,} sockets had sent nothing and are left out",) if silent else ()
    return Parts(responses, frame, notes=notes, bounds=frame.select("client", "least_down_bps"))


def _told(path: Path, problems: Problems) -> Iterator[tuple[tuple[str, str, str], dict[str, float]]]:
    """The ends of each socket and its numbers, snapshot after snapshot."""
    ends: tuple[str, str, str] | None = None
    head = 0
    for first, lines in pieces(path, problems):
        for number, line in enumerate(lines, start=first):
            if line.startswith((" ", "\t")) and ends is not None:
                info = line
            else:
                if ends is not None:
                    problems.add("a socket of which nothing is told", [head])
                ends = None
                found = _HEAD.match(line)
                if found is None:
                    if line and not _PASSED.match(line):
                        problems.add("neither a socket nor what ss tells of one", [number])
                    continue
                ends, head = (found[1], found[2], found[3]), number
                # With -O the rest is on the same line.
                info = line[found.end() - 1 :]
                if " cwnd:" not in info:
                    continue
            told = _numbers(info)
            if not _can_be(told):
                problems.add("a socket with a number that cannot be", [head])
            elif "rtt" in told:
                yield ends, told
            else:
                problems.add("a socket without a round trip", [head])
            ends = None
    if ends is not None:
        problems.add("a socket of which nothing is told", [head])


def _can_be(told: dict[str, float]) -> bool:
    """Whether a kernel can have said so: damaged lines have digits run together."""
    return max(told.values(), default=0.0) < _BEYOND and all(told.get(name, 0.0) < 2**32 for name in _COUNTED)


def _numbers(info: str) -> dict[str, float]:
    told: dict[str, float] = {}
    for name, value in _NUMBERS.findall(info):
        try:
            told[name] = float(value)
        except ValueError:
            continue
    if (found := _ROUND_TRIP.search(info)) and float(found[1]) > 0:
        told["rtt"] = float(found[1])
    if found := _RETRANSMISSIONS.search(info):
        told["retrans"] = float(found[1])
    if found := _DELIVERY.search(info):
        told["delivery_bps"] = float(found[1]) * _PREFIXES[found[2]]
    return told


def _full_rate_bps(told: dict[str, float]) -> float | None:
    """The rate of the path's slowest link, headers included, if a snapshot shows that it was never idle.

    The round trip is well above the least one, so a queue stands somewhere; and what was delivered is a window a round
    trip, so it stands before the slowest link for this very connection. Else the delivery rate is that of the sender.
    """
    if not {"minrtt", "cwnd", "mss", "delivery_bps", "bytes_acked"} <= told.keys():
        return None
    window_bps = told["cwnd"] * told["mss"] * 8000 / told["rtt"]
    queued = told["rtt"] >= _QUEUED * told["minrtt"]
    agreed = abs(told["delivery_bps"] - window_bps) <= _AGREED * window_bps
    enough = told["bytes_acked"] >= _FEWEST_SEGMENTS * told["mss"]
    if not (queued and agreed and enough):
        return None
    return told["delivery_bps"] * (told["mss"] + HEADER_BYTES) / told["mss"]


def _row(socket: _Socket) -> dict[str, float | int | str | None]:
    told = socket.last
    sent = told.get("bytes_sent")
    acknowledged = told.get("bytes_acked")
    # A kernel before 4.19 tells no bytes_sent; what is acknowledged was sent.
    size = acknowledged if sent is None else sent - told.get("bytes_retrans", 0.0)
    segments = told.get("data_segs_out")
    return {
        "client": socket.number,
        "address": socket.address.strip("[]").split("%")[0],
        "rtt_s": told["minrtt"] / 1000 if "minrtt" in told else None,
        "most_rtt_s": socket.most_rtt_ms / 1000,
        "down_bps": socket.down_bps,
        "least_down_bps": socket.least_bps,
        "bytes": None if size is None else int(size),
        # The kernel counts the SYN and the FIN with what was acknowledged.
        "delivered_bytes": int(min(acknowledged or 0.0, size or 0.0)),
        "segments_sent": None if segments is None else int(segments),
        # ss leaves out what is 0.
        "retransmissions": int(told.get("retrans", 0)),
    }
