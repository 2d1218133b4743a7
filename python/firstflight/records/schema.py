"""The one schema of records, whichever engine wrote them: every column's name, type, unit and meaning.

Times are seconds, relative ones to `start_s`; NaN where the thing did not happen. A count that an engine cannot know is
null: a kernel does not report how often it undid a recovery. Analysis sees the cells' key columns in front of these.

The files of transfers and pages hold times in whole nanoseconds (`start_ns`), in little more than half the space of
seconds. They are floating-point numbers all the same: of integers Polars would write a dictionary, which takes more.
The simulator's times are whole nanoseconds; others are rounded to them.

The columns are declared in `crates/records/src/rows.rs`, but for those of `quic`.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from firstflight import _native
from firstflight._native import COUNTED, DIMENSIONS, GAMMA, SCHEMA_VERSION

if TYPE_CHECKING:
    from firstflight.scenario import Scenario

__all__ = ["CAPTURED", "COUNTED", "DIMENSIONS", "GAMMA", "RETURNED", "SCHEMA_VERSION", "STORED", "TABLES", "Column"]


@dataclass(frozen=True)
class Column:
    """One column. `dtype` None: an Enum whose categories are the run's names. `none`: the raw value for null."""

    name: str
    dtype: pl.DataType | type[pl.DataType] | None
    unit: str
    meaning: str
    none: float | None = None


# What a link saw of a connection over QUIC. It is declared here because no native engine has it.
_QUIC = (
    Column("replicate", pl.UInt32, "", "replicate of the experiment, from 0"),
    Column("application", None, "", "name of the application"),
    Column("client", pl.UInt32, "", "client of the application, from 0"),
    Column("connection", pl.UInt32, "", "connection of the replicate, from 0"),
    Column(
        "validation_s",
        pl.Float64,
        "s",
        "from the client's first datagram to its first Handshake packet, which validates its address, at the server's "
        "end of the path",
    ),
    Column("client_bytes", pl.UInt64, "B", "UDP payload that the client sent before"),
    Column("server_bytes", pl.UInt64, "B", "UDP payload that the server sent before"),
    Column("amplification", pl.Float64, "", "largest ratio of the bytes that the server had sent and received before"),
    Column("min_initial_bytes", pl.UInt32, "B", "smallest UDP payload of a client's datagram with an Initial packet"),
    Column(
        "flight_bytes",
        pl.UInt64,
        "B",
        "UDP payload of the response's first flight: all within 0.9 RTT of its first full datagram",
    ),
    Column("flight_s", pl.Float64, "s", "from the first to the last datagram of that flight"),
    Column(
        "burst_bytes",
        pl.UInt64,
        "B",
        "UDP payload of the longest run of its datagrams that left the link idle for less than 1 ms",
    ),
)


def _native_tables() -> dict[str, tuple[Column, ...]]:
    def column(name: str, dtype: str | None, unit: str, meaning: str, none: float | None) -> Column:
        return Column(name, None if dtype is None else pl.Series(np.empty(0, dtype)).dtype, unit, meaning, none)

    return {table: tuple(column(*of) for of in columns) for table, columns in _native.record_tables()}


TABLES = _native_tables() | {"quic": _QUIC}
# Tables of a cell that captures, and those that are made by `trace` only.
_TRACED = ("sender_events", "crossings")
CAPTURED = {name: TABLES[name] for name in ("segments", "quic")}
# The tables a run stores of every cell.
STORED = {name: columns for name, columns in TABLES.items() if name not in (*CAPTURED, *_TRACED)}
# The tables that every engine returns of a cell. It may leave out the others; they are stored without rows.
RETURNED = ("transfers", "pages", "links")


def stored(captures: bool) -> tuple[str, ...]:
    """Names of the tables that a run stores of a cell."""
    return (*STORED, *(CAPTURED if captures else ()))


def empty(table: str) -> pl.DataFrame:
    """The table without rows; its names are an Enum without categories."""
    return pl.DataFrame(schema={column.name: column.dtype or pl.Enum([]) for column in TABLES[table]})


def as_stored(table: str, frame: pl.DataFrame | pl.LazyFrame, kept: Container[str] | None = None) -> pl.LazyFrame:
    """A table as its file holds it, with the columns `kept` (None: all)."""
    columns = [column.name for column in TABLES[table] if kept is None or column.name in kept]
    times = {name: stored for name, stored in _whole_nanoseconds(table).items() if name in columns}
    return frame.lazy().select(columns).with_columns((pl.col(list(times)) * 1e9).round()).rename(times)


def from_stored(table: str, kept: Container[str] | None = None) -> dict[str, pl.Expr]:
    """Each column of a table that is `kept` (None: all), in order, from its file. Times are the same floating-point
    numbers as before storage.
    """
    # Polars multiplies by the inverse of 1e9, which changes last digits; `round` restores them.
    times = _whole_nanoseconds(table)
    return {
        column.name: (pl.col(times[column.name]) / 1e9).round(9).alias(column.name)
        if column.name in times
        else pl.col(column.name)
        for column in TABLES[table]
        if kept is None or column.name in kept
    }


def _whole_nanoseconds(table: str) -> dict[str, str]:
    """The columns of a table that its file holds in whole nanoseconds, and their names there."""
    if table not in ("transfers", "pages"):
        return {}
    return {column.name: column.name.removesuffix("_s") + "_ns" for column in TABLES[table] if column.unit == "s"}


def conforms(table: str, frame: pl.DataFrame | pl.LazyFrame) -> None:
    """Raise ValueError unless `frame` has the columns and types of `table`, in order."""
    found = frame.lazy().collect_schema()
    expected = [column.name for column in TABLES[table]]
    if found.names() != expected:
        raise ValueError(f"{table}: the columns are {found.names()}, not {expected}")
    for column, dtype in zip(TABLES[table], found.dtypes(), strict=True):
        fits = isinstance(dtype, pl.Enum) if column.dtype is None else dtype == column.dtype
        if not fits:
            raise ValueError(f"{table}.{column.name} is {dtype}, not {column.dtype or 'Enum'}")


def from_native(table: str, columns: dict[str, tuple[str, bytes]], names: dict[str, list[str]]) -> pl.DataFrame:
    """A table from the native module's columns: names for indices, null for the values that stand for it."""
    series = []
    for column in TABLES[table]:
        dtype, content = columns[column.name]
        values = pl.Series(column.name, np.frombuffer(content, dtype=np.dtype(dtype)))
        if column.dtype is None:
            values = values.cat.to(pl.Enum(names[column.name]))
        elif column.none is not None:
            values = values.replace(column.none, None)
        series.append(values)
    return pl.DataFrame(series)


def first_transfers(transfers: pl.DataFrame, scenario: "Scenario") -> pl.DataFrame:
    """Those of the first application, of all its arms, by their start."""
    names = scenario.recorded_names()[: 1 + len(scenario.arm or [])]
    return transfers.filter(pl.col("application").cast(pl.String).is_in(names)).sort("start_s", "connection")
