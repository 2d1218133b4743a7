"""The advice in sentences: plain, with its numbers, and with the unknowns stated directly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from firstflight.advise.budget import Check
from firstflight.advise.decide import CandidateResult, Decision, Evidence, decide
from firstflight.advise.request import MOST_CONNECTIONS
from firstflight.analysis.intervals import Estimate
from firstflight.counted import counted, listed

Confidence = Literal["high", "depends on unknowns", "insufficient data"]
LEVELS: tuple[Confidence, ...] = ("high", "depends on unknowns", "insufficient data")
"""Levels of confidence, from the highest to the lowest."""

if TYPE_CHECKING:
    from firstflight.advise.advice import Cost, Gain, OtherConnections, UserGroup, UserShares
    from firstflight.advise.missing import Missing
    from firstflight.advise.outliers import Outliers


def sentences(
    decision: Decision,
    evidence: Evidence,
    gains: Sequence[Gain],
    costs: Sequence[Cost],
    harm: Sequence[OtherConnections],
    users: Sequence[UserShares],
    groups: Sequence[UserGroup] = (),
    needed: Missing | None = None,
    doubts: Sequence[str] = (),
    outliers: Outliers | None = None,
    first_flight: str = "",
) -> Iterator[str]:
    """The answer, its gain, cost and confidence. `doubts`: on the flows; `first_flight`: on their handshakes."""
    reference = evidence.cases[0]
    sure, why = confidence(decision, evidence, doubts, outliers)
    if decision.outcome == "keep":
        yield f"Keep the initial window of {decision.current} segments."
        yield _why_kept(decision, evidence)
    else:
        window = decision.initial_window
        steps = f"the initial window from {decision.current} to {window} segments"
        up = window > decision.current
        if sure == "insufficient data":
            change = f"The data suggests {'raising' if up else 'lowering'} {steps}, but is not sufficient to do so."
        else:
            change = f"{'Raise' if up else 'Lower'} {steps}."
        yield f"{change} {_worst_change(window, reference, gains, costs, harm, groups)}"
        by_statistic = {
            gain.statistic: gain for gain in gains if (gain.case, gain.initial_window) == (reference, window)
        }
        affected = next(shares for shares in users if shares.initial_window == window)
        mean = by_statistic["mean"]
        yield (
            f"The mean response time falls by {_gain(mean.change_percent)}, {_ms(mean)}, the median by "
            f"{_short_gain(by_statistic['p50'].change_percent)} and the 95th percentile by "
            f"{_short_gain(by_statistic['p95'].change_percent)}. "
            f"{affected.faster_percent:.0f}% of the users wait at least 5% less, "
            f"{_few(affected.slower_percent)} at least 5% more."
        )
        # The first of a window's costs is that of retransmitted segments.
        again = next(cost for cost in costs if (cost.case, cost.initial_window) == (reference, window))
        yield f"{_retransmissions(again)}."
    if first_flight:
        yield first_flight
    yield from _why_not_more(decision, evidence)
    if outliers is not None and outliers.initial_window != decision.initial_window:
        yield outliers.sentence(decision)
    if needed is not None:
        yield needed.sentence
    yield f"Confidence: {sure}. {why}"


def _worst_change(
    window: int,
    reference: str,
    gains: Sequence[Gain],
    costs: Sequence[Cost],
    harm: Sequence[OtherConnections],
    groups: Sequence[UserGroup],
) -> str:
    """The largest changes for the worse that are shown, of shares and of times, within the budget or not: percentage
    points and percent do not compare.
    """
    shares = [
        (cost.change_points, f"{cost.name}, {from_to(cost.current_percent, cost.candidate_percent)}", cost.case)
        for cost in costs
        if cost.initial_window == window
    ]
    slower: list[tuple[OtherConnections | UserGroup | Gain, str, str]] = [
        *((other, f"time of a concurrent {other.who}, ", other.case) for other in harm),
        *(
            (group, f"mean time by {group.dimension}, {group.bucket}: ", reference)
            for group in groups
            if group.verdict == "worse"
        ),
        *((gain, f"{_named(gain.statistic)} of all responses, ", gain.case) for gain in gains),
    ]
    times = [
        (of.change_percent, f"{what}{of.change_percent.value:+.1f}%", case)
        for of, what, case in slower
        if of.initial_window == window
    ]
    shown = [[entry for entry in changes if entry[0].low > 0] for changes in (shares, times)]
    worst = [max(changes, key=lambda entry: entry[0].value) for changes in shown if changes]
    if not worst:
        return "Nothing that was measured is shown to get worse."
    said = [f"{what}{'' if case == reference else f' (with {case})'}" for _, what, case in worst]
    return f"Worst change{'s' if len(worst) > 1 else ''}: {'; '.join(said)}."


def confidence(
    decision: Decision, evidence: Evidence, doubts: Sequence[str] = (), outliers: Outliers | None = None
) -> tuple[Confidence, str]:
    """The confidence of the decision, the lowest that a reason gives, and the reasons. `doubts`: on the flows.

    It is not above the confidence with fewer assumptions.
    """
    reasons = list(_doubts(decision, evidence))
    fewer = [level for less in evidence.with_fewer_assumptions() for level, _ in _doubts(decide(less), less)]
    lowest: Confidence = max(fewer, key=LEVELS.index, default="high")
    if not any(LEVELS.index(level) >= LEVELS.index(lowest) for level, _ in reasons) and lowest != "high":
        reasons.append((lowest, f"Without --assume it would be: {lowest}. No assumption raises that."))
    if outliers is not None and outliers.initial_window != decision.initial_window:
        those = "1 response" if len(outliers.records) == 1 else f"{len(outliers.records)} responses"
        reasons.append(("insufficient data", f"The result hinges on {those}: see the outliers."))
    if doubts:
        reasons.append(("depends on unknowns", "The flows may not be those of your users: see the doubt about them."))
    if reasons:
        return max((level for level, _ in reasons), key=LEVELS.index), " ".join(sentence for _, sentence in reasons)
    if decision.outcome == "keep" and not any(
        candidate.why == "over the budget" for candidate in decision.candidate_results
    ):
        return "high", "No number of flows like these would show a gain within the budget."
    number = len(evidence.cases)
    return "high", f"Each of the {number} cases alone gives the same window, and more flows would not change it."


def _doubts(decision: Decision, evidence: Evidence) -> Iterator[tuple[Confidence, str]]:
    """Reasons that might change the advice: the remaining confidence, and a sentence."""
    number = len(evidence.cases)
    for what, percent in evidence.assumed.items():
        # Without the RTT nothing of a user's path is in the data.
        level: Confidence = "insufficient data" if what == "RTT" else "depends on unknowns"
        yield level, f"The {what} of {percent:.3g}% of the users is assumed, not observed."
    if decision.depends_on:
        cases = []
        for window in sorted({decision.alone[name] for name in decision.depends_on}):
            where = [_assumed(name) for name in decision.depends_on if decision.alone[name] == window]
            cases.append(f"{window} if {listed(where, 'or')} were known to be true")
        yield (
            "depends on unknowns",
            f"IW {decision.initial_window} can be recommended in all {number} cases; the recommendation would be "
            f"{'; '.join(cases)}.",
        )
    elsewhere = [window for window in decision.other_seeds if window != decision.initial_window]
    if elsewhere:
        seeds = f"{len(elsewhere)} of {len(decision.other_seeds)} other seeds of the resampling"
        windows = listed([str(window) for window in sorted(set(elsewhere))], "or")
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
        yield "insufficient data", f"{len(decision.inconclusive_in)} of the {number} {those} inconclusive."


def _not_judged(decision: Decision, evidence: Evidence) -> str:
    """The terms that were left out for want of flows, of any window that is advised in some case."""
    advised = {decision.initial_window, *decision.alone.values()}
    checks = [
        check
        for candidate in decision.candidate_results
        if candidate.initial_window in advised
        for check in candidate.not_judged
    ]
    needed = {check.term.name: check.flows_needed or 0 for check in checks}
    if not needed:
        return ""
    takes = listed([f"{name} (needs {number:,})" for name, number in needed.items()])
    return f"Not judged, too few flows: {takes}{_there(max(needed.values()), evidence)}."


def stopped_by(result: CandidateResult, cases: int) -> str:
    """The worst objection to a candidate. `cases`: how many there are."""
    if result.why == "gain":
        lacking = listed([*dict.fromkeys(f"{check.term.name} not judged" for check in result.not_judged)])
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
        return f"no gain shown with {listed([_assumed(name) for name in result.not_gaining_in])}"
    if unknown:
        return f"no data: {describe(unknown[0])}"
    return f"inconclusive against the budget: {describe(max(open_, key=_excess))}"


def describe(check: Check) -> str:
    """One check: the value, the limit that it was compared with, and the place."""
    where = f" of {check.where}" if check.where else ""
    if check.verdict == "no data":
        return f"{check.term.name}{where} with {_assumed(check.case)}: {check.reason or 'no data'}"
    unit = " pp" if check.term.unit == "points" else "%"
    delta = check.found
    return (
        f"{check.term.name}{where} {delta.value:+.2f}{unit} ({delta.low:+.2f} to {delta.high:+.2f}) against a limit of "
        f"{check.term.limit:+g}{unit} with {_assumed(check.case)}"
    )


def _why_kept(decision: Decision, evidence: Evidence) -> str:
    gaining = [candidate for candidate in decision.candidate_results if not candidate.not_gaining_in]
    if not gaining:
        best = min(
            decision.candidate_results,
            key=lambda candidate: evidence.changes[evidence.cases[0], candidate.initial_window].value,
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
        f"{candidate.initial_window}: {stopped_by(candidate, len(evidence.cases))}"
        for candidate in decision.candidate_results
        if candidate.initial_window != decision.initial_window and candidate.why != "gain"
    ]
    if parts:
        yield "Not " + "; not ".join(parts) + "."
    if decision.no_significant_difference:
        yield _no_significant_difference(decision, evidence)
    fit = [candidate.initial_window for candidate in decision.candidate_results if candidate.why == "gain"]
    less = [window for window in fit if window not in (decision.initial_window, *decision.no_significant_difference)]
    if less:
        gain = "gains" if len(less) == 1 else "gain"
        yield f"{listed([str(window) for window in less])} would also be within the budget, and {gain} less."


def _no_significant_difference(decision: Decision, evidence: Evidence) -> str:
    others = listed([str(window) for window in decision.no_significant_difference])
    needed = decision.flows_needed
    more = "no number of flows like these would" if needed is None else f"about {needed:,} flows like these would"
    return (
        f"These flows show no significant difference of {decision.initial_window} from {others}, so the one "
        f"closest to the current window is recommended; {more} show one{_there(needed, evidence)}."
    )


def _inconclusive(decision: Decision, evidence: Evidence) -> str:
    of = [candidate for candidate in decision.candidate_results if candidate.initial_window in decision.inconclusive]
    needed = [candidate for candidate in of if candidate.flows_needed is not None]
    if not needed:
        windows = listed([str(candidate.initial_window) for candidate in of], "or")
        return f"No number of flows is known that would decide it for {windows}."
    least = min(needed, key=lambda candidate: candidate.flows_needed or 0)
    by = least.needed_by
    group = f", {by.needed_there:,} of them with {by.where}," if by is not None and by.term.name == "groups" else ""
    there = _there(least.flows_needed, evidence)
    return f"About {least.flows_needed:,} flows like these{group} would decide it for {least.initial_window}{there}."


def _there(needed: int | None, evidence: Evidence) -> str:
    """The advice where the data has the required flows, but fewer were simulated."""
    if needed is None or not evidence.flows < needed <= min(evidence.usable, MOST_CONNECTIONS):
        return ""
    return f"; the data has them: add --max-connections {needed}"


def _gain(change: Estimate) -> str:
    return f"{-change.value:.1f}% (95% CI {-change.high:.1f} to {-change.low:.1f})"


def _short_gain(change: Estimate) -> str:
    return f"{-change.value:.1f}%"


def from_to(before: Estimate, after: Estimate) -> str:
    """Both values of a share: `1.20 to 1.35%`."""
    return f"{before.value:.2f} to {after.value:.2f}%"


def _ms(gain: Gain) -> str:
    return f"from {1e3 * gain.current_s.value:.0f} to {1e3 * gain.candidate_s.value:.0f} ms"


def _retransmissions(cost: Cost) -> str:
    change = cost.change_points
    shares = from_to(cost.current_percent, cost.candidate_percent)
    if change.low <= 0 <= change.high or abs(change.value) < 0.005:
        return f"No change of the retransmission rate is shown ({shares})"
    verb = "rises" if change.value > 0 else "falls"
    return f"The retransmission rate {verb} by {abs(change.value):.2f} pp ({shares})"


def _named(statistic: str) -> str:
    names = {"mean": "mean time", "p50": "median time"}
    return names.get(statistic, f"{statistic[1:]}th percentile of the time")


def _few(percent: float) -> str:
    if percent == 0:
        return "none"
    return "below 0.1%" if percent < 0.05 else f"{percent:.1f}%" if percent < 10 else f"{percent:.0f}%"


def _excess(check: Check) -> float:
    return (check.found.value - check.term.limit) / max(check.term.limit, 0.1)


def _assumed(case: str) -> str:
    return {"reference": "the reference case"}.get(case, case)
