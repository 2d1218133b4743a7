"""A scenario file run by itself: a study of one cell, without published values or claims."""

from typing import TYPE_CHECKING

from firstflight.scenario import Cell, Scenario
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis.table import Table
    from firstflight.records import Run


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
        """Summaries of transfers, pages, links and users, and a population's buckets: means over replicates with 95%
        intervals.
        """
        from firstflight.analysis.summary import summary_tables

        return [*summary_tables(run), *self._by_bucket(run)]

    def _by_bucket(self, run: "Run") -> "list[Table]":
        """The buckets of the scenario's population, if there is one and something in them."""
        population = self.scenario.population
        if population is None or not run.cells:
            return []
        from firstflight.analysis.buckets import bucket_table

        names = self.scenario.names()
        arms = ["", *(f".{arm.name}" for arm in self.scenario.arm or ())]
        payload = {
            f"{name}{arm}": self.scenario.full_payload_bytes(index) for index, name in enumerate(names) for arm in arms
        }
        table = bucket_table(run, population.buckets.model_dump(), payload)
        return [] if table.frame.is_empty() else [table]

    def answer(self, run: "Run") -> list[str]:
        """The results of a population's users, and the share that a stall of the machine disturbed, if any."""
        if self.scenario.population is not None:
            from firstflight.analysis.summary import in_sentences

            return in_sentences(run, self.scenario.population.users)
        disturbed = run.provenance["counts"].get("disturbed_transfers", 0)
        if not disturbed:
            return []
        count = run.transfers.select("replicate").collect().height
        return [
            f"A stall of the machine of more than a millisecond disturbed {disturbed} of {count} transfers; the tables "
            'hold all of them, and the records mark these (column "disturbed").'
        ]
