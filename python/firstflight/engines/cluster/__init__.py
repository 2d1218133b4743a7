"""Computes chunks on a Dask cluster: its own one on this machine, or one that is there already.

Replicates travel as numbers, cells as bytes and results as tables, or not at all: with a store, workers write them
there. Dask replaces a worker that dies; results that it had not delivered are computed again, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstflight.engines.assembly import Assembly
    from firstflight.engines.chunks import Queue
    from firstflight.engines.place import Place
    from firstflight.scenario import Cell

__all__ = ["compute"]


def compute(
    place: Place,
    study: str,
    seed: int,
    queue: Queue,
    assemblies: Mapping[str, Assembly],
    jobs: int,
    on_replicates: Callable[[Cell, int], None],
) -> None:
    """Compute the work in the queue; a cluster of our own has `jobs` processes.

    MachineError where Dask is not installed, where the cluster does not answer or goes away, and where a worker has
    another build of firstflight; RequestError where an engine refuses a cell.
    """
    from firstflight.engines.cluster.connection import connected
    from firstflight.engines.cluster.session import Session

    with connected(place, jobs) as client:
        Session(client, place, study, seed, queue, assemblies, on_replicates).work()
