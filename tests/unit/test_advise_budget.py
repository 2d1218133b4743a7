"""The harm budget: the meaning of its words, and when a result is within it."""

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
        "groups=+5%",
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
        ("p99=nan%", "not a limit"),
        ("=+5%", "not NAME=LIMIT"),
        ("p99=", "not NAME=LIMIT"),
    ],
)
def test_a_malformed_budget_is_refused_in_one_sentence(text: str, told: str) -> None:
    with pytest.raises(RequestError) as refused:
        budget.parse(text)
    assert told in str(refused.value)
    assert str(refused.value).startswith("--harm")


def test_the_old_name_of_the_term_groups_is_refused_with_the_new_one() -> None:
    with pytest.raises(RequestError, match=r"the term segments= has a new name; write groups=\+5%"):
        budget.parse("p99=+5%,segments=+5%")


def test_a_limit_of_nothing_is_a_limit_and_the_signs_around_a_term_are_not() -> None:
    terms = budget.parse(" p50 = 0% , retransmissions=1.5, others_p99=+7.25% ")
    assert [(term.name, term.limit, term.unit, term.text) for term in terms] == [
        ("p50", 0.0, "%", "p50=+0%"),
        ("retransmissions", 1.5, "points", "retransmissions=+1.5"),
        ("others_p99", 7.25, "%", "others_p99=+7.25%"),
    ]


TERM = budget.parse("p99=+5%")[0]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Estimate(1, -2, 4.9), "within"),
        (Estimate(-8, -9, -7), "within"),
        (Estimate(4, 2, 5), "within"),
        (Estimate(6, 5, 7), "inconclusive"),
        (Estimate(4, 2, 5.1), "inconclusive"),
        (Estimate(6, 4, 8), "inconclusive"),
        (Estimate(6, 5.1, 7), "over"),
        (Estimate(1), "no data"),
        (Estimate(math.nan), "no data"),
        (Estimate(1, math.nan, 2), "no data"),
        (Estimate(1, 0, math.nan), "no data"),
    ],
)
def test_a_term_is_kept_only_where_the_whole_interval_keeps_it(found: Estimate, verdict: str) -> None:
    assert budget.judged_check(TERM, 16, "reference", found, 1000).verdict == verdict


def test_flows_needed_grow_with_the_square_of_what_the_interval_must_shrink_by() -> None:
    assert budget.flows_to_settle(Estimate(3, 1, 7), 5, 1000) == 4000
    assert budget.flows_to_settle(Estimate(-1, -2, 0.5), 0, 1000) == 2250


def test_flows_needed_rest_on_the_side_of_the_interval_that_faces_the_limit() -> None:
    # From 6 down to 5 with 4 below: 4², not the 1 above.
    assert budget.flows_to_settle(Estimate(6, 2, 7), 5, 1000) == 16_000
    # From 4 up to 5 with 2 above: 2², not the 3 below.
    assert budget.flows_to_settle(Estimate(4, 1, 6), 5, 1000) == 4000
    # Never fewer than there are.
    assert budget.flows_to_settle(Estimate(1, 0.5, 1.5), 5, 1000) == 1000
    assert budget.flows_to_settle(Estimate(1, 0, math.inf), 5, 1000) is None


def test_a_check_keeps_what_it_was_made_of() -> None:
    found = Estimate(4, 3, 7, 90)
    made = budget.judged_check(TERM, 16, "shallow", found, 500, where="short response", reason="why", lacks=700)
    # From 4 up to 5 with 3 above.
    assert made == budget.Check(TERM, 16, "shallow", found, "inconclusive", 4500, "short response", "why")
    assert (TERM.limit, TERM.unit, TERM.name) == (5.0, "%", "p99")


def test_no_number_of_flows_settles_what_lies_at_the_limit() -> None:
    assert budget.flows_to_settle(Estimate(5, 4, 6), 5, 1000) is None


def test_what_cannot_be_measured_says_how_many_flows_it_takes() -> None:
    check = budget.judged_check(TERM, 16, "reference", Estimate(1), 300, reason="300 pairs are too few", lacks=2000)
    assert (check.flows_needed, check.reason) == (2000, "300 pairs are too few")
