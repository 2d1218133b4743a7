"""The picture of a rehearsal: prefixes raised, and the evidence against each group, over one time axis."""

from __future__ import annotations

import math
from typing import Any

from firstflight.counted import counted, time_span
from firstflight.guard.rehearse import BadLink, Rehearsal
from firstflight.report.figure import Spec, layer, nominal, quantitative
from firstflight.report.style import BASE, ORDERED, color, scale

_MOST_GROUPS = 8
_ALARM = color("alarm")
_LEAST_E, _MOST_E = 1e-3, 1e4
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def chart(rehearsal: Rehearsal, alpha: float, bad: BadLink | None) -> Spec:
    """The groups with the largest e-values, at most eight; e-values are drawn between 0.001 and 10,000."""
    largest: dict[str, float] = {}
    for moment in rehearsal.moments:
        for name, value in moment.e_values.items():
            largest[name] = max(value, largest.get(name, 0.0))
    for stop in rehearsal.stops:
        largest[stop.group] = math.inf
    shown = sorted(sorted(largest, key=lambda name: -largest[name])[:_MOST_GROUPS])
    unit, length = next((pair for pair in _UNITS if rehearsal.span_s >= 5 * pair[1]), _UNITS[-1])
    raised = [{"at": moment.at / length, "raised": moment.raised_prefixes} for moment in rehearsal.moments]
    evidence: list[dict[str, Any]] = [
        {"at": moment.at / length, "group": name, "e": min(max(moment.e_values[name], _LEAST_E), _MOST_E)}
        for moment in rehearsal.moments
        for name in shown
        if name in moment.e_values
    ]
    # The powers of ten around what is drawn.
    drawn = [1.0, 1 / alpha, *(row["e"] for row in evidence)]
    powers = [10.0**power for power in range(math.floor(math.log10(min(drawn))), math.ceil(math.log10(max(drawn))) + 1)]
    x = quantitative(
        "at",
        title=unit,
        scale={"domain": [0, rehearsal.span_s / length], "nice": False},
        axis={"tickCount": 8, "labelOverlap": True},
    )
    e_value = quantitative(
        "e",
        title="e-value",
        scale={"type": "log", "domain": [powers[0], powers[-1]], "nice": False},
        axis={"values": powers, "format": "~g"},
    )
    limit = [{"e": 1 / alpha, "said": f"stop at {1 / alpha:g}"}]
    at, limited, said = quantitative("at"), quantitative("e"), nominal("said")
    above = [
        layer(
            {"type": "area", "interpolate": "step-after", "color": ORDERED[0], "opacity": 0.5},
            raised,
            x=x | {"title": None},
            y=quantitative("raised", title="prefixes raised", axis={"tickCount": 4}),
        )
    ]
    group = nominal("group", title="evidence against", scale=scale(shown))
    text = {"type": "text", "align": "left", "dx": 4, "dy": -7, "color": _ALARM}
    below = [
        layer({"type": "line", "strokeWidth": 1.5}, evidence, x=x, y=e_value, color=group),
        layer({"type": "rule", "color": _ALARM, "strokeDash": [6, 4]}, limit, y=limited),
        layer(text, limit, x={"value": 0}, y=limited, text=said),
    ]
    for panel in (above, below):
        panel += [
            layer({"type": "rule", "color": _ALARM}, [{"at": stop.at / length}], x=at) for stop in rehearsal.stops
        ]
    if bad is not None:
        # A group stops soon after, so its rule would cross words on the right.
        side = {"align": "left", "dx": 4} if bad.at < rehearsal.span_s / 4 else {"align": "right", "dx": -4}
        begun = [{"at": bad.at / length, "said": "bad link from here"}]
        rule = layer({"type": "rule", "color": BASE, "strokeDash": [2, 3]}, begun, x=at)
        above += [rule, layer({"type": "text", "color": BASE, **side}, begun, x=at, y={"value": 8}, text=said)]
        below.append(rule)
    title = {
        "text": _finding(rehearsal, bad),
        "subtitle": "Above: prefixes with a raised window. Below: e-value of each group; red: where it falls back.",
        "anchor": "start",
        "offset": 10,
    }
    panels = [{"layer": layers, "width": 640, "height": high} for layers, high in ((above, 110), (below, 220))]
    return {"vconcat": panels, "spacing": 14, "title": title}


def _finding(rehearsal: Rehearsal, bad: BadLink | None) -> str:
    if not rehearsal.stops:
        return "No group falls back"
    first = rehearsal.stops[0]
    after = ""
    if bad is not None and first.at >= bad.at:
        after = f", {time_span(first.at - bad.at)} after the link turned bad"
    others = len(rehearsal.stops) - 1
    more = f", and {counted(others, 'other group')} later" if others else ""
    return f"{first.group} falls back after {time_span(first.at)}{after}{more}"
