"""Cuts the work of a sweep into chunks of replicates that take about as long as each other, by the duration of the
first ones.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from firstflight.scenario import Cell

# Long enough that handing a chunk out costs little of it, short enough that little is lost and the bar moves.
_AIM_S = 0.5
_LEAST_S = 0.1
# One process hands out and collects; with very many workers chunks are longer, so that it can.
_CHUNKS_EACH_S = 200
# So many chunks should be left for each worker when the work draws to its end, so that all end at about the same time.
_PER_WORKER = 4


def aim_s(workers: int) -> float:
    """The target duration of a chunk where there is enough work."""
    return max(_AIM_S, workers / _CHUNKS_EACH_S)


@dataclass(frozen=True)
class Chunk:
    """Some replicates of a cell, whose hash is `name`."""

    name: str
    cell: Cell
    engine: str
    replicates: range


@dataclass
class Work:
    """A cell to be computed: `left` are the replicates that are not assigned yet, `cost` a guess at how long one
    takes, in any unit.
    """

    name: str
    cell: Cell
    engine: str
    cost: float
    left: list[range]
    measured_s: float = 0.0
    measured: int = 0

    @property
    def replicates_left(self) -> int:
        """The number of replicates that are not assigned yet."""
        return sum(map(len, self.left))


@dataclass
class Queue:
    """Hands out the work, the longest cells first; threads may share it."""

    works: Sequence[Work]
    _measured_s: float = 0.0
    _measured_cost: float = 0.0
    _at: int = 0
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.works = sorted(self.works, key=lambda work: -work.cost * work.replicates_left)
        self._by_name = {work.name: work for work in self.works}

    def take(self, workers: int) -> list[Chunk]:
        """Chunks that take about `aim_s(workers)` together, less when there is little left for this number of
        workers; none when there is nothing left. As long as nothing has been measured that is a single replicate.
        """
        with self._lock:
            taken: list[Chunk] = []
            left_s = self._batch_s(workers)
            while not self._closed and self._at < len(self.works):
                work = self.works[self._at]
                if not work.left:
                    self._at += 1
                    continue
                each_s = self._expected_s(work)
                if each_s is None:
                    return taken or [self._cut(work, 1)]
                number = max(1, int(left_s / each_s)) if each_s else work.replicates_left
                if taken and each_s > left_s:
                    break
                chunk = self._cut(work, number)
                taken.append(chunk)
                left_s -= each_s * len(chunk.replicates)
                if left_s <= 0 or work.left:
                    break
            return taken

    def took(self, chunk: Chunk, seconds: float) -> None:
        """Record the duration of a chunk."""
        work, number = self._by_name[chunk.name], len(chunk.replicates)
        with self._lock:
            work.measured_s += seconds
            work.measured += number
            self._measured_s += seconds
            self._measured_cost += work.cost * number

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._closed = True

    def _expected_s(self, work: Work) -> float | None:
        if work.measured:
            return work.measured_s / work.measured
        return work.cost * self._measured_s / self._measured_cost if self._measured_cost else None

    def _batch_s(self, workers: int) -> float:
        left_s = 0.0
        for work in self.works[self._at :]:
            each_s = self._expected_s(work)
            if each_s is None:
                return aim_s(workers)
            left_s += each_s * work.replicates_left
        return min(aim_s(workers), max(_LEAST_S, left_s / (_PER_WORKER * workers)))

    @staticmethod
    def _cut(work: Work, number: int) -> Chunk:
        first, *rest = work.left
        replicates = first[:number]
        work.left = [*([first[number:]] if len(first) > number else []), *rest]
        return Chunk(work.name, work.cell, work.engine, replicates)
