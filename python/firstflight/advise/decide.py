"""Which initial window to recommend, from what was measured of each candidate in each setting.

The rule. A candidate can be recommended if, in every setting, every term of the budget is within (`budget.check`) and
its gain is shown: the 95% CI of the change of the mean time lies below zero. A term for which there are too few
flows is not judged. Of these the one with the largest
gain in the first setting is best; one nearer to the window in use is preferred to it as long as the step between the
two is not shown to gain. With no such candidate the window in use stays. The same rule for each setting by itself says
on which assumption the answer depends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from firstflight.advise.budget import Check, flows_to_settle
from firstflight.analysis.intervals import Estimate

Outcome = Literal["change", "keep"]
Why = Literal["gain", "no gain shown", "over the budget", "budget not shown"]


@dataclass(frozen=True)
class Evidence:
    """What was measured. Changes are in percent of the mean time, negative where the candidate is faster.

    `settings`: their names, the first the reference. `candidates`: all windows but the one in use. `changes`: of
    (setting, candidate) against the window in use. `step(setting, from, to)`: the same between two candidates.
    `checks`: of each (setting, candidate). `flows`: how many independent ones all of it rests on; `usable`: how many
    the data holds, of which `flows` may be a sample.
    """

    in_use: int
    candidates: Sequence[int]
    settings: Sequence[str]
    changes: Mapping[tuple[str, int], Estimate]
    step: Callable[[str, int, int], Estimate]
    checks: Mapping[tuple[str, int], Sequence[Check]]
    flows: int
    usable: int = 0


@dataclass(frozen=True)
class Standing:
    """Where one candidate stands over some settings. `stopped_by`: the checks that are not within; `not_judged`: those
    for which there are too few flows, which stop nothing.
    """

    initial_window: int
    why: Why
    stopped_by: tuple[Check, ...]
    not_judged: tuple[Check, ...]
    not_gaining_in: tuple[str, ...]
    """Settings in which no gain is shown."""
    flows_needed: int | None
    """How many flows would settle what is not shown; None where nothing is open or no number would do."""


@dataclass(frozen=True)
class Decision:
    """What to do. `not_separated`: candidates that can be recommended and are not shown to differ from the one that is.

    `flows_needed`: how many flows would separate them. `alone`: what would be recommended if a setting were known to
    be true; `depends_on`: those settings in which that is another window. `open_`: candidates that are not out and that
    more flows could put in the place of the one recommended; `open_in`: settings that by themselves have such ones.
    `other_seeds`: what would be recommended with each of some other seeds of the resampling.
    """

    outcome: Outcome
    initial_window: int
    in_use: int
    standings: tuple[Standing, ...]
    not_separated: tuple[int, ...]
    flows_needed: int | None
    alone: Mapping[str, int]
    depends_on: tuple[str, ...]
    open_: tuple[int, ...]
    open_in: tuple[str, ...]
    other_seeds: tuple[int, ...] = ()


def decide(evidence: Evidence) -> Decision:
    """Apply the rule above."""
    chosen, equal, needed = _choose(evidence, evidence.settings)
    alone = {setting: _choose(evidence, [setting])[0] for setting in evidence.settings}
    return Decision(
        outcome="keep" if chosen == evidence.in_use else "change",
        initial_window=chosen,
        in_use=evidence.in_use,
        standings=tuple(standing(evidence, evidence.settings, window) for window in evidence.candidates),
        not_separated=equal,
        flows_needed=needed,
        alone=alone,
        depends_on=tuple(setting for setting, window in alone.items() if window != chosen),
        open_=_open(evidence, evidence.settings, chosen),
        open_in=tuple(setting for setting, window in alone.items() if _open(evidence, [setting], window)),
    )


def standing(evidence: Evidence, settings: Sequence[str], window: int) -> Standing:
    """Whether `window` can be recommended over all of `settings`, and what is in the way."""
    checks = [check for setting in settings for check in evidence.checks[setting, window]]
    stopped = tuple(check for check in checks if check.verdict not in ("within", "too few flows"))
    lacking = tuple(check for check in checks if check.verdict == "too few flows")
    flat = tuple(setting for setting in settings if not _gains(evidence.changes[setting, window]))
    needed = [check.flows_needed for check in stopped if check.verdict != "over"]
    if any(check.verdict == "over" for check in stopped):
        return Standing(window, "over the budget", stopped, lacking, flat, None)
    for setting in flat:
        change = evidence.changes[setting, window]
        # A candidate that is slower, or as fast to the last bit, is not helped by more flows.
        needed.append(flows_to_settle(change, 0.0, evidence.flows) if change.value < 0 else None)
    most = None if any(number is None for number in needed) else max((n for n in needed if n is not None), default=None)
    if flat:
        return Standing(window, "no gain shown", stopped, lacking, flat, most)
    return Standing(window, "budget not shown" if stopped else "gain", stopped, lacking, flat, most)


def _open(evidence: Evidence, settings: Sequence[str], chosen: int) -> tuple[int, ...]:
    """Candidates that are neither within nor out, and than which `chosen` is not shown to be better."""

    def is_open(window: int) -> bool:
        if standing(evidence, settings, window).why in ("gain", "over the budget"):
            return False
        if any(evidence.changes[setting, window].low >= 0 for setting in settings):
            return False
        return chosen == evidence.in_use or not _gains(evidence.step(settings[0], window, chosen))

    return tuple(window for window in evidence.candidates if is_open(window))


def _choose(evidence: Evidence, settings: Sequence[str]) -> tuple[int, tuple[int, ...], int | None]:
    """The window to recommend, those not separated from it, and how many flows would separate them."""
    reference = settings[0]
    fit = [window for window in evidence.candidates if standing(evidence, settings, window).why == "gain"]
    if not fit:
        return evidence.in_use, (), None
    best = min(fit, key=lambda window: (evidence.changes[reference, window].value, _far(evidence, window)))
    equal = [window for window in fit if window == best or not _gains(evidence.step(reference, window, best))]
    chosen = min(equal, key=lambda window: (_far(evidence, window), window))
    needed = None
    if chosen != best:
        step = evidence.step(reference, chosen, best)
        needed = flows_to_settle(step, 0.0, evidence.flows) if step.value < 0 else None
    return chosen, tuple(window for window in equal if window != chosen), needed


def _far(evidence: Evidence, window: int) -> int:
    return abs(window - evidence.in_use)


def _gains(change: Estimate) -> bool:
    return change.high < 0
