"""Section 3 on HTTP/1.1: Tables 4 and 5, Figures 3 and 4."""

from __future__ import annotations

from firstflight.analysis.claim import above, at_least, below
from firstflight.studies.rfc2415.claims import tables
from firstflight.studies.rfc2415.claims.statement import (
    DECREASE,
    POWER,
    SCENARIOS,
    Data,
    Statement,
    at,
    change,
    mean,
)

CONGESTED = ((32, 1), (32, 2))
"""Figure 4's "two highly congested cases": the two scenarios whose delay in Table 4 rises from IW 3 to 4."""


def _gain_of_first_step(data: Data, http: str) -> float:
    return mean([data(at(DECREASE, s, 2, http)) for s in SCENARIOS])


def _last_step(data: Data, scenario: tuple[int, int]) -> float:
    return change(data, at(POWER, scenario, 3, "1.1"), at(POWER, scenario, 4, "1.1"))


STATEMENTS = (
    *tables.delays(4, 26),
    tables.file_power(5, "rfc2415-s3-29"),
    Statement(
        "rfc2415-s3-30",
        "With HTTP/1.1 the steep improvement from IW 1 to 2 is smoothed (mean decrease at IW 2 with "
        "HTTP/1.0 less that with HTTP/1.1).",
        above(0),
        0,
        "percentage points",
        "A comparison needs no tolerance.",
        lambda data: _gain_of_first_step(data, "1.0") - _gain_of_first_step(data, "1.1"),
    ),
    Statement(
        "rfc2415-s3-31",
        "With HTTP/1.1 going from IW 3 to 4 occasionally decreases network power (scenarios, of 12).",
        at_least(1),
        0,
        "scenarios",
        "Occasionally: at least once.",
        lambda data: float(sum(_last_step(data, s) < 0 for s in SCENARIOS)),
        counted=True,
    ),
    Statement(
        "rfc2415-s3-32",
        "Figure 4: in the two highly congested cases network power decreases from IW 3 to 4 (the larger of "
        "the two changes).",
        below(0),
        0,
        "percent",
        "A direction needs no tolerance. The RFC does not name the two; 32/1 and 32/2 are those whose "
        "delay rises in Table 4.",
        lambda data: max(_last_step(data, s) for s in CONGESTED),
    ),
)
