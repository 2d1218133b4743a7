"""Section 4, the discussion: perceived performance, RED, faster links."""

from __future__ import annotations

from firstflight.analysis.claim import above, near
from firstflight.studies.rfc2415.claims.statement import (
    DECREASE,
    DELAY,
    SCENARIOS,
    Data,
    Statement,
    at,
    change,
    mean,
)
from firstflight.studies.rfc2415.grid import RED_SCENARIOS, SCALE_SCENARIOS


def _red_gain(data: Data) -> float:
    return mean([-change(data, at(DELAY, s, 1), at(DELAY, s, 1, variant="red")) for s in RED_SCENARIOS])


def _window_gain(data: Data) -> float:
    return mean([data(at(DECREASE, s, 3)) for s in RED_SCENARIOS])


def _scale_difference(data: Data) -> float:
    differences = [
        data(at(DECREASE, s, 3, variant=variant)) - data(at(DECREASE, s, 3))
        for variant, scenarios in SCALE_SCENARIOS.items()
        for s in scenarios
    ]
    return max(differences, key=abs)


STATEMENTS = (
    Statement(
        "rfc2415-s4-01",
        "An IW of 3 helps to improve perceived performance (mean decrease of the page delay, both HTTP "
        "models, 24 cells).",
        above(0),
        0,
        "percent",
        "A direction needs no tolerance.",
        lambda data: mean([data(at(DECREASE, s, 3, http)) for s in SCENARIOS for http in ("1.0", "1.1")]),
    ),
    Statement(
        "rfc2415-s4-02",
        "RED on the bottleneck with IW 1 gains about as much as a larger IW without RED (mean decrease by "
        "RED less mean decrease by IW 3).",
        near(0),
        6,
        "percentage points",
        "Similar: within the 6 points in which printed and measured decreases are compared (Table 1).",
        lambda data: _red_gain(data) - _window_gain(data),
        lambda data: (
            f"RED with IW 1 decreases the delay by {_red_gain(data):.1f} %, IW 3 with drop tail by "
            f"{_window_gain(data):.1f} %."
        ),
    ),
    Statement(
        "rfc2415-s4-03",
        "The results should scale to links of higher bandwidth (largest difference of the decrease from IW 1 to 3 at "
        "10 and 100 times the rate, with clients and buffer in proportion).",
        near(0),
        6,
        "percentage points",
        "Within the 6 points in which printed and measured decreases are compared (Table 1).",
        _scale_difference,
    ),
)
