"""Finished chunks of cells that are not finished: the work that a run interrupted inside a long cell need not repeat.

    DIR/chunks/HASH/FIRST-STOP/TABLE.parquet      replicates FIRST to STOP - 1 of the cell, there whole or not at all
    STORE/HASH/FIRST-STOP-TOKEN/TABLE.parquet     the same on storage that workers share; whole once "complete" is there

The division of replicates into chunks differs from session to session; a cell's records do not depend on it.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from firstflight.errors import MachineError
from firstflight.input_files import scan
from firstflight.records import files

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Tables = dict[str, pl.DataFrame]
LazyTables = dict[str, pl.LazyFrame]

_CHUNK = re.compile(r"(\d+)-(\d+)(-[0-9a-f]+)?")
# Written last: object stores make one file at a time appear whole, and not a directory.
_COMPLETE = "complete"
# There a name needs no directory, and the call that makes one makes the bucket too: a misspelt one would be a new one.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss"}


class Chunks:
    """The chunks in a run's directory. Only the process that holds the run's lock may write them."""

    def __init__(self, directory: Path) -> None:
        """`directory` need not exist; it does only while there is a chunk."""
        self._directory = directory

    @property
    def is_empty(self) -> bool:
        """Whether there is no chunk of any cell."""
        return not any(self._cells())

    def finished(self, name: str) -> list[range]:
        """The replicates of each chunk of a cell (by its hash), in order, none of them twice. Damaged ones are removed,
        so that their replicates are computed again.
        """
        place = self._directory / name
        if place not in self._cells():
            return []
        for chunk in _chunks(place):
            if not files.is_directory_as_written(chunk):
                shutil.rmtree(chunk)
        return [replicates for replicates, _ in _disjoint(path.name for path in _chunks(place))]

    def write(self, name: str, replicates: range, tables: Tables) -> None:
        """Keep a chunk. MachineError if it cannot be written."""
        with files.explained(self._directory):
            files.write_cell(self._place(name) / _named(replicates), tables, {}, {})

    def read(self, name: str, replicates: range) -> LazyTables:
        """The tables of a chunk, which are read when they are needed."""
        place = self._directory / name / _named(replicates)
        return {path.stem: scan(path) for path in sorted(place.glob("*.parquet"))}

    def take(self, name: str, replicates: range, content: dict[str, bytes]) -> None:
        """Keep a chunk that has come as Parquet files, name to bytes."""
        with files.explained(self._directory):
            files.write_directory(
                self._place(name) / _named(replicates), ((f"{table}.parquet", data) for table, data in content.items())
            )

    def remove(self, name: str) -> None:
        """Forget the chunks of a cell. Other files there are not ours and stay."""
        place = self._directory / name
        if place in self._cells():
            files.remove_unfinished(place, _CHUNK)
            for chunk in _chunks(place):
                shutil.rmtree(chunk, ignore_errors=True)
            files.remove_if_empty(place)
        files.remove_if_empty(self._directory)

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget the chunks of all other cells, and files that a killed process left half-written."""
        kept = set(names)
        for place in self._cells():
            if place.name not in kept:
                self.remove(place.name)
            else:
                files.remove_unfinished(place, _CHUNK)

    def _place(self, name: str) -> Path:
        place = self._directory / name
        files.refuse_link(place)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _cells(self) -> list[Path]:
        """The directories of cells; a link is not one."""
        if not self._directory.is_dir():
            return []
        return [path for path in self._directory.iterdir() if files.HASH.fullmatch(path.name) and _is_directory(path)]


class SharedChunks:
    """Chunks on storage that this machine and the workers share: a directory or any URL that fsspec knows."""

    def __init__(self, url: str) -> None:
        """MachineError where fsspec or the driver for such a URL is not installed."""
        self.url = url if "://" in url else str(Path(url).resolve())
        try:
            import fsspec

            with self._explained():
                filesystem: tuple[AbstractFileSystem, str] = fsspec.url_to_fs(self.url, use_listings_cache=False)
                self._system, self._root = filesystem
                protocol = self._system.protocol
                self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        except ImportError as error:
            raise MachineError(
                f'--store "{url}": {error}; install the package that reads it, here and on the workers'
            ) from None

    def finished(self, name: str) -> dict[range, str]:
        """The replicates of each whole chunk of a cell, none of them twice, and the place of each."""
        with self._explained():
            self._system.invalidate_cache()
            # Of a place that is not there yet nothing is found; of a bucket that does not exist, an error.
            paths = self._system.find(f"{self._root}/{name}")
        places = [path.rpartition("/")[0] for path in paths if path.endswith(f"/{_COMPLETE}")]
        chunks = {place.rpartition("/")[2]: place for place in places}
        return {replicates: chunks[chunk] for replicates, chunk in _disjoint(chunks)}

    def write(self, name: str, replicates: range, tables: Tables) -> str:
        """Store a chunk and return its place. Whoever computes the same chunk meanwhile writes to another place."""
        place = f"{self._root}/{name}/{_named(replicates)}-{secrets.token_hex(8)}"
        with self._explained():
            if not _OBJECT_STORES.intersection(self._protocols):
                self._system.makedirs(place, exist_ok=True)
            content = {f"{table}.parquet": _parquet(frame) for table, frame in tables.items()}
            self._system.pipe({f"{place}/{name}": data for name, data in content.items()})
            self._system.pipe_file(f"{place}/{_COMPLETE}", files.sums(content.items()))
        return place

    def fetch(self, place: str) -> dict[str, bytes]:
        """The Parquet files of a chunk, table to bytes."""
        with self._explained():
            self._system.invalidate_cache()
            paths = [path for path in self._system.find(place) if path.endswith(".parquet")]
            if not paths:
                raise MachineError(
                    f'a worker wrote to {place}, and from here nothing is there: "{self.url}" must be storage that all '
                    "machines share, and that no other run uses meanwhile"
                )
            # Not `cat`, which takes paths for patterns.
            by_path: dict[str, bytes] = {path: self._system.cat_file(path) for path in paths}
            written = self._system.cat_file(f"{place}/{_COMPLETE}")
        content = {path.rpartition("/")[2]: data for path, data in sorted(by_path.items())}
        if sorted(files.sums(content.items()).splitlines()) != sorted(written.splitlines()):
            raise MachineError(
                f"{place} is damaged: its content differs from the worker's; delete it and run the same command "
                "again to recompute those replicates"
            )
        return {name.removesuffix(".parquet"): data for name, data in content.items()}

    def remove(self, name: str) -> None:
        """Forget the chunks of a cell."""
        with self._explained():
            self._system.invalidate_cache()
            if self._system.exists(f"{self._root}/{name}"):
                self._system.rm(f"{self._root}/{name}", recursive=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Each driver raises its own error types; ImportError is handled by the caller."""
        try:
            yield
        except (MachineError, ImportError):
            raise
        except Exception as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            raise MachineError(
                f'--store "{self.url}" cannot be used: {cause}; finished parts are kept, and the same command continues'
            ) from None


def without(replicates: range, finished: Iterable[range]) -> list[range]:
    """The part of `replicates` outside the finished chunks, which are in order and disjoint."""
    left, start = [], replicates.start
    for chunk in finished:
        if chunk.start > start:
            left.append(range(start, chunk.start))
        start = chunk.stop
    return [*left, range(start, replicates.stop)] if start < replicates.stop else left


def _chunks(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if _CHUNK.fullmatch(path.name) and _is_directory(path)]


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _named(replicates: range) -> str:
    return f"{replicates.start}-{replicates.stop}"


def _disjoint(names: Iterable[str]) -> Iterator[tuple[range, str]]:
    """Sessions that cut differently may have done the same replicates, which are the same: one of them is enough."""
    matches = [(match, name) for name in sorted(names) if (match := _CHUNK.fullmatch(name))]
    ranges = [(range(int(match.group(1)), int(match.group(2))), name) for match, name in matches]
    start = 0
    for replicates, name in sorted(ranges, key=lambda chunk: (chunk[0].start, -chunk[0].stop)):
        if replicates.start >= start:
            yield replicates, name
            start = replicates.stop


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    files.to_parquet(frame, buffer, {})
    return buffer.getvalue()
