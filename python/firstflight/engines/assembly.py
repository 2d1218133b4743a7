"""Puts cells together from chunks that end in any order, and stores each as soon as it is whole."""

import threading
from collections.abc import Mapping

import polars as pl

from firstflight.records import RunWriter
from firstflight.records.chunks import SharedChunks, Tables, without
from firstflight.scenario import Cell

# A killed run loses at most this computing time of each cell; cells that take less leave no chunks.
KEEP_AFTER_S = 5.0
# And the data waiting in memory for the rest of its cell is at most this amount.
KEEP_ABOVE_BYTES = 256 << 20


class Assembly:
    """One cell in progress: chunks in memory, chunks in the run's directory, chunks on shared storage."""

    def __init__(self, run: RunWriter, name: str, cell: Cell, replicates: int, shared: SharedChunks | None) -> None:
        """`replicates` of `cell`; the finished part from earlier sessions is found and used."""
        self.cell = cell
        self._run, self._name, self._shared = run, name, shared
        self._all = range(replicates)
        self._kept = set(run.chunks.finished(name))
        self._elsewhere: dict[range, str] = {}
        for chunk, place in shared.finished(name).items() if shared else ():
            if not any(chunk.start < other.stop and other.start < chunk.stop for other in self._kept):
                self._elsewhere[chunk] = place
        self._held: dict[range, Tables] = {}
        self._held_s = 0.0
        self._held_bytes = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> list[range]:
        """The replicates that are still to be computed."""
        return without(self._all, sorted(self._chunks(), key=lambda chunk: chunk.start))

    def add(self, replicates: range, tables: Tables, seconds: float) -> None:
        """A chunk that took this number of seconds; the last one makes the cell appear in the run. A chunk after the
        run was closed, because it was interrupted, is dropped.
        """
        with self._lock:
            if not self._run.is_writable:
                return
            self._held[replicates] = tables
            self._held_s += seconds
            self._held_bytes += sum(int(frame.estimated_size()) for frame in tables.values())
            if not self._is_whole() and (self._held_s > KEEP_AFTER_S or self._held_bytes > KEEP_ABOVE_BYTES):
                self._keep()
            self._store_if_whole()

    def add_shared(self, replicates: range, place: str) -> None:
        """A chunk that a worker put on shared storage."""
        with self._lock:
            self._elsewhere[replicates] = place
            self._store_if_whole()

    def store_if_whole(self) -> None:
        """Store the cell if nothing is left to be computed, as when a session ended just before that."""
        with self._lock:
            self._store_if_whole()

    def _chunks(self) -> set[range]:
        return self._kept | self._held.keys() | self._elsewhere.keys()

    def _is_whole(self) -> bool:
        return sum(map(len, self._chunks())) == len(self._all)

    def _keep(self) -> None:
        """Write the chunks in memory, neighbors as one chunk."""
        runs: list[list[range]] = []
        for chunk in sorted(self._held, key=lambda chunk: chunk.start):
            if runs and runs[-1][-1].stop == chunk.start:
                runs[-1].append(chunk)
            else:
                runs.append([chunk])
        for neighbors in runs:
            together = range(neighbors[0].start, neighbors[-1].stop)
            parts = [self._held[chunk] for chunk in neighbors]
            self._run.chunks.write(
                self._name, together, {table: pl.concat([part[table] for part in parts]) for table in parts[0]}
            )
            self._kept.add(together)
            for chunk in neighbors:
                del self._held[chunk]
        self._held_s, self._held_bytes = 0.0, 0

    def _store_if_whole(self) -> None:
        if not self._is_whole():
            return
        chunks = self._run.chunks
        if self._shared:
            for replicates, place in self._elsewhere.items():
                chunks.take(self._name, replicates, self._shared.fetch(place))
            self._kept |= self._elsewhere.keys()
            self._elsewhere.clear()
            # Before the cell is there: its chunks would not be looked for afterwards.
            self._shared.remove(self._name)
        parts: list[Mapping[str, pl.DataFrame | pl.LazyFrame]] = [
            self._held[chunk] if chunk in self._held else chunks.read(self._name, chunk)
            for chunk in sorted(self._chunks(), key=lambda chunk: chunk.start)
        ]
        # Read piece by piece when it is written.
        joined = {table: pl.concat([part[table].lazy() for part in parts]) for table in parts[0]}
        store(self._run, self._name, self.cell, joined)
        self._held.clear()
        chunks.remove(self._name)


def store(run: RunWriter, name: str, cell: Cell, tables: Mapping[str, pl.LazyFrame]) -> None:
    """Store a finished cell: its tables, the engine's counts and the environment."""
    counts = tables["counts"].sum().collect().to_dicts()[0] if "counts" in tables else {}
    environment = dict(tables["environment"].unique().collect().iter_rows()) if "environment" in tables else {}
    run.write(name, cell, tables, counts, environment)
