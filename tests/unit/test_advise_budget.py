"""The harm budget: what its words mean, and when something is within it."""

import math

import pytest

from firstflight.advise import budget
from firstflight.analysis.intervals import Estimate
from firstflight.errors import RequestError


def test_the_default_budget_bounds_retransmissions_the_tail_others_and_every_segment_of_users() -> None:
    assert [term.text for term in budget.parse(budget.DEFAULT)] == [
        "retransmissions=+0.5",
        "p99=+5%",
        "others=+5%",
        "segments=+5%",
    ]


def test_every_term_says_what_it_bounds_and_why() -> None:
    for term in budget.parse(budget.DEFAULT):
        assert term.meaning
        assert len(term.reason) > 20
    assert budget.parse("p99=+7%")[0].reason == "as asked for"
    assert budget.parse("p90=+7%")[0].meaning == "90th percentile of the time of a connection"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("p98=+5%", 'nothing is called "p98"'),
        ("retransmission=+0.5", "retransmissions"),
        ("retransmissions=+0.5%", "percentage points"),
        ("p99=5", "p99=5%"),
        ("p99=-5%", "not a limit"),
        ("p99=much", "not a limit"),
        ("p99", "not NAME=LIMIT"),
        ("", "not NAME=LIMIT"),
        ("p99=+5%,p99=+6%", "twice"),
        ("p99=+inf%", "not a limit"),
    ],
)
def test_a_malformed_budget_is_refused_in_one_sentence(text: str, told: str) -> None:
    with pytest.raises(RequestError) as refused:
        budget.parse(text)
    assert told in str(refused.value)
    assert str(refused.value).startswith("--harm")


TERM = budget.parse("p99=+5%")[0]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Estimate(1, -2, 4.9), "within"),
        (Estimate(-8, -9, -7), "within"),
        (Estimate(4, 2, 5.1), "not shown"),
        (Estimate(6, 4, 8), "not shown"),
        (Estimate(6, 5.1, 7), "over"),
        (Estimate(1), "not measured"),
        (Estimate(math.nan), "not measured"),
    ],
)
def test_a_term_is_kept_only_where_the_whole_interval_keeps_it(found: Estimate, verdict: str) -> None:
    assert budget.check(TERM, 16, "typical", found, 1000).verdict == verdict


def test_flows_needed_grow_with_the_square_of_what_the_interval_must_shrink_by() -> None:
    assert budget.flows_to_settle(Estimate(3, 1, 7), 5, 1000) == 4000
    assert budget.flows_to_settle(Estimate(-1, -2, 0.5), 0, 1000) == 2250


def test_no_number_of_flows_settles_what_lies_at_the_limit() -> None:
    assert budget.flows_to_settle(Estimate(5, 4, 6), 5, 1000) is None


def test_what_cannot_be_measured_says_how_many_flows_it_takes() -> None:
    check = budget.check(TERM, 16, "typical", Estimate(1), 300, reason="300 pairs are too few", lacks=2000)
    assert (check.flows_needed, check.reason) == (2000, "300 pairs are too few")
