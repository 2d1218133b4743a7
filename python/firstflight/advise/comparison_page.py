"""Two data sets compared, in words and as a page: comparison.html, one file that needs nothing else."""

import math

from firstflight.advise.budget import Check
from firstflight.advise.compare import CONFOUNDED, RETRANSMISSIONS, ArmsCompared, Change
from firstflight.advise.page import environment, milliseconds
from firstflight.analysis.ab import least_units
from firstflight.analysis.intervals import Estimate
from firstflight.report.page import unbreakable

PAGE, DATA = "comparison.html", "comparison.json"
ANSWERS = {
    "faster": "After is faster. Each term of the harm budget that could be judged is within its limit.",
    "faster, budget inconclusive": "After is faster, but a term of the harm budget is inconclusive.",
    "slower": "After is slower.",
    "over the budget": "After is over the harm budget.",
    "inconclusive": "Inconclusive: the 95% CI of the mean change includes 0.",
}
_NAMES = {
    "mean": "Mean completion time",
    "p50": "Median",
    **{f"p{percent}": f"{percent}th percentile" for percent in (75, 90, 95, 99)},
    RETRANSMISSIONS: "Retransmission rate",
}


def render(comparison: ArmsCompared, command: str) -> str:
    """The page's HTML. `command`: the line that gives the same comparison."""
    html = (
        environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            command=command,
            light=light(comparison),
            answer=answer(comparison),
            names=_NAMES,
            unit=_unit,
            value=value,
            signed=_signed,
            interval=interval,
            judged=judged,
            not_within=[check for check in comparison.checks if check.verdict in ("over", "inconclusive")],
            doubts=[text for text in comparison.doubts if text != CONFOUNDED],
        )
    )
    return unbreakable(html)


def answer(comparison: ArmsCompared) -> str:
    """The outcome in a sentence. If it is better, with the worst change shown, within the budget or not."""
    if comparison.outcome.startswith("faster"):
        return f"{ANSWERS[comparison.outcome]} {_worst_change(comparison)}"
    if comparison.outcome != "inconclusive":
        return ANSWERS[comparison.outcome]
    mean = next((change.change for change in comparison.changes if change.statistic == "mean"), None)
    if mean is None:
        return "Inconclusive: both data sets have retransmissions, but not completion times."
    if math.isnan(mean.low):
        return f"Inconclusive: too few connections; the 95% CI of a mean needs {least_units('mean'):,} on each side."
    return ANSWERS[comparison.outcome]


def _worst_change(comparison: ArmsCompared) -> str:
    changes = [(measure.change, _NAMES[measure.statistic], _unit(measure)) for measure in comparison.changes]
    # The groups' intervals hold simultaneously.
    changes += [
        (check.found, f"Mean time, {check.where}", "%") for check in comparison.checks if check.term.name == "groups"
    ]
    # Percentage points and percent do not compare.
    kinds = [[entry for entry in changes if entry[0].low > 0 and entry[2] == unit] for unit in (" pp", "%")]
    worst = [max(shown, key=lambda entry: entry[0].value) for shown in kinds if shown]
    if not worst:
        return "Nothing that was measured is shown to get worse."
    said = [f"{name[0].lower()}{name[1:]} {interval(change, unit)}" for change, name, unit in worst]
    return f"Worst change{'s' if len(worst) > 1 else ''}: {'; '.join(said)}."


def light(comparison: ArmsCompared) -> tuple[str, str]:
    """Of the traffic light: the color that is lit, and its text. Green needs concurrent arms without a doubt."""
    if comparison.outcome in ("slower", "over the budget"):
        return "stop", "Worse"
    if comparison.outcome == "inconclusive":
        return "care", "Inconclusive"
    if comparison.outcome == "faster" and not comparison.doubts:
        return "go", "Better"
    return "care", "Better, with a doubt"


def value(estimate: Estimate, of: Change) -> str:
    """A value of one data set with its unit."""
    return f"{estimate.value:.2f}%" if of.statistic == RETRANSMISSIONS else f"{milliseconds(estimate.value)} ms"


def interval(change: Estimate, unit: str) -> str:
    """A change with its 95% CI."""
    if math.isnan(change.low):
        return "too few connections"
    return f"{change.value:+.3g}{unit} ({change.low:+.3g} to {change.high:+.3g})"


def judged(check: Check) -> str:
    """The result that a term of the harm budget was compared with."""
    if math.isnan(check.found.low):
        return check.reason
    where = f"{check.where}: " if check.where else ""
    text = where + interval(check.found, " pp" if check.term.unit == "points" else "%")
    if check.flows_needed is None:
        return text
    of_group = f" ({check.needed_there:,} of that group)" if check.where else ""
    return f"{text}; {check.flows_needed:,} connections{of_group} would settle it"


def _unit(of: Change) -> str:
    return " pp" if of.statistic == RETRANSMISSIONS else "%"


def _signed(change: Estimate, unit: str) -> str:
    return f"{change.value:+.3g}{unit}" if math.isfinite(change.value) else "\u2013"
