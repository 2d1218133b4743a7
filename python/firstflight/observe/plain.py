"""Plain tables, CSV or Parquet, whose columns are named as documented: a quantity and its unit, such as `rtt_ms`."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..errors import RequestError
from .columns import PLACE, ColumnFile, numbers, within
from .observation import TLS
from .problem import Problems, Unit
from .tables import Parts, since_first, subnets

# What one of the unit is in the records' own: seconds, bits a second, bytes, a share, a number.
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
_SIZES = {"bytes": 1.0, "kb": 1e3, "mb": 1e6, "kib": 1024.0, "mib": 1048576.0}
_SHARES = {"": 1.0, "percent": 1e-2}
_COUNTS = {"": 1.0}


@dataclass(frozen=True)
class Quantity:
    """What a column holds. `column`: the records' own; `units`: what one of each unit is there; `positive`: 0 is no
    value; `below`: what it does not reach; `signed`: may be negative; `whole`: an integer in the records.
    """

    column: str
    units: dict[str, float]
    positive: bool = False
    below: float = 1e15
    signed: bool = False
    whole: bool = False


# Of a connection's path, by name without unit.
PATH = {
    "rtt": Quantity("rtt_s", _TIMES, positive=True, below=1e6),
    "most_rtt": Quantity("most_rtt_s", _TIMES, positive=True, below=1e6),
    "down": Quantity("down_bps", _RATES, positive=True),
    "up": Quantity("up_bps", _RATES, positive=True),
    "buffer": Quantity("buffer_bytes", _SIZES, whole=True),
    "loss": Quantity("loss", _SHARES, below=1.0),
    "weight": Quantity("weight", _COUNTS, positive=True),
}
# Of a buffer given as the time that it takes to drain, which needs the rate.
_BUFFER_TIME = Quantity("buffer_time_s", _TIMES, below=1e3)
# Of a response.
RESPONSE = {
    "": Quantity("bytes", _SIZES, whole=True),
    "delivered": Quantity("delivered_bytes", _SIZES, whole=True),
    "start": Quantity("start_s", _TIMES, signed=True),
    "handshake_time": Quantity("handshake_time_s", _TIMES),
    "first_byte_time": Quantity("first_byte_time_s", _TIMES),
    "completion_time": Quantity("completion_time_s", _TIMES),
} | {
    name: Quantity(name, _COUNTS, below=2.0**32, whole=True)
    for name in (
        "segments_sent",
        "retransmissions",
        "timeouts",
        "fast_retransmits",
        "tail_loss_probes",
        "first_flight_segments",
        "first_flight_lost",
        "initial_window_segments",
        "object",
    )
}
RESPONSE["completed"] = Quantity("completed", _COUNTS, below=2.0, whole=True)
# Of the handshake of TLS on the connection.
HANDSHAKE = {
    "tls": Quantity("tls_bytes", {"bytes": 1.0}, positive=True, whole=True),
    "tls_exchanges": Quantity("tls_exchanges", _COUNTS, positive=True, below=256.0, whole=True),
    "tls_answer_flight_segments": Quantity("tls_answer_flight_segments", _COUNTS, below=2.0**32, whole=True),
}
# Those by which rows belong together.
CONNECTION = ("connection", "client")
_SUBNET, _ADDRESS = "subnet", "remote_addr"


def accepted() -> dict[str, tuple[Quantity, float]]:
    """Every name of a column that means something, with its quantity and what one of its unit is."""
    every = [*PATH.items(), *RESPONSE.items(), *HANDSHAKE.items(), ("buffer", _BUFFER_TIME)]
    return {
        "_".join(filter(None, (name, unit))): (quantity, factor)
        for name, quantity in every
        for unit, factor in quantity.units.items()
    }


def recognises(names: list[str]) -> bool:
    """Whether columns with these names make a plain table: a round trip is the one thing it must have."""
    return any(_plain(name) in {f"rtt_{unit}" for unit in _TIMES} for name in names)


def read(path: Path, problems: Problems) -> Parts:
    """The parts of a plain table. RequestError without a round trip, or with a quantity in two columns."""
    file = ColumnFile(path)
    if not recognises(file.names):
        raise RequestError(
            f"{path} has no column of round trips (rtt_ms, rtt_s or rtt_us): its columns are "
            f"{', '.join(file.names[:20])}"
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
    found = [_converted(frame, taken, known, file.unit, problems) for frame in file.rows(names, problems)]
    frame = pl.concat(found) if found else pl.DataFrame(schema={PLACE: pl.Int64, "rtt_s": pl.Float64})
    ignored = tuple(name for name in file.names if name not in names)
    return _parts(frame, ignored)


def _plain(name: str) -> str:
    return name.strip().lower().replace(".", "_").replace("-", "_").replace(" ", "_")


def _converted(
    frame: pl.DataFrame, taken: dict[str, str], known: dict[str, tuple[Quantity, float]], unit: Unit, problems: Problems
) -> pl.DataFrame:
    columns: list[pl.Expr] = [pl.col(PLACE)]
    for column, name in taken.items():
        meaning = known.get(_plain(name))
        if meaning is None:
            columns.append(pl.col(name).cast(pl.String).alias(column))
            continue
        quantity, factor = meaning
        frame = _valid(numbers(frame, name, unit, problems), name, quantity, factor, unit, problems)
        value = pl.col(name) * factor
        columns.append((value.round().cast(pl.Int64) if quantity.whole else value).alias(column))
    rtt = taken["rtt_s"]
    frame = within(frame, rtt, pl.col(rtt).is_not_null(), "there, and a path needs it", unit, problems)
    return frame.select(columns)


def _valid(
    frame: pl.DataFrame, name: str, quantity: Quantity, factor: float, unit: Unit, problems: Problems
) -> pl.DataFrame:
    value = pl.col(name)
    if quantity.positive:
        frame = within(frame, name, value > 0, "above 0", unit, problems)
    elif not quantity.signed:
        frame = within(frame, name, value >= 0, "at least 0", unit, problems)
    below = quantity.below / factor
    return within(frame, name, value < below, f"below {below:.12g}", unit, problems)


def _parts(frame: pl.DataFrame, ignored: tuple[str, ...]) -> Parts:
    if "buffer_time_s" in frame.columns and "down_bps" in frame.columns:
        size = (pl.col("buffer_time_s") * pl.col("down_bps") / 8).round().cast(pl.Int64)
        known = [pl.col("buffer_bytes")] if "buffer_bytes" in frame.columns else []
        frame = frame.with_columns(pl.coalesce(*known, size).alias("buffer_bytes"))
    identity = next((name for name in CONNECTION if name in frame.columns), None)
    # A row without a name is a connection of its own.
    own = pl.format("row {}", pl.col(PLACE))
    frame = _numbered(frame, own if identity is None else pl.coalesce(pl.col(identity), own), "client")
    if _ADDRESS in frame.columns:
        frame = frame.with_columns(subnets(frame[_ADDRESS]).alias(_SUBNET))
    elif _SUBNET in frame.columns:
        frame = _numbered(frame, pl.col(_SUBNET), _SUBNET)
    every = [quantity.column for quantity in PATH.values()] + [_SUBNET]
    one = {"rtt_s": pl.col("rtt_s").min(), "most_rtt_s": pl.col("most_rtt_s").max()}
    path = [one.get(name, pl.col(name).drop_nulls().first()) for name in every if name in frame.columns]
    connections = frame.group_by("client", maintain_order=True).agg(path)
    columns = [quantity.column for quantity in RESPONSE.values() if quantity.column in frame.columns]
    responses = frame.select("client", *columns)
    # Without a size there is no response.
    responses = responses.filter(pl.col("bytes").is_not_null()) if "bytes" in columns else responses.clear()
    responses, began_s = since_first(responses)
    tls = {name: pl.col(told).drop_nulls().first() for told, name in TLS.items() if told in frame.columns}
    handshakes = frame.group_by("client", maintain_order=True).agg(**{column: tls[column] for column in tls})
    handshakes = handshakes.filter(pl.col("bytes").is_not_null()) if "bytes" in tls else handshakes.clear()
    return Parts(responses, connections, began_s, ignored, handshakes=handshakes)


def _numbered(frame: pl.DataFrame, name: pl.Expr, column: str) -> pl.DataFrame:
    """`frame` with numbers from 0 in order of the names' appearance, null for no name, as `column`."""
    first = pl.col("order").min().over("name").rank("dense").cast(pl.Int64) - 1
    numbers = frame.select(name=name).with_row_index("order").select(pl.when(pl.col("name").is_not_null()).then(first))
    return frame.with_columns(numbers.to_series().alias(column))
