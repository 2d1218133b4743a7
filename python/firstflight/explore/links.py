"""Links from a page on disk to the explorer next to it, which is one file and so works there without a server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.explore.page import PAGE, named
from firstflight.explore.start import fragment, transfer
from firstflight.records import Run, output
from firstflight.scenario import Scenario

EXPLORER = "explorer.html"
MOST = 24
"""Links on a page: each is 1.5 to 2 kB long."""


@dataclass(frozen=True)
class ExplorerLink:
    """A transfer in words, and where it opens."""

    text: str
    href: str


def link(text: str, scenario: Scenario, seed: int, sides: str = "") -> ExplorerLink:
    """Opens `scenario`; `sides`: the differences from the opening, such as "&a.iw=3&b.iw=10"."""
    return ExplorerLink(text, f"{EXPLORER}#{fragment(transfer(scenario, seed, text))}{sides}")


def of_run(run: Run) -> list[ExplorerLink]:
    """Transfers of a run's cells: of each network and traffic the one with the last window of the grid, and where these
    are more than `MOST` some from first to last. None if the explorer is not built, or where cells are populations.
    """
    if not PAGE.exists():
        return []
    last = {tuple((of, key[of]) for of in key if of != "iw"): (key, file) for key, file in run.scenario_files}
    some = [(named(run.study, key), Scenario.load(file)) for key, file in _spread(list(last.values()))]
    return [link(text, scenario, run.seed) for text, scenario in some if scenario.network is not None]


def _spread(cells: list[tuple[dict[str, Any], Path]]) -> list[tuple[dict[str, Any], Path]]:
    if len(cells) <= MOST:
        return cells
    return [cells[number * (len(cells) - 1) // (MOST - 1)] for number in range(MOST)]


def put_beside(target: Path) -> None:
    """Write the explorer into the directory of the page `target`."""
    output.write(target.with_name(EXPLORER), PAGE.read_bytes())
