"""The cases that are run, and the required shares.

Coverage of the 95% CIs: from 94 to 96%. False alarms: at most 5%. Power of the effect planned for 80%: from
77 to 83%. A share counts as out of range if chance alone would rarely bring it there: if it is beyond by more than 2.6
standard errors of a share at the limit (one case in a hundred that lies just at it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from firstflight.analysis.ab.contrast import LEAST_BLOCKS, least_units
from research.calibration import cases
from research.calibration.cases import NORMAL, Case, Kind
from research.calibration.simulated import simulated

LEAST = 2000
"""Repetitions."""
RANGES: dict[Kind, tuple[float, float]] = {"coverage": (94, 96), "false alarms": (0, 5), "power": (77, 83)}
_CHANCE = 2.6


_MEAN, _MEDIAN, _P95, _P99 = (least_units(name) for name in ("mean", "p50", "p95", "p99"))


def _all() -> list[Case]:
    """At the fewest units that get an interval, where it is hardest."""
    both = (True, False)
    found = [
        cases.latencies(name, least_units(name), pairs) for name in ("mean", "p50", "p90", "p95") for pairs in both
    ]
    found += [cases.latencies(name, 1000, True) for name in ("mean", "p50")]
    found += [cases.rate(_MEAN, paired) for paired in both]
    found += [cases.weighted(_MEAN * 3 // 2), cases.stratified(_MEAN), cases.unfinished(_P95)]
    found += [cases.clustered(LEAST_BLOCKS), cases.clustered(LEAST_BLOCKS, "p50")]
    found += [cases.aggregates(name, replicates) for name in ("mean", "p95") for replicates in (5, 20)]
    found += [cases.alike(name, least_units(name)) for name in ("mean", "p50", "p95")]
    found += [cases.alike_in_pairs(name, least_units(name)) for name in ("mean", "p50", "p95")]
    found += [cases.alike_by_bucket(6, _MEDIAN), cases.detectable("mean", 400), cases.detectable("p50", 400)]
    found += [cases.latencies("p99", _P99, paired) for paired in both]
    return [*found, *simulated()]


CASES = {f"{case.kind}: {case.name}, {case.units}": case for case in _all()}


@dataclass(frozen=True)
class Outcome:
    """Shares in percent of each figure of a case."""

    name: str
    kind: Kind
    repetitions: int
    shares: dict[str, float]

    @property
    def within(self) -> bool:
        """Whether every share is in range as it stands."""
        low, high = RANGES[self.kind]
        return all(low <= share <= high for share in self.shares.values())

    @property
    def holds(self) -> bool:
        """Whether none is out of range by more than chance allows."""
        low, high = RANGES[self.kind]
        return all(
            low - _CHANCE * self._error(low) <= share <= high + _CHANCE * self._error(high)
            for share in self.shares.values()
        )

    def _error(self, limit: float) -> float:
        return math.sqrt(limit * (100 - limit) / self.repetitions)

    @staticmethod
    def header() -> str:
        """Titles of `line`."""
        return f"{'case, units':58}{'share in percent, ± 95% by chance':70}{'range':>9}  verdict"

    def line(self) -> str:
        """The outcome as a line of a table."""
        low, high = RANGES[self.kind]
        shares = "  ".join(
            f"{name} {share:.2f} ±{NORMAL * self._error(share):.2f}" for name, share in self.shares.items()
        )
        verdict = "within" if self.within else "within chance" if self.holds else "OUT OF RANGE"
        return f"{self.name:58}{shares:70}{f'{low:g}-{high:g}':>9}  {verdict}"


def run_some(name: str, seeds: tuple[int, int]) -> list[dict[str, bool]]:
    """Repetitions of a case, one a seed, from the first to before the last."""
    return [CASES[name].once(seed) for seed in range(*seeds)]


def outcome_of(name: str, done: list[dict[str, bool]]) -> Outcome:
    """The summary of the repetitions."""
    figures = done[0]
    shares = {figure: 100 * sum(one[figure] for one in done) / len(done) for figure in figures}
    return Outcome(name, CASES[name].kind, len(done), shares)
