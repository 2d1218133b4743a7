"""A study of three groups on a testbed each, to be killed; as a program: python emulated_grid.py DIRECTORY."""

import sys
from typing import TYPE_CHECKING

import firstflight
from emulations import download
from firstflight import Cell
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis import Table
    from firstflight.records import Run


class EmulatedGrid(Study):
    """Three sizes, two initial windows: cells of one size share a testbed."""

    name = "emulated-grid"
    title = "A grid to be killed"
    source = ""
    engines = ("emulate",)
    shows = ""
    replicates = 3

    def cells(self, engine: str) -> list[Cell]:
        """Six."""
        return [
            Cell({"size": size, "iw": window}, download(web__size=size, tcp__initial_window=window))
            for size in ("5kB", "20kB", "50kB")
            for window in (3, 10)
        ]

    def tables(self, run: "Run") -> "list[Table]":
        """None: only the records count."""
        return []


if __name__ == "__main__":
    firstflight.run(EmulatedGrid(), jobs=1, out=sys.argv[1])
