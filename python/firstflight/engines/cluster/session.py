"""The tasks that one sweep has on a cluster."""

from __future__ import annotations

import logging
import queue as queues
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from firstflight.engines.cluster.task import Done, portable, written
from firstflight.errors import FirstflightError, MachineError
from firstflight.records import machine

if TYPE_CHECKING:
    from distributed import Client, Future

    from firstflight.engines.assembly import Assembly
    from firstflight.engines.chunks import Chunk, Queue
    from firstflight.engines.cluster import Place
    from firstflight.scenario import Cell

# Python notices Ctrl-C only between waits.
_CTRL_C_WITHIN_S = 0.1
# Interval between counts of the workers, and how long the scheduler may take to answer before it counts as gone.
_COUNT_EVERY_S = 5.0
_ANSWER_WITHIN_S = 30.0
# Tasks handed out for each thread of the workers: one in progress and one that waits.
_PER_THREAD = 2
# Cells larger than this go to the cluster once instead of with each of their chunks.
_LARGE_CELL_BYTES = 32_768

_log = logging.getLogger("firstflight")


class Session:
    """Submits the chunks of a queue as tasks, and collects their results."""

    def __init__(
        self,
        client: Client,
        place: Place,
        study: str,
        seed: int,
        queue: Queue,
        assemblies: Mapping[str, Assembly],
        on_replicates: Callable[[Cell, int], None],
    ) -> None:
        """`study` names the tasks in Dask's dashboard."""
        self._client, self._place, self._study, self._seed = client, place, study, seed
        self._queue, self._assemblies, self._on_replicates = queue, assemblies, on_replicates
        self._code = {work.engine: machine.code_version(work.engine) for work in queue.works}
        self._task = portable()
        self._submitted: dict[Any, tuple[Future[Any], list[Chunk]]] = {}
        self._ended: queues.SimpleQueue[Future[Any]] = queues.SimpleQueue()
        self._cells: dict[str, bytes | Future[Any]] = {}
        # Keys of an earlier session on the cluster are not ours.
        self._token = secrets.token_hex(8)
        self._threads = 0
        self._checked_s = float("-inf")
        self._warned = False

    def work(self) -> None:
        """Work until the queue is empty and every result has arrived.

        MachineError where the cluster goes away or a worker has another build of firstflight; RequestError where an
        engine refuses a cell.
        """
        try:
            while True:
                self._count_workers()
                while len(self._submitted) < _PER_THREAD * max(self._threads, 1):
                    chunks = self._queue.take(max(self._threads, 1))
                    if not chunks:
                        break
                    self._submit(chunks)
                if not self._submitted:
                    return
                try:
                    self._collect(self._ended.get(timeout=_CTRL_C_WITHIN_S))
                except queues.Empty:
                    if self._client.status != "running":
                        raise self._gone() from None
        finally:
            self._queue.close()

    def _submit(self, chunks: list[Chunk]) -> None:
        from dask.base import annotate

        first = chunks[0]
        cell = ",".join(f"{name}={value}" for name, value in first.cell.key.items() if value is not None)
        more = f"+{len(chunks) - 1}" if len(chunks) > 1 else ""
        # Dask takes the part before a hyphen for the name of a group of tasks.
        label = f"{self._study}[{cell}]{more}".replace("-", "_")
        orders = [(chunk.name, chunk.engine, chunk.replicates.start, chunk.replicates.stop) for chunk in chunks]
        with annotate(study=self._study, cell=cell + more, first_replicate=first.replicates.start):
            future = self._client.submit(
                self._task,
                self._code,
                self._seed,
                orders,
                [self._payload(chunk) for chunk in chunks],
                self._place.store,
                key=(f"{label}-{self._token}", first.name, first.replicates.start),
                pure=False,
            )
        self._submitted[future.key] = (future, chunks)
        future.add_done_callback(self._ended.put)

    def _payload(self, chunk: Chunk) -> bytes | Future[Any]:
        if chunk.name not in self._cells:
            content = written(chunk.cell)
            large = len(content) > _LARGE_CELL_BYTES
            key = f"cell-{chunk.name}-{self._token}"
            self._cells[chunk.name] = self._client.submit(bytes, content, key=key) if large else content
        return self._cells[chunk.name]

    def _collect(self, future: Future[Any]) -> None:
        results = self._result(future)
        if results is None:
            # The worker died with the result: the scheduler lets it be computed again.
            future.add_done_callback(self._ended.put)
            return
        _, chunks = self._submitted.pop(future.key)
        for chunk, done in zip(chunks, results, strict=True):
            assembly = self._assemblies[chunk.name]
            self._queue.took(chunk, done.seconds)
            if done.tables is None:
                assembly.add_shared(chunk.replicates, done.place)
            else:
                assembly.add(chunk.replicates, done.tables, done.seconds)
            self._on_replicates(chunk.cell, len(chunk.replicates))

    def _result(self, future: Future[Any]) -> list[Done] | None:
        """The result of a finished task; None if it is lost. Raises the task's error, as a sentence."""
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise self._gone()
        if future.status not in ("finished", "error"):
            return None
        try:
            result: list[Done] | str = future.result(timeout=_ANSWER_WITHIN_S)
            if isinstance(result, str):
                raise MachineError(result)
            return result
        except FirstflightError:
            raise
        except TimeoutError:
            self._checked_s = float("-inf")
            self._count_workers()
            return None
        except KilledWorker:
            raise MachineError(
                f"workers of {self._place} died repeatedly on the same task, as with too little memory; finished "
                "parts are kept, and the same command continues with the rest"
            ) from None
        except (CancelledError, OSError):
            raise self._gone() from None
        except RuntimeError as error:
            if "deserializ" not in str(error):
                raise
            raise MachineError(
                f"the scheduler of {self._place} cannot read the work: it needs the same Python and Dask as are here"
            ) from None

    def _count_workers(self) -> None:
        if time.monotonic() - self._checked_s < _COUNT_EVERY_S:
            return
        try:
            # Loosely typed: the scheduler's handlers are attributes that its proxy makes up.
            scheduler: Any = self._client.scheduler
            cores = self._client.sync(scheduler.ncores, callback_timeout=_ANSWER_WITHIN_S)
        except (TimeoutError, OSError):
            raise self._gone() from None
        self._threads, self._checked_s = sum(cores.values()), time.monotonic()
        if not self._threads and not self._warned:
            _log.warning("firstflight: the scheduler of %s has no workers; waiting for them", self._place)
            self._warned = True

    def _gone(self) -> MachineError:
        return MachineError(
            f"the Dask scheduler of {self._place} has stopped or does not answer; finished parts are kept, and the "
            "same command continues with the rest"
        )
