"""Memory for the contents of a file: a packed file can hold a thousand times its size in connections."""

from pathlib import Path

import polars as pl

from firstflight.errors import MachineError
from firstflight.records import machine

# Kept rows are copied into the records' tables, and a command computes from these: `firstflight observe` takes 750 MB
# for 5 million rows, of which 140 MB are kept.
_TIMES = 6


class Room:
    """Counts the data kept from a file, and refuses more than the memory that is free when reading begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free = machine.free_memory_bytes()
        self._bytes = 0

    def add(self, *frames: pl.DataFrame) -> None:
        """More is kept. MachineError, one sentence, if it is too much."""
        self._bytes += sum(int(frame.estimated_size()) for frame in frames)
        needed = self._bytes * _TIMES
        if self._free is not None and needed > self._free:
            raise MachineError(
                f"{self._path} holds more connections and responses than fit into {self._free / 1e6:,.0f} MB of free "
                f"memory: the part read so far needs {needed / 1e6:,.0f} MB; read a part of the file, or use a "
                "machine with more memory"
            )

    def keep_only(self, *frames: pl.DataFrame) -> None:
        """The added frames were merged into these. MachineError as `add`."""
        self._bytes = 0
        self.add(*frames)
