"""The harm budget: limits on how much a larger initial window may worsen flows that it is not meant to improve.

A budget is one string, terms separated by commas: "retransmissions=+0.5,p99=+5%,others=+5%,groups=+5%". A term that
is left out is not checked.
"""

import math
from dataclasses import dataclass
from typing import Literal

from firstflight.analysis.intervals import Estimate
from firstflight.counted import nearest
from firstflight.errors import RequestError

DEFAULT = "retransmissions=+0.5,p99=+5%,others=+5%,groups=+5%"

Verdict = Literal["within", "over", "inconclusive", "too few flows", "no data"]

_KNOWN = ("retransmissions", "mean", "p50", "p75", "p90", "p95", "p99", "others", "others_p99", "groups")

MEANINGS = {
    "retransmissions": "retransmitted data segments, in percentage points of those sent",
    "mean": "mean time of a connection",
    "others": "mean time of other connections at the same user, whose window does not change",
    "others_p99": "99th percentile of the time of other connections at the same user",
    "groups": "mean time of the connections in any one user group by RTT, link rate, response size or bandwidth-delay "
    "product",
}

REASONS = {
    "retransmissions": (
        "RFC 6928 section 10: going from 3 to 10 segments cost 0.3 (AvgDC) and 0.7 points (SlowDC), and below 0.5 for "
        "each service of AvgDC but one; the IETF took that as acceptable"
    ),
    "p99": (
        "RFC 6928 section 10: the worst that was published and accepted is +2.3% at the 99th percentile of Maps in "
        "SlowDC; twice that, because a tail is known less well"
    ),
    "others": "our choice: nothing was published on connections with an unchanged window",
    "groups": "our choice: most users must not gain at the cost of a few",
}


@dataclass(frozen=True)
class Term:
    """One term of a budget. `limit` is in `unit`: percentage points for retransmissions, else percent."""

    name: str
    limit: float
    unit: Literal["points", "%"]

    @property
    def text(self) -> str:
        """The term as written in a budget."""
        return f"{self.name}={self.limit:+g}{'%' if self.unit == '%' else ''}"

    @property
    def meaning(self) -> str:
        """The group of flows that it bounds."""
        if self.name in MEANINGS:
            return MEANINGS[self.name]
        return f"{self.name[1:]}th percentile of the time of a connection"

    @property
    def reason(self) -> str:
        """The reason for the limit: its source, if it is that of the default budget."""
        default = next((term for term in parse(DEFAULT) if term.name == self.name), None)
        return REASONS[self.name] if self == default else "as asked for"


@dataclass(frozen=True)
class Check:
    """One term compared with one candidate in one case.

    `found` is the change against the current window, in the term's unit, positive where it is worse, with its 95%
    interval. `where` names the user group for "groups". `flows_needed`: how many flows of the data, of all users, the
    interval would need to lie on one side of the limit, if the value found is right, or to give one at all; None where
    it does, or where no number would do. `needed_there`: how many of these belong to the part that was compared, such
    as the group. `reason`: why there is no interval. "too few flows" is no harm: it stops no candidate.
    """

    term: Term
    initial_window: int
    case: str
    found: Estimate
    verdict: Verdict
    flows_needed: int | None = None
    where: str = ""
    reason: str = ""
    needed_there: int | None = None


def parse(text: str) -> tuple[Term, ...]:
    """The terms of `text`. RequestError, one sentence, for a term that is not one."""
    terms = tuple(_term(part.strip(), text) for part in text.split(","))
    names = [term.name for term in terms]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f'--harm "{text}": "{name}" is there twice; keep one')
    return terms


def _term(part: str, text: str) -> Term:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not (name and equals and value):
        raise RequestError(f'--harm "{text}": "{part}" is not NAME=LIMIT; write for example {DEFAULT}')
    if name == "segments":
        raise RequestError(f'--harm "{text}": the term segments= has a new name; write groups={value}')
    if name not in _KNOWN:
        raise RequestError(f'--harm "{text}": nothing is called "{name}"; {nearest(name, _KNOWN)}')
    number, percent = (value[:-1], True) if value.endswith("%") else (value, False)
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf:
        raise RequestError(f'--harm "{text}": "{value}" is not a limit; write a number from 0 on, such as {name}=+5%')
    if name == "retransmissions":
        if percent:
            raise RequestError(
                f'--harm "{text}": retransmissions are bounded in percentage points; write retransmissions={number}'
            )
        return Term(name, limit, "points")
    if not percent:
        raise RequestError(f'--harm "{text}": {name} is bounded in percent; write {name}={number}%')
    return Term(name, limit, "%")


def judged_check(
    term: Term,
    initial_window: int,
    case: str,
    change: Estimate,
    flows: int,
    *,
    there: int | None = None,
    where: str = "",
    reason: str = "",
    lacks: int | None = None,
) -> Check:
    """Compare the result with the term.

    Within: the upper end of the 95% CI is within the limit. Over: its lower end is above. Inconclusive: the
    interval includes the limit. Too few flows: there is no interval, which takes as many as it `lacks`. No data: there
    is none for another `reason`. `flows`: how many the data has; `there`: how many of them are compared, such as those
    of a user group; None if all are.
    """
    verdict: Verdict
    needed = None
    part = there / flows if there else 1.0
    if math.isnan(change.value) or math.isnan(change.low) or math.isnan(change.high):
        verdict, needed = ("too few flows", math.ceil(lacks / part)) if lacks else ("no data", None)
    elif change.high <= term.limit:
        verdict = "within"
    elif change.low > term.limit:
        verdict = "over"
    else:
        verdict, needed = "inconclusive", flows_to_settle(change, term.limit, flows)
    needed_there = None if needed is None or there is None else math.ceil(round(part * needed, 6))
    return Check(term, initial_window, case, change, verdict, needed, where, reason, needed_there)


def flows_to_settle(estimate: Estimate, limit: float, flows: int) -> int | None:
    """The number of flows for an interval that ends at `limit`, if the value stays; None if the value is at it.

    The half-width of an interval falls with the square root of the number of independent flows.
    """
    distance = abs(estimate.value - limit)
    half = estimate.high - estimate.value if limit > estimate.value else estimate.value - estimate.low
    if distance == 0 or not math.isfinite(half):
        return None
    return max(flows, math.ceil(flows * (half / distance) ** 2))
