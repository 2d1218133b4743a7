"""The task of a worker: compare its build of firstflight with ours, compute chunks, return or store them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstflight.records.chunks import SharedChunks, Tables
    from firstflight.scenario import Cell


Order = tuple[str, str, int, int]
"""The hash of a cell, its engine, the first of its replicates to be computed, and the one after the last."""


@dataclass(frozen=True)
class Done:
    """The result of an order: its tables or their place on shared storage, and the seconds it took."""

    tables: Tables | None
    place: str
    seconds: float


def portable() -> Callable[..., list[Done] | str]:
    """The task, as a function that travels with its code: a scheduler needs no firstflight for it, and a worker that
    has none, or another build than `code`, answers with a sentence that says so.
    """

    def compute(
        code: dict[str, str], seed: int, orders: list[Order], cells: list[bytes], store: str | None
    ) -> list[Done] | str:
        from distributed import get_worker

        try:
            from firstflight.records.machine import code_version

            here = {engine: code_version(engine) for engine in code}
        except (ImportError, TypeError):
            # No firstflight, or one whose builds were not distinguished by engine.
            here = {}
        for engine in code:
            if here.get(engine) != code[engine]:
                return (
                    f"the worker at {get_worker().address} has another build of firstflight "
                    f"({here.get(engine, 'none')}, and not {code[engine]}): install the same one there and run the "
                    "same command again"
                )
        from firstflight.engines.cluster.task import compute_chunks

        return compute_chunks(seed, orders, cells, store)

    return compute


def compute_chunks(seed: int, orders: list[Order], cells: list[bytes], store: str | None) -> list[Done]:
    """Compute the orders, each of the cell (as `written`) at its place in `cells`.

    MachineError where the store cannot be written; RequestError for a cell that is refused.
    """
    from firstflight.engines import find

    finished = []
    for (name, engine, start, stop), cell in zip(orders, cells, strict=True):
        began = perf_counter()
        tables = find(engine).run_cell(_cell(cell), seed, stop - start, start)
        seconds = perf_counter() - began
        if store is None:
            finished.append(Done(tables, "", seconds))
        else:
            finished.append(Done(None, _store(store).write(name, range(start, stop), tables), seconds))
    return finished


def written(cell: Cell) -> bytes:
    """A cell as JSON, which a worker reads only after the builds were compared."""
    return json.dumps(
        {"key": cell.key, "scenario": cell.scenario.to_dict(), "capture": cell.capture, "engine": cell.engine}
    ).encode()


@lru_cache(maxsize=4)
def _cell(content: bytes) -> Cell:
    from firstflight.scenario import Cell, Scenario

    document = json.loads(content)
    scenario = Scenario.from_dict(document["scenario"], source="")
    return Cell(document["key"], scenario, None, document["capture"], document["engine"])


@lru_cache(maxsize=4)
def _store(url: str) -> SharedChunks:
    from firstflight.records.chunks import SharedChunks

    return SharedChunks(url)
