"""Runs the cells of a grid that are not finished, in threads or on a cluster, and stores each as soon as it is."""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial

from firstflight.engines import RealTime, find
from firstflight.engines.assembly import Assembly, store
from firstflight.engines.chunks import Queue, Work
from firstflight.engines.cluster import HERE, Place
from firstflight.records import Identity, RunWriter
from firstflight.records.chunks import SharedChunks
from firstflight.records.machine import usable_cpus
from firstflight.scenario import Cell

# The bytes that a user fetches: a page or two.
_BITS_PER_USER = 1e6

# Polars handles SIGINT so that a wait is not woken by it; Python notices Ctrl-C only between waits.
_CTRL_C_WITHIN_S = 0.1


OnReplicates = Callable[[Cell, int], None]


def cost(cell: Cell) -> float:
    """A guess at how long a replicate takes, in bits: the capacity of the network in its time, or about the bits that a
    population's users fetch. Only used to order cells.
    """
    scenario = cell.scenario
    if scenario.population is not None:
        return _BITS_PER_USER * scenario.population.users * sum(item.user_fraction for item in scenario.application)
    return scenario.one_network("The order of cells").capacity_bps() * scenario.duration.seconds


def sweep(
    run: RunWriter,
    identity: Identity,
    cells: Sequence[Cell],
    jobs: int | None = None,
    on_replicates: OnReplicates = lambda cell, replicates: None,
    place: Place = HERE,
) -> None:
    """Compute the part of `cells` that `run` lacks, with `jobs` threads (none: as many as suit each engine), and store
    it.

    `on_replicates(cell, n)` is called for every n replicates done, from the thread that did them. Records in virtual
    time depend neither on `jobs` nor on `place`. Finished results are kept when this is interrupted or fails.
    """
    # Cells with the same plan share their records, so they are computed once.
    missing = {name: cell for cell in cells if not run.is_finished(name := identity.cell_hash(cell))}
    virtual: dict[str, Cell] = {}
    real: dict[str, dict[str, Cell]] = {}
    for name, cell in missing.items():
        engine = cell.engine or identity.engine
        (real.setdefault(engine, {}) if isinstance(find(engine), RealTime) else virtual)[name] = cell
    if virtual:
        _in_virtual_time(run, identity, virtual, jobs or usable_cpus(), on_replicates, place)
    # One engine after the other, and real time last: it suffers from neighbors.
    for name, of_engine in real.items():
        in_real_time = find(name)
        assert isinstance(in_real_time, RealTime)
        _in_real_time(run, identity, in_real_time, of_engine, jobs, on_replicates)


def _in_virtual_time(
    run: RunWriter, identity: Identity, cells: dict[str, Cell], jobs: int, on_replicates: OnReplicates, place: Place
) -> None:
    shared = SharedChunks(place.store) if place.store else None
    assemblies, works = {}, []
    for name, cell in cells.items():
        replicates = cell.replicates or identity.replicates
        assemblies[name] = assembly = Assembly(run, name, cell, replicates, shared)
        work = Work(name, cell, cell.engine or identity.engine, cost(cell), assembly.left)
        if finished := replicates - work.replicates_left:
            on_replicates(cell, finished)
        if work.left:
            works.append(work)
        else:
            assembly.store_if_whole()
    queue = Queue(works)
    # More would have nothing to do.
    most = max(1, sum(work.replicates_left for work in works))
    jobs = min(jobs, most)
    if place.cluster is not None:
        from firstflight.engines.cluster.connection import connected
        from firstflight.engines.cluster.session import Session

        with connected(place, jobs) as client:
            Session(client, place, run.study, identity.seed, queue, assemblies, on_replicates).work()
        return

    computing = threading.Semaphore(jobs)

    def work_through() -> None:
        chunks = itertools.chain.from_iterable(iter(partial(queue.take, jobs), []))
        try:
            while True:
                with computing:
                    if (chunk := next(chunks, None)) is None:
                        return
                    began = time.perf_counter()
                    tables = find(chunk.engine).run_cell(
                        chunk.cell, identity.seed, len(chunk.replicates), chunk.replicates.start
                    )
                    seconds = time.perf_counter() - began
                queue.took(chunk, seconds)
                assemblies[chunk.name].add(chunk.replicates, tables, seconds)
                on_replicates(chunk.cell, len(chunk.replicates))
        finally:
            # One that fails, or does no more because it is interrupted, stops the others.
            queue.close()

    try:
        # One more than compute: a cell is stored meanwhile, which mostly waits for the disk.
        threads = min(jobs + 1, most)
        _in_threads(threads, [work_through] * threads)
    finally:
        queue.close()


def _in_real_time(
    run: RunWriter,
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
            store(run, identity.cell_hash(cell), cell, {name: frame.lazy() for name, frame in tables.items()})

    by_jobs: dict[int, list[Callable[[], None]]] = {}
    for group in engine.together(list(cells.values())):
        by_jobs.setdefault(jobs or engine.jobs(group), []).append(partial(compute, group))
    # Those that bear many neighbors first, so that an interruption leaves little behind.
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
        # The native module cannot be stopped. After Ctrl-C the user does not want to wait for it, and results
        # that it still delivers are dropped, since a run takes nothing once closed; otherwise cells in progress
        # are let finish.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()
