"""The advice in sentences: plain, with its numbers, and with the unknowns stated directly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from firstflight.advise.budget import Check
from firstflight.advise.decide import CandidateResult, Decision, Evidence
from firstflight.advise.request import MOST_CONNECTIONS
from firstflight.analysis.intervals import Estimate
from firstflight.counted import counted

Confidence = Literal["high", "depends on unknowns", "insufficient data"]

if TYPE_CHECKING:
    from firstflight.advise.advice import Cost, Gain, Harm, Users
    from firstflight.advise.missing import Missing


def sentences(
    decision: Decision,
    evidence: Evidence,
    gains: Sequence[Gain],
    costs: Sequence[Cost],
    harm: Sequence[Harm],
    users: Sequence[Users],
    needed: Missing | None = None,
    doubts: Sequence[str] = (),
) -> Iterator[str]:
    """The answer, its gain, its cost and its confidence. `doubts`: on the flows themselves."""
    reference = evidence.cases[0]
    if decision.outcome == "keep":
        yield f"Keep the initial window of {decision.current} segments."
        yield _why_kept(decision, evidence)
    else:
        verb = "Raise" if decision.initial_window > decision.current else "Lower"
        yield f"{verb} the initial window from {decision.current} to {decision.initial_window} segments."
        window = decision.initial_window
        own = {gain.statistic: gain for gain in gains if (gain.case, gain.initial_window) == (reference, window)}
        affected = next(each for each in users if each.initial_window == window)
        mean = own["mean"]
        yield (
            f"The mean response time falls by {_gain(mean.change_percent)}, {_ms(mean)}, the median by "
            f"{_short_gain(own['p50'].change_percent)} and the 95th percentile by "
            f"{_short_gain(own['p95'].change_percent)}. "
            f"{affected.faster_percent:.0f}% of the users wait at least 5% less, "
            f"{_few(affected.slower_percent)} at least 5% more."
        )
        # The first of a window's costs is that of retransmitted segments.
        again = next(cost for cost in costs if (cost.case, cost.initial_window) == (reference, window))
        worst = max(
            (each for each in harm if each.initial_window == window and not math.isnan(each.change_percent.value)),
            key=lambda each: each.change_percent.value,
            default=None,
        )
        beside = (
            ""
            if worst is None
            else (
                ". The time of concurrent connections with the current window changes by up to "
                f"{worst.change_percent.value:+.1f}% ({worst.who}, {worst.case})"
            )
        )
        yield f"{_retransmissions(again)}{beside}."
    yield from _why_not_more(decision, evidence)
    if needed is not None:
        yield needed.sentence
    sure, why = confidence(decision, evidence, doubts)
    yield f"Confidence: {sure}. {why}"


def confidence(decision: Decision, evidence: Evidence, doubts: Sequence[str] = ()) -> tuple[Confidence, str]:
    """The confidence of the decision, and why. `doubts`: on the flows themselves."""
    found = list(_doubts(decision, evidence))
    if doubts:
        found.append(("depends on unknowns", "The flows may not be those of your users: see the doubt about them."))
    if found:
        return found[0][0], " ".join(sentence for _, sentence in found)
    if decision.outcome == "keep" and not any(each.why == "over the budget" for each in decision.candidate_results):
        return "high", "No number of flows like these would show a gain within the budget."
    number = len(evidence.cases)
    return (
        "high",
        f"Each of the {number} cases alone gives the same window, and more flows would not change it.",
    )


def _doubts(decision: Decision, evidence: Evidence) -> Iterator[tuple[Confidence, str]]:
    """Reasons that might change the advice, the most serious first: the remaining confidence, and a sentence."""
    number = len(evidence.cases)
    if decision.depends_on:
        cases = []
        for window in sorted({decision.alone[name] for name in decision.depends_on}):
            where = [_assumed(name) for name in decision.depends_on if decision.alone[name] == window]
            cases.append(f"{window} if {_listed(where, 'or')} were known to be true")
        yield (
            "depends on unknowns",
            f"IW {decision.initial_window} can be recommended in all {number} cases; the recommendation would be "
            f"{'; '.join(cases)}.",
        )
    elsewhere = [window for window in decision.other_seeds if window != decision.initial_window]
    if elsewhere:
        seeds = f"{len(elsewhere)} of {len(decision.other_seeds)} other seeds of the resampling"
        windows = _listed([str(window) for window in sorted(set(elsewhere))], "or")
        yield (
            "insufficient data",
            f"{seeds} would recommend {windows}, because an interval ends very close to a limit.",
        )
    if decision.no_significant_difference:
        yield "insufficient data", _no_significant_difference(decision, evidence)
    not_judged = _not_judged(decision, evidence)
    if not_judged:
        yield "insufficient data", not_judged
    if decision.inconclusive:
        yield "insufficient data", _inconclusive(decision, evidence)
    elif decision.inconclusive_in:
        those = "cases alone is" if len(decision.inconclusive_in) == 1 else "cases alone are"
        yield (
            "insufficient data",
            f"{len(decision.inconclusive_in)} of the {number} {those} inconclusive.",
        )


def _not_judged(decision: Decision, evidence: Evidence) -> str:
    """The terms that were left out for want of flows, of any window that is advised in some case."""
    advised = {decision.initial_window, *decision.alone.values()}
    checks = [
        check for each in decision.candidate_results if each.initial_window in advised for check in each.not_judged
    ]
    needed = {check.term.name: check.flows_needed or 0 for check in checks}
    if not needed:
        return ""
    takes = _listed([f"{name} (needs {number:,})" for name, number in needed.items()])
    return f"Not judged, too few flows: {takes}{_there(max(needed.values()), evidence)}."


def stopped_by(result: CandidateResult, cases: int) -> str:
    """The worst objection to a candidate. `cases`: how many there are."""
    if result.why == "gain":
        lacking = _listed([*dict.fromkeys(f"{check.term.name} not judged" for check in result.not_judged)])
        return f"within the budget and a gain in every case{lacking and f' ({lacking})'}"
    over = [check for check in result.stopped_by if check.verdict == "over"]
    unknown = [check for check in result.stopped_by if check.verdict == "no data"]
    open_ = [check for check in result.stopped_by if check.verdict == "inconclusive"]
    if over:
        worst = max(over, key=_excess)
        others = f", and {len(over) - 1} more" if len(over) > 1 else ""
        return f"over the budget: {describe(worst)}{others}"
    if len(result.not_gaining_in) == cases:
        return "no gain shown in any case"
    if result.not_gaining_in:
        return f"no gain shown with {_listed([_assumed(name) for name in result.not_gaining_in])}"
    if unknown:
        return f"no data: {describe(unknown[0])}"
    return f"inconclusive against the budget: {describe(max(open_, key=_excess))}"


def describe(check: Check) -> str:
    """One check: the value, the limit that it was compared with, and the place."""
    where = f" of {check.where}" if check.where else ""
    if check.verdict == "no data":
        return f"{check.term.name}{where} with {_assumed(check.case)}: {check.reason or 'no data'}"
    unit = " pp" if check.term.unit == "points" else "%"
    found = check.found
    return (
        f"{check.term.name}{where} {found.value:+.2f}{unit} ({found.low:+.2f} to {found.high:+.2f}) against a limit of "
        f"{check.term.limit:+g}{unit} with {_assumed(check.case)}"
    )


def _why_kept(decision: Decision, evidence: Evidence) -> str:
    gaining = [each for each in decision.candidate_results if not each.not_gaining_in]
    if not gaining:
        best = min(
            decision.candidate_results, key=lambda each: evidence.changes[evidence.cases[0], each.initial_window].value
        )
        reference = evidence.cases[0]
        change = evidence.changes[reference, best.initial_window]
        # A gain next to "keep" reads like a contradiction unless it says where there is none.
        lacking, *others = best.not_gaining_in
        if reference in best.not_gaining_in:
            where = "not shown to be a gain"
        else:
            more = f" and in {counted(len(others), 'other case')}" if others else ""
            where = f"but is not shown to gain with {_assumed(lacking)}{more}"
        return (
            f"No candidate is shown to gain in every case. The best, {best.initial_window}, changes the mean time "
            f"by {change.value:+.1f}% ({change.low:+.1f} to {change.high:+.1f}) with {_assumed(reference)}, {where}."
        )
    return "No other window is shown to gain within the harm budget."


def _why_not_more(decision: Decision, evidence: Evidence) -> Iterator[str]:
    parts = [
        f"{each.initial_window}: {stopped_by(each, len(evidence.cases))}"
        for each in decision.candidate_results
        if each.initial_window != decision.initial_window and each.why != "gain"
    ]
    if parts:
        yield "Not " + "; not ".join(parts) + "."
    if decision.no_significant_difference:
        yield _no_significant_difference(decision, evidence)
    fit = [each.initial_window for each in decision.candidate_results if each.why == "gain"]
    less = [window for window in fit if window not in (decision.initial_window, *decision.no_significant_difference)]
    if less:
        gain = "gains" if len(less) == 1 else "gain"
        yield f"{_listed([str(window) for window in less])} would also be within the budget, and {gain} less."


def _no_significant_difference(decision: Decision, evidence: Evidence) -> str:
    others = _listed([str(window) for window in decision.no_significant_difference])
    needed = decision.flows_needed
    more = "no number of flows like these would" if needed is None else f"about {needed:,} flows like these would"
    return (
        f"These flows show no significant difference of {decision.initial_window} from {others}, so the one "
        f"closest to the current window is recommended; {more} show one{_there(needed, evidence)}."
    )


def _inconclusive(decision: Decision, evidence: Evidence) -> str:
    of = [each for each in decision.candidate_results if each.initial_window in decision.inconclusive]
    needed = [each for each in of if each.flows_needed is not None]
    if not needed:
        windows = _listed([str(each.initial_window) for each in of], "or")
        return f"No number of flows is known that would decide it for {windows}."
    least = min(needed, key=lambda each: each.flows_needed or 0)
    there = _there(least.flows_needed, evidence)
    return f"About {least.flows_needed:,} flows like these would decide it for {least.initial_window}{there}."


def _there(needed: int | None, evidence: Evidence) -> str:
    """The advice where the data has the required flows, but fewer were simulated."""
    if needed is None or not evidence.flows < needed <= min(evidence.usable, MOST_CONNECTIONS):
        return ""
    return f"; the data has them: add --max-connections {needed}"


def _gain(change: Estimate) -> str:
    return f"{-change.value:.1f}% (95% CI {-change.high:.1f} to {-change.low:.1f})"


def _short_gain(change: Estimate) -> str:
    return f"{-change.value:.1f}%"


def _ms(gain: Gain) -> str:
    return f"from {1e3 * gain.current_s.value:.0f} to {1e3 * gain.candidate_s.value:.0f} ms"


def _retransmissions(cost: Cost) -> str:
    change = cost.change_points
    shares = f"{cost.current_percent.value:.2f} to {cost.candidate_percent.value:.2f}%"
    if change.low <= 0 <= change.high or abs(change.value) < 0.005:
        return f"No change of the retransmission rate is shown ({shares})"
    verb = "rises" if change.value > 0 else "falls"
    return f"The retransmission rate {verb} by {abs(change.value):.2f} pp ({shares})"


def _few(percent: float) -> str:
    if percent == 0:
        return "none"
    return "below 0.1%" if percent < 0.05 else f"{percent:.1f}%" if percent < 10 else f"{percent:.0f}%"


def _excess(check: Check) -> float:
    return (check.found.value - check.term.limit) / max(check.term.limit, 0.1)


def _assumed(case: str) -> str:
    return {"reference": "the reference case"}.get(case, case)


def _listed(words: Sequence[str], joint: str = "and") -> str:
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} {joint} {words[-1]}"
