"""Plain tables, CSV, JSON lines or Parquet, whose columns are named as documented: a quantity and its unit, such as
`rtt_ms`.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from firstflight.errors import RequestError
from firstflight.observe.columns import PLACE, ColumnFile, numbers, present, within
from firstflight.observe.merged import OF, Merged, in_order
from firstflight.observe.observation import TLS
from firstflight.observe.problem import Problems, Unit
from firstflight.observe.room import Room
from firstflight.observe.tables import Parts, Subnets, mean_rate, since_first

# The value of one unit in the records' own unit: seconds, bits a second, bytes, a share, a number.
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RTTS = {f"rtt_{unit}" for unit in _TIMES}
_RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
_SIZES = {"bytes": 1.0, "kb": 1e3, "mb": 1e6, "kib": 1024.0, "mib": 1048576.0}
_SHARES = {"": 1.0, "percent": 1e-2}
_COUNTS = {"": 1.0}


@dataclass(frozen=True)
class ColumnQuantity:
    """The contents of a column. `column`: the records' own; `units`: the value of one of each unit there;
    `positive`: 0 is no value; `below`: exclusive upper bound; `signed`: may be negative; `whole`: an integer in the
    records.
    """

    column: str
    units: dict[str, float]
    positive: bool = False
    below: float = 1e15
    signed: bool = False
    whole: bool = False


# Of a connection's path, by name without unit.
PATH = {
    "rtt": ColumnQuantity("rtt_s", _TIMES, positive=True, below=1e6),
    "max_rtt": ColumnQuantity("max_rtt_s", _TIMES, positive=True, below=1e6),
    "down": ColumnQuantity("down_bps", _RATES, positive=True),
    "up": ColumnQuantity("up_bps", _RATES, positive=True),
    "buffer": ColumnQuantity("buffer_bytes", _SIZES, whole=True),
    "loss": ColumnQuantity("loss", _SHARES, below=1.0),
    "weight": ColumnQuantity("weight", _COUNTS, positive=True),
}
# Of a buffer given as the time that it takes to drain, which needs the rate.
_BUFFER_TIME = ColumnQuantity("buffer_time_s", _TIMES, below=1e3)
# Of a response.
RESPONSE = {
    "": ColumnQuantity("bytes", _SIZES, whole=True),
    "delivered": ColumnQuantity("delivered_bytes", _SIZES, whole=True),
    "start": ColumnQuantity("start_s", _TIMES, signed=True),
    "handshake_time": ColumnQuantity("handshake_time_s", _TIMES),
    "first_byte_time": ColumnQuantity("first_byte_time_s", _TIMES),
    "completion_time": ColumnQuantity("completion_time_s", _TIMES),
} | {
    name: ColumnQuantity(name, _COUNTS, below=2.0**32, whole=True)
    for name in (
        "segments_sent",
        "retransmissions",
        "timeouts",
        "fast_retransmits",
        "tail_loss_probes",
        "first_flight_segments",
        "first_flight_lost_segments",
        "ecn_cwnd_reductions",
        "initial_window_segments",
        "object",
    )
}
RESPONSE["completed"] = ColumnQuantity("completed", _COUNTS, below=2.0, whole=True)
# Of the handshake of TLS on the connection.
HANDSHAKE = {
    "tls": ColumnQuantity("tls_bytes", {"bytes": 1.0}, positive=True, whole=True),
    "tls_exchanges": ColumnQuantity("tls_exchanges", _COUNTS, positive=True, below=256.0, whole=True),
    "tls_answer_flight_segments": ColumnQuantity("tls_answer_flight_segments", _COUNTS, below=2.0**32, whole=True),
    "tls_flight": ColumnQuantity("tls_flight_bytes", {"bytes": 1.0}, positive=True, whole=True),
    "tls_time": ColumnQuantity("tls_time_s", _TIMES, positive=True),
    "tls_resumed": ColumnQuantity("tls_resumed", _COUNTS, below=2.0, whole=True),
    "tls_client_hello": ColumnQuantity("tls_client_hello_bytes", {"bytes": 1.0}, positive=True, whole=True),
    "tls_key_share": ColumnQuantity("tls_key_share_bytes", {"bytes": 1.0}, positive=True, whole=True),
}
# Usual names that leave no doubt, and their names here.
ALIASES = {
    "min_rtt_ms": "rtt_ms",
    "min_rtt_us": "rtt_us",
    "rtt_msec": "rtt_ms",
    "rtt_usec": "rtt_us",
    "tcpi_min_rtt": "rtt_us",
    "tcpi_rtt": "rtt_us",
    "tcpinfo_rtt": "rtt_us",
    "bytes_sent": "bytes",
    "retransmits": "retransmissions",
    "retrans": "retransmissions",
    "segs_out": "segments_sent",
    "client_ip": "remote_addr",
    "sc_bytes": "bytes",
    "c_ip": "remote_addr",
    "initial_window": "initial_window_segments",
    "initcwnd": "initial_window_segments",
}
# Usual names with several meanings: the name to use instead.
_UNCLEAR = {
    "rtt": "rtt_ms, rtt_s or rtt_us, by its unit",
    "min_rtt": "rtt_ms, rtt_s or rtt_us, by its unit",
    "minrtt": "rtt_ms, rtt_s or rtt_us, by its unit",
    "latency": "rtt_ms or rtt_s, if it is a round trip",
    "latency_ms": "rtt_ms, if it is a round trip",
    "ping_ms": "rtt_ms",
    "size": "bytes or kb, by its unit",
    "response_size": "bytes or kb, by its unit",
    "throughput_mbps": "down_mbps, if it is the access rate and not the mean of a response",
    "bandwidth_mbps": "down_mbps",
    "duration_ms": "completion_time_ms, if it is from opening the connection to the last byte",
    "duration_s": "completion_time_s, if it is from opening the connection to the last byte",
}
# No population has such a median.
_LONG_S = 10.0
IGNORED = "columns are ignored"
"""The beginning of a note."""
# Those by which rows belong together.
CONNECTION = ("connection", "client")
_SUBNET, _ADDRESS = "subnet", "remote_addr"


def accepted() -> dict[str, tuple[ColumnQuantity, float]]:
    """Every name of a column that means something, with its quantity and the value of one unit."""
    every = [*PATH.items(), *RESPONSE.items(), *HANDSHAKE.items(), ("buffer", _BUFFER_TIME)]
    return {
        "_".join(filter(None, (name, unit))): (quantity, factor)
        for name, quantity in every
        for unit, factor in quantity.units.items()
    }


def recognizes(names: list[str]) -> bool:
    """Whether columns with these names make a plain table: it must have a round trip or a size."""
    return any(_plain(name) in {*_RTTS, *_SIZES} for name in names)


def has_more(names: list[str]) -> bool:
    """Whether there is a column with a meaning that no access log has."""
    known = accepted()
    columns = {known[plain][0].column for name in names if (plain := _plain(name)) in known}
    return not columns <= {"rtt_s", "bytes", "start_s"}


def suggestions(names: list[str]) -> str:
    """For columns that are not recognized but similar to known ones: the right name of each; empty if there is none."""
    known = accepted()
    taken = {_plain(name) for name in names} & known.keys()
    sentences = []
    for name in names:
        plain = _plain(name)
        if plain in known or plain in (*CONNECTION, _SUBNET, _ADDRESS):
            continue
        same_unit = [column for column in known if column.endswith(f"_{plain.rpartition('_')[2]}")]
        # Without a unit in common more letters must be: a status is no start_us.
        cutoff = 0.81 if same_unit else 0.86
        near = difflib.get_close_matches(plain, same_unit or known, n=1, cutoff=cutoff)
        better = _UNCLEAR.get(plain) or (near[0] if near else None)
        if better is not None and better.split()[0].strip(",") not in taken:
            sentences.append(f'write "{name}" as {better}')
    return "; ".join(sentences)


def read(path: Path, problems: Problems) -> Parts:
    """The parts of a plain table. RequestError without a round trip and a size, or with a quantity in two columns."""
    file = ColumnFile(path)
    meant = suggestions(file.names)
    has_rtt = any(_plain(name) in _RTTS for name in file.names)
    if not recognizes(file.names) or (not has_rtt and " as rtt_" in meant):
        none = "" if has_rtt or recognizes(file.names) else " and none of sizes (bytes)"
        raise RequestError(
            f"{path} has no column of round trips (rtt_ms, rtt_s or rtt_us){none}: its columns are "
            f"{', '.join(file.names[:20])}; {meant or 'name them as docs/observe.md#tables does'}"
        )
    known = accepted()
    taken: dict[str, str] = {}
    names: list[str] = []
    for name in file.names:
        meaning = known.get(_plain(name))
        column = meaning[0].column if meaning else _plain(name)
        if meaning is None and column not in (*CONNECTION, _SUBNET, _ADDRESS):
            continue
        if column in taken:
            raise RequestError(f'{path}: columns "{taken[column]}" and "{name}" say the same; leave one of them out')
        taken[column] = name
        names.append(name)
    identity = next((name for name in CONNECTION if name in taken), None)
    columns = [quantity.column for quantity in RESPONSE.values() if quantity.column in taken]
    if columns and "bytes" not in columns:
        raise RequestError(
            f'{path}: column "{taken[columns[0]]}" is about responses, which need their size; add a column bytes, or '
            "leave it out"
        )

    def same(rows: pl.DataFrame) -> pl.Series:
        places = pl.Series(range(rows.height))
        return in_order(rows["name"], places) if identity else places

    connections = Merged(same, _path(taken), Room(path))
    subnet = Subnets()
    for frame in file.rows(names, problems):
        frame = _converted(frame, taken, known, file.unit, problems)
        if _ADDRESS in taken:
            frame = frame.with_columns(subnet.numbers(frame[_ADDRESS]).alias(_SUBNET))
        elif _SUBNET in taken:
            frame = frame.with_columns(subnet.numbers_of_names(frame[_SUBNET]).alias(_SUBNET))
        # A row without a name is a separate connection.
        label = pl.coalesce(pl.col(identity), pl.format("row {}", PLACE)) if identity else pl.lit(None, dtype=pl.String)
        frame = frame.with_columns(label.alias("name"), pl.int_range(pl.len()).alias(OF))
        # Without a size there is no response.
        sized = frame.filter(pl.col("bytes").is_not_null()) if columns else frame.clear()
        connections.add(frame.select(*_path(taken)), responses=sized.select(OF, *columns))
    ignored = tuple(name for name in file.names if name not in names)
    notes = (f"{IGNORED} that may have another name here: {meant}",) if meant else ()
    clients, beside = connections.done()
    if clients.is_empty():
        return Parts(ignored=ignored, notes=notes)
    responses, began_s = since_first(beside["responses"])
    clients = clients.with_row_index("client")
    median_s: float = clients["rtt_s"].median() if "rtt_s" in taken else 0.0  # type: ignore[assignment]
    if median_s > _LONG_S:
        notes = (*notes, f"the median RTT is {median_s:.3g} s: name the column rtt_ms if it is in ms")
    handshakes = clients.select("client", **{column: key for key, column in TLS.items() if key in taken})
    is_seen = [pl.col(name).is_not_null() for name in handshakes.columns if name != "client"]
    handshakes = handshakes.filter(pl.any_horizontal(is_seen)) if is_seen else handshakes.clear()
    bounds = _bounds(responses)
    return Parts(responses, clients, began_s, ignored, notes, bounds, handshakes, subnet.networks())


def _bounds(responses: pl.DataFrame) -> pl.DataFrame:
    """The delivery rate during the fastest response of each connection, from opening it or asking to the last byte."""
    if "completion_time_s" not in responses.columns:
        return pl.DataFrame({"client": []})
    arrived = pl.col("bytes")
    if "completed" in responses.columns:
        arrived = pl.when(pl.col("completed").fill_null(1) == 1).then(arrived)
    if "delivered_bytes" in responses.columns:
        arrived = pl.coalesce("delivered_bytes", arrived)
    rate = mean_rate(arrived, pl.col("completion_time_s")).max().alias("min_down_bps")
    return responses.group_by("client", maintain_order=True).agg(rate)


def _plain(name: str) -> str:
    words = name.lower().replace("%", " percent").replace("µ", "u").replace("bit/s", "bps")
    plain = re.sub(r"\W+", "_", words).strip("_")
    plain = re.sub(rf"^(?:response_)?(?:size_)?({'|'.join(_SIZES)})$", r"\1", plain)
    return ALIASES.get(plain, plain)


def _converted(
    frame: pl.DataFrame,
    taken: dict[str, str],
    known: dict[str, tuple[ColumnQuantity, float]],
    unit: Unit,
    problems: Problems,
) -> pl.DataFrame:
    columns: list[pl.Expr] = [pl.col(PLACE)]
    for column, name in taken.items():
        meaning = known.get(_plain(name))
        if meaning is None:
            columns.append(present(pl.col(name).cast(pl.String)).alias(column))
            continue
        quantity, factor = meaning
        frame = _valid(numbers(frame, name, unit, problems), name, quantity, factor, unit, problems)
        value = pl.col(name) * factor
        columns.append((value.round().cast(pl.Int64) if quantity.whole else value).alias(column))
    if (rtt := taken.get("rtt_s")) is not None:
        frame = within(frame, rtt, pl.col(rtt).is_not_null(), "there, and a path needs it", unit, problems)
    if {"segments_sent", "retransmissions"} <= taken.keys():
        sent, again = taken["segments_sent"], taken["retransmissions"]
        frame = within(frame, again, pl.col(again) <= pl.col(sent), f"at most {sent}", unit, problems)
    frame = frame.select(columns)
    if "buffer_time_s" not in taken or "down_bps" not in taken:
        return frame
    size = (pl.col("buffer_time_s") * pl.col("down_bps") / 8).round().cast(pl.Int64)
    given = [pl.col("buffer_bytes")] if "buffer_bytes" in taken else []
    return frame.with_columns(pl.coalesce(*given, size).alias("buffer_bytes"))


def _valid(
    frame: pl.DataFrame, name: str, quantity: ColumnQuantity, factor: float, unit: Unit, problems: Problems
) -> pl.DataFrame:
    value = pl.col(name)
    if quantity.positive:
        frame = within(frame, name, value > 0, "above 0", unit, problems)
    elif not quantity.signed:
        frame = within(frame, name, value >= 0, "at least 0", unit, problems)
    below = quantity.below / factor
    return within(frame, name, value < below, f"below {below:.12g}", unit, problems)


def _path(taken: Iterable[str]) -> dict[str, pl.Expr]:
    """The values kept from the rows of a connection, by column."""
    kept = [quantity.column for quantity in (*PATH.values(), *HANDSHAKE.values()) if quantity.column in taken]
    if "buffer_time_s" in taken and "down_bps" in taken:
        kept.append("buffer_bytes")
    if _ADDRESS in taken or _SUBNET in taken:
        kept.append(_SUBNET)
    columns = {name: pl.col(name).drop_nulls().first() for name in kept}
    if "rtt_s" in columns:
        columns["rtt_s"] = pl.col("rtt_s").min()
    if "max_rtt_s" in columns:
        columns["max_rtt_s"] = pl.col("max_rtt_s").max()
    return {"name": pl.col("name").first()} | columns
