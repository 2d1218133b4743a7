"""Input that could not be read: counted, with the first places, so that a log of nothing but odd lines costs no
memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["line", "byte", "row"]

# Places that are reported of each kind of problem.
_TOLD = 5


@dataclass(frozen=True)
class Problem:
    """One kind of skipped part: `count`, and the `first` places: lines and rows from 1, bytes from 0."""

    what: str
    unit: Unit
    count: int
    first: tuple[int, ...]

    def __str__(self) -> str:
        noun = f"{self.unit}s" if len(self.first) > 1 else self.unit
        more = ", ..." if self.count > len(self.first) else ""
        return f"{self.count:,} x {self.what} ({noun} {', '.join(map(str, self.first))}{more})"


class Problems:
    """Problems as they are met."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Unit], tuple[int, list[int]]] = {}

    def add(self, what: str, places: Iterable[int], unit: Unit = "line") -> None:
        """The same problem at each of these places."""
        count, first = self._found.get((what, unit), (0, []))
        for place in places:
            count += 1
            if len(first) < _TOLD:
                first.append(place)
        if count:
            self._found[what, unit] = count, first

    def add_counted(self, what: str, count: int, first: Sequence[int], unit: Unit) -> None:
        """A problem that was counted elsewhere."""
        if count:
            self._found[what, unit] = count, list(first[:_TOLD])

    def found(self) -> tuple[Problem, ...]:
        """All of them, the most frequent first, of as many the first in the file."""
        every = [Problem(what, unit, count, tuple(first)) for (what, unit), (count, first) in self._found.items()]
        return tuple(sorted(every, key=lambda problem: (-problem.count, problem.first)))
