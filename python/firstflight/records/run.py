"""A run: the directory in which a grid's records grow, cell by cell, and from which they are read.

    DIR/run.json                                   what it is: study, engine, seed, code, the cells, the sessions
    DIR/cells/HASH/{transfers,pages,...}.parquet   one finished cell; segments.parquet too, if it was captured
    DIR/cells/HASH/scenario.toml                   the scenario of that cell; once, for it may hold a table of paths
    DIR/cells/HASH/SHA256SUMS                      checksums of these files; a table is checked when first read
    DIR/chunks/                                    while a long cell is worked on: what it has so far, see `chunks`
    DIR/report.html                                written by the report
    DIR/explorer.html                              next to it where it links to transfers

HASH stands for everything a cell's records depend on, so a finished cell is never computed again and never taken
for another. Changing the code or the scenario changes it; a directory holds one version only.
"""

import contextlib
import html
import json
import logging
import re
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.records import files, machine, schema
from firstflight.records.chunks import Chunks
from firstflight.records.directory import (
    DOCUMENT,
    SCENARIO,
    DamagedRunError,
    check_cells,
    damaged,
    foreign,
    move_aside,
    of_another_version,
    read_document,
    stored_cells,
    write_document,
)
from firstflight.records.identity import Identity, check_keys, extended, misfit
from firstflight.scenario import Cell
from firstflight.scenario.table import nearest

if TYPE_CHECKING:
    from firstflight.analysis.table import Table
    from firstflight.studies import Study

# The files that `write_json` writes into a run's directory: its own document, and the request of an advice.
_DOCUMENTS = re.compile(r"(run|request)\.json")

_log = logging.getLogger("firstflight")


class Run:
    """Records of a grid. `Run.open` reads; `Run.create` starts or continues one and is the only writer."""

    def __init__(self, directory: Path, document: dict[str, Any]) -> None:
        """Use `open` or `create`."""
        self.directory = directory
        self._document = document
        self._lock: files.Lock | None = None
        self.aside: Path | None = None
        """The directory to which `create` moved an earlier run; None if it moved none."""
        self.made_directory = False
        """Whether the directory was not there before `create`."""
        self._checked: set[Path] = set()
        self.derived: dict[Hashable, Any] = {}
        """Results that readers computed from the records, kept with this object; see `studies.kernel.declared.kept`."""

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """The run in `directory`, to be read. RequestError if there is none, a damaged one, or one of another record
        schema.
        """
        directory = _named(directory)
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

    @classmethod
    def create(
        cls,
        directory: str | Path,
        identity: Identity,
        cells: Sequence[Cell],
        order: Sequence[dict[str, Any]] | None = None,
        set_aside: bool = False,
    ) -> Self:
        """Start a run of `cells` in `directory`, or continue the one that is there, and lock it until `close`.

        `order` is the study's whole grid (keys); cells that an earlier session added keep their place in it.
        With `set_aside` a run that does not fit is renamed to DIR.1, DIR.2, ... instead of refused.
        Finished cells whose run.json is lost are kept if they are among `cells`.
        RequestError if the directory holds something else; MachineError if it cannot be written.
        """
        directory = _named(directory)
        check_keys(cells)
        with files.explained(directory):
            existed = directory.exists()
            if existed and (refusal := foreign(directory)):
                raise RequestError(refusal)
            directory.mkdir(parents=True, exist_ok=True)
            try:
                lock = files.Lock(directory)
            except OSError:
                if not existed:
                    cls(directory, {}).discard()
                raise
            try:
                document, refusal = _continued(directory, identity, cells, order)
                if refusal and set_aside:
                    aside = move_aside(directory)
                    lock.release()
                    fresh = cls.create(directory, identity, cells, order)
                    fresh.aside = aside
                    return fresh
                if refusal:
                    raise RequestError(refusal)
                run = cls(directory, extended(document, identity, cells, order))
                check_cells(directory, run._document)
                (directory / "cells").mkdir(exist_ok=True)
                files.remove_unfinished(directory, _DOCUMENTS)
                files.remove_unfinished(directory / "cells", files.HASH)
                run.chunks.keep_only(
                    cell["hash"] for cell in run._document["cells"] if not run.is_finished(cell["hash"])
                )
                run._save()
            except BaseException:
                lock.release()
                if not existed:
                    cls(directory, {}).discard()
                raise
            run._lock, run.made_directory = lock, not existed
            return run

    def discard(self) -> None:
        """Remove the files of a run without results, and its directory if that is then empty."""
        self.chunks.keep_only(())
        files.remove_if_empty(self.directory / "cells")
        for name in (DOCUMENT, files.LOCK):
            (self.directory / name).unlink(missing_ok=True)
        files.remove_if_empty(self.directory)

    def close(self) -> None:
        """Release the write lock; the run stays readable."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def study(self) -> str:
        """Name of the study, or of the scenario when the run came from a file."""
        return str(self._document["study"])

    @property
    def scenario(self) -> str | None:
        """The effective scenario as TOML when the run came from a file; None for a study."""
        scenario: str | None = self._document["scenario"]
        return scenario

    @property
    def scenario_files(self) -> list[tuple[dict[str, Any], Path]]:
        """Key and scenario file of each finished cell, in the study's order."""
        return [(dict(key), place / SCENARIO) for key, place in self._finished()]

    @property
    def vary(self) -> dict[str, list[Any]] | None:
        """Varied values of the scenario's keys, by path; for a run with `vary`."""
        vary: dict[str, list[Any]] | None = self._document.get("vary")
        return vary

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
    def missing(self) -> int:
        """The number of requested cells that have not finished."""
        return len(self._document["cells"]) - len(self.cells)

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the records, for the reader of a report.

        Study, engine, seed, replicates, code, versions, commit, effective TCP profiles, sessions (each with machine,
        command, start, wall and CPU seconds), the sums of what the engine counted, and each environment that cells ran
        in (name to value; empty in virtual time).
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
        """One row per file or object, with the cell's key columns in front; see `records.schema`."""
        return self.table("transfers")

    @property
    def pages(self) -> pl.LazyFrame:
        """One row per web page, with the cell's key columns in front."""
        return self.table("pages")

    @property
    def handshakes(self) -> pl.LazyFrame:
        """One row per connection with `tls`: what passed before its first request, with the cell's key columns."""
        return self.table("handshakes")

    @property
    def links(self) -> pl.LazyFrame:
        """One row per link and interval, with the cell's key columns in front."""
        return self.table("links")

    @property
    def streams(self) -> pl.LazyFrame:
        """One row per client and sending endpoint of a datagram application, with the cell's key columns in front."""
        return self.table("streams")

    @property
    def users(self) -> pl.LazyFrame:
        """One row per user of a population, with the cell's key columns in front; none without a population."""
        return self.table("users")

    @property
    def aggregates(self) -> pl.LazyFrame:
        """Counts and sums by application and bucket where a population keeps "aggregates", with the cell's key columns
        in front.
        """
        return self.table("aggregates")

    @property
    def histograms(self) -> pl.LazyFrame:
        """Completion times in logarithmic bins by application and bucket; with `aggregates`."""
        return self.table("histograms")

    @property
    def segments(self) -> pl.LazyFrame:
        """One row per segment and event, for cells with capture, with the cell's key columns in front."""
        return self.table("segments")

    def table(self, name: str, /, **key: str | int | float) -> pl.LazyFrame:
        """Records, such as "transfers", with the cell's key columns in front; for any other name the rows of the table
        that `firstflight table` prints (`tables` has all of those). `key` keeps only cells whose key has these values;
        of records, no other cell's file is opened. RequestError for a table or key that is not there.
        """
        if name not in (*schema.STORED, *schema.CAPTURED):
            return self._result(name, key)
        types = _key_types([cell["key"] for cell in self._document["cells"]])
        for own in key:
            if own not in types:
                raise RequestError(f'the cells of this run have no key "{own}"; {nearest(own, types)}')
        parts = [(own, files.scan(self._sound(place, name, own))) for own, place in self._finished(name, **key)]
        if not parts:
            return pl.DataFrame(schema={**types, **schema.empty(name).schema}).lazy()
        named = [column.name for column in schema.TABLES[name] if column.dtype is None]
        enums = {column: union(part.collect_schema()[column] for _, part in parts) for column in named}
        values = schema.from_stored(name)
        return pl.concat(
            [
                part.select(
                    *(pl.lit(_of_type(own[of], dtype), dtype=dtype).alias(of) for of, dtype in types.items()),
                    *(value.cast(enums[column]) if column in enums else value for column, value in values.items()),
                )
                for own, part in parts
            ]
        )

    def tables(self) -> "dict[str, Table]":
        """The tables of `firstflight table`, by name: results with intervals, next to the published values."""
        return {table.name: table for table in self._study().tables(self)}

    def _result(self, name: str, key: Mapping[str, str | int | float]) -> pl.LazyFrame:
        study = self._study()
        known = study.table_names(self)
        if name not in known:
            raise RequestError(
                f'a run has no table "{name}"; {nearest(name, (*schema.STORED, *schema.CAPTURED, *known))}'
            )
        table = study.table(self, name)
        for own in key:
            if own not in table.keys:
                raise RequestError(f'the table "{name}" has no key "{own}"; {nearest(own, table.keys)}')
        chosen = [pl.col(own).cast(pl.String) == str(value) for own, value in key.items()]
        return table.frame.lazy().filter(*chosen)

    def _study(self) -> "Study":
        """The module that makes tables of these records; imported here, because studies read runs."""
        from firstflight.studies import of

        return of(self)

    def _repr_html_(self) -> str:
        """The notebook view: the run's request, its progress, and its tables."""
        lines = [
            f"{self.study}: {self.engine}, seed {self.seed}, {counted(self._document['replicates'], 'replicate')}",
            f"{len(self.cells)} of {counted(len(self._document['cells']), 'cell')} finished, in {self.directory}",
            f"records: {', '.join((*schema.STORED, *schema.CAPTURED))}",
        ]
        return f"<pre>{html.escape(chr(10).join(lines))}</pre>"

    @property
    def is_writable(self) -> bool:
        """Whether this object holds the write lock."""
        return self._lock is not None

    @property
    def holds_something(self) -> bool:
        """Whether a cell, or a chunk of one, is stored."""
        return bool(self.cells) or not self.chunks.is_empty

    @property
    def chunks(self) -> Chunks:
        """The finished chunks of long cells that are not complete yet."""
        return Chunks(self.directory / "chunks")

    def is_finished(self, name: str) -> bool:
        """Whether the cell with this hash needs no more work."""
        return self._place(name).is_dir()

    def write(
        self,
        name: str,
        cell: Cell,
        tables: Mapping[str, pl.DataFrame | pl.LazyFrame],
        counts: dict[str, int],
        environment: dict[str, str] | None = None,
    ) -> None:
        """Store a finished cell in one step. `environment`: settings on which its records depend in addition to the
        scenario, such as a kernel and its settings. ValueError if a table is not as the schema says.
        """
        if self._lock is None:
            raise RuntimeError("this run was opened for reading")
        # A table for which an engine has no data, as users where there is no population, has no rows.
        stored = {
            table: tables[table] if table in tables else schema.empty(table) for table in schema.stored(cell.capture)
        }
        for table, frame in stored.items():
            schema.conforms(table, frame.lazy().head(0).collect())
        metadata = {
            "firstflight": json.dumps(
                {
                    "schema": schema.SCHEMA_VERSION,
                    "study": self.study,
                    "engine": cell.engine or self.engine,
                    "seed": self.seed,
                    "replicates": cell.replicates or self._document["replicates"],
                    "code": self._document["code"][cell.engine or self.engine],
                    "versions": self._document["versions"],
                    "commit": self._document["commit"],
                    "machine": self._document["machine"],
                    "counts": counts,
                    "environment": environment or {},
                },
                sort_keys=True,
            ),
        }
        with files.explained(self.directory):
            as_stored = {table: schema.as_stored(table, frame) for table, frame in stored.items()}
            files.write_cell(self._place(name), as_stored, metadata, {SCENARIO: cell.scenario.to_toml()})

    @contextlib.contextmanager
    def session(self, jobs: int | None, on: str = "local") -> Iterator[None]:
        """Record the start of a session of work, its cost here, and whether it came to its end. `jobs` None: as many as
        suited the engine; `on`: where it computed, as the request says it.
        """
        entry: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": machine.command(),
            "jobs": jobs,
            "on": on,
            "machine": machine.machine(),
            "ended": False,
        }
        self._document["sessions"].append(entry)
        self._save()
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
            entry["ended"] = True
        finally:
            entry["wall_s"] = round(time.perf_counter() - wall, 3)
            entry["cpu_s"] = round(time.process_time() - cpu, 3)
            self._save()

    def _save(self) -> None:
        with files.explained(self.directory):
            write_document(self.directory, self._document)

    def _place(self, name: str) -> Path:
        return self.directory / "cells" / name

    def _finished(self, table: str = "links", **key: str | int | float) -> Iterator[tuple[dict[str, Any], Path]]:
        """Key and place of each finished cell that has the table, of those whose key has these values; all have
        `links`.
        """
        for cell in self._document["cells"]:
            own = cell["key"]
            asked = table in schema.stored(cell["capture"]) and all(own[of] == value for of, value in key.items())
            # The file system is asked last: a study of hundreds of cells looks at one of them hundreds of times.
            if asked and self.is_finished(cell["hash"]):
                yield own, self._place(cell["hash"])

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


def _named(directory: str | Path) -> Path:
    """The directory of a run. RequestError for a name that is no text, which the tables' reader does not take."""
    path = Path(directory)
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise RequestError(f"the name of the directory {str(path)!a} is not UTF-8; choose another") from None
    return path


def _continued(
    directory: Path, identity: Identity, cells: Sequence[Cell], order: Sequence[dict[str, Any]] | None
) -> tuple[dict[str, Any] | None, str]:
    """The document of the run that is continued, None where a new one begins; and why that cannot be, if so."""
    try:
        document = read_document(directory)
    except DamagedRunError as error:
        if kept := stored_cells(directory) & {identity.cell_hash(cell) for cell in cells}:
            _log.warning(
                "firstflight: %s lost its run.json; it is rewritten for %s", directory, counted(len(kept), "cell")
            )
            return None, ""
        return None, f"{error}; this is another one: choose another --out, or add --set-aside"
    if document is None:
        return None, ""
    if document["schema"] != schema.SCHEMA_VERSION:
        return None, f"{of_another_version(directory, document)}; choose another --out, or add --set-aside"
    if not any((directory / "cells" / cell["hash"]).is_dir() for cell in document["cells"]):
        # A run in which nothing has finished holds nothing to be mixed with.
        return None, ""
    return document, misfit(directory, document, identity, cells, order)


def _key_types(keys: list[dict[str, Any]]) -> dict[str, type[pl.DataType]]:
    types: dict[str, type[pl.DataType]] = {}
    for name in keys[0] if keys else ():
        values = [key[name] for key in keys]
        if any(isinstance(value, str) for value in values):
            types[name] = pl.String
        else:
            types[name] = pl.Float64 if any(isinstance(value, float) for value in values) else pl.Int64
    return types


def _of_type(value: str | int | float | None, dtype: type[pl.DataType]) -> str | int | float | None:
    return str(value) if dtype == pl.String and value is not None else value


def union(enums: Iterable[pl.DataType]) -> pl.Enum:
    """The enumeration of all names in `enums`, in their order."""
    names: dict[str, None] = {}
    for enum in enums:
        if isinstance(enum, pl.Enum):
            names |= dict.fromkeys(enum.categories.to_list())
    return pl.Enum(list(names))
