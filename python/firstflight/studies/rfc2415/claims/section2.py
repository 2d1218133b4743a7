"""What section 2 of the RFC says in passing: reverse traffic, longer runs."""

from __future__ import annotations

from firstflight.analysis.claim import near
from firstflight.studies.rfc2415.claims.statement import DECREASE, DELAY, Data, Statement, at, change, mean
from firstflight.studies.rfc2415.grid import FEW_WINDOWS, LONG_SCENARIOS, REVERSE_SCENARIOS


def _mean_change(data: Data, variant: str, scenarios: tuple[tuple[int, int], ...]) -> float:
    return mean(
        [change(data, at(DELAY, s, iw), at(DELAY, s, iw, variant=variant)) for s in scenarios for iw in FEW_WINDOWS]
    )


def _gain_difference(data: Data) -> float:
    return mean([data(at(DECREASE, s, 3, variant="reverse")) - data(at(DECREASE, s, 3)) for s in REVERSE_SCENARIOS])


STATEMENTS = (
    Statement(
        "rfc2415-s2-01",
        "Data traffic in the other direction at the same time had no effect on the results: the median page delay "
        "(mean change over the cells tried).",
        near(0),
        5,
        "percent",
        "No effect: 5 % is the largest change of a delay that the RFC itself calls none (Table 6, 0.64 to 0.67 s).",
        lambda data: _mean_change(data, "reverse", REVERSE_SCENARIOS),
        lambda data: (
            "The RFC says data flowing from right to left, which is the direction of its main traffic; read as the "
            "opposite one. It does not say how much traffic; here the same webs and ftps are mirrored."
        ),
        needs="absence",
    ),
    Statement(
        "rfc2415-s2-02",
        "Data traffic in the other direction at the same time had no effect on the results: the decrease of the page "
        "delay from IW 1 to 3 (mean difference over the cells tried).",
        near(0),
        6,
        "percentage points",
        "The same 6 points within which printed and measured decreases are compared (Table 1).",
        _gain_difference,
        needs="absence",
    ),
    Statement(
        "rfc2415-s2-03",
        "360 s are long enough: medians stay the same in longer runs (mean change of the median page delay in runs of "
        "1440 s).",
        near(0),
        2,
        "percent",
        "The same as printed: a step of 0.01 s is 2 % of the smallest delay of Table 1.",
        lambda data: _mean_change(data, "long", LONG_SCENARIOS),
    ),
)
