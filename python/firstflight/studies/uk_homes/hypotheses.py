"""What we expected, as checks. There is no publication to hold this study against.

The limits were written down when the panels' numbers had been looked at (round trips, rates, buffers, how these
correlate with the measured page times) and before the first simulation of these homes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from firstflight.analysis.claim import Claim, Expectation, Needs, NoDataError, Sentence, at_least, at_most, below
from firstflight.analysis.intervals import Estimate
from firstflight.studies.uk_homes import overfill, ranking
from firstflight.studies.uk_homes.gain import of_rate, of_time, saved_by_percentile, saved_ms, saved_percent
from firstflight.studies.uk_homes.grid import HOMES, PAGE, settings
from firstflight.studies.uk_homes.measure import part

if TYPE_CHECKING:
    from firstflight.records import Run

SOURCE = "this study, before its first simulation"
_MANY = 100
"""Homes that a technology needs for the hypothesis of ranks."""


class Hypothesis(NamedTuple):
    """A sentence, its limit, and how to find the value."""

    id: str
    text: str
    expectation: Expectation
    unit: str
    tolerance: float
    why: str
    find: Callable[[Run], tuple[Estimate, str]]
    needs: Needs = "interval"


def all_claims(run: Run) -> list[Claim]:
    """Each hypothesis with its verdict."""
    return [_check(hypothesis, run) for hypothesis in _HYPOTHESES]


def _check(hypothesis: Hypothesis, run: Run) -> Claim:
    sentence = Sentence(
        hypothesis.id,
        SOURCE,
        hypothesis.text,
        hypothesis.expectation,
        hypothesis.tolerance,
        hypothesis.unit,
        hypothesis.why,
        needs=hypothesis.needs,
    )
    try:
        return sentence.judge(*hypothesis.find(run))
    except NoDataError as error:
        return sentence.unchecked(str(error))


def _overfilled(year: int) -> Callable[[Run], tuple[Estimate, str]]:
    def find(run: Run) -> tuple[Estimate, str]:
        shares = {row["iw"]: row["simulated"] for row in overfill.shares(run, year).iter_rows(named=True)}
        if 32 not in shares:
            raise NoDataError(
                f"This run has no homes of {year} without random losses and with an initial window of 32."
            )
        others = ", ".join(f"{share:.1f} % with {iw}" for iw, share in shares.items() if iw != 32)
        return Estimate(shares[32]), f"Otherwise {others}." if others else ""

    return find


def _told_right(rule: str, beside: str = "") -> Callable[[Run], tuple[Estimate, str]]:
    def find(run: Run) -> tuple[Estimate, str]:
        rows = [
            row | {"year": year}
            for year in settings()["years"]
            for row in overfill.shares(run, year).iter_rows(named=True)
        ]
        if not rows:
            raise NoDataError("This run has no homes without random losses.")
        least = min(rows, key=lambda row: float(row[f"{rule}_right"]))
        note = f"It is least for {least['year']} and IW {least['iw']}."
        if beside:
            note += f" {beside} alone tells at least {min(row['queue_right'] for row in rows):.2f} % right."
        return Estimate(least[f"{rule}_right"]), note

    return find


def _saved(response: str, iw: int, farther_ms: int, in_ms: bool = False) -> Callable[[Run], tuple[Estimate, str]]:
    def find(run: Run) -> tuple[Estimate, str]:
        comparison = of_time(run, 2023, farther_ms, response, iw)
        if comparison is None:
            raise NoDataError(f"This run lacks homes of 2023 {farther_ms} ms farther with both windows.")
        times = f"{comparison.baseline.value:.0f} ms become {comparison.treatment.value:.0f}."
        return (saved_ms if in_ms else saved_percent)(comparison), times

    return find


def _least_saved(run: Run) -> tuple[Estimate, str]:
    found = []
    for year in settings()["years"]:
        for farther_ms in settings()["farther_ms"]:
            own = part(run, HOMES, year, farther_ms, settings()["shown_response"])
            if {settings()["today"], 32} <= set(own["iw"].unique()):
                saved = saved_by_percentile(own, 32)
                known = [(value, place + 1, year, farther_ms) for place, value in enumerate(saved) if value == value]
                found.append(min(known))
    if not found:
        raise NoDataError("This run has no homes with initial windows of 10 and 32.")
    least, percentile, year, farther_ms = min(found)
    return Estimate(least), f"It is least at percentile {percentile} of {year}, {farther_ms} ms farther."


def _sent_again(run: Run) -> tuple[Estimate, str]:
    chosen = settings()
    comparison = of_rate(
        run, 2023, chosen["shown_farther_ms"], chosen["shown_response"], 32, "retransmissions", "segments_sent"
    )
    if comparison is None:
        raise NoDataError("This run lacks homes of 2023 with both windows.")
    points = comparison.difference
    found = Estimate(100 * points.value, 100 * points.low, 100 * points.high, points.replicates)
    rates = [100 * side.value for side in (comparison.baseline, comparison.treatment)]
    return found, f"{rates[0]:.2f} % become {rates[1]:.2f} %."


def _rank_of_all(run: Run) -> tuple[Estimate, str]:
    ranks = ranking.ranks(run, 2015)
    if not ranks:
        raise NoDataError("This run has no pages of the homes of 2015 as near as the test server.")
    return ranks[0].ours, f"The round trip alone: {ranks[0].round_trip.value:.2f}."


def _least_rank(run: Run) -> tuple[Estimate, str]:
    kinds = [rank for rank in ranking.ranks(run, 2023)[1:] if rank.homes >= _MANY]
    if not kinds:
        raise NoDataError("This run has no pages of the homes of 2023 as near as the test server.")
    each = ", ".join(f"{rank.technology} {rank.ours.value:.2f}" for rank in kinds)
    return min((rank.ours for rank in kinds), key=lambda found: found.value), f"{each}."


_HYPOTHESES = (
    Hypothesis(
        "overfill-2023",
        "An initial window of 32 overfills the path of fewer than 10 % of the homes of 2023.",
        below(10),
        "percent",
        0,
        "A share of homes, no tolerance.",
        _overfilled(2023),
        "value",
    ),
    Hypothesis(
        "overfill-2015",
        "An initial window of 32 overfills the path of fewer than 20 % of the homes of 2015.",
        below(20),
        "percent",
        0,
        "A share of homes, no tolerance; their buffers are assumed, and the table of assumptions shows what that does.",
        _overfilled(2015),
        "value",
    ),
    Hypothesis(
        "queue-rule",
        "Whether a first flight overfills the path is told by the queue alone and the packet on the wire, for 99 % of "
        "the homes at every window.",
        at_least(99),
        "percent",
        0,
        "A share of homes, no tolerance.",
        _told_right("wire", "Without the packet on the wire, which is the acknowledgement of the request, the queue"),
        "value",
    ),
    Hypothesis(
        "pipe-rule",
        "It is told as well by bandwidth-delay product and queue together, for 99 % of the homes at every window.",
        at_least(99),
        "percent",
        0,
        "A share of homes, no tolerance.",
        _told_right("pipe"),
        "value",
    ),
    Hypothesis(
        "gain-32",
        "30 ms farther than measured, IW 32 instead of 10 fetches 100 kB at least 20 % sooner for the median home of "
        "2023.",
        at_least(20),
        "percent",
        0,
        "Arithmetic without a line's rate gives one round trip of four: 25 %.",
        _saved("100kB", 32, 30),
    ),
    Hypothesis(
        "gain-16",
        "30 ms farther than measured, IW 16 instead of 10 fetches the page at least 5 % sooner for the median home of "
        "2023.",
        at_least(5),
        "percent",
        0,
        "Half a round trip of some seven.",
        _saved(PAGE, 16, 30),
    ),
    Hypothesis(
        "gain-near",
        "As near as the test server, IW 32 instead of 10 saves the median home of 2023 at most 25 ms of a page.",
        at_most(25),
        "ms",
        0,
        "Two round trips of the median home.",
        _saved(PAGE, 32, 0, in_ms=True),
    ),
    Hypothesis(
        "no-percentile-loses",
        "At no percentile from 1 to 99, in neither year and at no distance, do 100 kB come later with IW 32 than with "
        "10.",
        at_least(0),
        "percent",
        1,
        "One percent is below what anyone notices.",
        _least_saved,
        "value",
    ),
    Hypothesis(
        "cost-32",
        "30 ms farther than measured, IW 32 instead of 10 adds less than one percentage point to the segments sent "
        "again for 100 kB (homes of 2023).",
        below(1),
        "percentage points",
        0,
        "What RFC 6928 reports for IW 10 against 3 is of this size.",
        _sent_again,
    ),
    Hypothesis(
        "rank-2015",
        "Our page times rank the homes of 2015 as the measured ones do: a rank correlation of 0.8 or more.",
        at_least(0.8),
        "correlation",
        0,
        "Round trip and rate alone reach 0.70 each.",
        _rank_of_all,
    ),
    Hypothesis(
        "rank-2023",
        f"They do so within each technology of 2023 with {_MANY} homes or more: 0.5 or more.",
        at_least(0.5),
        "correlation",
        0,
        "Within a technology there is less to tell apart.",
        _least_rank,
    ),
)
