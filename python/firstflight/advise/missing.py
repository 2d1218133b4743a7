"""The datum that stands between the window advised and a better one: its required value, and how to measure it.

If only unknowns stop a candidate, it would be recommended if the cases that stop it were known not to be true. For
lines whose rates the data lacks, the condition is a number: users with slow lines are taken out of the simulated
population until the budget holds, and their share then is the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from firstflight.advise.budget import Term
from firstflight.advise.decide import Decision, Evidence, candidate_result
from firstflight.advise.experiment import Experiment
from firstflight.advise.measure import Measurements, holds
from firstflight.advise.sensitivity import SensitivityCase
from firstflight.counted import listed

SLOW_BPS = (0.5e6, 1e6, 2e6, 4e6, 8e6)
"""Rates below which a line is tried as too slow, the least that does."""
SHARES = (0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.015, 0.01, 0.005)
"""Shares of slow lines that are tried, the largest that does."""
CAPTURE = "timeout 600 tcpdump -i any -s 96 -w flows.pcap 'tcp port 443'"


@dataclass(frozen=True)
class Missing:
    """`initial_window` would be advised under all of `conditions`. `command`: a command that would show the first of
    them, empty where no data that is read here would. `slow_bps`, `share`: of lines below that rate at most this share,
    None where lines are not in question.
    """

    initial_window: int
    conditions: tuple[str, ...]
    command: str
    slow_bps: float | None = None
    share: float | None = None

    @property
    def sentence(self) -> str:
        """The missing data in one or two sentences."""
        shown = f" A capture of ten minutes would show {self.shows}: {self.command}." if self.command else ""
        return f"{self.initial_window} would be recommended if {listed(self.conditions)}.{shown}"

    @property
    def shows(self) -> str:
        """The conditions as the command shows them."""
        return "it" if len(self.conditions) == 1 else "the first of these"


def missing(
    decision: Decision, evidence: Evidence, experiment: Experiment, measured: Measurements, budget: Sequence[Term]
) -> Missing | None:
    """The least that is missing for the candidate with the largest gain that unknowns alone stop; None for none."""
    about = {case.name: case for case in experiment.sensitivity_cases}
    reference = evidence.cases[0]
    chosen = 0.0
    if decision.outcome == "change":
        chosen = evidence.changes[reference, decision.initial_window].value
    better = [w for w in evidence.candidates if evidence.changes[reference, w].value < chosen]
    gaps = []
    for window in sorted(better, key=lambda w: evidence.changes[reference, w].value):
        blocked = [name for name in evidence.cases if candidate_result(evidence, [name], window).why != "gain"]
        if blocked and window != decision.initial_window:
            gaps.append(_of(window, [about[name] for name in blocked], experiment, measured, budget))
    named = [gap for gap in gaps if gap is not None]
    return min(named, key=lambda gap: len(gap.conditions), default=None)


def _of(
    window: int,
    blocked: Sequence[SensitivityCase],
    experiment: Experiment,
    measured: Measurements,
    budget: Sequence[Term],
) -> Missing | None:
    if experiment.sensitivity_cases[0].rates == "seen" or not {"", "lines"} & {case.about for case in blocked}:
        return _made(window, blocked)
    tried = []
    for slow_bps in SLOW_BPS:
        still = [case for case in blocked if not _within(case, window, slow_bps, 0.0, experiment, measured, budget)]
        if _made(window, still, slow_bps) is not None:
            tried.append((len({case.rather for case in still}), slow_bps, still))
        if not still:
            break
    if not tried:
        return None
    _, slow_bps, still = min(tried, key=lambda attempt: attempt[:2])
    eased = [case for case in blocked if case not in still]
    for share in SHARES:
        if all(_within(case, window, slow_bps, share, experiment, measured, budget) for case in eased):
            return _made(window, still, slow_bps, share)
    return None


def _made(
    window: int, still: Sequence[SensitivityCase], slow_bps: float | None = None, share: float | None = None
) -> Missing | None:
    """With these cases in the way, and lines if `slow_bps` says so; None if one of them is no unknown."""
    if not all(case.rather for case in still):
        return None
    # What a capture shows comes first.
    abouts = dict.fromkeys((case.rather, case.about) for case in sorted(still, key=lambda case: case.about != "loss"))
    conditions, shown = [rather for rather, _ in abouts], [about for _, about in abouts]
    if slow_bps is not None:
        below = f"{slow_bps / 1e6:g} Mbit/s"
        conditions.insert(0, f"fewer than {100 * (share or 0):.2g}% of your users have links below {below}")
        shown.insert(0, "lines")
    command = CAPTURE if shown[0] in ("lines", "fast lines", "loss") else ""
    return Missing(window, tuple(conditions), command, slow_bps, share)


def _within(
    case: SensitivityCase,
    window: int,
    slow_bps: float,
    share: float,
    experiment: Experiment,
    measured: Measurements,
    budget: Sequence[Term],
) -> bool:
    """Whether the candidate holds in a case if at most `share` of the lines are slower."""
    rates = np.array(experiment.users[case.name].columns["down_bps"])
    slow, fast = np.flatnonzero(rates < slow_bps), np.flatnonzero(rates >= slow_bps)
    kept = min(len(slow), round(share / (1 - share) * len(fast)))
    order = np.random.default_rng(experiment.seed).permutation(len(slow))
    clients = pl.Series(np.sort(np.concatenate([fast, slow[order[:kept]]])).astype(np.uint32))
    return holds(measured.among(clients), budget, window, [case.name])
