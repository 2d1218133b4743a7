"""A sentence of the RFC, its tolerance and how it is checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from firstflight.analysis.claim import Claim, Expectation, Needs, NoDataError, Sentence
from firstflight.analysis.intervals import Means, bootstrap, jackknife, seed_of
from firstflight.studies.rfc2415.claims.coverage import missing
from firstflight.studies.rfc2415.measure import Measures, Place

Data = Means[Place]

SCENARIOS = tuple((webs, ftps) for webs in (8, 16, 32) for ftps in range(4))
"""(webs, ftps) of Tables 1, 2 and 4."""
FITTED = ((8, 0), (16, 0))
"""The scenarios on which the open parameters were fitted; the others are predictions."""
WITH_FTPS = tuple((webs, ftps) for webs, ftps in SCENARIOS if ftps)
PATHOLOGICAL = tuple((webs, ftps) for webs, ftps in SCENARIOS if webs == 32 and ftps)
"""The RFC names no list; it speaks of "a large number of web clients combined with ftps"."""
ORDINARY = tuple(scenario for scenario in SCENARIOS if scenario not in PATHOLOGICAL)

AIM = "The limit was set before the first run"
DELAY = "median_page_delay"
DECREASE = "median_page_delay_decrease_vs_iw1"
POWER = "network_power"
RELATIVE_POWER = "normalized_network_power"
FILE_DELAY = "median_file_delay"
GOODPUT = "goodput"
UTILIZATION = "link_utilization"
DROPS = "packet_drop_rate"


@dataclass(frozen=True)
class Statement:
    """One sentence: `found` computes its value from the cells' means over replicates.

    `why` says where the tolerance comes from; `note` adds what a reader needs beside the verdict.
    `counted`: the value counts scenarios or cells. The jackknife needs a smooth statistic, so the interval is
    a bootstrap over replicates.
    """

    id: str
    text: str
    expectation: Expectation
    tolerance: float
    unit: str
    why: str
    found: Callable[[Data], float]
    note: Callable[[Data], str] | None = None
    counted: bool = False
    needs: Needs = "interval"

    @property
    def source(self) -> str:
        """The section, read from the id: `rfc2415-s3-07` is in section 3."""
        return f"RFC 2415 section {self.id.split('-')[1][1:]}"

    def check(self, measures: Measures) -> Claim:
        """The claim with its verdict; "cannot be checked" if the run lacks a cell that it needs."""
        sentence = Sentence(
            self.id, self.source, self.text, self.expectation, self.tolerance, self.unit, self.why, needs=self.needs
        )
        try:
            if self.counted:
                found = bootstrap(measures.values, self.found, seed_of("rfc2415", self.id))
            else:
                found = jackknife(measures.values, self.found)
        except KeyError:
            return sentence.unchecked(missing(measures.values, self.found))
        except NoDataError as error:
            return sentence.unchecked(str(error))
        try:
            note = self.note(Means(measures.values)) if self.note else ""
        except (KeyError, NoDataError):
            # A note may look at more cells than the claim needs.
            note = ""
        if math.isnan(found.value):
            return sentence.unchecked("The run has too few replicates for this statistic.")
        return sentence.judge(found, note)


def at(
    metric: str,
    scenario: tuple[int, int],
    iw: int | str,
    http: str = "1.0",
    variant: str = "base",
    group: str | None = None,
) -> Place:
    """The place of a metric in a scenario; the group follows from the metric unless given."""
    if group is None:
        group = {UTILIZATION: "link", DROPS: "link", FILE_DELAY: "ftp"}.get(metric, "web")
    return Place(metric, variant, *scenario, http, str(iw), group)


def mean(values: list[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)


def change(data: Data, before: Place, after: Place) -> float:
    """Change from `before` to `after` in percent of `before`."""
    where = f"{before.webs} webs, {before.ftps} ftps and IW {before.iw}"
    return 100 * (ratio(data(after), data(before), f"The {before.metric.replace('_', ' ')} of {where}") - 1)


def ratio(above: float, below: float, name: str) -> float:
    """`above` over `below`; NoDataError if that is zero, which `name` says."""
    if below == 0:
        raise NoDataError(f"{name} is zero in this run, so no ratio to it exists.")
    return above / below
