"""Writes an advice: advice.html, one file that needs nothing else, and advice.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstflight.advise.advice import Advice
from firstflight.advise.budget import Check
from firstflight.advise.words import Confidence, stopped_by
from firstflight.analysis.intervals import Estimate
from firstflight.counted import counted
from firstflight.explore.links import ExplorerLink, put_beside
from firstflight.records import output
from firstflight.report import page as report
from firstflight.report.figure import Figure

if TYPE_CHECKING:
    import jinja2

PAGE, DATA = "advice.html", "advice.json"
_MOST_DIGITS = 6


def write(
    advice: Advice,
    figures: Sequence[Figure],
    commands: Sequence[str],
    directory: Path,
    transfers: Sequence[ExplorerLink] = (),
    guard: Sequence[str] = (),
) -> Path:
    """Write both files into `directory` and return the path of the page; next to it the explorer, if the page links to
    `transfers` there. `guard`: the lines that raise the window under watch. MachineError where they cannot be written.

    Each is written to a temporary file and renamed, so that a reader never sees half of it.
    """
    texts = {
        DATA: json.dumps(advice.as_dict(), indent=1, ensure_ascii=False) + "\n",
        PAGE: render(advice, figures, commands, transfers, guard),
    }
    if transfers:
        put_beside(directory / PAGE)
    for name, text in texts.items():
        output.write(directory / name, text.encode())
    return directory / PAGE


def render(
    advice: Advice,
    figures: Sequence[Figure],
    commands: Sequence[str],
    transfers: Sequence[ExplorerLink] = (),
    guard: Sequence[str] = (),
) -> str:
    """The page's HTML."""
    drawn = {figure.name: figure for figure in figures}
    reference = advice.cases[0].name
    html = (
        environment()
        .get_template("advice.html.j2")
        .render(
            advice=advice,
            light=light(advice.decision.outcome, advice.confidence),
            figures=drawn,
            commands=commands,
            transfers=transfers,
            guard=guard,
            by_case=_by_window((gain for gain in advice.gains if gain.statistic == "mean"), "case"),
            reference=reference,
            percentiles=_by_window((gain for gain in advice.gains if gain.case == reference), "statistic"),
            costs=_by_window((cost for cost in advice.costs if cost.case == reference), "name"),
        )
    )
    return report.unbreakable(html)


def environment() -> jinja2.Environment:
    """Templates of this room, with the words that they share."""
    made = report.environment(Path(__file__).parent)
    made.globals.update(stopped_by=stopped_by, worst=worst)
    made.filters.update(change=change, span=span, ms=milliseconds, short=short, counted=counted)
    return made


def light(outcome: str, sure: Confidence) -> tuple[str, str]:
    """Of the traffic light at the top of the page: the color that is lit, and its text."""
    if sure == "insufficient data":
        return "care", "Not yet: insufficient data"
    if outcome == "change":
        return ("go", "Change it") if sure == "high" else ("care", "Change it, if the assumptions hold")
    return ("stop", "Leave it") if sure == "high" else ("care", "Leave it, if the assumptions hold")


def change(estimate: Estimate, digits: int = 1) -> str:
    """A change with its sign; an en dash where there is none."""
    return _signed(estimate.value, digits) if math.isfinite(estimate.value) else "\u2013"


def span(estimate: Estimate, digits: int = 1) -> str:
    """Its interval; empty without one. An end of an interval that excludes 0 is not rounded to 0."""
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return ""
    excludes = estimate.low * estimate.high > 0
    while excludes and digits < _MOST_DIGITS and not all(round(end, digits) for end in (estimate.low, estimate.high)):
        digits += 1
    return f"{_signed(estimate.low, digits)} to {_signed(estimate.high, digits)}"


def _signed(value: float, digits: int) -> str:
    # A value that rounds to zero has no sign.
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def milliseconds(seconds: float) -> str:
    """A time in milliseconds, to three digits."""
    return short(1e3 * seconds)


def short(value: float) -> str:
    """A number to three digits without an exponent; an en dash where there is none."""
    if not math.isfinite(value):
        return "\u2013"
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def worst(checks: Sequence[Check], window: int, case: str, term: str) -> Check | None:
    """Of the checks of one term, the one that most stands in the way; of several the one that reaches furthest up."""
    term_checks = [
        check for check in checks if (check.initial_window, check.case, check.term.name) == (window, case, term)
    ]
    if not term_checks:
        return None
    order = ("too few flows", "within", "inconclusive", "over", "no data")
    return max(term_checks, key=lambda check: (order.index(check.verdict), np.nan_to_num(check.found.high)))


def _by_window(items: Iterable[Any], name: str) -> dict[str, dict[int, Any]]:
    """Gains or costs by their attribute `name` and by candidate."""
    by_name: dict[str, dict[int, Any]] = {}
    for item in items:
        by_name.setdefault(getattr(item, name), {})[item.initial_window] = item
    return by_name
