"""Data on a connection from a capture at the server: first flight, segments sent and retransmitted, windows; and, with
the link box's log, which segments the path dropped or lost.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

Ends = tuple[str, str, int]
"""Of a connection: the server's address, the client's, and the client's port. A client may have one port towards two
servers."""

_SYN, _ACK = 2, 16
_ARRIVED = 1
_NOT_LOST = 0


@dataclass
class CapturedConnection:
    """One connection. `segments`: rows of the table `segments` in the order of the server's device; numbers in them
    are relative, so the first byte of the server's stream has number 1. `fates`: for each segment of the server, 0 or
    how it ended on the path (2 dropped, 3 lost), and `ways`, link and time in ns where it did; empty where no log
    tells.
    """

    segments: pl.DataFrame
    fates: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))
    ways: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def __post_init__(self) -> None:
        rows = self.segments
        server = rows["from_server"].to_numpy() == 1
        acknowledges = ~server & (rows["flags"].to_numpy() & (_SYN | _ACK) == _ACK)
        self._times = rows["time_ns"].to_numpy()
        self._server = server
        self._data = server & (rows["length"].to_numpy() > 0)
        self._again = rows["retransmission"].to_numpy() == 1
        self._acks = acknowledges
        # In bytes of the server's stream, from 0.
        self._starts = rows["seq"].to_numpy().astype(np.int64) - 1

    def _first_flight(self) -> np.ndarray:
        """Selects rows of data that the server sent before the first acknowledgment of data reached it."""
        data_acks = self._acks & (self.segments["ack"].to_numpy() > 1)
        first = self._times[data_acks].min() if data_acks.any() else np.iinfo(np.int64).max
        rows: np.ndarray = self._data & ~self._again & (self._times < first)
        return rows

    def first_flight_bytes(self, within_s: float = math.inf) -> list[int]:
        """Bytes of each data segment sent before the first acknowledgment of data, and so soon after the first."""
        ours = np.flatnonzero(self._first_flight())
        if ours.size:
            ours = ours[self._times[ours] - self._times[ours[0]] < within_s * 1e9]
        sizes: list[int] = self.segments["length"].to_numpy()[ours].tolist()
        return sizes

    def first_flight_lost_segments(self) -> int | None:
        """Of these, how many the path dropped or lost; None where there is no log."""
        if not self.fates.size:
            return None if self._server.any() else 0
        return int((self.fates[self._first_flight()[self._server]] != _NOT_LOST).sum())

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """Data segments sent with bytes from `start` on and before `end`, and how many of them had been sent before."""
        ours = self._data & (self._starts >= start) & (self._starts < end)
        return int(ours.sum()), int((ours & self._again).sum())

    def before(self, until_ns: int) -> tuple[int, int]:
        """Data segments that the server sent before a time, and how many both ends retransmitted until then."""
        early = self._times < until_ns
        return int((self._data & early).sum()), int((self._again & early).sum())

    def syn_acks(self) -> int:
        """SYN-ACKs that the server sent."""
        return int((self._server & (self.segments["flags"].to_numpy() & _SYN > 0)).sum())

    def first_window(self) -> int:
        """The receive window in bytes that ended the client's handshake; 0 if nothing did."""
        offered = self.segments["window_bytes"].to_numpy()[self._acks]
        return int(offered[0]) if offered.size else 0

    def round_trip_s(self) -> float:
        """From the first SYN-ACK to the acknowledgment that ended the handshake, at the server; NaN without these."""
        syn_acks = self._times[self._server & (self.segments["flags"].to_numpy() & _SYN > 0)]
        acks = self._times[self._acks]
        return float(acks[0] - syn_acks[0]) / 1e9 if syn_acks.size and acks.size else float("nan")

    def lost_rows(self) -> pl.DataFrame:
        """The server's segments that did not arrive, as further rows of `segments`: the event, its place and its
        time.
        """
        gone = np.flatnonzero(self.fates != _NOT_LOST)
        rows = self.segments.filter(pl.Series(self._server))[gone.tolist()]
        return rows.with_columns(
            pl.Series("event", self.fates[gone]),
            pl.Series("link", self.ways[gone, 0].astype(np.uint16)),
            pl.Series("time_ns", self.ways[gone, 1]),
        )


def fate_of(
    segments: int, crossings: pl.DataFrame, path: Sequence[str], places: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """The fate of each segment that a server sent over the links of `path`, in this order.

    `crossings`: the link box's log of them, in the order in which they came to each link. A link keeps the order, so
    the n-th that comes to it is the n-th that left the one before. `places`: indices of the links by name. Answers
    fates and ways as a CapturedConnection has them; None if the log has fewer packets than were sent.
    """
    fates, ways = np.zeros(segments, np.uint8), np.zeros((segments, 2), np.int64)
    left = np.arange(segments)
    by_link = {str(name): rows for (name,), rows in crossings.group_by("link", maintain_order=True)}
    for name in path:
        rows = by_link.get(name)
        if rows is None or rows.height < left.size:
            return None if left.size else (fates, ways)
        events = rows["event"].to_numpy()[: left.size]
        gone = events != _ARRIVED
        fates[left[gone]] = events[gone]
        ways[left[gone], 0] = places[name]
        ways[left[gone], 1] = rows["end_ns"].to_numpy()[: left.size][gone]
        left = left[~gone]
    return fates, ways


def by_ends(
    rows: pl.DataFrame, connections: Iterable[Sequence[str]], server: str | None = None
) -> dict[Ends, pl.DataFrame]:
    """A table's rows by the ends of their connections, whose numbers a capture or the log gave: [[client, server], ...]
    as "A:P". `server`: the address of all servers, where it is known. Of two connections with the same ends the later
    one counts.
    """
    parts: dict[Any, pl.DataFrame] = rows.partition_by("connection", as_dict=True, maintain_order=True)
    ends = [(server or _end(there)[0], *_end(here)) for here, there in connections]
    return {ends[number]: part for (number,), part in sorted(parts.items()) if number < len(ends)}


def _end(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)
