"""Published sentences as executable checks.

A claim names an allowed range (its expectation, widened by its tolerance) and its requirement on the 95% CI. It
`holds` if the whole interval lies in the range and `differs` if the whole interval lies outside. Otherwise it is
`undecided`. Without data a claim `cannot be checked`.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from firstflight.analysis.intervals import Estimate
from firstflight.counted import with_unit
from firstflight.errors import RequestError

Verdict = Literal["holds", "differs", "undecided", "cannot be checked"]
VERDICTS: tuple[Verdict, ...] = ("holds", "differs", "undecided", "cannot be checked")

Needs = Literal["interval", "absence", "value"]
"""The condition of a claim.

- "interval": the whole 95% CI lies inside the allowed range, or outside.
- "absence": the same, and an interval inside the range must include the expected value; otherwise an effect that is
  said to be absent was detected, and the claim differs.
- "value": the value alone, where nothing is random (one deterministic run, a count of round trips) or no interval is
  computed.
"""


@dataclass(frozen=True)
class Claim:
    """One published sentence and its verdict.

    `expected` is a number where the source gives one, else a phrase such as "at least 15".
    `found`, `low` and `high` (95% CI over replicates) and `tolerance` are in `unit`;
    None where there is nothing to give. `reason` justifies the tolerance, or states why the claim is
    undecided, or which data is missing. `times`: how many times the replicates would decide an undecided one, if the
    value is right; None where no number would. `given`: the run cannot find otherwise, since the value was put in or
    fitted, or follows from how it is made.
    """

    id: str
    source: str
    text: str
    expected: float | str
    found: float | None
    low: float | None
    high: float | None
    unit: str
    tolerance: float
    verdict: Verdict
    reason: str
    times: float | None = field(default=None, kw_only=True)
    given: bool = field(default=False, kw_only=True)

    @property
    def counted(self) -> str:
        """Its place in `COUNTED`."""
        return counted_as(self.verdict, self.given)

    def as_dict(self) -> dict[str, Any]:
        """The claim as the JSON object that `firstflight claims --json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "times"}

    def shown(self) -> str:
        """Verdict as it is counted, sentence, limits, value and reason: as `firstflight claims` prints it."""
        tolerance = f", tolerance {self.tolerance:g}" if self.tolerance else ""
        finding = "" if self.found is None else f"; found {with_unit(f'{self.found:.4g}', self.unit)}"
        if self.low is not None and self.high is not None:
            finding += f" (95% CI {self.low:.4g} to {self.high:.4g})"
        return (
            f"{self.counted:18}{self.id}: {self.text} ({self.source})\n"
            f"{'':18}expected {with_unit(f'{self.expected}{tolerance}', self.unit)}{finding}\n"
            f"{'':18}{self.reason}\n"
        )

    def _repr_html_(self) -> str:
        """The notebook view."""
        return f"<pre>{html.escape(self.shown())}</pre>"


@dataclass(frozen=True)
class Expectation:
    """The range a value must lie in, as in `near(60, "percent", 5)`; `tolerance` widens it on both sides. Infinite ends
    are open.
    """

    lowest: float
    highest: float
    shown: float | str
    unit: str = ""
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """RequestError for a range that holds no finite value, and for a tolerance that is negative or not finite."""
        if not (self.lowest <= self.highest and -math.inf < self.highest and self.lowest < math.inf):
            raise RequestError(f"no value is {self.shown}; write finite numbers, the lower one first")
        if not 0 <= self.tolerance < math.inf:
            raise RequestError(f"the tolerance is {self.tolerance}; write a number from 0, or leave it out")

    @property
    def limits(self) -> tuple[float, float]:
        """Its ends with the tolerance."""
        return self.lowest - self.tolerance, self.highest + self.tolerance


def near(value: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """A number of the source."""
    return Expectation(value, value, value, unit, tolerance)


def between(low: float, high: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """A range of the source."""
    return Expectation(low, high, f"{low:g} to {high:g}", unit, tolerance)


def at_least(value: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """A lower limit of the source."""
    return Expectation(value, math.inf, f"at least {value:g}", unit, tolerance)


def at_most(value: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """An upper limit of the source."""
    return Expectation(-math.inf, value, f"at most {value:g}", unit, tolerance)


def above(value: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """A lower limit that itself does not satisfy the claim ("more than")."""
    return Expectation(math.nextafter(value, math.inf), math.inf, f"above {value:g}", unit, tolerance)


def below(value: float, unit: str = "", tolerance: float = 0.0) -> Expectation:
    """An upper limit that itself does not satisfy the claim ("less than")."""
    return Expectation(-math.inf, math.nextafter(value, -math.inf), f"below {value:g}", unit, tolerance)


@dataclass(frozen=True)
class Sentence:
    """A published sentence as it is checked, without a run yet.

    `why` justifies the tolerance of `expectation`, or its limit. `needs` is the condition for a verdict. `given` as in
    `Claim`.
    """

    id: str
    source: str
    text: str
    expectation: Expectation
    why: str
    needs: Needs = "interval"
    given: bool = False

    def judge(self, estimate: Estimate, note: str = "", spread: bool = False) -> Claim:
        """The claim with its verdict; `note` adds findings other than the value. With `spread` the interval is not one
        of chance: no replicate narrows it.
        """
        verdict, because = self._verdict(estimate, spread)
        reason = " ".join(part for part in (note, self.why, because) if part)
        times = self._times(estimate) if verdict == "undecided" and not spread else None
        # Plus 0.0: no negative zero.
        return self._claim(verdict, reason, estimate.value + 0.0, estimate, times)

    def _times(self, estimate: Estimate) -> float | None:
        """Half a CI shrinks with the root of the number of replicates: until each limit within it is outside."""
        ends = [
            (limit, estimate.low if limit <= estimate.value else estimate.high) for limit in self.expectation.limits
        ]
        inside = [(limit, end) for limit, end in ends if estimate.low <= limit <= estimate.high]
        if not inside or any(limit == estimate.value for limit, _ in inside):
            return None
        return max(((end - estimate.value) / (limit - estimate.value)) ** 2 for limit, end in inside)

    def _verdict(self, estimate: Estimate, spread: bool) -> tuple[Verdict, str]:
        """The verdict and, where the interval alone makes it, why."""
        lowest, highest = self.expectation.limits
        if self.needs == "value":
            return ("holds" if lowest <= estimate.value <= highest else "differs"), ""
        if math.isnan(estimate.low) or math.isnan(estimate.high):
            return "undecided", "The verdict needs a 95% CI, and this run gives none: it needs more repetitions."
        if estimate.low > highest or estimate.high < lowest:
            return "differs", ""
        if self.needs == "absence" and not (
            estimate.low <= self.expectation.highest and estimate.high >= self.expectation.lowest
        ):
            return "differs", f"The 95% CI excludes {self.expectation.shown}: an effect is detected."
        if lowest <= estimate.low and estimate.high <= highest:
            return "holds", ""
        if spread:
            return "undecided", "The spread includes the limit."
        return "undecided", "The 95% CI includes the limit; more replicates could decide."

    def unchecked(self, reason: str) -> Claim:
        """The claim without a verdict, because of `reason`."""
        return self._claim("cannot be checked", reason, None, Estimate(math.nan))

    def _claim(
        self, verdict: Verdict, reason: str, value: float | None, estimate: Estimate, times: float | None = None
    ) -> Claim:
        of = self.expectation
        said = (self.id, self.source, self.text, of.shown, value, _finite(estimate.low), _finite(estimate.high))
        return Claim(*said, of.unit, of.tolerance, verdict, reason, times=times, given=self.given)


GIVEN: Literal["put in or fitted"] = "put in or fitted"
"""Counted instead of "holds" for a claim that is `given`: that it holds shows nothing."""
COUNTED: tuple[str, ...] = (*VERDICTS, GIVEN)


def counted_as(verdict: str, given: bool) -> str:
    """The one of `COUNTED` for a claim."""
    return GIVEN if given and verdict == "holds" else verdict


def counts(claims: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The number of claims, as `Claim.as_dict` has them, under each of `COUNTED`."""
    numbers = dict.fromkeys(COUNTED, 0)
    for claim in claims:
        numbers[counted_as(claim["verdict"], claim["given"])] += 1
    return numbers


def tally(numbers: Mapping[str, int]) -> str:
    """The numbers of claims in words: "13 hold, 1 differs". Verdicts that no claim has are left out."""
    plurals = {"holds": "hold", "differs": "differ"}
    return ", ".join(
        f"{number} {plurals.get(verdict, verdict) if number > 1 else verdict}"
        for verdict, number in numbers.items()
        if number
    )


_MOST_TIMES = 1_000


def deciding(claims: Sequence[Claim], replicates: int, command: str) -> str:
    """How many replicates would decide the claims that these left undecided, and the command; empty without any."""
    undecided = [claim for claim in claims if claim.verdict == "undecided"]
    times = [claim.times for claim in undecided if claim.times is not None and claim.times <= _MOST_TIMES]
    if not times:
        return ""
    number = math.ceil(replicates * max(times) * 1.1)
    which = "the undecided claim" if len(undecided) == 1 else f"{len(times)} of the {len(undecided)} undecided claims"
    return f"About {number:,} replicates would decide {which}, if the values found are right: {command} {number}"


def _finite(value: float) -> float | None:
    return value + 0.0 if math.isfinite(value) else None
