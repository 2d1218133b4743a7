"""The writer of a run: starts or continues it under a lock, and stores cells."""

import contextlib
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import polars as pl

from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.records import files, machine, schema
from firstflight.records.directory import (
    DOCUMENT,
    QUANTITIES,
    SCENARIO,
    DamagedRunError,
    check_cells,
    foreign,
    move_aside,
    of_another_version,
    read_document,
    stored_cells,
    write_document,
)
from firstflight.records.identity import Identity, check_keys, extended, misfit
from firstflight.records.run import Run, named
from firstflight.scenario import Cell

# The files that are written into a run's directory: its own document, the request of an advice, quantities.
_DOCUMENTS = re.compile(rf"(run|request)\.json|{re.escape(QUANTITIES)}")

_log = logging.getLogger("firstflight")


class RunWriter(Run):
    """A run that grows. `create` starts or continues it; it is locked until `close`."""

    _lock: files.Lock | None = None
    aside: Path | None = None
    """The directory to which `create` moved an earlier run; None if it moved none."""
    made_directory = False
    """Whether the directory was not there before `create`."""

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
        directory = named(directory)
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
    def is_writable(self) -> bool:
        """Whether this object holds the write lock."""
        return self._lock is not None

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
            raise RuntimeError("this run is closed")
        # A table for which an engine has no data, as users where there is no population, has no rows.
        stored = {
            table: tables[table] if table in tables else schema.empty(table) for table in schema.stored(cell.capture)
        }
        for table, frame in stored.items():
            schema.conforms(table, frame)
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
            )
        }
        with files.explained(self.directory):
            as_stored = {table: schema.as_stored(table, frame, self.kept.get(table)) for table, frame in stored.items()}
            files.write_cell(self._place(name), as_stored, metadata, {SCENARIO: cell.scenario.to_toml()})

    def write_quantities(self, content: bytes) -> None:
        """Store the file of the study's quantities in one step."""
        with files.explained(self.directory):
            files.write_whole(self.directory / QUANTITIES, content)

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
