"""What RFC 6928 says of the repair of a loss in the first flight, and what the RFCs of the means say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from firstflight.analysis.claim import Claim, Expectation, Sentence, above, at_most, near
from firstflight.analysis.intervals import Estimate

from ..grid import FLIGHT, RESPONSE, settings
from ..measure import EARLY, FAST, TIMEOUT, mean_cost, share
from .sentences import COMPARISON, FEW, MANY, RULE

SECTION = "RFC 6928 section 5.3"
_WHERE = {FLIGHT: "nothing follows the first flight", RESPONSE: "more data follows the first flight"}


@dataclass(frozen=True)
class _Statement:
    """One sentence about the matrices; `found` raises LookupError if the run lacks what it needs."""

    id: str
    source: str
    text: str
    expectation: Expectation
    unit: str
    why: str
    found: Callable[[pl.DataFrame], float]
    note: Callable[[pl.DataFrame], str] = lambda cases: ""

    def check(self, cases: pl.DataFrame) -> Claim:
        sentence = Sentence(self.id, self.source, self.text, self.expectation, 0, self.unit, self.why, needs="value")
        try:
            return sentence.judge(Estimate(self.found(cases)), self.note(cases))
        except LookupError as error:
            return sentence.unchecked(str(error))


def claims(cases: pl.DataFrame) -> list[Claim]:
    """Section 5.3's claims, then those of the means it names."""
    return [statement.check(cases) for statement in _STATEMENTS]


def _gain(experiment: str, stack: str, repairs: tuple[str, ...]) -> Callable[[pl.DataFrame], float]:
    def gain(cases: pl.DataFrame) -> float:
        return share(cases, experiment, stack, MANY, repairs) - share(cases, experiment, stack, FEW, repairs)

    return gain


def _shares(experiment: str, stack: str, repairs: tuple[str, ...]) -> Callable[[pl.DataFrame], str]:
    def note(cases: pl.DataFrame) -> str:
        shares = [
            f"{share(cases, experiment, stack, iw, repairs):.0f} % of the positions with IW {iw}, at a mean cost of "
            f"{mean_cost(cases, experiment, stack, iw):.0f} ms"
            for iw in (FEW, MANY)
        ]
        return f"{'; '.join(shares)}."

    return note


def _larger_window(experiment: str) -> list[_Statement]:
    quick, quickest = (FAST, EARLY), (FAST,)
    where = _WHERE[experiment]
    return [
        _Statement(
            f"rfc6928-s5.3-fast-retransmit-{experiment}",
            SECTION,
            f"An initial window above 3 segments raises the chance that a loss is repaired by fast retransmit rather "
            f"than by the timeout (IW {MANY} against {FEW}; {where}).",
            above(0),
            "percentage points",
            COMPARISON,
            _gain(experiment, "new_reno", quickest),
            _shares(experiment, "new_reno", quickest),
        ),
        _Statement(
            f"rfc6928-s5.3-limited-and-early-{experiment}",
            SECTION,
            f"Senders with limited transmit and early retransmit benefit from the larger window as well (repairs "
            f"without timeout, IW {MANY} against {FEW}; {where}).",
            above(0),
            "percentage points",
            COMPARISON,
            _gain(experiment, "new_reno_early", quick),
            _shares(experiment, "new_reno_early", quick),
        ),
    ]


def _of(cases: pl.DataFrame, experiment: str, stack: str) -> pl.DataFrame:
    """The cases of a whole matrix."""
    found = cases.filter((pl.col("experiment") == experiment) & (pl.col("stack") == stack))
    wanted = sum(settings()["initial_windows"])
    if found.height < wanted:
        raise LookupError(
            f"This run has {found.height} of the {wanted} losses of the experiment {experiment}, {stack}."
        )
    return found


def _exceptions(three_follow: bool) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Losses that three segments follow and that fast retransmit did not repair, or the other way round."""

    def exceptions(cases: pl.DataFrame) -> pl.DataFrame:
        follow = pl.col("iw") - pl.col("position") >= 3
        repaired = pl.col("repair") == FAST
        return _of(cases, FLIGHT, "new_reno").filter(follow & ~repaired if three_follow else ~follow & repaired)

    return exceptions


def _places(cases: pl.DataFrame) -> str:
    found = [f"segment {position} of {iw}" for position, iw in cases.select("position", "iw").iter_rows()]
    return f"They are {', '.join(found)}." if found else ""


def _cost_of_a_timeout(cases: pl.DataFrame) -> float:
    found = pl.concat(_of(cases, experiment, "new_reno") for experiment in _WHERE)
    mean = dict(found.group_by("repair", maintain_order=True).agg(pl.col("cost_ms").mean()).iter_rows())
    if not {FAST, TIMEOUT} <= mean.keys():
        raise LookupError("This run has no loss repaired by a timeout, or none by fast retransmit.")
    return float(mean[TIMEOUT] - mean[FAST])


def _timeouts_saved_by_early_retransmit(cases: pl.DataFrame) -> float:
    return share(cases, FLIGHT, "new_reno", FEW, (TIMEOUT,)) - share(cases, FLIGHT, "new_reno_early", FEW, (TIMEOUT,))


def _timeouts_despite_probes(cases: pl.DataFrame) -> float:
    return float(sum((_of(cases, experiment, "linux")["repair"] == TIMEOUT).sum() for experiment in _WHERE))


_STATEMENTS = (
    *_larger_window(FLIGHT),
    *_larger_window(RESPONSE),
    _Statement(
        "rfc6928-s5.3-three-duplicates-needed",
        SECTION,
        "Fast retransmit needs three duplicate ACKs: it repairs no loss that fewer than three segments follow (losses "
        "that it did repair, IW 1 to 16, nothing follows the flight, NewReno).",
        near(0),
        "losses",
        RULE,
        lambda cases: float(_exceptions(three_follow=False)(cases).height),
        lambda cases: _places(_exceptions(three_follow=False)(cases)),
    ),
    _Statement(
        "rfc6928-s5.3-three-segments-suffice",
        f"{SECTION}, read strictly",
        "Three segments after the lost one bring three duplicate ACKs, so fast retransmit repairs every such loss "
        "(losses that it did not repair, IW 1 to 16, nothing follows the flight, NewReno).",
        near(0),
        "losses",
        RULE,
        lambda cases: float(_exceptions(three_follow=True)(cases).height),
        lambda cases: _places(_exceptions(three_follow=True)(cases)),
    ),
    _Statement(
        "rfc6928-s5.3-lengthy-timeout",
        SECTION,
        "Waiting for the timeout is the lengthy way: it costs more than fast retransmit (mean cost, NewReno).",
        above(0),
        "ms",
        COMPARISON,
        _cost_of_a_timeout,
    ),
    _Statement(
        "rfc5827-timeouts-avoided",
        "RFC 5827, abstract",
        "Early retransmit repairs losses by fast retransmit that would otherwise need a timeout (positions of a flight "
        f"of {FEW} segments that nothing follows).",
        above(0),
        "percentage points",
        COMPARISON,
        _timeouts_saved_by_early_retransmit,
    ),
    _Statement(
        "rfc8985-s7-no-timeouts",
        "RFC 8985 section 7",
        "A tail loss probe brings back acknowledgements that repair the loss of a tail without a timeout (single "
        "losses of a first flight that needed one, IW 1 to 16, profile linux).",
        at_most(0),
        "losses",
        RULE,
        _timeouts_despite_probes,
    ),
)
