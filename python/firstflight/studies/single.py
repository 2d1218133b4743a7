"""A scenario file run by itself: a study of one cell, without published values or claims."""

from typing import TYPE_CHECKING

from ..scenario import Cell, Scenario
from .study import Study

if TYPE_CHECKING:
    from ..analysis.table import Table
    from ..records import Run


class SingleScenario(Study):
    """The one scenario as a grid of one cell, whose key is the scenario's name."""

    engines = ("simulate", "model", "emulate")
    shows = "one scenario of your own"
    source = ""
    replicates = 10

    def __init__(self, scenario: Scenario) -> None:
        """Its name and title are the scenario's."""
        self.scenario = scenario
        self.name = scenario.name  # type: ignore[misc]
        self.title = scenario.description or scenario.name  # type: ignore[misc]

    def cells(self, engine: str) -> list[Cell]:
        """The one cell."""
        return [Cell({"scenario": self.scenario.name}, self.scenario)]

    def tables(self, run: "Run") -> "list[Table]":
        """Summaries of transfers, pages and links: quantiles with 95 % intervals over replicates."""
        from ..analysis.summary import summary_tables

        return summary_tables(run)

    def answer(self, run: "Run") -> list[str]:
        """How much of it a stall of the machine disturbed, if anything."""
        disturbed = run.provenance["counts"].get("disturbed_transfers", 0)
        if not disturbed:
            return []
        count = run.transfers.select("replicate").collect().height
        return [
            f"A stall of the machine of more than a millisecond disturbed {disturbed} of {count} transfers; the tables "
            'hold all of them, and the records mark these (column "disturbed").'
        ]
