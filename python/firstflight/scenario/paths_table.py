"""Tables of paths, one user a row: CSV or Parquet files with named columns, and the same in place."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from firstflight.input_files import read_text, scan, unreadable
from firstflight.scenario.table import ScenarioTable

# Imported where it is used, so that a command that reads no table need not wait for it.
if TYPE_CHECKING:
    import polars as pl

# More would take longer to hand over than to simulate.
MOST_ROWS = 1_000_000
# Of a handshake: of TLS 1.2 there are two, of mail servers before it some more.
MOST_EXCHANGES = 20
# Of a CSV file: as many rows with long numbers in every column.
_MOST_BYTES = 1 << 28
# The similarity to a known name from which a column's name counts as a typing error.
_NEAR = 0.8

_Place = Callable[[int], str]


class Columns(ScenarioTable):
    """The columns of a table, one value a user, all of the same length.

    `rtt_s` is the round trip without queueing, `down_bps` and `up_bps` the rates, `buffer_s` the queue as time at the
    down rate, `loss` the probability of a packet's loss on the downlink, `weight` the number of users that a row
    stands for, `bytes` the size of the user's response, for `size = "row"`; `tls_bytes` the server's first flight of
    the user's handshake (0: none) and `tls_exchanges` how often the client waits for the server in it, for
    `tls = { flights = "row" }`.
    """

    rtt_s: list[float] = Field(min_length=1)
    down_bps: list[float] = Field(min_length=1)
    up_bps: list[float] | None = None
    buffer_s: list[float] | None = None
    loss: list[float] | None = None
    weight: list[float] | None = None
    bytes: list[float] | None = None
    tls_bytes: list[float] | None = None
    tls_exchanges: list[float] | None = None

    @model_validator(mode="after")
    def _sound(self) -> Columns:
        import polars as pl

        for name, values in self.given():
            if len(values) != len(self.rtt_s):
                raise ValueError(f"{name} has {len(values)} values and rtt_s {len(self.rtt_s)}; give each row one")
            _check(name, pl.Series(values, dtype=pl.Float64), lambda index, name=name: f"{name}[{index}]: ")  # type: ignore[misc]
        return self

    def given(self) -> Iterator[tuple[str, list[float]]]:
        """Names and values of the columns that are there."""
        for name in type(self).model_fields:
            values = getattr(self, name)
            if values is not None:
                yield name, values


def read_columns(name: str, directory: Path | None) -> dict[str, list[float]]:
    """Read and check the table `name`, relative to `directory` (the scenario's; else the current one).

    A CSV has its columns' names in the first line; blank lines and those that begin with # are skipped.
    Columns of other names than those of `Columns` are left alone. Raises ValueError with file, line and column.
    """
    path = (directory or Path()) / name
    if not path.is_file():
        raise ValueError(f'there is no file "{path}"; the name is relative to the scenario\'s folder')
    is_parquet = path.suffix.lower() == ".parquet"
    frame = _parquet(path) if is_parquet else _csv(path)
    known = [column for column in Columns.model_fields if column in frame.columns]
    for column in frame.columns:
        near = difflib.get_close_matches(column.lower(), Columns.model_fields, n=1, cutoff=_NEAR)
        if column not in Columns.model_fields and near and near[0] not in frame.columns:
            raise ValueError(f'{path} has a column "{column}"; did you mean "{near[0]}"?')
    for column in ("rtt_s", "down_bps"):
        if column not in known:
            raise ValueError(f"{path} has no column {column}; it has {', '.join(frame.columns)}")
    if frame.is_empty():
        raise ValueError(f"{path} has no rows below its names; give at least one user")
    _check_height(path, frame.height)

    columns = {}
    for column in known:

        def place(index: int, column: str = column) -> str:
            where = f"row {index + 1}" if is_parquet else f"line {_line(path, index)}"
            return f"{path}, {where}, {column}: "

        values = _numbers(path, frame[column], place)
        _check(column, values, place)
        columns[column] = values.to_list()
    return columns


def _check_height(path: Path, rows: int) -> None:
    if rows > MOST_ROWS:
        raise ValueError(f"{path} has {rows} rows; a table has at most {MOST_ROWS}: take a sample of them")


def _csv(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        lines = read_text(path, _MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    kept = "\n".join(line for line in lines if _counts(line))
    if not kept:
        raise ValueError(f"{path} is empty; a table begins with a line of names, such as rtt_s,down_bps")
    try:
        names = next(csv.reader(kept.splitlines()))
        # As text, so that a value that is no number can be shown unchanged.
        frame = pl.read_csv(kept.encode(), infer_schema=False)
    except (csv.Error, pl.exceptions.PolarsError) as error:
        raise ValueError(f"{path}{_ragged(path)} cannot be read as CSV: {str(error).splitlines()[0]}") from None
    twice = next((name for name in Columns.model_fields if names.count(name) > 1), None)
    if twice:
        raise ValueError(f"{path} has more than one column {twice}; keep one")
    return frame


def _parquet(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        table = scan(path)
        _check_height(path, table.select(pl.len()).collect().item())
        return table.collect()
    except unreadable() as error:
        raise ValueError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _numbers(path: Path, values: pl.Series, place: _Place) -> pl.Series:
    import polars as pl

    if values.dtype != pl.String and not values.dtype.is_numeric():
        raise ValueError(f"{path}: the column {values.name} holds {values.dtype}, not numbers")
    numbers = values.str.strip_chars().cast(pl.Float64, strict=False) if values.dtype == pl.String else values
    numbers = numbers.cast(pl.Float64)
    if numbers.null_count():
        index = int(numbers.is_null().arg_true()[0])
        value = values[index]
        raise ValueError(
            f"{place(index)}there is no value; fill it or leave the row out"
            if value is None or not str(value).strip()
            else f'{place(index)}"{value}" is not a number'
        )
    return numbers


# The valid values of a column: the condition, and its description.
_BOUNDS: dict[str, tuple[Callable[[pl.Series], pl.Series], str]] = {
    "rtt_s": (lambda x: (x > 0) & (x < 1000), "a round trip is above 0 and below 1000 seconds"),
    "down_bps": (lambda x: (x >= 2) & (x <= 8e12), "a rate is at least 2 and at most 8e12 bit/s"),
    "up_bps": (lambda x: (x >= 2) & (x <= 8e12), "a rate is at least 2 and at most 8e12 bit/s"),
    "buffer_s": (lambda x: (x >= 0) & (x < 1000), "a buffer is 0 or more and below 1000 seconds"),
    "loss": (lambda x: (x >= 0) & (x < 1), "a probability of loss is 0 or more and below 1"),
    "weight": (lambda x: (x >= 0) & x.is_finite(), "a weight is 0 or more"),
    "bytes": (lambda x: (x >= 1) & (x == x.floor()) & (x < 2**53), "a size is a whole number of bytes, at least 1"),
    "tls_bytes": (lambda x: (x >= 0) & (x == x.floor()) & (x < 2**53), "a flight is a whole number of bytes"),
    "tls_exchanges": (
        lambda x: (x == x.floor()) & x.is_between(1, MOST_EXCHANGES),
        f"exchanges are a whole number from 1 to {MOST_EXCHANGES}",
    ),
}


def _check(name: str, values: pl.Series, place: _Place) -> None:
    allowed, rule = _BOUNDS[name]
    odd = ~allowed(values)
    if odd.any():
        index = int(odd.arg_true()[0])
        raise ValueError(f"{place(index)}{values[index]:g} is out of range: {rule}")
    if name == "weight" and values.sum() <= 0:
        raise ValueError(f"{place(0)}all weights are 0; give at least one row some")


def _counts(line: str) -> bool:
    """Whether a line is part of the table: neither blank nor a remark."""
    return bool(line.strip()) and not line.startswith("#")


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of each row of a CSV, as Polars counts rows; the first has the names."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(line if _counts(line) else "" for line in file)
        for fields in reader:
            if fields:
                yield reader.line_num, fields


def _line(path: Path, index: int) -> int:
    """The line of the file on which row `index` stands."""
    return next(line for row, (line, _) in enumerate(_rows(path)) if row == index + 1)


def _ragged(path: Path) -> str:
    """The place of a row with another number of fields than the first, as ", line 7"; empty if nowhere."""
    try:
        rows = _rows(path)
        _, names = next(rows)
        line = next((line for line, fields in rows if len(fields) != len(names)), None)
    except (OSError, StopIteration, csv.Error):
        return ""
    return "" if line is None else f", line {line}"


def column_plan(columns: Columns, name: str, factor: float = 1.0) -> list[int] | list[float] | None:
    """A column as the native module reads it: whole base units, or as it is for `loss` and `weight`."""
    values: list[Any] | None = getattr(columns, name)
    if values is None or name in ("loss", "weight"):
        return values
    return [round(factor * value) for value in values]
