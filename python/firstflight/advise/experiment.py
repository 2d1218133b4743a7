"""The experiment under an advice: every case with every initial window, on the same users.

A study like any other, so that it is stored, resumed after a kill and simulated on all processors; only that its grid
comes from the flows and not from a publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from firstflight.advise.fit import Population
from firstflight.advise.sensitivity import SensitivityCase
from firstflight.advise.users import Users, complete
from firstflight.scenario import Cell, Scenario
from firstflight.studies import ADVICE
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis.table import Table
    from firstflight.records import Run

RESPONSE = "response"
SHORT, LONG = "other-short", "other-long"
OTHERS = {SHORT: "short response (30 kB)", LONG: "long download (1 MB)"}
"""The concurrent connections of the measured one, whose IW is unchanged: the kind of each."""
SHORT_SHARE, LONG_SHARE = 0.5, 0.25
LASTS = "300s"
"""Of a user's simulation, at most."""
WORK = 4_000
"""Users times replicates at least, so that the chance in a user's losses is small compared with the differences
between users. Of 4,000 homes a second replicate would narrow the intervals of the retransmission rate by 14% and those
of p99 by 23%, and take half as much CPU time again.
"""
MOST_REPLICATES = 12


class Experiment(Study):
    """The grid: keys `case` and `iw`."""

    name = ADVICE
    title = "Effect of another initial window on these users"
    source = ""
    engines = ("simulate",)
    shows = "the flows of an operator with other initial windows"

    def __init__(
        self, population: Population, cases: Sequence[SensitivityCase], windows: Sequence[int], seed: int
    ) -> None:
        """`windows`: the current one and the candidates. `seed` also draws the values that the cases complete."""
        self.population = population
        self.sensitivity_cases = cases
        self.windows = windows
        self.seed = seed  # type: ignore[misc]
        self.replicates = min(MOST_REPLICATES, -(-WORK // population.rows.height))  # type: ignore[misc]

    @cached_property
    def users(self) -> dict[str, Users]:
        """The users of each case, by its name."""
        return {case.name: complete(self.population, case, self.seed) for case in self.sensitivity_cases}

    def cells(self, engine: str) -> list[Cell]:
        """The reference case first, in it the current window first."""
        return self._grid

    @cached_property
    def _grid(self) -> list[Cell]:
        return [
            Cell({"case": case.name, "iw": window}, self._scenario(case, window))
            for case in self.sensitivity_cases
            for window in self.windows
        ]

    def tables(self, run: Run) -> list[Table]:
        """None: the page has its own."""
        return []

    def _scenario(self, case: SensitivityCase, window: int) -> Scenario:
        document = {
            "name": f"advise-{case.name.replace(' ', '-').replace(',', '')}",
            "description": case.text,
            "duration": LASTS,
            "tcp": {"profile": "linux", "initial_window": window},
            "population": self.users[case.name].population(),
            "application": self._applications(case),
        }
        return Scenario.from_dict(document, source="the flows")

    def _applications(self, case: SensitivityCase) -> list[dict[str, Any]]:
        response: dict[str, Any] = {"name": RESPONSE, "kind": "file_transfer", "size": "row", "count": 1}
        if self.population.has_handshakes:
            response["tls"] = {"flights": "row"}
        # When the download is in progress, and at about the time of the short response: as parts of one page are.
        near = {"distribution": "uniform", "low": "500ms", "high": "550ms"}
        if case.cross_traffic:
            response["start"] = near
        own = [response]
        if case.parallel_connections > 1:
            own = [response | {"name": f"{RESPONSE}-{number}"} for number in range(1, case.parallel_connections + 1)]
        if not case.cross_traffic:
            return own
        stays = {"initial_window": self.population.current.window}
        short = {"name": SHORT, "size": "30kB", "start": near, "user_fraction": SHORT_SHARE}
        long = {"name": LONG, "size": "1MB", "start": "0s", "user_fraction": LONG_SHARE}
        return [*own, *({"kind": "file_transfer", "count": 1, "tcp": stays} | other for other in (short, long))]
