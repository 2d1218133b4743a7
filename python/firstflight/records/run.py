"""A run: the directory in which a grid's records grow, cell by cell, and from which they are read.

    DIR/run.json                                   what it is: study, engine, seed, code, the cells, the sessions
    DIR/cells/HASH/{transfers,pages,...}.parquet   one finished cell; segments.parquet too, if it was captured
    DIR/cells/HASH/scenario.toml                   the scenario of that cell; once, for it may hold a table of paths
    DIR/cells/HASH/SHA256SUMS                      checksums of these files; a table is checked when first read
    DIR/chunks/                                    while a long cell is worked on: what it has so far, see `chunks`
    DIR/quantities.npz                             what a study's claims, tables and figures are made of
    DIR/report.html                                written by the report
    DIR/explorer.html                              next to it where it links to transfers

HASH stands for everything a cell's records depend on, so a finished cell is never computed again and never taken
for another. Changing the code or the scenario changes it; a directory holds one version only.
"""

import hashlib
import html
import json
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Self

import polars as pl

from firstflight.counted import counted, nearest
from firstflight.errors import RequestError
from firstflight.input_files import scan
from firstflight.records import files, schema
from firstflight.records.chunks import Chunks
from firstflight.records.directory import SCENARIO, check_cells, damaged, of_another_version, read_document


class Run:
    """Records of a grid. `RunWriter` writes them."""

    def __init__(self, directory: Path, document: dict[str, Any]) -> None:
        """Use `open`."""
        self.directory = directory
        self._document = document
        self._checked: set[Path] = set()
        self.derived: dict[Hashable, Any] = {}
        """Results that readers computed from the records, kept with this object."""

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """The run in `directory`. RequestError if there is none, or if it is damaged or has another record schema."""
        directory = named(directory)
        with files.readable(directory):
            if not directory.is_dir():
                raise RequestError(f'there is no directory "{directory}"; name one that "firstflight run" wrote')
            document = read_document(directory)
            if document is None:
                raise RequestError(f'"{directory}" is not a run: it has no run.json; name a directory that "run" wrote')
            if document["schema"] != schema.SCHEMA_VERSION:
                raise RequestError(f"{of_another_version(directory, document)}; run it again with another --out")
            check_cells(directory, document)
            return cls(directory, document)

    @property
    def study(self) -> str:
        """Name of the study, or of the scenario for a run of a file."""
        return str(self._document["study"])

    @property
    def scenario(self) -> str | None:
        """The scenario as TOML for a run of a file; None for a study."""
        scenario: str | None = self._document["scenario"]
        return scenario

    @property
    def scenario_files(self) -> list[tuple[dict[str, Any], Path]]:
        """Key and scenario file of each finished cell, in the study's order."""
        return [(dict(key), place / SCENARIO) for key, place in self._finished()]

    @property
    def vary(self) -> dict[str, list[Any]] | None:
        """Values of the varied keys, by path; empty without `vary`."""
        vary: dict[str, list[Any]] | None = self._document.get("vary")
        return vary

    @property
    def kept(self) -> dict[str, list[str]]:
        """The columns of each table of which the run does not keep all."""
        kept: dict[str, list[str]] = self._document.get("kept") or {}
        return kept

    @property
    def engine(self) -> str:
        """The engine that wrote the records."""
        return str(self._document["engine"])

    @property
    def seed(self) -> int:
        """Seed of all cells."""
        return int(self._document["seed"])

    @property
    def cells(self) -> list[dict[str, str | int | float]]:
        """Keys of the finished cells, in the study's order."""
        return [dict(cell["key"]) for cell in self._document["cells"] if self.is_finished(cell["hash"])]

    @property
    def checksum(self) -> str:
        """SHA-256 over the checksums of the finished cells, in the study's order. A cell that was measured again on the
        kernel has other records under the same hash, and other checksums.
        """
        digest = hashlib.sha256()
        for _, place in self._finished():
            with files.readable(place / files.SUMS):
                digest.update(f"{place.name}\n".encode() + (place / files.SUMS).read_bytes())
        return digest.hexdigest()

    @property
    def missing(self) -> int:
        """Number of requested cells that are not finished."""
        return len(self._document["cells"]) - len(self.cells)

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the records.

        Study, engine, seed, replicates, code, versions, commit, complete TCP profiles, sessions (machine, command,
        start, wall and CPU seconds), the engine's counters, and the environments of the cells (name to value; empty in
        virtual time).
        """
        kept = {key: value for key, value in self._document.items() if key not in ("format", "cells")}
        noted = [self._noted(place, key) for place, key in {place: key for key, place in self._finished()}.items()]
        counts: dict[str, int] = {}
        for note in noted:
            for name, count in note["counts"].items():
                counts[name] = counts.get(name, 0) + count
        environments = {tuple(note["environment"].items()): note["environment"] for note in noted}
        return kept | {
            "cells": len(self._document["cells"]),
            "finished": len(self.cells),
            "counts": counts,
            "environments": [environment for environment in environments.values() if environment],
        }

    @property
    def transfers(self) -> pl.LazyFrame:
        """One row per file or object, with the cell's key columns first; columns in `records.schema`."""
        return self.table("transfers")

    @property
    def pages(self) -> pl.LazyFrame:
        """One row per web page, with the cell's key columns first."""
        return self.table("pages")

    @property
    def handshakes(self) -> pl.LazyFrame:
        """One row per connection with `tls`: its exchange before the first request, with the cell's key columns."""
        return self.table("handshakes")

    @property
    def links(self) -> pl.LazyFrame:
        """One row per link and interval, with the cell's key columns first."""
        return self.table("links")

    @property
    def streams(self) -> pl.LazyFrame:
        """One row per client and sending endpoint of a datagram application, with the cell's key columns first."""
        return self.table("streams")

    @property
    def users(self) -> pl.LazyFrame:
        """One row per user of a population, with the cell's key columns first; empty without a population."""
        return self.table("users")

    @property
    def aggregates(self) -> pl.LazyFrame:
        """Counts and sums by application and bucket of a population with `records = "aggregates"`."""
        return self.table("aggregates")

    @property
    def histograms(self) -> pl.LazyFrame:
        """Completion times in logarithmic bins by application and bucket; see `aggregates`."""
        return self.table("histograms")

    @property
    def segments(self) -> pl.LazyFrame:
        """One row per segment and event of the cells with capture, with the cell's key columns first."""
        return self.table("segments")

    def table(self, name: str, /, **key: str | int | float) -> pl.LazyFrame:
        """Records, such as "transfers", with the cell's key columns first.

        `key` keeps the cells with these values; other cells' records are not read. RequestError for an unknown table or
        key.
        """
        return pl.concat(self.parts(name, **key))

    def parts(self, name: str, /, **key: str | int | float) -> list[pl.LazyFrame]:
        """The rows of a table: one frame for each finished cell, or an empty one if no cell is finished."""
        if name not in (*schema.STORED, *schema.CAPTURED):
            raise RequestError(f'a run has no table "{name}"; {nearest(name, (*schema.STORED, *schema.CAPTURED))}')
        types = self._key_types
        for axis, value in key.items():
            if axis not in types:
                raise RequestError(f'the cells of this run have no key "{axis}"; {nearest(axis, types)}')
            if not isinstance(value, str | Real):
                raise RequestError(f"{axis} is {value!r}; give one value, a number or text")
        parts = [(keys, scan(self._sound(place, name, keys))) for keys, place in self._finished(name, **key)]
        values = schema.from_stored(name, self.kept.get(name))
        if not parts:
            return [pl.LazyFrame(schema={**types, **schema.empty(name).select(*values).schema})]
        named = [column.name for column in schema.TABLES[name] if column.dtype is None and column.name in values]
        enums = {column: union(part.collect_schema()[column] for _, part in parts) for column in named}
        return [
            part.select(
                *(
                    pl.lit(keys[of] if keys[of] is None or dtype != pl.String else str(keys[of]), dtype=dtype).alias(of)
                    for of, dtype in types.items()
                ),
                *(value.cast(enums[column]) if column in enums else value for column, value in values.items()),
            )
            for keys, part in parts
        ]

    def __repr__(self) -> str:
        """The run's request, its progress and its records."""
        return (
            f"{self.study}: {self.engine}, seed {self.seed}, {counted(self._document['replicates'], 'replicate')}\n"
            f"{len(self.cells)} of {counted(len(self._document['cells']), 'cell')} finished, in {self.directory}\n"
            f"records: {', '.join((*schema.STORED, *schema.CAPTURED))}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    @property
    def holds_something(self) -> bool:
        """Whether any cell or chunk is stored."""
        return bool(self.cells) or not self.chunks.is_empty

    @property
    def chunks(self) -> Chunks:
        """Finished chunks of unfinished cells."""
        return Chunks(self.directory / "chunks")

    def is_finished(self, name: str) -> bool:
        """Whether the cell with this hash is finished."""
        return self._place(name).is_dir()

    def _place(self, name: str) -> Path:
        return self.directory / "cells" / name

    def _finished(self, table: str = "links", **key: str | int | float) -> Iterator[tuple[dict[str, Any], Path]]:
        """Key and place of each finished cell that has the table and, in its key, these values; all have `links`."""
        wanted = {name: self._as_key(name, value) for name, value in key.items()}.items()
        for cell in self._document["cells"]:
            keys = cell["key"]
            # The file system is asked last: a study of hundreds of cells looks at one of them hundreds of times.
            if wanted <= keys.items() and table in schema.stored(cell["capture"]) and self.is_finished(cell["hash"]):
                yield keys, self._place(cell["hash"])

    def _as_key(self, name: str, value: Any) -> Any:
        """The value as cells have it, of that or of its text, as in the `only` of a run."""
        if self._key_types[name] == pl.String:
            return str(value)
        with suppress(ValueError):
            return float(value) if isinstance(value, str) else value
        return value

    @cached_property
    def _key_types(self) -> dict[str, type[pl.DataType]]:
        keys = [cell["key"] for cell in self._document["cells"]]
        types: dict[str, type[pl.DataType]] = {}
        for name in keys[0] if keys else ():
            values = [key[name] for key in keys]
            if any(isinstance(value, str) for value in values):
                types[name] = pl.String
            else:
                types[name] = pl.Float64 if any(isinstance(value, float) for value in values) else pl.Int64
        return types

    def _noted(self, place: Path, key: dict[str, Any]) -> dict[str, Any]:
        """The document that `write` stored with the cell's tables."""
        path = self._sound(place, "links", key).absolute()
        noted: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)["firstflight"])
        return noted

    def _sound(self, place: Path, table: str, key: dict[str, Any]) -> Path:
        """The file of a cell's table. RequestError if its content has changed since it was written."""
        path = place / f"{table}.parquet"
        if path not in self._checked:
            if not files.is_as_written(path):
                raise damaged(path, key)
            self._checked.add(path)
        return path


def named(directory: str | Path) -> Path:
    """The directory of a run. RequestError for a name that is no text, which the tables' reader does not take."""
    path = Path(directory)
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise RequestError(f"the name of the directory {str(path)!a} is not UTF-8; choose another") from None
    return path


def union(enums: Iterable[pl.DataType]) -> pl.Enum:
    """The enumeration of all names in `enums`, in their order."""
    names: dict[str, None] = {}
    for enum in enums:
        if isinstance(enum, pl.Enum):
            names |= dict.fromkeys(enum.categories.to_list())
    return pl.Enum(list(names))
