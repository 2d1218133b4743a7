"""Runs the cells of a grid that are not finished, in threads, and stores each as soon as it is."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from ..records import Identity, Run, stored
from ..records.machine import usable_cpus
from ..scenario import Cell
from . import Engine, RealTime, find

# Chunks of work a thread should have before it, so that all end at about the same time.
_CHUNKS_PER_JOB = 4


# Polars handles SIGINT so that a wait is not woken by it; Python notices Ctrl-C only between waits.
_CTRL_C_WITHIN_S = 0.1


OnReplicates = Callable[[Cell, int], None]


@dataclass
class _Work:
    """A cell to be computed, in chunks of replicates that may end in any order."""

    name: str
    cell: Cell
    engine: Engine
    chunks: list[range]
    done: dict[int, dict[str, pl.DataFrame]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def joined(self) -> dict[str, pl.DataFrame]:
        """The chunks' tables one after the other in the replicates' order."""
        parts = [self.done[index] for index in range(len(self.chunks))]
        return {table: pl.concat([part[table] for part in parts]) for table in parts[0]}


def cost(cell: Cell) -> float:
    """A guess at how long a replicate takes: what the network could carry in its time. Orders cells, no more."""
    return cell.scenario.network.capacity_bps() * cell.scenario.duration.seconds


def sweep(
    run: Run,
    identity: Identity,
    cells: Sequence[Cell],
    jobs: int | None = None,
    on_replicates: OnReplicates = lambda cell, replicates: None,
) -> None:
    """Compute what `run` lacks of `cells` with `jobs` threads (none: as many as suit each engine), and store it.

    `on_replicates(cell, n)` is told of every n replicates done, from the thread that did them. Records in virtual time
    do not depend on `jobs`. What had finished stays when this is interrupted or fails.
    """
    # Cells with the same plan share their records, so they are computed once.
    missing = {name: cell for cell in cells if not run.is_finished(name := identity.cell_hash(cell))}
    by_engine: dict[str, dict[str, Cell]] = {}
    for name, cell in missing.items():
        by_engine.setdefault(cell.engine or identity.engine, {})[name] = cell
    # One engine after the other, and real time last: it suffers from neighbours.
    for engine_name in sorted(by_engine, key=lambda name: isinstance(find(name), RealTime)):
        engine = find(engine_name)
        wanted = by_engine[engine_name]
        if isinstance(engine, RealTime):
            _in_real_time(run, identity, engine, wanted, jobs, on_replicates)
        else:
            _in_virtual_time(run, identity, engine, wanted, jobs or usable_cpus(), on_replicates)


def _in_virtual_time(
    run: Run, identity: Identity, engine: Engine, cells: dict[str, Cell], jobs: int, on_replicates: OnReplicates
) -> None:
    work = []
    for name, cell in cells.items():
        replicates = cell.replicates or identity.replicates
        chunks = 1 if jobs == 1 else min(replicates, -(-_CHUNKS_PER_JOB * jobs // len(cells)))
        bounds = [replicates * index // chunks for index in range(chunks + 1)]
        work.append(_Work(name, cell, engine, [range(bounds[i], bounds[i + 1]) for i in range(chunks)]))
    # The longest first, so that none starts when the others end.
    work.sort(key=lambda item: -cost(item.cell) * (item.cell.replicates or identity.replicates))

    def compute(item: _Work, index: int) -> None:
        chunk = item.chunks[index]
        tables = item.engine.run_cell(item.cell, identity.seed, len(chunk), chunk.start)
        with item.lock:
            item.done[index] = tables
            complete = len(item.done) == len(item.chunks)
        if complete:
            _store(run, item.name, item.cell, item.joined())
            item.done.clear()
        on_replicates(item.cell, len(chunk))

    _in_threads(jobs, [partial(compute, item, index) for item in work for index in range(len(item.chunks))])


def _in_real_time(
    run: Run,
    identity: Identity,
    engine: RealTime,
    cells: dict[str, Cell],
    jobs: int | None,
    on_replicates: OnReplicates,
) -> None:
    def compute(group: list[Cell]) -> None:
        replicates = [cell.replicates or identity.replicates for cell in group]
        for cell, tables in zip(
            group, engine.run_together(group, identity.seed, replicates, on_replicates), strict=True
        ):
            _store(run, identity.cell_hash(cell), cell, tables)

    by_jobs: dict[int, list[Callable[[], None]]] = {}
    for group in engine.together(list(cells.values())):
        by_jobs.setdefault(jobs or engine.jobs(group), []).append(partial(compute, group))
    # Those that bear many neighbours first: what is left behind by an interruption is short.
    for at_once, tasks in sorted(by_jobs.items(), reverse=True):
        _in_threads(at_once, tasks)


def _in_threads(jobs: int, tasks: Sequence[Callable[[], None]]) -> None:
    """Carry out all tasks, `jobs` at a time; the first that fails ends it."""
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        pending = {pool.submit(task) for task in tasks}
        while pending:
            done, pending = wait(pending, _CTRL_C_WITHIN_S, FIRST_EXCEPTION)
            for future in done:
                future.result()
    except BaseException as error:
        # The native module cannot be stopped. Who pressed Ctrl-C does not want to wait for it, and what it still
        # delivers is dropped, since a run takes nothing once closed; otherwise cells under way are let finish.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()


def _store(run: Run, name: str, cell: Cell, tables: dict[str, pl.DataFrame]) -> None:
    counts = tables["counts"].sum().to_dicts()[0] if "counts" in tables else {}
    environment = dict(tables["environment"].unique().iter_rows()) if "environment" in tables else {}
    run.write(name, cell, {table: tables[table] for table in stored(cell.capture)}, counts, environment)
