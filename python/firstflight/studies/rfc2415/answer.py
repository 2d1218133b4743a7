"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from firstflight.analysis.claim import Claim, NoDataError, counts
from firstflight.analysis.intervals import Means, jackknife
from firstflight.studies.rfc2415 import published
from firstflight.studies.rfc2415.claims.statement import (
    DECREASE,
    DROPS,
    FILE_DELAY,
    SCENARIOS,
    WITH_FTPS,
    Data,
    at,
    change,
    mean,
)
from firstflight.studies.rfc2415.measure import Measures


def answer(measures: Measures, claims: list[Claim]) -> list[str]:
    """What users gain, what it costs, how far the RFC is confirmed. Sentences without data are replaced by a
    sentence that says so.
    """
    return [_gain(measures), _cost(measures), _verdicts(claims)]


def _gain(measures: Measures) -> str:
    def average(data: Data) -> float:
        return mean([data(at(DECREASE, s, 3)) for s in SCENARIOS])

    try:
        found = jackknife(measures.values, average)
        each = [Means(measures.values)(at(DECREASE, s, 3)) for s in SCENARIOS]
    except (KeyError, NoDataError):
        return "This run does not cover the RFC's twelve HTTP/1.0 scenarios: it gives no overall gain."
    rfc = mean([published.value(1, DECREASE, *s, 3) for s in SCENARIOS])
    direction = "sooner" if found.value >= 0 else "later"
    interval = "" if found.replicates < 2 else f", 95 % interval {found.low:.1f} to {found.high:.1f}"
    return (
        f"With an initial window of 3 segments instead of 1 the median web page arrives {abs(found.value):.1f} % "
        f"{direction}, averaged over the RFC's twelve HTTP/1.0 scenarios ({min(each):.0f} to {max(each):.0f} "
        f"%{interval}); the RFC printed {rfc:.1f} %."
    )


def _cost(measures: Measures) -> str:
    data: Data = Means(measures.values)
    try:
        rises = [data(at(DROPS, s, 3)) - data(at(DROPS, s, 1)) for s in SCENARIOS]
        files = mean([change(data, at(FILE_DELAY, s, 1), at(FILE_DELAY, s, 3)) for s in WITH_FTPS])
    except KeyError:
        return "This run does not cover the cells that the cost in drops and file transfers is taken from."
    return (
        f"The price at the bottleneck: the drop rate changes by {mean(rises):+.1f} percentage points on average "
        f"({min(rises):+.1f} to {max(rises):+.1f}), and a concurrent 1 MB transfer takes {abs(files):.1f} % "
        f"{'longer' if files >= 0 else 'less time'}."
    )


def _verdicts(claims: list[Claim]) -> str:
    found = counts(claims)
    return (
        f"Of {len(claims)} statements of the RFC, {found['holds']} hold here, {found['differs']} differ, "
        f"{found['undecided']} are undecided and {found['cannot be checked']} cannot be checked with this run."
    )
