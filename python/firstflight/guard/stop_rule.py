"""One-sided beta-binomial e-process: stops a raised initial window whose connections fare worse than the control arm's.

Under the null hypothesis each bad connection is in the raised arm with a probability equal to that arm's share of the
split. The alternative spreads a Beta(c rho, c (1 - rho)) prior, cut to shares above rho. The ratio of the two
likelihoods is a test martingale, so it exceeds 1/alpha at any time with probability alpha at most (Ville's inequality).
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from firstflight.errors import RequestError
from firstflight.guard.outcome import Outcome

_CONCENTRATION = 20.0
_PRECISION = 1e-14
_LEAST_ALPHA = 1e-9


def log_e_value(raised: float, events: float, share: float, *, ratio: float = 1.0, fewer: bool = False) -> float:
    """Log of the e-value after `events` bad connections, `raised` of them in the raised arm.

    The null share is that of an arm whose rate is `ratio` times the control's. The alternative is a larger share, or
    a smaller one with `fewer`.
    """
    null = share * ratio / (share * ratio + 1 - share)
    a, b = _CONCENTRATION * null, _CONCENTRATION * (1 - null)
    likelihood = raised * math.log(null) + (events - raised) * math.log1p(-null)
    return _log_mass(a + raised, b + events - raised, null, fewer) - _log_mass(a, b, null, fewer) - likelihood


def _log_mass(a: float, b: float, cut: float, below: bool) -> float:
    """Log of the integral of x^(a-1) (1-x)^(b-1) from the cut to 1, or from 0 to the cut."""
    log_tail = _log_lower_tail(a, b, cut) if below else _log_lower_tail(b, a, 1 - cut)
    return _log_beta(a, b) + log_tail


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_lower_tail(a: float, b: float, x: float) -> float:
    """Log of the regularized incomplete beta function, by the continued fraction DLMF 8.17.22.

    SciPy provides it, too, but takes 28 MB for as long as the guard runs.
    """
    if x > (a + 1) / (a + b + 2):
        # The fraction converges fast below the mean alone.
        return math.log1p(-math.exp(_log_lower_tail(b, a, 1 - x)))
    front = a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b) - math.log(a)
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = denominator
    m = 0
    while abs(numerator * denominator - 1) > _PRECISION:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            numerator, denominator = 1 + term / numerator, 1 / (1 + term * denominator)
            fraction *= numerator * denominator
    return front + math.log(fraction)


@dataclass(slots=True)
class EProcess:
    """Evidence of harm from one kind of event. A change of the split begins a stage; e-values of stages multiply."""

    share: float
    """The raised arm's share of the split in this stage."""
    raised: int = 0
    """Events of this stage in the raised arm."""
    events: int = 0
    earlier_log_e: float = 0.0
    """Log of the product of the e-values of earlier stages."""

    def count(self, *, raised: bool) -> None:
        """Add one event."""
        self.events += 1
        self.raised += raised

    @property
    def log_e(self) -> float:
        """Log of the e-value over all stages."""
        return self.earlier_log_e + log_e_value(self.raised, self.events, self.share)

    def split(self, share: float) -> None:
        """Begin a stage with another share of the raised arm."""
        self.earlier_log_e = self.log_e
        self.share, self.raised, self.events = share, 0, 0


class StopAnswer(StrEnum):
    """The verdict that the evidence allows."""

    STOP = "stop"
    """The raised arm is worse: fall back."""
    ENOUGH = "enough"
    """The raised arm's rate is below the tolerated ratio: its share may grow."""
    CONTINUE = "continue"
    TOO_FEW = "too few"
    """Not even if all events so far were in the raised arm could the rule stop."""


@dataclass(frozen=True, slots=True)
class StopVerdict:
    """The answer with its evidence."""

    answer: StopAnswer
    e_value: float
    """Mean of the e-values of losses and timeouts; the rule stops at 1/alpha."""
    connections: int
    """Connections of this stage whose first flight is known."""
    losses: int
    losses_raised: int
    timeouts: int
    timeouts_raised: int
    more_connections: int | None
    """Connections still needed for "enough" if both arms are equal, at the rate so far; None after an answer, and
    before the first connection.
    """


@dataclass(frozen=True, slots=True)
class StopRule:
    """Error rate and tolerance.

    Raises RequestError for an alpha outside 0 to 1 (exclusive), a period below 1 s and a ratio of 1 or less.
    """

    alpha: float = 0.05
    """Largest probability that a harmless window is ever stopped."""
    tolerated_ratio: float = 1.5
    """It is enough when the raised arm's rate of losses is below this multiple of the control's, at error `alpha`."""
    period_s: float = 3600.0
    """A client counts for one event of each kind per period, as its connections share a path."""

    def __post_init__(self) -> None:
        if not _LEAST_ALPHA <= self.alpha < 1:
            raise RequestError(
                f"alpha is {self.alpha}; give a probability between 0 and 1 ({_LEAST_ALPHA:g} or more), such as 0.05"
            )
        if self.period_s < 1:
            raise RequestError(f"the period is {self.period_s:g} s; give a time above 0, 1s or more, such as 60min")
        if self.tolerated_ratio <= 1:
            raise RequestError(f"tolerated ratio is {self.tolerated_ratio}; give a number above 1, such as 1.5")

    def is_within(self, raised: float, events: float, share: float) -> bool:
        """Whether the evidence is enough that the raised arm's rate is below the tolerated multiple."""
        log_e = log_e_value(raised, events, share, ratio=self.tolerated_ratio, fewer=True)
        return log_e >= -math.log(self.alpha)


@cache
def least_events(rule: StopRule, share: float) -> int:
    """Fewest events that can stop, if all are losses in the raised arm."""
    return _first(lambda events: log_e_value(events, events, share) >= math.log(2 / rule.alpha))


@cache
def enough_events(rule: StopRule, share: float) -> int:
    """Events after which arms that are equal are known to be within the tolerated ratio."""
    return _first(lambda events: rule.is_within(share * events, events, share))


def _first(holds: Any) -> int:
    """Smallest positive number from which on `holds` is true."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class Events(NamedTuple):
    """Numbers of bad connections."""

    losses_raised: int = 0
    losses: int = 0
    timeouts_raised: int = 0
    timeouts: int = 0


@dataclass(slots=True)
class Trial:
    """Two concurrent arms of one group, judged after every connection."""

    rule: StopRule
    share: float
    connections: int = 0
    losses: EProcess = field(init=False)
    timeouts: EProcess = field(init=False)
    _period: int = -1
    _counted: set[tuple[str, Any]] = field(default_factory=set)
    _e_value: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise RequestError(f"the raised arm's share is {self.share}; give one between 0 and 1, such as 0.5")
        self.losses, self.timeouts = EProcess(self.share), EProcess(self.share)

    def split(self, share: float) -> None:
        """Change the raised arm's share; results so far are kept."""
        self.share, self.connections = share, 0
        self.losses.split(share)
        self.timeouts.split(share)

    def count(self, outcome: Outcome, client: object = None) -> Events:
        """Add a finished connection; the events that it was. An unknown first flight is neither good nor bad.

        `client` is what counts once per period, the outcome's prefix if None.
        """
        period = int(outcome.at // self.rule.period_s)
        if period > self._period:
            self._period = period
            self._counted.clear()
        raised = outcome.arm == "raised"
        losses = timeouts = 0
        key = outcome.prefix if client is None else client
        if outcome.first_flight_lost is not None:
            self.connections += 1
            if outcome.first_flight_lost and self._is_first("loss", key):
                losses = 1
                self.losses.count(raised=raised)
        if outcome.timeouts > 0 and self._is_first("timeout", key):
            timeouts = 1
            self.timeouts.count(raised=raised)
        if losses or timeouts:
            self._e_value = None
        return Events(losses * raised, losses, timeouts * raised, timeouts)

    def events(self) -> Events:
        """The events of this stage."""
        return Events(self.losses.raised, self.losses.events, self.timeouts.raised, self.timeouts.events)

    def e_value_without(self, part: Events) -> float:
        """The e-value of this stage without some of its events."""
        rest = [whole - other for whole, other in zip(self.events(), part, strict=True)]
        return _exp((log_e_value(rest[0], rest[1], self.share), log_e_value(rest[2], rest[3], self.share)))

    def leave_out(self, part: Events) -> None:
        """Go on without some events, and without the evidence of earlier stages, which they may have made."""
        for process, raised, events in ((self.losses, part[0], part[1]), (self.timeouts, part[2], part[3])):
            process.raised, process.events = process.raised - raised, process.events - events
            process.earlier_log_e = min(process.earlier_log_e, 0.0)
        self._e_value = None

    @property
    def e_value(self) -> float:
        """Evidence of harm. The mean of e-values is one; a product would need independent kinds of events."""
        if self._e_value is None:
            self._e_value = _exp((self.losses.log_e, self.timeouts.log_e))
        return self._e_value

    def verdict(self) -> StopVerdict:
        """The current estimate."""
        e_value = self.e_value
        answer = self._answer(e_value)
        return StopVerdict(
            answer,
            e_value,
            self.connections,
            self.losses.events,
            self.losses.raised,
            self.timeouts.events,
            self.timeouts.raised,
            self._more() if self.connections and answer in (StopAnswer.CONTINUE, StopAnswer.TOO_FEW) else None,
        )

    def _answer(self, e_value: float) -> StopAnswer:
        if e_value >= 1 / self.rule.alpha:
            return StopAnswer.STOP
        if max(self.losses.events, self.timeouts.events) < least_events(self.rule, self.share):
            return StopAnswer.TOO_FEW
        if self.rule.is_within(self.losses.raised, self.losses.events, self.share):
            return StopAnswer.ENOUGH
        return StopAnswer.CONTINUE

    def _is_first(self, kind: str, client: object) -> bool:
        key = (kind, client)
        if key in self._counted:
            return False
        self._counted.add(key)
        return True

    def _more(self) -> int:
        # Half an event more than seen, so that a number can be given before the first one.
        rate = (self.losses.events + 0.5) / (self.connections + 1)
        return max(math.ceil((enough_events(self.rule, self.share) - self.losses.events) / rate), 1)


def _exp(logs: tuple[float, ...]) -> float:
    """Mean of the e-values with these logs; at most 1e300, so that JSON can hold it."""
    return sum(math.exp(min(log, 690.0)) for log in logs) / len(logs)
