"""Tables with named columns, CSV, JSON lines or Parquet, in pieces: which columns there are, and the wanted ones of
every row.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from firstflight.errors import RequestError
from firstflight.input_files import scan, unreadable
from firstflight.observe.formats import json_object, leaves
from firstflight.observe.lines import begins, pieces
from firstflight.observe.problem import Problems, Unit

PARQUET = b"PAR1"
# In a piece, the line (CSV) or row (Parquet) that it came from.
PLACE = "place"
_SEPARATORS = (",", "\t", ";")
# Excel writes the separator in a line before the head.
_EXCEL = "sep="
_ROWS_AT_ONCE = 1 << 16
# Of one record.
_MOST_LINES = 100


class ColumnFile:
    """A table in a file. `names`: its columns, those within structs and objects by their whole name (`a.MinRTT`);
    `unit`: the kind of place in it.
    """

    def __init__(self, path: Path) -> None:
        """RequestError for a Parquet file that cannot be opened."""
        self.path = path
        beginning = begins(path)
        self._leaves: dict[str, pl.Expr] = {}
        self.unit: Unit = "line"
        self._is_json = False
        self._head = ""
        if beginning.startswith(PARQUET):
            self.unit = "row"
            try:
                schema = scan(path).collect_schema()
            except unreadable():
                raise RequestError(
                    f"{path} starts as a Parquet file, but cannot be opened as one: it is cut off or damaged; write "
                    "it again"
                ) from None
            self._leaves = dict(_leaves(schema.items()))
            self.names = list(self._leaves)
        elif rows := _objects(path):
            self._is_json = True
            self.names = list(dict.fromkeys(name for row in rows for name, _ in leaves(row, lists=True)))
        else:
            texts = beginning.decode("utf-8", errors="replace").splitlines()
            self._head = next((text for text in texts if text.strip() and not text.startswith(_EXCEL)), "")
            self._separator = max(_SEPARATORS, key=self._head.count)
            self.names = [name.strip() for name in _fields(self._head, self._separator)]

    def rows(self, names: Sequence[str], problems: Problems) -> Iterator[pl.DataFrame]:
        """The columns with these names and `place`, in pieces. Of CSV all are text; lines with another number of fields
        than the head are left out and reported.
        """
        if self.unit == "row":
            yield from self._parquet_rows(names)
            return
        at = {name: self.names.index(name) for name in names}
        for first, lines in pieces(self.path, problems):
            frame = pl.DataFrame({PLACE: pl.int_range(first, first + lines.len(), eager=True), "line": lines})
            if self._is_json:
                yield _json_rows(frame, names, problems)
                continue
            line = pl.col("line")
            # Of joined tables each has its head.
            frame = frame.filter(line.str.strip_chars() != "", line != self._head, ~line.str.starts_with(_EXCEL))
            quoted = self._quoted(frame)
            frame = frame.with_columns(pl.col("line").str.split(self._separator))
            if quoted.height:
                # Of a record of several lines only the first has fields.
                frame = frame.update(quoted, on=PLACE).filter(pl.col("line").list.len() > 0)
            whole = pl.col("line").list.len() == len(self.names)
            problems.add(f"not {len(self.names)} fields, as the first line has", frame.filter(~whole)[PLACE])
            frame = frame.filter(whole)
            columns = [pl.col("line").list.get(index).str.strip_chars().alias(name) for name, index in at.items()]
            yield frame.select(pl.col(PLACE), *columns)

    def _quoted(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The fields of each line that has a quote, and of those that are inside a quoted field (RFC 4180 section 2.6)
        of a line before, which have none.
        """
        has_quote = frame["line"].str.contains('"', literal=True).arg_true().to_list()
        lines, after = frame["line"] if has_quote else pl.Series(dtype=pl.String), 0
        split: dict[int, list[str]] = {}
        for index in has_quote:
            if index < after:
                continue
            record = csv.reader(lines[index : index + _MOST_LINES], delimiter=self._separator, strict=True)
            try:
                fields = next(record)
            except csv.Error:
                fields = []
            is_whole = len(fields) == len(self.names)
            split[index] = fields if is_whole else _fields(lines[index], self._separator)
            after = index + (record.line_num if is_whole else 1)
            split |= {inside: [] for inside in range(index + 1, after)}
        fields_of = pl.Series("line", split.values(), dtype=pl.List(pl.String))
        return pl.DataFrame([frame[PLACE].gather(list(split)), fields_of])

    def _parquet_rows(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        columns = [self._leaves[name].alias(name) for name in names]
        table = scan(self.path)
        try:
            height = int(table.select(pl.len()).collect().item())
            for start in range(0, height, _ROWS_AT_ONCE):
                frame = table.slice(start, _ROWS_AT_ONCE).select(columns).collect()
                yield frame.with_columns(pl.int_range(start + 1, start + 1 + pl.len()).alias(PLACE))
        except unreadable() as error:
            reason = str(error).splitlines()[0]
            raise RequestError(f"{self.path} cannot be read as Parquet ({reason}); write it again") from None


def _objects(path: Path) -> list[dict[str, object]]:
    """The first objects of JSON lines; none of another file."""
    _, lines = next(pieces(path, Problems(), 1 << 16), (1, []))
    return [row for line in list(lines)[:100] if (row := json_object(line)) is not None]


def _json_rows(frame: pl.DataFrame, names: Sequence[str], problems: Problems) -> pl.DataFrame:
    """The fields of JSON lines as text; of a list of objects those of the last one, as in Parquet."""
    rows: list[dict[str, object]] = []
    odd: list[int] = []
    for place, line in frame.iter_rows():
        if (entry := json_object(line)) is not None:
            values = dict(leaves(entry, lists=True))
            rows.append(
                {PLACE: place} | {name: None if (value := values.get(name)) is None else str(value) for name in names}
            )
        elif line.strip():
            odd.append(place)
    problems.add("not a JSON object", odd)
    return pl.DataFrame(rows, schema={PLACE: pl.Int64} | dict.fromkeys(names, pl.String))


def numbers(frame: pl.DataFrame, name: str, unit: Unit, problems: Problems) -> pl.DataFrame:
    """`frame` with the column as numbers, null for an empty field; rows of no number are left out and reported."""
    column = pl.col(name)
    if frame.schema[name] == pl.String:
        frame = frame.with_columns(present(column))
    elif not frame.schema[name].is_numeric():
        frame = frame.with_columns(column.cast(pl.String, strict=False))
    number = column.cast(pl.Float64, strict=False)
    odd = column.is_not_null() & (number.is_null() | ~number.is_finite())
    problems.add(f"{name} is not a number", frame.filter(odd)[PLACE], unit)
    return frame.filter(~odd).with_columns(number)


def present(text: pl.Expr) -> pl.Expr:
    """The text, null where a field is empty or says so in one of the usual words."""
    empty = text.str.to_lowercase().is_in(["", "-", "na", "n/a", "nan", "null", "none"])
    return pl.when(~empty).then(text)


def within(frame: pl.DataFrame, name: str, holds: pl.Expr, rule: str, unit: Unit, problems: Problems) -> pl.DataFrame:
    """The rows for which the rule holds or the column is null; the others are reported: "NAME is not RULE"."""
    bad = ~holds.fill_null(True)
    problems.add(f"{name} is not {rule}", frame.filter(bad)[PLACE], unit)
    return frame.filter(~bad)


def _fields(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _leaves(fields: object, above: str = "", inside: pl.Expr | None = None) -> Iterator[tuple[str, pl.Expr]]:
    """Columns by their whole names; of a list of structs, the last one's, which of measurements is the final one."""
    for name, dtype in fields:  # type: ignore[attr-defined]
        expression = pl.col(name) if inside is None else inside.struct.field(name)
        whole = f"{above}{name}"
        if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
            expression, dtype = expression.list.last(), dtype.inner
        if isinstance(dtype, pl.Struct):
            yield from _leaves(((field.name, field.dtype) for field in dtype.fields), f"{whole}.", expression)
        else:
            yield whole, expression
