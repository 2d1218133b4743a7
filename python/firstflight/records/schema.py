"""The one schema of records, whichever engine wrote them: every column's name, type, unit and meaning.

Times are seconds, relative ones to `start_s`; NaN where the thing did not happen. A count that an engine cannot know is
null: a kernel does not tell how often it undid a repair. Analysis sees the cells' key columns in front of these.
"""

from dataclasses import dataclass

import polars as pl

# Raised when a column or a file of a cell comes, goes or changes its name, type or meaning: records of another number
# are not read.
SCHEMA_VERSION = 6


@dataclass(frozen=True)
class Column:
    """One column. `dtype` None: an Enum whose categories are the run's names. `none`: the raw value for null.
    `in_virtual_time`: what it always is there, where nobody is ever late. `only_observed`: null in what we ran.
    """

    name: str
    dtype: type[pl.DataType] | None
    unit: str
    meaning: str
    none: int | None = None
    in_virtual_time: int | float | None = None
    only_observed: bool = False


_REPLICATE = Column("replicate", pl.UInt32, "", "replicate of the experiment, from 0")
_APPLICATION = Column("application", None, "", "name of the application")
_CLIENT = Column("client", pl.UInt32, "", "client of the application, or user of the population, from 0")
_COMPLETED = Column("completed", pl.UInt8, "", "1 if all bytes arrived before the end of the run, else 0")
_RETRANSMISSIONS = Column("retransmissions", pl.UInt32, "segments", "data segments retransmitted by the sender")
_TIMEOUTS = Column("timeouts", pl.UInt32, "", "retransmission timeouts of the sender")
_START = Column("start_s", pl.Float64, "s", "when the client opened the connection or, on an open one, asked")

TRANSFERS = (
    _REPLICATE,
    _APPLICATION,
    _CLIENT,
    Column("page", pl.UInt32, "", "page of the client, from 0; null outside pages", none=2**32 - 1),
    Column("object", pl.UInt32, "", "0 for the primary or only object, then the in-line ones; requests count from 0"),
    Column("connection", pl.UInt32, "", "connection of the replicate, from 0"),
    _START,
    Column("handshake_time_s", pl.Float64, "s", "from start until the client's handshake was complete"),
    Column("first_byte_time_s", pl.Float64, "s", "from start until the first byte reached the receiver"),
    Column("completion_time_s", pl.Float64, "s", "from start until the last byte reached the receiver"),
    Column("bytes", pl.UInt64, "B", "bytes asked for, those of a response header included"),
    Column("delivered_bytes", pl.UInt64, "B", "bytes that reached the receiver in order before the end of the run"),
    Column("segments_sent", pl.UInt32, "segments", "data segments sent, retransmissions included"),
    _RETRANSMISSIONS,
    _TIMEOUTS,
    Column("fast_retransmits", pl.UInt32, "", "losses repaired by duplicate or selective ACKs: once a loss event"),
    Column("early_retransmits", pl.UInt32, "", "of these, begun on fewer such ACKs than the ordinary threshold"),
    Column("tail_loss_probes", pl.UInt32, "", "tail loss probes of the sender (RFC 8985 section 7)"),
    Column("undos", pl.UInt32, "", "repairs that the sender found needless and undid"),
    Column("congestion_marks", pl.UInt32, "", "reductions of cwnd in answer to ECN echoes: at most one a window"),
    Column("first_flight_segments", pl.UInt32, "segments", "data segments sent before the first ACK of data"),
    Column("first_flight_lost", pl.UInt32, "segments", "of the first flight, segments truly lost on the path"),
    Column(
        "initial_window_segments",
        pl.UInt32,
        "segments",
        "cwnd with which data began, in whole segments: the initial window after lost SYNs; null if not observed",
    ),
    _COMPLETED,
    Column(
        "disturbed",
        pl.UInt8,
        "",
        "1 if a stall of the machine spoiled it by the rule of engines.emulate.disturbance, else 0",
        in_virtual_time=0,
    ),
    Column("stall_s", pl.Float64, "s", "the most by which the link box was late meanwhile", in_virtual_time=0.0),
)

PAGES = (
    _REPLICATE,
    _APPLICATION,
    _CLIENT,
    Column("page", pl.UInt32, "", "page of the client, from 0"),
    _START,
    Column("connect_time_s", pl.Float64, "s", "from start until the primary's connection was up at the client"),
    Column("completion_time_s", pl.Float64, "s", "from start until the last object had arrived"),
    Column("objects", pl.UInt32, "", "objects of the page, the primary included"),
    Column("bytes", pl.UInt64, "B", "bytes of all objects"),
    _RETRANSMISSIONS,
    _TIMEOUTS,
    _COMPLETED,
)

LINKS = (
    _REPLICATE,
    Column("link", None, "", "name of the link; its way back ends in .reverse"),
    Column("interval_start_s", pl.Float64, "s", "start of the meter interval"),
    Column("interval_s", pl.Float64, "s", "its length"),
    Column("offered_packets", pl.UInt64, "packets", "packets that arrived at the link"),
    Column("dropped_packets", pl.UInt64, "packets", "packets that the queue dropped"),
    Column("marked_packets", pl.UInt64, "packets", "packets that the queue marked (ECN)"),
    Column("lost_packets", pl.UInt64, "packets", "packets lost after transmission"),
    Column("sent_packets", pl.UInt64, "packets", "packets whose transmission ended in the interval"),
    Column("sent_bytes", pl.UInt64, "B", "their bytes, headers included"),
    Column("busy_s", pl.Float64, "s", "time for which the link transmitted"),
    Column("queue_mean_packets", pl.Float64, "packets", "packets waiting, averaged over the interval"),
    Column("queue_max_packets", pl.UInt32, "packets", "most packets waiting at once"),
)


def _sack_range(index: int) -> tuple[Column, Column]:
    return (
        Column(f"sack_left_{index}", pl.UInt32, "B", f"start of range {index}, relative as `ack` is; 0 without one"),
        Column(f"sack_right_{index}", pl.UInt32, "B", "first sequence number after it"),
    )


SEGMENTS = (
    Column("time_ns", pl.Int64, "ns", "time since the start of the run"),
    _REPLICATE,
    Column("connection", pl.UInt32, "", "connection of the replicate, from 0"),
    Column("event", pl.UInt8, "", "0 sent by an endpoint, 1 received by one, 2 dropped by a queue, 3 lost on a link"),
    Column("from_server", pl.UInt8, "", "1 if the server's end sent the segment"),
    Column("link", pl.UInt16, "", "index of the link of a drop or loss, else null", none=2**16 - 1),
    Column("seq", pl.UInt32, "B", "sequence number relative to the sender's initial one"),
    Column("length", pl.UInt32, "B", "payload"),
    Column("ack", pl.UInt32, "B", "acknowledgment number relative to the other end's initial sequence number"),
    Column("window_bytes", pl.UInt64, "B", "advertised receive window"),
    Column("cwnd_segments", pl.Float64, "segments", "cwnd of the end that sent (0) or, after it, received (1) this"),
    Column("ssthresh_segments", pl.Float64, "segments", "slow start threshold of the same end"),
    Column(
        "recovery_state",
        pl.UInt8,
        "",
        "of the same end: 0 open, 1 disorder, 2 window reduced, 3 fast recovery, 4 loss (Linux's tcpi_ca_state); "
        "null in a capture, which cannot know",
        none=2**8 - 1,
    ),
    Column("flags", pl.UInt8, "", "TCP flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, ECE 64, CWR 128"),
    Column("retransmission", pl.UInt8, "", "1 if the segment had been sent before"),
    Column(
        "ecn", pl.UInt8, "", "ECN bits of the IP header: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced"
    ),
    Column("has_timestamps", pl.UInt8, "", "1 if there is a timestamps option"),
    Column("ts_value", pl.UInt32, "ms", "its TSval, else 0"),
    Column("ts_echo", pl.UInt32, "ms", "its TSecr, else 0"),
    Column("sack_count", pl.UInt8, "", "ranges in the SACK option"),
    *(column for index in range(4) for column in _sack_range(index)),
    Column("mss", pl.UInt16, "B", "MSS option, on a SYN; null without one", none=0),
    Column("window_scale", pl.UInt8, "", "shift of the window scale option, on a SYN; null without one", none=2**8 - 1),
    Column("sack_permitted", pl.UInt8, "", "1 if there is a SACK-permitted option"),
    Column(
        "quick_start", pl.UInt8, "", "Quick-Start: 0 none, 1 request, 2 request without a router's approval, 3 report"
    ),
    Column("quick_start_rate", pl.UInt8, "", "its rate code N (40 kbit/s x 2^N); 0: refused, or none"),
    Column(
        "quick_start_response", pl.UInt8, "", "rate code of a Quick-Start response; null without one", none=2**8 - 1
    ),
)

CROSSINGS = (
    Column("time_ns", pl.Int64, "ns", "when the packet came to the link, since the start of the run"),
    _REPLICATE,
    Column("link", None, "", "name of the link; its way back ends in .reverse"),
    Column("connection", pl.UInt32, "", "connection of the replicate; null once both ends were done", none=2**32 - 1),
    Column("from_server", pl.UInt8, "", "1 if the server's end sent the packet"),
    Column("bytes", pl.UInt32, "B", "its size, headers included"),
    Column("event", pl.UInt8, "", "1 reached the far end, 2 dropped by the queue, 3 lost after transmission"),
    Column("start_ns", pl.Int64, "ns", "when its transmission began: until then it waited; time_ns if it was dropped"),
    Column("end_ns", pl.Int64, "ns", "when its transmission ended; time_ns if it was dropped"),
)

USERS = (
    _REPLICATE,
    Column("client", pl.UInt32, "", "user of the replicate, from 0; `client` of the other tables"),
    Column("subnet", pl.UInt32, "", "access network of the user, from 0; null where it is unknown", none=2**32 - 1),
    Column("row", pl.UInt32, "", "row of the table the path was taken from, from 0; null: drawn", none=2**32 - 1),
    Column("weight", pl.Float64, "", "how many users of the world this one stands for"),
    Column("rtt_s", pl.Float64, "s", "round trip without queueing; of observed traffic, the least that was seen"),
    Column("most_rtt_s", pl.Float64, "s", "the largest seen, of observed traffic; else null", only_observed=True),
    Column("down_bps", pl.Float64, "bit/s", "rate towards the user; null where it is unknown"),
    Column("up_bps", pl.Float64, "bit/s", "rate from the user; null where it is unknown"),
    Column("buffer_bytes", pl.UInt64, "B", "queue before the down link; null where it is unknown"),
    Column("loss", pl.Float64, "", "probability of a packet's loss on the down link; null where it is unknown"),
)

# Of what `aggregates` and `histograms` count, and by what.
COUNTED = ("transfer", "page")
DIMENSIONS = ("all", "rtt_s", "down_bps", "bdp_bytes", "segments")

_BUCKETED = (
    _REPLICATE,
    _APPLICATION,
    Column("unit", None, "", 'what is counted: "transfer" or "page"'),
    Column("dimension", None, "", 'quantity of the bucket: "all", "rtt_s", "down_bps", "bdp_bytes" or "segments"'),
    Column("bucket", pl.UInt16, "", "bucket of that quantity, from 0: up to the first edge; 0 for all"),
)

AGGREGATES = (
    *_BUCKETED,
    Column("count", pl.UInt64, "", "transfers or pages"),
    Column("completed", pl.UInt64, "", "of these, finished"),
    Column("completion_ns_sum", pl.Int64, "ns", "completion times of the finished ones, added up"),
    Column("bytes", pl.UInt64, "B", "bytes asked for"),
    Column("segments_sent", pl.UInt64, "segments", "data segments sent, retransmissions included"),
    Column("retransmissions", pl.UInt64, "segments", "data segments retransmitted"),
    Column("timeouts", pl.UInt64, "", "retransmission timeouts"),
    Column("with_retransmission", pl.UInt64, "", "transfers or pages with at least one retransmission"),
    Column("first_flight_segments", pl.UInt64, "segments", "data segments sent before the first ACK of data"),
    Column("first_flight_lost", pl.UInt64, "segments", "of the first flights, segments truly lost on the path"),
    Column("with_first_flight_loss", pl.UInt64, "", "transfers or pages that lost a segment of a first flight"),
)

# Bin b of a histogram holds completion times above GAMMA^(b-1) ns, up to GAMMA^b ns.
GAMMA = 1.01

HISTOGRAMS = (
    *_BUCKETED,
    Column("bin", pl.Int32, "", f"bin b: completion times above {GAMMA}^(b-1) ns, up to {GAMMA}^b ns"),
    Column("count", pl.UInt64, "", "finished transfers or pages in it"),
)

# The tables a run stores of every cell, and those of a cell that captures; `crossings` are made by `trace` only.
STORED = {
    "transfers": TRANSFERS,
    "pages": PAGES,
    "links": LINKS,
    "users": USERS,
    "aggregates": AGGREGATES,
    "histograms": HISTOGRAMS,
}
CAPTURED = {"segments": SEGMENTS}
# What every engine returns of a cell; the others it may leave out, and they are stored without rows.
RETURNED = ("transfers", "pages", "links")
TABLES = STORED | CAPTURED | {"crossings": CROSSINGS}


def stored(captures: bool) -> tuple[str, ...]:
    """Names of the tables that a run stores of a cell."""
    return (*STORED, *(CAPTURED if captures else ()))


def empty(table: str) -> pl.DataFrame:
    """The table without rows; its names are an Enum without categories."""
    return pl.DataFrame(schema={column.name: column.dtype or pl.Enum([]) for column in TABLES[table]})


def conforms(table: str, frame: pl.DataFrame) -> None:
    """Raise ValueError unless `frame` has the columns and types of `table`, in order."""
    expected = [column.name for column in TABLES[table]]
    if frame.columns != expected:
        raise ValueError(f"{table}: the columns are {frame.columns}, not {expected}")
    for column in TABLES[table]:
        found = frame.schema[column.name]
        fits = isinstance(found, pl.Enum) if column.dtype is None else found == column.dtype
        if not fits:
            raise ValueError(f"{table}.{column.name} is {found}, not {column.dtype or 'Enum'}")
