"""The rule by which an initial window is recommended, on made-up comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from firstflight.advise.advice import Cost, Gain, OtherConnections, UserGroup, UserShares
from firstflight.advise.budget import Check, judged_check, parse
from firstflight.advise.decide import Decision, Evidence, decide
from firstflight.advise.measure import Measurements
from firstflight.advise.words import LEVELS, confidence, sentences, stopped_by
from firstflight.analysis.ab import Comparison
from firstflight.analysis.intervals import Estimate

TERM = parse("p99=+5%")[0]
FLOWS = 2000
Changes = Mapping[int, float | Estimate]


def around(value: float, half: float = 1.0) -> Estimate:
    return Estimate(value, value - half, value + half)


def evidence(
    changes: Mapping[str, Changes], harm: Mapping[str, Changes] | None = None, step_half: float = 0.5
) -> Evidence:
    """Changes and harm by case and candidate; a plain number stands for it, give or take one."""
    estimates = {
        (case, window): value if isinstance(value, Estimate) else around(value)
        for case, row in changes.items()
        for window, value in row.items()
    }

    def checks(case: str, window: int) -> list[Check]:
        value = (harm or {}).get(case, {}).get(window, 0.0)
        found = value if isinstance(value, Estimate) else around(value)
        return [judged_check(TERM, window, case, found, FLOWS)]

    return Evidence(
        current=10,
        candidates=list(next(iter(changes.values()))),
        cases=list(changes),
        changes=estimates,
        step=lambda case, one, other: around(estimates[case, other].value - estimates[case, one].value, step_half),
        checks={key: checks(*key) for key in estimates},
        flows=FLOWS,
    )


def told(decision: Decision, found: Evidence) -> str:
    return (
        " ".join(filter(None, [stopped_by(each, len(found.cases)) for each in decision.candidate_results]))
        + confidence(decision, found)[1]
    )


def test_the_largest_gain_within_the_budget_in_every_setting_is_recommended() -> None:
    found = evidence({"reference": {16: -5, 20: -8, 32: -12}, "shallow": {16: -4, 20: -6, 32: -9}})
    decision = decide(found)
    assert (decision.outcome, decision.initial_window) == ("change", 32)
    assert decision.depends_on == ()
    assert confidence(decision, found)[0] == "high"


def test_with_a_doubt_about_the_flows_the_confidence_is_not_high() -> None:
    found = evidence({"reference": {16: -5, 20: -8, 32: -12}, "shallow": {16: -4, 20: -6, 32: -9}})
    level, why = confidence(decide(found), found, ["median RTT 0.017 ms: is this log from behind a load balancer?"])
    assert level == "depends on unknowns"
    assert why == "The flows may not be those of your users: see the doubt about them."


def test_a_window_over_the_budget_in_one_setting_is_out_and_the_advice_says_on_what_it_depends() -> None:
    found = evidence(
        {"reference": {16: -5, 32: -12}, "shallow": {16: -4, 32: -9}}, harm={"shallow": {32: 9.0, 16: 1.0}}
    )
    decision = decide(found)
    assert decision.initial_window == 16
    assert decision.alone == {"reference": 32, "shallow": 16}
    assert decision.depends_on == ("reference",)
    assert "over the budget: p99 +9.00% (+8.00 to +10.00) against a limit of +5% with shallow" in told(decision, found)


def test_an_interval_across_the_limit_is_not_within_and_says_how_many_flows_it_takes() -> None:
    found = evidence({"reference": {16: -5}}, harm={"reference": {16: Estimate(3, 0, 7)}})
    decision = decide(found)
    assert (decision.outcome, decision.initial_window) == ("keep", 10)
    assert decision.candidate_results[0].why == "budget inconclusive"
    assert decision.candidate_results[0].flows_needed == 8000
    assert "About 8,000 flows" in confidence(decision, found)[1]


def test_a_gain_that_is_not_shown_in_every_setting_keeps_the_window_in_use() -> None:
    found = evidence({"reference": {16: -5}, "deep": {16: Estimate(-1, -3, 1)}})
    decision = decide(found)
    assert decision.outcome == "keep"
    assert decision.candidate_results[0].not_gaining_in == ("deep",)
    assert decision.candidate_results[0].flows_needed == 8000
    assert decision.alone == {"reference": 16, "deep": 10}


def test_candidates_without_a_significant_difference_leave_the_one_nearest_to_today() -> None:
    found = evidence({"reference": {16: -8.0, 20: -8.25, 32: -8.5}}, step_half=1.0)
    decision = decide(found)
    assert decision.initial_window == 16
    assert decision.no_significant_difference == (20, 32)
    assert decision.flows_needed == 8000
    assert "show no significant difference of 16 from 20 and 32" in confidence(decision, found)[1]


def test_one_that_is_worse_than_today_is_never_helped_by_more_flows() -> None:
    decision = decide(evidence({"reference": {4: 30.0}}))
    assert decision.outcome == "keep"
    assert decision.candidate_results[0].flows_needed is None


def test_no_change_at_all_keeps_the_window_and_says_that_flows_would_not_help() -> None:
    found = evidence({"reference": {16: Estimate(0, 0, 0)}})
    decision = decide(found)
    assert decision.outcome == "keep"
    assert "No number of flows" in confidence(decision, found)[1]


def test_a_term_that_could_not_be_measured_stops_a_candidate() -> None:
    found = evidence({"reference": {16: -5}}, harm={"reference": {16: Estimate(1.0)}})
    assert decide(found).candidate_results[0].why == "budget inconclusive"


def lacking(found: Evidence, *keys: tuple[str, int]) -> Evidence:
    """The same with too few flows for the budget's term in these cases with these candidates."""
    checks = {
        key: [judged_check(TERM, key[1], key[0], Estimate(1.0), FLOWS, lacks=4000)] if key in keys else checks
        for key, checks in found.checks.items()
    }
    return replace(found, checks=checks)


def test_a_term_that_lacks_flows_is_not_harm_and_the_advice_says_that_it_was_not_judged() -> None:
    found = lacking(evidence({"reference": {16: -5}}), ("reference", 16))
    decision = decide(found)
    assert (decision.outcome, decision.initial_window) == ("change", 16)
    level, why = confidence(decision, found)
    assert level == "insufficient data"
    assert why == "Not judged, too few flows: p99 (needs 4,000)."
    assert confidence(decision, replace(found, usable=5000))[1].endswith("add --max-connections 4000.")
    assert "p99 not judged" in stopped_by(decision.candidate_results[0], 1)


def test_what_more_flows_could_change_is_not_firm() -> None:
    harm = {"reference": {32: around(4, 3)}}
    better = evidence({"reference": {16: -5, 32: -9}}, harm)
    decision = decide(better)
    assert (decision.initial_window, decision.inconclusive) == (16, (32,))
    assert confidence(decision, better)[0] == "insufficient data"
    assert "flows like these would decide it for 32" in confidence(decision, better)[1]
    # The same harm of a window that is shown to gain less could change nothing.
    worse = evidence({"reference": {32: -5, 64: -9}}, harm)
    assert decide(worse).initial_window == 64
    assert confidence(decide(worse), worse)[0] == "high"
    gain = evidence({"reference": {16: Estimate(-1, -3, 1)}})
    assert confidence(decide(gain), gain)[0] == "insufficient data"


def test_a_decision_that_another_seed_of_the_resampling_would_turn_says_so() -> None:
    found = evidence({"reference": {16: -5}})
    decision = replace(decide(found), other_seeds=(16, 10, 16, 10))
    level, why = confidence(decision, found)
    assert level == "insufficient data"
    assert why.startswith("2 of 4 other seeds of the resampling would recommend 10")
    assert confidence(replace(decision, other_seeds=(16, 16)), found)[0] == "high"


class Drawn(Measurements):
    """Made-up measurements whose gain ends on the other side of 0 with any seed but the first."""

    def __init__(self) -> None:
        self._seed = 1

    def time(self, *_: object, **__: object) -> Comparison:
        ends = (-4.0, -0.1) if self._seed == 1 else (-4.0, 0.1)
        return cast(Comparison, SimpleNamespace(percent=Estimate(-2, *ends)))


def test_another_seed_draws_what_ends_near_a_limit_again_and_nothing_else() -> None:
    near, far = Estimate(-2, -4, -0.1), Estimate(-20, -22, -18)
    found = evidence({"reference": {16: near, 32: far}})
    again = Drawn().redrawn(found, seed=2)
    assert again.changes["reference", 16].high == 0.1
    assert again.changes["reference", 32] == far
    assert again.checks == found.checks
    alone = evidence({"reference": {16: near}})
    assert (decide(alone).initial_window, decide(Drawn().redrawn(alone, 2)).initial_window) == (16, 10)


def test_the_reference_is_the_first_setting_whatever_its_name() -> None:
    found = evidence({"zero loss": {16: -5, 20: -8}, "another": {16: -9, 20: -6}})
    assert decide(found).initial_window == 20
    assert decide(found).alone == {"zero loss": 20, "another": 16}
    # With the first alone 16 and 20 are not separated, with the second they are.
    found = evidence({"zero loss": {16: -8.0, 20: -8.25}, "another": {16: -4, 20: -9}})
    assert (decide(found).initial_window, decide(found).no_significant_difference) == (16, (20,))
    # 0.5 of 0.25, squared.
    assert decide(found).flows_needed == 8000


def test_whether_another_window_is_open_is_asked_of_the_first_setting() -> None:
    harm = {"zero loss": {32: around(4, 3)}}
    found = evidence({"zero loss": {16: -9, 32: -5}, "another": {16: -5, 32: -9}}, harm)
    assert (decide(found).initial_window, decide(found).inconclusive) == (16, ())
    found = evidence({"zero loss": {16: -5, 32: -9}, "another": {16: -9, 32: -5}}, harm)
    assert (decide(found).initial_window, decide(found).inconclusive) == (16, (32,))


def test_the_flows_needed_are_those_of_the_last_thing_to_be_settled() -> None:
    # From 3 to 5 with 4 above, from 4 to 5 with 3 above, and from -1 to 0 with 2 above: times 4, 9 and 4.
    harm = {"reference": {16: Estimate(3, 0, 7)}, "deep": {16: Estimate(4, 3, 7)}}
    changes = {"reference": {16: Estimate(-1, -3, 1)}, "deep": {16: around(-5)}}
    assert decide(evidence(changes, harm)).candidate_results[0].flows_needed == 9 * FLOWS
    changes = {"reference": {16: Estimate(-1, -5, 3)}, "deep": {16: around(-5)}}
    found = decide(evidence(changes, harm)).candidate_results[0]
    assert (found.flows_needed, found.why, found.not_gaining_in) == (16 * FLOWS, "no gain shown", ("reference",))
    # No number of flows shows the gain of a slower window.
    changes = {"reference": {16: around(1, 3)}, "deep": {16: around(-5)}}
    assert decide(evidence(changes, harm)).candidate_results[0].flows_needed is None


def test_a_gain_whose_interval_ends_at_nothing_is_not_shown() -> None:
    decision = decide(evidence({"reference": {16: Estimate(-2, -4, 0)}}))
    assert (decision.outcome, decision.candidate_results[0].why, decision.inconclusive) == (
        "keep",
        "no gain shown",
        (16,),
    )
    # An interval that is not below 0 at its lower end is excluded.
    assert decide(evidence({"reference": {16: Estimate(1, 0, 2)}})).inconclusive == ()
    assert decide(evidence({"reference": {16: Estimate(1, -0.5, 2)}})).inconclusive == (16,)


def test_of_windows_as_good_and_as_far_the_smaller_is_recommended() -> None:
    found = evidence({"reference": {12: -5, 8: -5, 30: -5.25}}, step_half=1)
    decision = decide(found)
    assert (decision.initial_window, decision.no_significant_difference) == (8, (12, 30))
    # 12 is nearer to 10 than 4 is.
    assert decide(evidence({"reference": {12: -5, 4: -5}}, step_half=1)).initial_window == 12
    # Equal values: the best is the nearer one.
    assert decide(evidence({"reference": {20: -5, 8: -5}})).initial_window == 8


def test_no_number_of_flows_separates_a_step_that_points_the_other_way() -> None:
    found = evidence({"reference": {16: -8.0, 20: -8.25}}, step_half=1)
    assert decide(found).flows_needed == 16 * FLOWS
    for value in (0.0, 0.5):
        other = replace(found, step=lambda *_, value=value: around(value))
        assert (decide(other).initial_window, decide(other).flows_needed) == (16, None)


def test_where_a_candidate_stands_is_told_with_its_checks() -> None:
    harm = {"reference": {16: Estimate(9, 8, 10), 20: Estimate(4, 3, 7)}}
    over, across = decide(evidence({"reference": {16: -5, 20: -6}}, harm)).candidate_results
    assert (over.initial_window, over.why, over.flows_needed) == (16, "over the budget", None)
    assert [each.verdict for each in over.stopped_by] == ["over"]
    assert (across.initial_window, across.why, across.not_gaining_in) == (20, "budget inconclusive", ())
    assert [each.found.high for each in across.stopped_by] == [7]
    assert across.not_judged == ()


def test_a_smaller_window_can_be_recommended_where_it_gains() -> None:
    found = evidence({"reference": {4: -6, 16: 12}})
    decision = decide(found)
    assert (decision.outcome, decision.initial_window) == ("change", 4)


def test_keeping_says_what_the_best_candidate_would_have_done() -> None:
    found = evidence({"reference": {16: Estimate(-1, -3, 1), 32: Estimate(2, 1, 3)}})
    text = " ".join(sentences(decide(found), found, [], [], [], []))
    assert text.startswith("Keep the initial window of 10 segments. No candidate is shown to gain in every case")
    assert (
        "The best, 16, changes the mean time by -1.0% (-3.0 to +1.0) with the reference case, not shown to be a gain"
        in text
    )
    found = evidence({"reference": {16: -5, 32: -4}, "no loss": {16: 0, 32: 0}, "slow lines": {16: 1, 32: 0}})
    text = " ".join(sentences(decide(found), found, [], [], [], []))
    assert "with the reference case, but is not shown to gain with no loss and in 1 other case." in text


def test_a_window_kept_for_the_budget_in_one_setting_says_that_others_alone_settle_nothing() -> None:
    harm = {"shallow": {16: 9}, "reference": {16: Estimate(1.0)}}
    found = evidence({"reference": {16: -5}, "shallow": {16: -5}}, harm)
    level, why = confidence(decide(found), found)
    assert level == "insufficient data"
    assert why == "1 of the 2 cases alone is inconclusive."
    found = evidence({"reference": {16: 5}, "shallow": {16: -5}}, {"shallow": {16: 9}, "reference": {16: 9}})
    assert confidence(decide(found), found)[1].startswith("Each of the 2 cases alone gives the same window")


def test_flows_that_are_needed_and_in_the_data_are_to_be_had_by_the_option_that_limits_them() -> None:
    checks = {("reference", 16): [judged_check(parse("p99=+5%")[0], 16, "reference", around(2, 6), 1000)]}
    found = Evidence(**{**vars(evidence({"reference": {16: -5}})), "checks": checks, "flows": 1000})
    needed = decide(found).candidate_results[0].flows_needed
    assert needed is not None
    assert needed > 1000
    few = Evidence(**{**vars(found), "usable": needed - 1})
    enough = Evidence(**{**vars(found), "usable": needed})
    assert "--max-connections" not in confidence(decide(few), few)[1]
    assert confidence(decide(enough), enough)[1].endswith(f"the data has them: add --max-connections {needed}.")


@pytest.mark.parametrize(
    ("assumed", "level"),
    [
        ({"RTT": 100.0, "link rate": 100.0}, "insufficient data"),
        ({"RTT": 0.5}, "insufficient data"),
        ({"link rate": 60.0}, "depends on unknowns"),
        ({"response size": 100.0}, "depends on unknowns"),
    ],
)
def test_the_confidence_is_never_high_while_a_part_of_the_users_is_assumed(
    assumed: dict[str, float], level: str
) -> None:
    found = replace(evidence({"reference": {16: -5}}), assumed=assumed)
    sure, why = confidence(decide(found), found)
    assert sure == level
    assert all(f"The {what} of {percent:g}% of the users is assumed" in why for what, percent in assumed.items())
    if level == "insufficient data":
        assert next(sentences(decide(found), found, *TOLD)).startswith(
            "The data suggests raising the initial window from 10 to 16 segments, but is not sufficient to do so."
        )


def test_more_assumptions_never_give_more_courage() -> None:
    """Random evidence of three cases, and up to three more that `--assume` adds, in every order."""
    drawn = np.random.default_rng(7)
    names = ["reference", "shallow", "deep", "assumed loss", "assumed buffer", "assumed lines"]
    seen = set()
    for _ in range(400):
        # An end of the intervals is near a limit as often as not.
        of = {name: {window: around(drawn.normal(-1.2, 1), 0.8) for window in (16, 32)} for name in names}
        harm = {name: {window: around(drawn.normal(3, 1.5), 0.8) for window in (16, 32)} for name in names}
        every = evidence(of, harm)
        courage = []
        for more in range(4):
            added = [*drawn.permutation(names[3:])[:more]] if more == 1 else names[3 : 3 + more]
            found = replace(every, cases=names[:3] + added, given=added)
            decision = decide(found)
            courage.append((decision.outcome == "change", 2 - LEVELS.index(confidence(decision, found)[0]), added))
        for fewer, further in combinations(courage, 2):
            if {*fewer[2]} <= {*further[2]}:
                assert further[0] <= fewer[0]
                assert further[1] <= fewer[1]
                seen.add((fewer[:2], further[:2]))
    assert len(seen) > 6


def test_the_flows_needed_are_counted_over_all_users_and_those_of_the_group_are_named() -> None:
    groups = parse("groups=+5%")[0]
    # Of 2,000 flows 53 are in the group; it takes 6.4 times as many: from 2 up to 5, with 7.6 above.
    few = judged_check(groups, 16, "reference", Estimate(2, -4, 9.6), FLOWS, there=53, where="RTT up to 20 ms")
    found = replace(evidence({"reference": {16: -5}}), checks={("reference", 16): [few]}, usable=FLOWS)
    assert (few.flows_needed, few.needed_there) == (12836, 341)
    assert (
        "About 12,836 flows like these, 341 of them with RTT up to 20 ms, would decide it for 16."
        in (confidence(decide(found), found)[1])
    )
    # The data has more than the group needs, and fewer than that takes of all.
    assert "--max-connections" not in confidence(decide(found), replace(found, usable=12835))[1]
    assert "add --max-connections 12836" in confidence(decide(found), replace(found, usable=12836))[1]


def test_flows_for_a_part_of_the_users_are_counted_over_all_of_them_too() -> None:
    others = parse("others_p99=+5%")[0]
    few = judged_check(others, 16, "reference", Estimate(2), FLOWS, there=500, lacks=4000)
    assert (few.verdict, few.flows_needed, few.needed_there) == ("too few flows", 16000, 4000)


def gain(statistic: str, change: Estimate, case: str = "reference") -> Gain:
    return Gain(case, 16, statistic, Estimate(0.2), Estimate(0.19), change, (0, 0), "")


TOLD: tuple[list[Gain], list[Cost], list[Any], list[UserShares]] = (
    [gain("mean", around(-5)), gain("p50", around(-5)), gain("p95", around(-5))],
    [Cost("reference", 16, "retransmitted segments", Estimate(0.5), Estimate(0.52), Estimate(0.02, -0.1, 0.1))],
    [],
    [UserShares(16, 40.0, 0.0)],
)
"""Gains, costs, harm and users of an advice in which nothing is shown to get worse."""


def test_the_worst_change_stands_in_the_headline_even_within_the_budget() -> None:
    found = evidence({"reference": {16: -5}})
    gains, costs, harm, users = TOLD

    def headline(
        *more: Cost, others: Sequence[OtherConnections] = (), slow: Sequence[Gain] = (), groups: Any = ()
    ) -> str:
        all_harm, all_gains = [*harm, *others], [*gains, *slow]
        return next(sentences(decide(found), found, all_gains, [*costs, *more], all_harm, users, groups))

    assert headline() == (
        "Raise the initial window from 10 to 16 segments. Nothing that was measured is shown to get worse."
    )
    name = "responses that lose in the first flight"
    lost = Cost("reference", 16, name, Estimate(4.58), Estimate(6.85), Estimate(2.27, 2, 2.5))
    assert headline(lost).endswith(f" segments. Worst change: {name}, 4.58 to 6.85%.")
    short = OtherConnections("cross traffic", 16, "short response (30 kB)", 900, Estimate(3.1, 2.9, 3.3), "")
    assert headline(lost, others=[short]).endswith(
        f"Worst changes: {name}, 4.58 to 6.85%; "
        "time of a concurrent short response (30 kB), +3.1% (with cross traffic)."
    )
    # Not shown: its interval includes 0.
    assert headline(lost, others=[replace(short, change_percent=Estimate(9, -1, 20))]) == headline(lost)
    slow = UserGroup("RTT", "above 500 ms", 16, 3.0, 250, Estimate(4.0, 0.2, 8.0), "worse", "")
    assert headline(lost, groups=[slow]).endswith(f"{name}, 4.58 to 6.85%; mean time by RTT, above 500 ms: +4.0%.")
    assert headline(slow=[gain("p99", Estimate(1.5, 1, 2), "shallow")]).endswith(
        "Worst change: 99th percentile of the time of all responses, +1.5% (with shallow)."
    )
