"""A table of results with the published value next to ours, and its text, CSV and JSON forms."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import xarray as xr

NOTHING = "\N{EN DASH}"
VALUE_COLUMNS = ("metric", "ours", "low", "high", "published", "unit")
_VALUE_TYPES = {
    "metric": pl.String,
    "ours": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "published": pl.Float64,
    "unit": pl.String,
}


@dataclass(frozen=True)
class Metric:
    """The name, format and comparison of one metric of a table.

    `near` is the difference that still counts as close: a share of the published value if
    `compare` is "relative", the metric's own unit if it is "absolute". It steers colors only;
    verdicts come from claims. `least` and `most` bound what is possible, and the intervals of a table. `unit` is for
    the tables of any run; a study's quantities have their own.
    """

    name: str
    label: str
    digits: int = 2
    compare: Literal["relative", "absolute"] = "relative"
    near: float = 0.1
    least: float = -math.inf
    most: float = math.inf
    unit: str = ""

    def difference(self, ours: float, published: float) -> float | None:
        """Ours minus published in multiples of `near`; None where it is not defined."""
        gap = ours - published
        if self.compare == "relative":
            if published == 0:
                return None
            gap /= abs(published)
        return gap / self.near


@dataclass(frozen=True)
class Entry:
    """One figure of a laid-out table. None: not measured, not published, or one replicate only."""

    ours: float | None
    low: float | None
    high: float | None
    published: float | None
    unit: str
    misprint: bool = False


@dataclass(frozen=True)
class TableLayout:
    """A table as a person reads it: one row a scenario, one column a metric (and, say, an IW)."""

    row_keys: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Entry | None, ...]], ...]


@dataclass(frozen=True)
class Table:
    """A tidy table: the columns `keys`, then `metric, ours, low, high, published, unit`.

    `low` and `high` bound the 95% CI over replicates; they are null with one replicate.
    `published` is null where the source prints nothing. `across` names the key that the text and
    HTML forms spread over columns, `quiet` the keys that they leave out because the title gives
    them. `misprints` holds (metric, *values of `keys` as text) where the published value is known to be
    wrong: it is shown, marked and not compared. Raises ValueError if the frame lacks a column.
    """

    name: str
    title: str
    caption: str
    keys: tuple[str, ...]
    frame: pl.DataFrame
    across: str | None = None
    metrics: tuple[Metric, ...] = ()
    notes: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()
    misprints: frozenset[tuple[str, ...]] = frozenset()

    def __post_init__(self) -> None:
        columns = [*self.keys, *VALUE_COLUMNS]
        missing = [column for column in columns if column not in self.frame.columns]
        if missing:
            raise ValueError(f"table {self.name}: the frame lacks {', '.join(missing)}")
        if self.across is not None and self.across not in self.keys:
            raise ValueError(f"table {self.name}: {self.across} is not one of its keys")
        numbers = [name for name, kind in _VALUE_TYPES.items() if kind == pl.Float64]
        frame = self.frame.select(
            *self.keys, *(pl.col(name).cast(kind) for name, kind in _VALUE_TYPES.items())
        ).with_columns(pl.col(numbers).fill_nan(None))
        possible = [
            pl.col("metric").replace_strict({"": 0.0} | of, default=end, return_dtype=pl.Float64)
            for end, of in (
                (-math.inf, {metric.name: metric.least for metric in self.metrics}),
                (math.inf, {metric.name: metric.most for metric in self.metrics}),
            )
        ]
        frame = frame.with_columns(pl.col("low", "high").clip(*possible))
        object.__setattr__(self, "frame", frame)

    def metric(self, name: str) -> Metric:
        """The metric's description, or a plain one made from its name."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        return Metric(name, name.replace("_", " "))

    def to_xarray(self) -> xr.Dataset:
        """`ours`, `low`, `high` and `published` over the keys and `metric`; NaN where the table has no row."""
        import xarray as xr

        dims = (*self.keys, "metric")
        labels = {name: list(dict.fromkeys(self.frame[name])) for name in dims}
        places = tuple([labels[name].index(label) for label in self.frame[name]] for name in dims)
        arrays = {}
        for column in ("ours", "low", "high", "published"):
            arrays[column] = (dims, np.full([len(of) for of in labels.values()], np.nan))
            arrays[column][1][places] = self.frame[column].to_numpy()
        return xr.Dataset(arrays, labels)

    def of_metric(self, name: str, keys: Sequence[str]) -> xr.Dataset | None:
        """One metric over `keys`, the last of which joins the labels of the table's other keys; None without a row."""
        *places, last = keys
        said = pl.concat_str([key for key in self.keys if key not in places], separator=", ")
        rows = self.frame.filter(pl.col("metric") == name).with_columns(said.alias(last))
        if rows.is_empty():
            return None
        return replace(self, keys=tuple(keys), frame=rows, across=None).to_xarray().sel(metric=name, drop=True)

    def csv(self) -> str:
        """The tidy frame as CSV with a header; empty fields where there is no value."""
        return defused(self.frame).write_csv()

    def json(self) -> str:
        """`{name, title, caption, notes, rows}`, the rows as objects with the tidy columns."""
        return as_json(self.name, self.title, self.caption, self.notes, self.frame.to_dicts())

    def layout(self) -> TableLayout:
        """The table spread over columns, in the order in which the frame gives its rows."""
        row_keys = tuple(k for k in self.keys if k != self.across and k not in self.quiet)
        rows: dict[tuple[str, ...], dict[tuple[str, str], Entry]] = {}
        columns: dict[tuple[str, str], None] = {}
        for record in self.frame.iter_rows(named=True):
            row = tuple(str(record[key]) for key in row_keys)
            across = "" if self.across is None else str(record[self.across])
            column = (record["metric"], across)
            columns[column] = None
            place = (record["metric"], *(str(record[key]) for key in self.keys))
            rows.setdefault(row, {})[column] = Entry(
                record["ours"],
                record["low"],
                record["high"],
                record["published"],
                record["unit"],
                place in self.misprints,
            )
        order = list(dict.fromkeys(metric for metric, _ in columns))
        spread = tuple(sorted(columns, key=lambda column: order.index(column[0])))
        return TableLayout(
            row_keys,
            spread,
            tuple((row, tuple(entries.get(column) for column in spread)) for row, entries in rows.items()),
        )

    def _repr_html_(self) -> str:
        """The notebook view."""
        return f"<pre>{html.escape(self.text())}</pre>"

    def text(self, width: int | None = None) -> str:
        """For a terminal: `ours ±half-width [published]` in each place, or `ours (low to high)`.

        With `across` one block per metric, one column per value of that key; without, one column per metric. Blocks
        wider than `width` characters continue below with the same rows.
        """
        layout = self.layout()
        names = list(dict.fromkeys(name for name, _ in layout.columns))
        blocks = [f"{self.title}\n{self.caption}" if self.caption else self.title]
        if self.across is None:
            titles = [self._heading(name) for name in names]
            blocks.append(self._block(layout, range(len(names)), titles, width))
        else:
            for name in names:
                places = [i for i, column in enumerate(layout.columns) if column[0] == name]
                titles = [f"{self.across}={layout.columns[i][1]}" for i in places]
                blocks.append(f"{self._heading(name)}\n{self._block(layout, places, titles, width)}")
        intervals = [
            interval_text(entry, self.metric(name))
            for _, entries in layout.rows
            for (name, _), entry in zip(layout.columns, entries, strict=True)
            if entry is not None
        ]
        ends = ", or (its ends)" if any(text.startswith("(") for text in intervals) else ""
        legend = f"this run ±half of the 95% CI{ends}" if any(intervals) else "this run"
        if self.frame["published"].is_not_null().any():
            legend += " [published]"
        return "\n\n".join([*blocks, "\n".join([legend, *self.notes])])

    def _heading(self, name: str) -> str:
        unit = next(iter(self.frame.filter(pl.col("metric") == name)["unit"]), None)
        label = self.metric(name).label
        return f"{label} ({unit})" if unit else label

    def _block(self, layout: TableLayout, places: Sequence[int], titles: Sequence[str], width: int | None) -> str:
        rows = [(row, entries) for row, entries in layout.rows if any(entries[i] is not None for i in places)]

        def drawn(first: int, end: int) -> str:
            of = places[first:end]
            body = [
                [*row, *(_entry_text(entries[i], self.metric(layout.columns[i][0])) for i in of)]
                for row, entries in rows
            ]
            return _align([*layout.row_keys, *titles[first:end]], body, len(layout.row_keys))

        parts: list[str] = []
        first = 0
        while first < len(places) or not parts:
            end = len(places)
            while width and end > first + 1 and max(map(len, drawn(first, end).splitlines())) > width:
                end -= 1
            parts.append(drawn(first, end))
            first = end
        return "\n\n".join(parts)


# Characters that a spreadsheet reads as the beginning of a formula.
_FORMULA = r"^[=+\-@\t\r]"


def defused(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before each text that a spreadsheet would compute: names come from other files."""
    texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    return frame.with_columns(texts.str.replace(_FORMULA, "'$0"))


def rows_frame(keys: Iterable[str], rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """A frame with a table's columns from dictionaries; absent values become null."""
    columns = [*keys, *VALUE_COLUMNS]
    filled = [{column: row.get(column) for column in columns} for row in rows]
    if not filled:
        empty = dict.fromkeys(columns, pl.String) | _VALUE_TYPES
        return pl.DataFrame(schema={column: empty[column] for column in columns})
    return pl.DataFrame(filled, schema_overrides=_VALUE_TYPES, infer_schema_length=None)


def number(value: float | None, digits: int) -> str:
    """A figure to `digits` decimals, a dash where there is none."""
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:,.{digits}f}"
    # A rounded negative zero would look like a sign that is not there.
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def interval_text(entry: Entry, metric: Metric) -> str:
    """Half of the 95% CI, or its ends where the value is not near its middle; empty without one.

    Without a width nothing was random, or it did not show: then there is nothing to state either.
    """
    if entry.ours is None or entry.low is None or entry.high is None:
        return ""
    half, digits = (entry.high - entry.low) / 2, metric.digits
    slack = 0.5 * 10**-digits
    # What nothing random changes differs between replicates by rounding alone, around 0 too.
    if math.isclose(entry.low, entry.high, rel_tol=1e-9, abs_tol=1e-9 * slack):
        return ""
    off = abs(entry.high - half - entry.ours)
    within = metric.least - slack <= entry.ours - half and entry.ours + half <= metric.most + slack
    if off <= max(half / 4, slack) and within:
        return f"\N{PLUS-MINUS SIGN}{number(half, digits)}"
    return f"({number(entry.low, digits)} to {number(entry.high, digits)})"


def _entry_text(entry: Entry | None, metric: Metric) -> str:
    if entry is None:
        return ""
    text = number(entry.ours, metric.digits)
    if interval := interval_text(entry, metric):
        text += f" {interval}"
    if entry.published is not None:
        text += f" [{number(entry.published, metric.digits)}{'?' if entry.misprint else ''}]"
    return text


def _align(header: list[str], body: list[list[str]], left: int) -> str:
    lines = [header, *body]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_json(name: str, title: str, caption: str, notes: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The shape of every table of results as JSON, claims too."""
    document = {"name": name, "title": title, "caption": caption, "notes": list(notes), "rows": list(rows)}
    return json.dumps(document, indent=2, ensure_ascii=False)
