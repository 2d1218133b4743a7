"""Long cells are computed in chunks that outlive a killed run; how they are cut changes nothing."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import polars as pl
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import firstflight
from firstflight import MachineError
from firstflight.engines import assembly, simulate
from firstflight.engines.chunks import Queue, Work
from firstflight.records import Identity, RunWriter, files
from firstflight.records.chunks import Chunks, SharedChunks, without
from firstflight.scenario import Cell, Scenario
from small_grid import WINDOWS, SmallGrid

REPLICATES = 24
CELL = "0123456789abcdef0123"


def bytes_of(run: RunWriter) -> dict[str, bytes]:
    cells = run.directory / "cells"
    return {str(path.relative_to(cells)): path.read_bytes() for path in sorted(cells.rglob("*.parquet"))}


@pytest.fixture
def whole(small: Scenario, tmp_path: Path) -> dict[str, bytes]:
    return bytes_of(firstflight.run(small, replicates=REPLICATES, jobs=1, out=tmp_path / "whole"))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The replicates that are computed, one after the other; negative: it is interrupted in front of that chunk."""
    seen: list[int] = []
    run_cell = simulate.run_cell

    def watched(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
        if seen and seen[0] < 0 and first_replicate + replicates > -seen[0]:
            raise OSError("the machine goes down")
        seen.extend(range(first_replicate, first_replicate + replicates))
        return run_cell(cell, seed, replicates, first_replicate)

    monkeypatch.setattr(simulate, "run_cell", watched)
    return seen


def test_an_interrupted_cell_continues_inside(
    small: Scenario, tmp_path: Path, whole: dict[str, bytes], computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "KEEP_AFTER_S", 0.0)
    computed.append(-7)
    with pytest.raises(OSError, match="goes down"):
        firstflight.run(small, replicates=REPLICATES, jobs=1, out=tmp_path / "run")
    before = computed[1:]
    assert (tmp_path / "run" / "chunks").is_dir()
    computed.clear()
    run = firstflight.run(small, replicates=REPLICATES, jobs=2, out=tmp_path / "run")
    assert before
    assert sorted(before + computed) == list(range(REPLICATES)), "each replicate is computed once"
    assert bytes_of(run) == whole
    assert not (tmp_path / "run" / "chunks").exists()


def test_a_run_that_ended_before_it_put_a_cell_together_does_so(
    small: Scenario, tmp_path: Path, whole: dict[str, bytes], computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "KEEP_AFTER_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(assembly.Assembly, "_store_if_whole", lambda self: self._keep() if self._held else None)
        firstflight.run(small, replicates=REPLICATES, jobs=1, out=tmp_path / "run")
    assert len(computed) == REPLICATES
    run = firstflight.run(small, replicates=REPLICATES, jobs=1, out=tmp_path / "run")
    assert len(computed) == REPLICATES, "nothing was computed again"
    assert bytes_of(run) == whole


def test_a_cell_is_stored_while_the_next_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cell, write_cell = simulate.run_cell, files.write_cell
    alone, second, begun = threading.Lock(), threading.Event(), list[Cell]()

    def watched(cell: Cell, *seed_and_replicates: int) -> dict[str, pl.DataFrame]:
        assert alone.acquire(blocking=False), "one job, and two cells at once"
        begun.append(cell)
        if len(begun) > 1:
            second.set()
        try:
            return run_cell(cell, *seed_and_replicates)
        finally:
            alone.release()

    def waiting(*args: Any) -> None:
        assert second.wait(60), "the next cell waits for the disk"
        write_cell(*args)

    monkeypatch.setattr(simulate, "run_cell", watched)
    monkeypatch.setattr(files, "write_cell", waiting)
    assert len(firstflight.run(SmallGrid(), jobs=1, only={"clients": [8]}, out=tmp_path).cells) == WINDOWS


def test_a_short_cell_leaves_no_chunks(small: Scenario, tmp_path: Path, computed: list[int]) -> None:
    computed.append(-1)
    with pytest.raises(OSError, match="goes down"):
        firstflight.run(small, replicates=REPLICATES, jobs=1, out=tmp_path / "run")
    assert not (tmp_path / "run" / "chunks").exists()


def test_chunks_of_cells_that_are_finished_or_unknown_are_removed(small: Scenario, tmp_path: Path) -> None:
    run = firstflight.run(small, replicates=2, out=tmp_path)
    tables = {"pages": run.pages.collect()}
    (finished,) = [path.name for path in (tmp_path / "cells").iterdir()]
    for name in (finished, CELL):
        Chunks(tmp_path / "chunks").write(name, range(0, 1), tables)
    firstflight.run(small, replicates=2, out=tmp_path)
    assert not (tmp_path / "chunks").exists()


def test_chunks_that_overlap_are_taken_once(tmp_path: Path) -> None:
    chunks = Chunks(tmp_path / "chunks")
    for replicates in (range(4, 8), range(0, 4), range(2, 6), range(8, 9), range(0, 2)):
        chunks.write(CELL, replicates, {"counts": pl.DataFrame({"n": [len(replicates)]})})
    assert chunks.finished(CELL) == [range(0, 4), range(4, 8), range(8, 9)]
    assert without(range(0, 12), chunks.finished(CELL)) == [range(9, 12)]
    assert without(range(0, 9), [range(2, 3), range(5, 9)]) == [range(0, 2), range(3, 5)]
    chunks.remove(CELL)
    assert not (tmp_path / "chunks").exists()


def long_work(names: str, replicates: int) -> list[Work]:
    return [Work(name, Cell({"cell": name}, None), "simulate", 1.0, [range(replicates)]) for name in names]  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds_each", [0.0, 1e-4, 0.03, 7.0])
@pytest.mark.parametrize("workers", [1, 2, 64])
def test_every_replicate_is_handed_out_once(seconds_each: float, workers: int) -> None:
    queue, seen = Queue(long_work("abc", 500)), []
    while chunks := queue.take(workers):
        for chunk in chunks:
            seen += [(chunk.name, replicate) for replicate in chunk.replicates]
            queue.took(chunk, seconds_each * len(chunk.replicates))
    assert sorted(seen) == [(name, replicate) for name in "abc" for replicate in range(500)]


def test_chunks_take_about_as_long_as_they_should_once_the_first_was_measured() -> None:
    queue = Queue(long_work("a", 10_000))
    (first,) = queue.take(2)
    assert len(first.replicates) == 1
    queue.took(first, 0.01)
    (second,) = queue.take(2)
    assert len(second.replicates) == 50
    # Little is left: smaller ones, so that all end together.
    queue = Queue(long_work("a", 101))
    queue.took(queue.take(2)[0], 0.01)
    assert [len(chunk.replicates) for chunk in queue.take(2)] == [12]


def test_cells_that_take_no_time_come_together() -> None:
    queue = Queue(long_work("abcdef", 10))
    (first,) = queue.take(1)
    queue.took(first, 0.0001)
    assert [(chunk.name, len(chunk.replicates)) for chunk in queue.take(1)] == [
        ("a", 9),
        *((name, 10) for name in "bcdef"),
    ]
    assert not queue.take(1)


def test_a_closed_queue_hands_out_nothing() -> None:
    queue = Queue(long_work("a", 10))
    queue.close()
    assert queue.take(1) == []


STORES: list[Callable[[Path], str]] = [
    lambda path: f"file://{path}/store",
    lambda path: str(path / "store"),
    lambda path: f"memory://{path.name}",
]


@pytest.mark.parametrize("url", STORES, ids=["file", "directory", "memory"])
def test_a_store_gives_back_the_whole_chunks(url: Callable[[Path], str], tmp_path: Path) -> None:
    store = SharedChunks(url(tmp_path))
    assert store.finished("cell") == {}
    tables = {"counts": pl.DataFrame({"n": [1]}), "names": pl.DataFrame({"x": ["a"]}, schema={"x": pl.Enum(["a"])})}
    place = store.write("cell", range(0, 3), tables)
    twice = store.write("cell", range(0, 3), tables)
    other = store.write("cell", range(3, 5), tables)
    # As a worker that was killed leaves it.
    store._system.rm_file(f"{store.write('cell', range(5, 9), tables)}/complete")
    assert list(SharedChunks(url(tmp_path)).finished("cell")) == [range(0, 3), range(3, 5)]
    assert place != twice
    chunks = Chunks(tmp_path / "chunks")
    chunks.take("cell", range(0, 3), store.fetch(other))
    for name, frame in chunks.read("cell", range(0, 3)).items():
        assert frame.collect().equals(tables[name])
    store.remove("cell")
    assert store.finished("cell") == {}
    with pytest.raises(MachineError, match="must be storage that all machines share"):
        store.fetch(place)


def test_shared_storage_is_empty_before_a_cell_is_there(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, cell = Identity("small", "simulate", 1, 2), Cell({}, small)
    name, store = identity.cell_hash(cell), SharedChunks(str(tmp_path / "store"))
    place = store.write(name, range(0, 2), simulate.run_cell(cell, 1, 2))

    def dies(*_: object) -> None:
        raise OSError("the machine goes down")

    with RunWriter.create(tmp_path / "run", identity, [cell]) as run, monkeypatch.context() as patch:
        patch.setattr(RunWriter, "write", dies)
        with pytest.raises(OSError, match="goes down"):
            assembly.Assembly(run, name, cell, 2, store).store_if_whole()
    assert not Path(place).exists()
    with RunWriter.create(tmp_path / "run", identity, [cell]) as run:
        assembly.Assembly(run, name, cell, 2, None).store_if_whole()
        assert run.is_finished(name), "what was fetched had been kept"


class Buckets(MemoryFileSystem):
    """As an object store: a name needs no directory, and to ask for one would make the bucket."""

    protocol = "oci"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        raise AssertionError(f"{path} would be made")

    def find(self, path: str, *options: Any, **named: Any) -> Any:
        if "//bucket/" not in path:
            raise FileNotFoundError("The specified bucket does not exist")
        return super().find(path, *options, **named)


def test_a_misspelt_bucket_is_a_sentence_and_not_a_new_bucket() -> None:
    fsspec.register_implementation("oci", Buckets, clobber=True)
    with pytest.raises(MachineError, match=r'"oci://bukket/runs" cannot be used: The specified bucket does not exist'):
        SharedChunks("oci://bukket/runs").finished("cell")
    store = SharedChunks("oci://bucket/runs")
    store.write("cell", range(2), {"counts": pl.DataFrame({"n": [1]})})
    assert list(store.finished("cell")) == [range(2)]


def test_a_store_that_cannot_be_used_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"--store \".*/file/store\" cannot be used: .*the same command continues"):
        SharedChunks(f"file://{tmp_path}/file/store").write("cell", range(1), {"counts": pl.DataFrame({"n": [1]})})
    with pytest.raises(MachineError, match=r'--store "nonsense://x" cannot be used: Protocol not known: nonsense'):
        SharedChunks("nonsense://x")
    with pytest.raises(MachineError, match="install the package that reads it"):
        SharedChunks("s3://bucket/place")
