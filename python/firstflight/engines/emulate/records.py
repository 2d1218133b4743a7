"""From the data of clients, the kernel, captures and the link box on a replicate to the tables of the common schema.

A transfer, the kernel's account of its connection, the capture of it and the link box's log find each other by the
server's address and the client's with its port. Times that a client measured are curl's; a count that cannot be known
is null.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from firstflight import _native
from firstflight.engines.emulate.disturbance import STALL_RULE_S, Stalls
from firstflight.engines.emulate.inside.sockets import end_of
from firstflight.engines.emulate.layout import Ends, Layout
from firstflight.engines.emulate.quic import columns, seen_by_links
from firstflight.records import schema
from firstflight.scenario import Cell

_NO_SEGMENTS = pl.DataFrame(schema={column.name: column.dtype for column in schema.TABLES["segments"]})

_TRANSFER_COLUMNS = frozenset(column.name for column in schema.TABLES["transfers"])

_SYN, _ACK = 2, 16
_ARRIVED = 1
_NOT_LOST = 0

_ROWS = ("transfers", "pages", "streams", "handshakes", "quic")

Row = dict[str, Any]


# Data on a connection: from a capture at the server, and from the link box's log.


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
        flags = rows["flags"].to_numpy()
        self._times = rows["time_ns"].to_numpy()
        self._server = server
        self._data = server & (rows["length"].to_numpy() > 0)
        self._again = rows["retransmission"].to_numpy() == 1
        self._acks = ~server & (flags & (_SYN | _ACK) == _ACK)
        self._syn_acks = server & (flags & _SYN > 0)
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
        return int(self._syn_acks.sum())

    def first_window(self) -> int:
        """The receive window in bytes that ended the client's handshake; 0 if nothing did."""
        offered = self.segments["window_bytes"].to_numpy()[self._acks]
        return int(offered[0]) if offered.size else 0

    def round_trip_s(self) -> float:
        """From the first SYN-ACK to the acknowledgment that ended the handshake, at the server; NaN without these."""
        syn_acks = self._times[self._syn_acks]
        acks = self._times[self._acks]
        return float(acks[0] - syn_acks[0]) / 1e9 if syn_acks.size and acks.size else float("nan")

    def lost_rows(self) -> pl.DataFrame:
        """The server's segments that did not arrive, as further rows of `segments`: event, place and time."""
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
    ends = [(server or end_of(there)[0], *end_of(here)) for here, there in connections]
    return {ends[number]: part for (number,), part in sorted(parts.items()) if number < len(ends)}


@dataclass
class CellRecords:
    """The rows of one cell, replicate after replicate."""

    cell: Cell
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in _ROWS})
    tables: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {"links": [], "segments": []})

    def add(
        self,
        replicate: int,
        layout: Layout,
        facts: Mapping[str, Any],
        box: Mapping[str, Any],
        windows: Mapping[str, int],
    ) -> None:
        """The result of one replicate. `layout`: with its links; `facts`: answer of `inside.commands.run_replicate`;
        `box`: the link box's counters of the replicate; `windows`: initial window in segments by application.
        """
        joined = Replicate(replicate, layout, facts, box)
        transfers = joined.transfers(windows)
        self.rows["transfers"] += transfers
        self.rows["pages"] += joined.pages(transfers)
        self.rows["handshakes"] += joined.handshakes()
        self.rows["streams"] += [stream | {"replicate": replicate} for stream in facts["streams"]]
        self.tables["links"].append(joined.links(box))
        if self.cell.capture:
            self.tables["segments"].append(joined.segments())
            self.rows["quic"] += joined.quic()

    def finished(self, facts: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
        """The tables of the schema, `environment`, with these facts by name, and `counts`."""
        names = {"application": self.cell.scenario.recorded_names()}
        tables = {name: _frame(name, self.rows[name], names) for name in ("transfers", "pages")}
        if any("handshakes" in application for application in json.loads(self.cell.plan)["applications"]):
            tables["handshakes"] = _frame("handshakes", self.rows["handshakes"], names)
        streams = _native.stream_reports(self.cell.plan, json.dumps(self.rows["streams"]))
        tables["streams"] = schema.from_native("streams", streams, names)
        tables["links"] = pl.concat(self.tables["links"])
        if self.cell.capture:
            tables["segments"] = pl.concat(self.tables["segments"])
            tables["quic"] = _frame("quic", self.rows["quic"], names)
        values = [fact if isinstance(fact, str) else json.dumps(fact, sort_keys=True) for fact in facts.values()]
        tables["environment"] = pl.DataFrame(
            {"name": list(facts), "value": values}, schema={"name": pl.String, "value": pl.String}
        )
        disturbed = int(tables["transfers"]["disturbed"].sum())
        return tables | {"counts": pl.DataFrame({"disturbed_transfers": [disturbed]})}


class Replicate:
    """One replicate's transfers, joined with other data on them."""

    def __init__(self, replicate: int, layout: Layout, facts: Mapping[str, Any], box: Mapping[str, Any]) -> None:
        self.replicate = replicate
        self._layout = layout
        self._facts = facts
        self.names = {"link": list(layout.links)}
        # All links are reset at one moment.
        self._epoch = box["links"][0]["epoch_ns"]
        self._stalls = Stalls(box, self._epoch, {name: way["delay_ns"] for name, way in layout.links.items()})
        self._infos = {
            (layout.host(entry["server"]).address, entry["address"], entry["port"]): entry["info"]
            for entry in facts["sockets"]
        }
        self._rows = sorted(facts["transfers"], key=lambda row: (row["start_s"], row["application"], row["client"]))
        self._ends = [self._end(row, place) for place, row in enumerate(self._rows)]
        self._numbers = {end: number for number, end in enumerate(dict.fromkeys(self._ends))}
        self.connections = self._connections(box)
        self._sent: dict[Ends, int] = {}

    def transfers(self, windows: Mapping[str, int]) -> list[Row]:
        """Rows of `transfers`."""
        return [self._transfer(row, end, windows) for row, end in zip(self._rows, self._ends, strict=True)]

    def pages(self, transfers: Sequence[Row]) -> list[Row]:
        """Rows of `pages`, with the sums of their transfers; a sum of which a part is not known is null."""
        sums: dict[tuple[Any, ...], Row] = {}
        for row in transfers:
            total = sums.setdefault(_page(row), {"retransmissions": 0, "timeouts": 0})
            for name, so_far in total.items():
                total[name] = None if so_far is None or row[name] is None else so_far + row[name]
        none = {"retransmissions": 0, "timeouts": 0}
        return [page | {"replicate": self.replicate} | sums.get(_page(page), none) for page in self._facts["pages"]]

    def handshakes(self) -> list[Row]:
        """Rows of `handshakes`: one for each connection over TLS."""
        rows = {end: row for row, end in zip(reversed(self._rows), reversed(self._ends), strict=True)}
        return [self._handshake(rows[end], end) for end in self._numbers if rows[end]["over_tls"]]

    def _handshake(self, row: Row, end: Ends) -> Row:
        secured_s = row["tls_handshake_time_s"]
        until_ns = 1 << 62 if secured_s is None else round((row["start_s"] + secured_s) * 1e9)
        segments, again = self.connections[end].before(until_ns) if end in self.connections else (0, 0)
        return {
            "replicate": self.replicate,
            **{name: row[name] for name in ("application", "client", "start_s", "handshake_time_s")},
            "connection": self._numbers[end],
            **{name: row[name] for name in ("tls_handshake_time_s", "client_bytes", "server_bytes", "resumption")},
            "server_segments": segments,
            "retransmissions": again,
            # The kernel counts them over the connection's whole life, and only its server's are known.
            "timeouts": None,
            "completed": int(secured_s is not None),
        }

    def links(self, box: Mapping[str, Any]) -> pl.DataFrame:
        """The table `links`: the meters begin a little before the applications do, whose clock counts."""
        since = (self._epoch - self._facts["origin_ns"]) / 1e9
        metered = schema.from_native("links", box["tables"]["links"], self.names)
        return metered.with_columns(pl.col.interval_start_s + since)

    def segments(self) -> pl.DataFrame:
        """The table `segments`: packets at the servers' devices, and those of them that the path dropped or lost."""
        parts = [_NO_SEGMENTS]
        for end, connection in self.connections.items():
            number = pl.lit(self._numbers[end], pl.UInt32).alias("connection")
            parts += [rows.with_columns(number) for rows in (connection.segments, connection.lost_rows())]
        return pl.concat(parts).sort("time_ns", maintain_order=True)

    def quic(self) -> list[Row]:
        """Rows of `quic`."""
        addresses = {host.address for host in self._layout.hosts if host.name in {row["server"] for row in self._rows}}
        seen = seen_by_links(self._facts.get("datagrams", b""), addresses)
        links = self._layout.links
        rows = []
        for row, end in zip(self._rows, self._ends, strict=True):
            if end not in seen:
                continue
            there, back = self._paths(row)
            rtt_s = sum(links[name]["delay_ns"] / 1e9 for name in (*there, *back))
            rows.append(
                {"replicate": self.replicate, "connection": self._numbers[end]}
                | {name: row[name] for name in ("application", "client")}
                | columns(seen[end], rtt_s, links[there[0]]["rate_bps"])
            )
        return rows

    def crossings(self) -> pl.DataFrame:
        """The table `crossings` of the connections that have transfers, numbered and timed as in `segments`."""
        since_ns = self._epoch - self._facts["origin_ns"]
        times = [pl.col(name) + since_ns for name in ("time_ns", "start_ns", "end_ns")]
        parts = [
            rows.with_columns(pl.lit(self._numbers[end], pl.UInt32).alias("connection"), *times)
            for end, rows in self._crossed.items()
            if end in self._numbers
        ]
        return pl.concat(parts).sort("time_ns", maintain_order=True) if parts else schema.empty("crossings")

    def _end(self, row: Row, place: int) -> Ends:
        # Connections that did not come up have no port, and are as many all the same.
        server, client = (self._layout.host(row[which]).address for which in ("server", "host"))
        return server, client, row["port"] if row["port"] > 0 else -1 - place

    def _connections(self, box: Mapping[str, Any]) -> dict[Ends, CapturedConnection]:
        crossings = schema.from_native("crossings", box["tables"]["crossings"], self.names)
        self._crossed = by_ends(crossings.filter(pl.col.connection.is_not_null()), box["connections"])
        crossed = {end: rows.filter(pl.col.from_server == 1) for end, rows in self._crossed.items()}
        origin = self._facts["origin_ns"]
        places = {name: index for index, name in enumerate(self.names["link"])}
        clients = {host.address: host.name for host in self._layout.hosts}
        connections = {}
        for server, capture in self._facts["captures"].items():
            rows = schema.from_native("segments", capture["tables"]["segments"], self.names).with_columns(
                pl.col.time_ns - capture.get("since_ns", 0), pl.lit(self.replicate, pl.UInt32).alias("replicate")
            )
            for end, segments in by_ends(rows, capture["connections"], self._layout.host(server).address).items():
                if end not in self._numbers:
                    continue
                connection = CapturedConnection(segments)
                if end in crossed:
                    path = self._layout.path(server, clients[end[1]])
                    fates = fate_of(int(segments["from_server"].sum()), crossed[end], path, places)
                    if fates is not None:
                        connection.fates, connection.ways = fates
                        connection.ways[:, 1] += self._epoch - origin
                connections[end] = connection
        return connections

    def _paths(self, row: Row) -> tuple[list[str], list[str]]:
        """The links of a transfer to its client, and those back."""
        return self._layout.path(row["server"], row["host"]), self._layout.path(row["host"], row["server"])

    def _transfer(self, row: Row, end: Ends, windows: Mapping[str, int]) -> Row:
        connection = self.connections.get(end)
        first = end not in self._sent
        start = self._sent.get(end, 0)
        self._sent[end] = start + row["response_bytes"]
        # Segments after the last known response belong to it.
        stop = self._sent[end] if row["completed"] else 1 << 62
        sent, again = connection.counts(start, stop) if connection else (0, 0)
        stall = self._stall(row, end)
        info = self._infos.get(end, {})
        counts = {
            "segments_sent": sent,
            "retransmissions": again,
            # The kernel counts them over the connection's whole life, so they are booked to its first transfer.
            "timeouts": info.get("total_rto") if first else 0,
            "first_flight_segments": len(connection.first_flight_bytes()) if connection and first else 0,
            "first_flight_lost_segments": connection.first_flight_lost_segments() if connection and first else 0,
        }
        return {
            # Our own TCP has counters that a kernel lacks. What is measured here stands for those that both have.
            **{name: count if first else 0 for name, count in info.items() if name in _TRANSFER_COLUMNS},
            "replicate": self.replicate,
            **{name: row[name] for name in ("application", "client", "page", "object")},
            "connection": self._numbers[end],
            **{name: row[name] for name in ("start_s", "handshake_time_s", "first_byte_time_s", "completion_time_s")},
            **{name: row.get(name) for name in ("tls_handshake_time_s", "first_usable_byte_time_s")},
            **{name: row[name] for name in ("bytes", "delivered_bytes", "completed")},
            # Packets of QUIC show neither their frames nor what they acknowledge.
            **(dict.fromkeys(counts) if row["over_quic"] else counts),
            # After more than one retransmission of the SYN-ACK Linux begins with one segment, unless it finds by a
            # timestamp that they were spurious; which of the two is not observed.
            "initial_window_segments": None
            if connection and connection.syn_acks() > 2
            else windows[row["application"]],
            "disturbed": int(stall > STALL_RULE_S),
            "stall_s": stall,
        }

    def _stall(self, row: Row, end: Ends) -> float:
        """The longest stall of the box that met a packet of the transfer."""
        origin = self._facts["origin_ns"]
        window = (origin + round(row["start_s"] * 1e9), origin + round(row["ended_s"] * 1e9))
        return self._stalls.worst_s(self._crossed.get(end), self._paths(row), window)


def _page(row: Row) -> tuple[Any, ...]:
    return row["application"], row["client"], row["page"]


def _frame(table: str, rows: Sequence[Row], names: Mapping[str, list[str]]) -> pl.DataFrame:
    """Rows as a table of the schema. A time that is None, or not in the row, did not happen: NaN; all else is null."""

    def values(column: schema.Column) -> list[Any]:
        cells = [row.get(column.name) for row in rows]
        return [math.nan if value is None else value for value in cells] if column.dtype == pl.Float64 else cells

    columns = schema.TABLES[table]
    return pl.DataFrame([pl.Series(c.name, values(c), dtype=c.dtype or pl.Enum(names[c.name])) for c in columns])
