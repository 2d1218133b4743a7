"""Chooses the initial window to recommend, from the measurements of each candidate in each case.

The rule. A candidate can be recommended if, in every case, every term of the budget is within (`budget.check`) and
its gain is shown: the 95% CI of the change of the mean time lies below zero. A term for which there are too few
flows is not judged. Of these the one with the largest
gain in the first case is best; one nearer to the current window is preferred to it as long as the step between the
two is not shown to gain. With no such candidate the current window stays. The same rule for each case by itself says
on which assumption the answer depends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

from firstflight.advise.budget import Check, flows_to_settle
from firstflight.analysis.intervals import Estimate

Outcome = Literal["change", "keep"]
Why = Literal["gain", "no gain shown", "over the budget", "budget inconclusive"]


@dataclass(frozen=True)
class Evidence:
    """The measurements. Changes are in percent of the mean time, negative where the candidate is faster.

    `cases`: their names, the first the reference; `given`: those that `--assume` added. `candidates`: all windows but
    the current one. `changes`: of (case, candidate) against the current window. `step(case, from, to)`: the same
    between two candidates. `checks`: of each (case, candidate). `flows`: how many independent ones all of it rests on;
    `usable`: how many the data holds, of which `flows` may be a sample. `assumed`: the parts of the users' paths and
    sizes that are assumed, and of how many percent of them.
    """

    current: int
    candidates: Sequence[int]
    cases: Sequence[str]
    changes: Mapping[tuple[str, int], Estimate]
    step: Callable[[str, int, int], Estimate]
    checks: Mapping[tuple[str, int], Sequence[Check]]
    flows: int
    usable: int = 0
    assumed: Mapping[str, float] = field(default_factory=dict)
    given: Sequence[str] = ()

    def with_fewer_assumptions(self) -> Iterator[Evidence]:
        """The same with each choice of the `given` cases but all of them."""
        for number in range(len(self.given)):
            for kept in combinations(self.given, number):
                left_out = {*self.given} - {*kept}
                yield replace(self, cases=[case for case in self.cases if case not in left_out], given=kept)


@dataclass(frozen=True)
class CandidateResult:
    """The result of one candidate over some cases. `stopped_by`: the checks that are not within; `not_judged`: those
    for which there are too few flows, which stop nothing.
    """

    initial_window: int
    why: Why
    stopped_by: tuple[Check, ...]
    not_judged: tuple[Check, ...]
    not_gaining_in: tuple[str, ...]
    """Cases in which no gain is shown."""
    flows_needed: int | None
    """How many flows of the data, of all users, would settle inconclusive terms; None where none is open or no number
    would do."""
    needed_by: Check | None = None
    """The term that needs that many; None where it is the gain."""


@dataclass(frozen=True)
class Decision:
    """The recommendation. `no_significant_difference`: candidates that can be recommended and do not differ
    significantly from the one that is.

    `flows_needed`: the number of flows that would show a difference. `alone`: the window that would be recommended if a
    case were known to be true; `depends_on`: those cases in which that is another window. `inconclusive`: candidates
    that are not rejected and that more flows could make the recommended one; `inconclusive_in`: cases
    that by themselves have such ones.
    `other_seeds`: the window that would be recommended with each of some other seeds of the resampling.
    """

    outcome: Outcome
    initial_window: int
    current: int
    candidate_results: tuple[CandidateResult, ...]
    no_significant_difference: tuple[int, ...]
    flows_needed: int | None
    alone: Mapping[str, int]
    depends_on: tuple[str, ...]
    inconclusive: tuple[int, ...]
    inconclusive_in: tuple[str, ...]
    other_seeds: tuple[int, ...] = ()


def decide(evidence: Evidence) -> Decision:
    """The decision by the rule above."""
    chosen, equal, needed = choose(evidence, evidence.cases)
    alone = {case: choose(evidence, [case])[0] for case in evidence.cases}
    return Decision(
        outcome="keep" if chosen == evidence.current else "change",
        initial_window=chosen,
        current=evidence.current,
        candidate_results=tuple(candidate_result(evidence, evidence.cases, window) for window in evidence.candidates),
        no_significant_difference=equal,
        flows_needed=needed,
        alone=alone,
        depends_on=tuple(case for case, window in alone.items() if window != chosen),
        inconclusive=_inconclusive(evidence, evidence.cases, chosen),
        inconclusive_in=tuple(case for case, window in alone.items() if _inconclusive(evidence, [case], window)),
    )


def candidate_result(evidence: Evidence, cases: Sequence[str], window: int) -> CandidateResult:
    """Whether `window` can be recommended over all of `cases`, and the obstacles."""
    checks = [check for case in cases for check in evidence.checks[case, window]]
    stopped = tuple(check for check in checks if not passes(check))
    lacking = tuple(check for check in checks if check.verdict == "too few flows")
    flat = tuple(case for case in cases if not gains(evidence.changes[case, window]))
    needed: list[tuple[int | None, Check | None]] = [
        (check.flows_needed, check) for check in stopped if check.verdict != "over"
    ]
    if any(check.verdict == "over" for check in stopped):
        return CandidateResult(window, "over the budget", stopped, lacking, flat, None)
    for case in flat:
        change = evidence.changes[case, window]
        # A candidate that is slower, or as fast to the last bit, is not helped by more flows.
        needed.append((flows_to_settle(change, 0.0, evidence.flows) if change.value < 0 else None, None))
    most, by = max(needed, key=lambda need: math.inf if need[0] is None else need[0], default=(None, None))
    why: Why = "no gain shown" if flat else "budget inconclusive" if stopped else "gain"
    return CandidateResult(window, why, stopped, lacking, flat, most, by)


def _inconclusive(evidence: Evidence, cases: Sequence[str], chosen: int) -> tuple[int, ...]:
    """Candidates that are neither within nor out, and than which `chosen` is not shown to be better."""

    def is_inconclusive(window: int) -> bool:
        if candidate_result(evidence, cases, window).why in ("gain", "over the budget"):
            return False
        if any(evidence.changes[case, window].low >= 0 for case in cases):
            return False
        return chosen == evidence.current or not gains(evidence.step(cases[0], window, chosen))

    return tuple(window for window in evidence.candidates if is_inconclusive(window))


def choose(evidence: Evidence, cases: Sequence[str]) -> tuple[int, tuple[int, ...], int | None]:
    """`best_of` the candidates that can be recommended over all of `cases`."""
    fit = [window for window in evidence.candidates if candidate_result(evidence, cases, window).why == "gain"]
    return best_of(evidence, cases[0], fit)


def best_of(evidence: Evidence, reference: str, fit: Sequence[int]) -> tuple[int, tuple[int, ...], int | None]:
    """The window to recommend of those that `fit`, those not separated from it, and how many flows would separate
    them.
    """
    if not fit:
        return evidence.current, (), None
    best = min(fit, key=lambda window: (evidence.changes[reference, window].value, _far(evidence, window)))
    equal = [window for window in fit if window == best or not gains(evidence.step(reference, window, best))]
    chosen = min(equal, key=lambda window: (_far(evidence, window), window))
    needed = None
    if chosen != best:
        step = evidence.step(reference, chosen, best)
        needed = flows_to_settle(step, 0.0, evidence.flows) if step.value < 0 else None
    return chosen, tuple(window for window in equal if window != chosen), needed


def _far(evidence: Evidence, window: int) -> int:
    return abs(window - evidence.current)


def gains(change: Estimate) -> bool:
    """Whether a gain is shown."""
    return change.high < 0


def passes(check: Check) -> bool:
    """Whether it stops no candidate."""
    return check.verdict in ("within", "too few flows")
