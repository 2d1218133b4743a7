"""Two data sets compared, in words and as a page: comparison.html, one file that needs nothing else."""

import math

from firstflight.advise.arms import CONFOUNDED, RETRANSMISSIONS, ArmsCompared, Change
from firstflight.advise.budget import Check
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


def render(found: ArmsCompared, command: str) -> str:
    """The page's HTML. `command`: the line that gives the same comparison."""
    html = (
        environment()
        .get_template("comparison.html.j2")
        .render(
            found=found,
            command=command,
            light=light(found),
            answer=answer(found),
            names=_NAMES,
            unit=_unit,
            value=value,
            signed=_signed,
            interval=interval,
            judged=judged,
            not_within=[each for each in found.checks if each.verdict in ("over", "inconclusive")],
            doubts=[text for text in found.doubts if text != CONFOUNDED],
        )
    )
    return unbreakable(html)


def answer(found: ArmsCompared) -> str:
    """The outcome in a sentence. If it is better, with the worst change shown, within the budget or not."""
    if found.outcome.startswith("faster"):
        return f"{ANSWERS[found.outcome]} {_worst_change(found)}"
    if found.outcome != "inconclusive":
        return ANSWERS[found.outcome]
    mean = next((each.change for each in found.changes if each.statistic == "mean"), None)
    if mean is None:
        return "Inconclusive: both data sets have retransmissions, but not completion times."
    if math.isnan(mean.low):
        return f"Inconclusive: too few connections; the 95% CI of a mean needs {least_units('mean'):,} on each side."
    return ANSWERS[found.outcome]


def _worst_change(found: ArmsCompared) -> str:
    changes = [(each.change, _NAMES[each.statistic], _unit(each)) for each in found.changes]
    # The groups' intervals hold simultaneously.
    changes += [(each.found, f"Mean time, {each.where}", "%") for each in found.checks if each.term.name == "groups"]
    # Percentage points and percent do not compare.
    kinds = [[each for each in changes if each[0].low > 0 and each[2] == unit] for unit in (" pp", "%")]
    worst = [max(shown, key=lambda each: each[0].value) for shown in kinds if shown]
    if not worst:
        return "Nothing that was measured is shown to get worse."
    said = [f"{name[0].lower()}{name[1:]} {interval(change, unit)}" for change, name, unit in worst]
    return f"Worst change{'s' if len(worst) > 1 else ''}: {'; '.join(said)}."


def light(found: ArmsCompared) -> tuple[str, str]:
    """Of the traffic light: the color that is lit, and its text. Green needs concurrent arms without a doubt."""
    if found.outcome in ("slower", "over the budget"):
        return "stop", "Worse"
    if found.outcome == "inconclusive":
        return "care", "Inconclusive"
    if found.outcome == "faster" and not found.doubts:
        return "go", "Better"
    return "care", "Better, with a doubt"


def value(found: Estimate, of: Change) -> str:
    """A value of one data set with its unit."""
    return f"{found.value:.2f}%" if of.statistic == RETRANSMISSIONS else f"{milliseconds(found.value)} ms"


def interval(found: Estimate, unit: str) -> str:
    """A change with its 95% CI."""
    if math.isnan(found.low):
        return "too few connections"
    return f"{found.value:+.3g}{unit} ({found.low:+.3g} to {found.high:+.3g})"


def judged(each: Check) -> str:
    """The result that a term of the harm budget was compared with."""
    if math.isnan(each.found.low):
        return each.reason
    where = f"{each.where}: " if each.where else ""
    text = where + interval(each.found, " pp" if each.term.unit == "points" else "%")
    if each.flows_needed is None:
        return text
    of_group = f" ({each.needed_there:,} of that group)" if each.where else ""
    return f"{text}; {each.flows_needed:,} connections{of_group} would settle it"


def _unit(of: Change) -> str:
    return " pp" if of.statistic == RETRANSMISSIONS else "%"


def _signed(found: Estimate, unit: str) -> str:
    return f"{found.value:+.3g}{unit}" if math.isfinite(found.value) else "\u2013"
