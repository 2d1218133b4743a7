"""A study small enough to be killed often: many cells of a few milliseconds each.

python small_grid.py DIR JOBS      runs it and says "started" when the work begins
"""

import sys
from typing import TYPE_CHECKING

from conftest import SMALL
from firstflight.analysis.summary import summary_tables
from firstflight.scenario import Cell, Scenario
from firstflight.studies import Study
from firstflight.studies.execute import carry_out, prepare, started

if TYPE_CHECKING:
    from firstflight.analysis import Table
    from firstflight.records import Run


WINDOWS = 30


class SmallGrid(Study):
    """Clients times initial windows."""

    name = "small-grid"
    title = "A grid for tests"
    source = "none"
    engines = ("simulate",)
    shows = "nothing"
    replicates = 2

    def cells(self, engine: str) -> list[Cell]:
        base = Scenario.from_toml(SMALL).replace("duration", "300s")
        return [
            Cell({"clients": n, "iw": iw}, base.replace("application.web.clients", n).replace("tcp.initial_window", iw))
            for n in (8, 16, 24)
            for iw in range(1, WINDOWS + 1)
        ]

    def tables(self, run: "Run") -> "list[Table]":
        return summary_tables(run)


def main(directory: str, jobs: int) -> None:
    request = prepare(SmallGrid(), jobs=jobs)
    with started(request, directory) as run:
        print("started", flush=True)
        carry_out(request, run)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
