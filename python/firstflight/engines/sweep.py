"""Runs the cells of a grid that are not finished, in threads, and stores each as soon as it is."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import polars as pl

from ..records import Identity, Run, stored
from ..scenario import Cell
from . import Engine, find

# Chunks of work a thread should have before it, so that all end at about the same time.
_CHUNKS_PER_JOB = 4


# Polars handles SIGINT so that a wait is not woken by it; Python notices Ctrl-C only between waits.
_CTRL_C_WITHIN_S = 0.1


@dataclass
class _Work:
    """A cell to be computed, in chunks of replicates that may end in any order."""

    name: str
    cell: Cell
    chunks: list[range]
    done: dict[int, dict[str, pl.DataFrame]] = field(default_factory=dict)

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
    jobs: int,
    on_replicates: Callable[[Cell, int], None] = lambda cell, replicates: None,
) -> None:
    """Compute what `run` lacks of `cells` with `jobs` threads, and store it.

    `on_replicates(cell, n)` is told of every n replicates done, from the thread that did them. Records do not depend
    on `jobs`. What had finished stays when this is interrupted or fails.
    """
    engine = find(identity.engine)
    work = _work(run, identity, cells, jobs)
    # The longest first, so that none starts when the others end.
    work.sort(key=lambda item: -cost(item.cell) * (item.cell.replicates or identity.replicates))
    lock = threading.Lock()
    pool = ThreadPoolExecutor(max_workers=jobs)
    futures = [
        pool.submit(_compute, run, engine, identity.seed, item, index, lock, on_replicates)
        for item in work
        for index in range(len(item.chunks))
    ]
    try:
        pending = set(futures)
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


def _work(run: Run, identity: Identity, cells: Sequence[Cell], jobs: int) -> list[_Work]:
    # Cells with the same plan share their records, so they are computed once.
    missing = {name: cell for cell in cells if not run.is_finished(name := identity.cell_hash(cell))}
    work = []
    for name, cell in missing.items():
        replicates = cell.replicates or identity.replicates
        chunks = 1 if jobs == 1 else min(replicates, -(-_CHUNKS_PER_JOB * jobs // len(missing)))
        bounds = [replicates * index // chunks for index in range(chunks + 1)]
        work.append(_Work(name, cell, [range(bounds[i], bounds[i + 1]) for i in range(chunks)]))
    return work


def _compute(
    run: Run,
    engine: Engine,
    seed: int,
    item: _Work,
    index: int,
    lock: threading.Lock,
    on_replicates: Callable[[Cell, int], None],
) -> None:
    chunk = item.chunks[index]
    tables = engine.run_cell(item.cell, seed, len(chunk), chunk.start)
    with lock:
        item.done[index] = tables
        complete = len(item.done) == len(item.chunks)
    if complete:
        joined = item.joined()
        item.done.clear()
        counts = joined["counts"].sum().to_dicts()[0] if "counts" in joined else {}
        run.write(item.name, item.cell, {table: joined[table] for table in stored(item.cell.capture)}, counts)
    on_replicates(item.cell, len(chunk))
