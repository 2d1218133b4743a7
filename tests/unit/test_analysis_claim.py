import math
from dataclasses import replace

import pytest

from firstflight.analysis.claim import (
    Claim,
    Expectation,
    Needs,
    Sentence,
    above,
    at_least,
    at_most,
    below,
    between,
    counts,
    deciding,
    near,
    tally,
)
from firstflight.analysis.intervals import Estimate

KEYS = ["id", "source", "text", "expected", "found", "low", "high", "unit", "tolerance", "verdict", "reason", "given"]


def claim(expectation: Expectation, tolerance: float, found: Estimate, needs: Needs = "interval") -> Claim:
    own = replace(expectation, unit="s", tolerance=tolerance)
    return Sentence("x", "a book", "A sentence.", own, "Because.", needs).judge(found)


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
def test_a_value_without_randomness_is_judged_by_expectation_and_tolerance(expectation, tolerance, value, verdict):
    assert claim(expectation, tolerance, Estimate(value), "value").verdict == verdict
    assert claim(expectation, tolerance, Estimate(value, value, value, 2)).verdict == verdict


@pytest.mark.parametrize(
    ("expectation", "tolerance", "low", "high", "verdict"),
    [
        (near(1.0), 0.1, 1.02, 1.08, "holds"),
        (near(1.0), 0.1, 0.95, 1.15, "undecided"),
        (near(1.0), 0.1, 1.05, 1.25, "undecided"),
        (near(1.0), 0.1, 1.11, 1.25, "differs"),
        # "Clearly improves" does not hold with an interval that includes a loss.
        (above(0), 0, -3.68, 11.3, "undecided"),
        (above(0), 0, 0, 11.3, "undecided"),
        (above(0), 0, 0.1, 11.3, "holds"),
        (above(0), 0, -11.3, -3.68, "differs"),
        (at_most(0), 5, -2.1, 9.9, "undecided"),
        (at_most(0), 5, -8.7, 4.9, "holds"),
    ],
)
def test_a_claim_holds_only_if_its_whole_interval_does(expectation, tolerance, low, high, verdict):
    found = claim(expectation, tolerance, Estimate((low + high) / 2, low, high, 10))
    assert found.verdict == verdict
    assert ("more replicates could decide" in found.reason) == (verdict == "undecided")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        # "Not detectable": within the bound of 5, but detected.
        (3.12, 4.82, "differs"),
        (-4.82, -3.12, "differs"),
        (-1, 4.82, "holds"),
        (-1, 5.1, "undecided"),
        (5.1, 8, "differs"),
        (3, 8, "differs"),
    ],
)
def test_an_absent_effect_needs_an_interval_that_includes_it_and_keeps_the_bound(low, high, verdict):
    found = claim(near(0), 5, Estimate((low + high) / 2, low, high, 10), "absence")
    assert found.verdict == verdict
    assert ("an effect is detected" in found.reason) == (verdict == "differs" and abs(low) <= 5)


def test_a_run_without_an_interval_decides_no_claim_that_needs_one():
    found = claim(above(0), 0, Estimate(40.0, replicates=1))
    assert found.verdict == "undecided"
    assert "gives none" in found.reason


def test_json_object_has_the_keys_of_the_contract_and_no_nan():
    found = claim(above(90), 0.5, Estimate(95.0, math.nan, math.nan, 1)).as_dict()
    assert list(found) == KEYS
    assert (found["expected"], found["low"], found["high"]) == ("above 90", None, None)


def test_claim_without_data_says_what_is_missing():
    sentence = Sentence("x", "a book", "A sentence.", near(3.5, "percent", 0.1), "Because.")
    found = sentence.unchecked("The run holds no cell with 32 webs.")
    assert (found.verdict, found.found, found.expected) == ("cannot be checked", None, 3.5)
    assert counts([found.as_dict()])["cannot be checked"] == 1


def test_what_was_put_in_is_counted_apart_from_what_holds():
    made = [
        {"verdict": verdict, "given": given}
        for verdict, given in (("holds", True), ("holds", False), ("differs", True), ("undecided", False))
    ]
    assert tally(counts(made)) == "1 holds, 1 differs, 1 undecided, 1 put in or fitted"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        # The range with its tolerance is 1.5 to 5.5, both ends within.
        (1.5, 5.5, "holds"),
        (1.25, 5.5, "undecided"),
        (1.5, 5.75, "undecided"),
        (5.5, 8, "undecided"),
        (5.75, 8, "differs"),
        (-3, 1.5, "undecided"),
        (-3, 1.25, "differs"),
    ],
)
def test_an_interval_that_ends_at_the_limit_is_within_it(low, high, verdict):
    assert claim(between(2, 5), 0.5, Estimate((low + high) / 2, low, high, 10)).verdict == verdict


@pytest.mark.parametrize(("low", "high"), [(0, 4), (-4, 0)])
def test_an_interval_that_ends_at_zero_detects_no_effect(low, high):
    assert claim(near(0), 5, Estimate((low + high) / 2, low, high, 10), "absence").verdict == "holds"


def test_a_judged_claim_gives_value_and_ends_of_the_interval_each_in_its_place():
    sentence = Sentence("x", "a book", "A sentence.", between(2, 5, "s", 0.5), "Because.")
    found = sentence.judge(Estimate(4.0, 3.0, 6.0, 10), "At 20 ms.").as_dict()
    assert found == {
        "id": "x",
        "source": "a book",
        "text": "A sentence.",
        "expected": "2 to 5",
        "found": 4.0,
        "low": 3.0,
        "high": 6.0,
        "unit": "s",
        "tolerance": 0.5,
        "verdict": "undecided",
        "reason": "At 20 ms. Because. The 95% CI includes the limit; more replicates could decide.",
        "given": False,
    }


def test_what_is_undecided_says_how_many_replicates_would_decide():
    # The lower half of 4 is to shrink to 2: four times the replicates.
    found = claim(above(0), 0, Estimate(2.0, -2.0, 6.0, 10))
    assert found.times == pytest.approx(4)
    decided = claim(above(0), 0, Estimate(2.0, 1.0, 3.0, 10))
    assert decided.times is None
    at_the_limit = claim(at_most(2), 0, Estimate(2.0, 1.0, 3.0, 10))
    assert (at_the_limit.verdict, at_the_limit.times) == ("undecided", None)
    said = deciding([found, decided, at_the_limit], 10, "firstflight run x --replicates")
    assert said == (
        "About 44 replicates would decide 1 of the 2 undecided claims, if the values found are right: "
        "firstflight run x --replicates 44"
    )
    assert deciding([decided, at_the_limit], 10, "x") == ""
    # No replicate narrows a spread, and without an interval there is nothing to go by.
    assert claim(above(0), 0, Estimate(2.0)).times is None
