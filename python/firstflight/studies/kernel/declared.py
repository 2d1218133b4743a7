"""A study that is declared: `study.toml` in its folder, and functions over its quantities."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstflight.studies.study import Study

from .claim import ClaimSpec, judge
from .grid import Grid
from .missing import depending
from .quantity import Quantities, Quantity

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure
    from firstflight.scenario import Cell

Of = Callable[[Quantities], Sequence[Any]]


class DeclaredStudy(Study):
    """What `study.toml` says (title, question, source, limitations, engines, grid), with the study's quantities, and
    what claims, tables, figures and the answer make of them. A function that a run has no data for is not called.
    """

    def __init__(
        self,
        folder: Path,
        quantities: Sequence[Quantity],
        claims: Of = lambda q: (),
        tables: Of = lambda q: (),
        figures: Of = lambda q: (),
        answer: Of = lambda q: (),
    ) -> None:
        """`folder` holds study.toml and the scenario files that it names."""
        with (folder / "study.toml").open("rb") as file:
            self._declared = tomllib.load(file)
        said = self._declared
        self.name = folder.name.replace("_", "-")  # type: ignore[misc]
        self.title, self.source, self.shows = said["title"], said["source"], said["shows"]  # type: ignore[misc]
        self.asked, self.limitations = said["question"], tuple(said["limitations"])  # type: ignore[misc]
        self.engines, self.replicates = tuple(said["engines"]), said["replicates"]  # type: ignore[misc]
        self._folder, self._quantities = folder, quantities
        self._claims, self._tables, self._figures, self._answer = claims, tables, figures, answer

    @cached_property
    def grid(self) -> Grid:
        """The grid of study.toml, read when it is first asked for."""
        return Grid(self._folder, self._declared["grid"])

    def cells(self, engine: str) -> list[Cell]:
        """The whole grid, the same for every engine."""
        return self.grid.cells()

    def quantities(self, run: Run) -> Quantities:
        """The study's quantities of `run`, by name."""
        coordinates = self.grid.coordinates
        arrays = {quantity.name: quantity.measure(run, coordinates) for quantity in self._quantities}
        for array in arrays.values():
            for name, key in self._declared["grid"]["keys"].items():
                array[name].attrs["long_name"] = key["title"]
        return Quantities(arrays)

    def claims(self, run: Run) -> list[Claim]:
        """The study's claims, judged."""
        claims: Callable[[Quantities], Sequence[ClaimSpec]] = self._claims
        return judge(claims, self.quantities(run), list(self.grid.coordinates))

    def tables(self, run: Run) -> list[Table]:
        """Those for which there is data."""
        return [table for table in self._tables(self.quantities(run)) if not table.frame.is_empty()]

    def figures(self, run: Run) -> list[Figure]:
        """The study's figures; none of a run without a finished cell."""
        return list(self._figures(self.quantities(run))) if run.cells else []

    def answer(self, run: Run) -> list[str]:
        """The sentences that depend on no cell which the run lacks; empty ones say nothing."""
        if not run.cells:
            return []
        keys = list(self.grid.coordinates)
        sentences = depending(self._answer, self.quantities(run), keys, lambda own, other: own != other)
        return [sentence for sentence, lacking in sentences if sentence and not lacking]
