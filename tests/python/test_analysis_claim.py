import math

import pytest

from firstflight.analysis.claim import (
    Claim,
    Expectation,
    Sentence,
    above,
    at_least,
    at_most,
    below,
    counts,
    near,
)
from firstflight.analysis.intervals import Estimate

KEYS = ["id", "source", "text", "expected", "found", "low", "high", "unit", "tolerance", "verdict", "reason"]


def claim(expectation: Expectation, tolerance: float, found: Estimate) -> Claim:
    return Sentence("x", "a book", "A sentence.", expectation, tolerance, "s", "Because.").judge(found)


@pytest.mark.parametrize(
    ("expectation", "tolerance", "value", "verdict"),
    [
        (near(1.0), 0.1, 1.1, "holds"),
        (near(1.0), 0.1, 1.11, "differs"),
        (near(1.0), 0.1, 0.89, "differs"),
        (at_least(15), 0, 15, "holds"),
        (at_least(15), 0.5, 14.5, "holds"),
        (at_least(15), 0.5, 14.4, "differs"),
        (at_most(5), 0, 5, "holds"),
        (at_most(5), 0, 5.1, "differs"),
        (above(0), 0, 0, "differs"),
        (above(0), 0, 1e-9, "holds"),
        (below(1), 0, 1, "differs"),
        (below(1), 0, -40, "holds"),
    ],
)
def test_verdict_is_whether_the_value_lies_in_the_expectation_and_tolerance(expectation, tolerance, value, verdict):
    assert claim(expectation, tolerance, Estimate(value)).verdict == verdict


def test_interval_does_not_move_the_verdict_but_is_named_where_it_reaches_the_limit():
    firm = claim(near(1.0), 0.1, Estimate(1.05, 1.02, 1.08, 10))
    assert firm.reason == "Because."
    inside = claim(near(1.0), 0.1, Estimate(1.05, 0.95, 1.15, 10))
    outside = claim(near(1.0), 0.1, Estimate(1.15, 1.05, 1.25, 10))
    assert (inside.verdict, outside.verdict) == ("holds", "differs")
    assert "more replicates could turn this verdict" in inside.reason
    assert "more replicates could turn this verdict" in outside.reason


def test_json_object_has_the_keys_of_the_contract_and_no_nan():
    found = claim(above(90), 0.5, Estimate(95.0, math.nan, math.nan, 1)).as_dict()
    assert list(found) == KEYS
    assert (found["expected"], found["low"], found["high"]) == ("above 90", None, None)


def test_claim_without_data_says_what_is_missing():
    sentence = Sentence("x", "a book", "A sentence.", near(3.5), 0.1, "percent", "Because.")
    found = sentence.unchecked("The run holds no cell with 32 webs.")
    assert (found.verdict, found.found, found.expected) == ("cannot be checked", None, 3.5)
    assert counts([found]) == {"holds": 0, "differs": 0, "cannot be checked": 1}
