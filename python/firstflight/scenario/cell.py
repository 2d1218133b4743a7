"""One point of a study's grid."""

import json
from dataclasses import dataclass
from functools import cached_property

from firstflight.scenario.scenario import Scenario


@dataclass(frozen=True)
class Cell:
    """One point of a grid: its coordinates and the scenario to be run there.

    `key` is ordered and has the same names in every cell of a study (`{"webs": 8, "ftps": 0, "iw": 1}`); its
    values become columns of the records, null where it is None: a key of another of the study's grids. `replicates`
    replaces the study's number for this cell only; with `capture` every segment is recorded as well. `engine` replaces
    the run's for this cell, so that a study can hold two engines side by side.
    """

    key: dict[str, str | int | float | None]
    scenario: Scenario
    replicates: int | None = None
    capture: bool = False
    engine: str | None = None

    @cached_property
    def plan(self) -> str:
        """The scenario's plan as JSON, made once: that of a population of thousands takes milliseconds."""
        return json.dumps(self.scenario.to_plan(), sort_keys=True)
