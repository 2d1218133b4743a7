"""Unknowns that prevent a better window, each with its number and the command that shows it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from firstflight.advise.budget import Check, Term, judged_check, parse
from firstflight.advise.decide import Decision, Evidence, decide
from firstflight.advise.experiment import Experiment
from firstflight.advise.fit import FittedPopulation, current_window
from firstflight.advise.measure import Measurements
from firstflight.advise.missing import Missing, missing
from firstflight.advise.sensitivity import SensitivityCase, cases
from firstflight.analysis.intervals import Estimate

TERM = parse("retransmissions=+0.5")[0]
GAIN = Estimate(-8.0, -9.0, -7.0)
REFERENCE = SensitivityCase("reference", "", rates="uk-2015")
SLOW = SensitivityCase("slow lines", "", "lines", rates="avgdc")
HOLD = "the queues before your users' access links hold 130 rather than 20 ms"
SHALLOW = SensitivityCase("shallow buffers", "", "buffer", rates="uk-2015", rather=HOLD)
# Of the slow lines' users one in two has 0.7 Mbit/s; of the others' all have 50 Mbit/s.
USERS = 2000


def points(share: float, extra: float = 0.0) -> Estimate:
    """Ten points of harm to each user below 1 Mbit/s."""
    return Estimate(10 * share + extra, 10 * share + extra - 0.01, 10 * share + extra + 0.01)


def answer(cases: list[SensitivityCase], harm: dict[str, float]) -> tuple[Decision, Missing | None]:
    rates = {each.name: np.where(np.arange(USERS) % 2 == (each.about != "lines"), 0.7e6, 50e6) for each in cases}
    for each in cases:
        if each.about != "lines":
            rates[each.name] = np.full(USERS, 50e6)
    found = {each.name: points(float((rates[each.name] < 1e6).mean()), harm.get(each.name, 0.0)) for each in cases}
    evidence = Evidence(
        current=10,
        candidates=[20],
        cases=[each.name for each in cases],
        changes={(each.name, 20): GAIN for each in cases},
        step=lambda case, one, other: GAIN,
        checks={(name, 20): [judged_check(TERM, 20, name, value, USERS)] for name, value in found.items()},
        flows=USERS,
    )

    def among(clients: pl.Series) -> Any:
        def checks(term: Term, case: str, window: int) -> list[Check]:
            share = float((rates[case][clients.to_numpy()] < 1e6).mean())
            return [judged_check(term, window, case, points(share, harm.get(case, 0.0)), len(clients))]

        return SimpleNamespace(time=lambda case, window: SimpleNamespace(percent=GAIN), checks=checks)

    experiment = SimpleNamespace(
        sensitivity_cases=cases,
        users={name: SimpleNamespace(columns={"down_bps": values.tolist()}) for name, values in rates.items()},
        seed=1,
    )
    decision = decide(evidence)
    found_missing = missing(
        decision, evidence, cast(Experiment, experiment), cast(Measurements, SimpleNamespace(among=among)), [TERM]
    )
    return decision, found_missing


def test_the_share_of_slow_lines_that_would_be_within_the_budget_is_named() -> None:
    decision, found = answer([REFERENCE, SLOW], {})
    assert decision.outcome == "keep"
    assert found is not None
    # Ten points times 4.9% are 0.49, which with its interval is within 0.5.
    assert (found.initial_window, found.slow_bps, found.share) == (20, 1e6, 0.04)
    assert "20 would be recommended if fewer than 4% of your users have links below 1 Mbit/s." in found.sentence
    assert "tcpdump" in found.sentence
    assert "--assume" not in found.sentence


def test_what_no_file_shows_is_named_without_a_command() -> None:
    _, found = answer([REFERENCE, SHALLOW], {"shallow buffers": 2.0})
    assert found is not None
    assert found.sentence == f"20 would be recommended if {HOLD}."


def test_two_unknowns_are_both_named() -> None:
    _, found = answer([REFERENCE, SLOW, SHALLOW], {"shallow buffers": 2.0})
    assert found is not None
    assert len(found.conditions) == 2
    assert "would show the first of these" in found.sentence


@pytest.mark.parametrize("cases", [[REFERENCE, SLOW], [REFERENCE, SHALLOW]])
def test_harm_that_no_unknown_explains_names_nothing(cases: list[SensitivityCase]) -> None:
    assert answer(cases, {"reference": 2.0})[1] is None


def test_where_the_window_holds_nothing_is_missing() -> None:
    decision, found = answer([REFERENCE], {})
    assert decision.outcome == "change"
    assert found is None


def test_of_windows_that_one_unknown_stops_the_one_that_gains_most_in_the_first_setting_is_named() -> None:
    first, second = (
        SensitivityCase("zero", "", rates="seen"),
        SensitivityCase("another", "", "buffer", rates="seen", rather=HOLD),
    )
    changes = {("zero", 16): -3.0, ("zero", 32): -8.0, ("another", 16): -8.0, ("another", 32): -3.0}
    harm = {"zero": Estimate(0.1, 0, 0.2), "another": Estimate(2, 1, 3)}
    evidence = Evidence(
        current=10,
        candidates=[16, 32],
        cases=["zero", "another"],
        changes={key: Estimate(value, value - 1, value + 1) for key, value in changes.items()},
        step=lambda case, one, other: GAIN,
        checks={key: [judged_check(TERM, key[1], key[0], harm[key[0]], USERS)] for key in changes},
        flows=USERS,
    )
    experiment = cast(Experiment, SimpleNamespace(sensitivity_cases=[first, second]))
    found = missing(decide(evidence), evidence, experiment, cast(Measurements, None), [TERM])
    assert found is not None
    assert (found.initial_window, found.slow_bps, found.share) == (32, None, None)
    assert found.conditions == (HOLD,)


def without_rates(counted: bool) -> FittedPopulation:
    """Users with RTTs and sizes, with or without counted retransmissions, and nothing else."""
    nothing = [None] * 3
    columns = ("down_bps", "up_bps", "buffer_s", "tls_bytes")
    loss = [0.01] * 3 if counted else nothing
    rows = pl.DataFrame({"rtt_s": [0.1] * 3, "loss": loss, "shows_line": [False] * 3} | dict.fromkeys(columns, nothing))
    return FittedPopulation(rows, current_window(first_flights()), 3, (), 3, None)


def first_flights() -> pl.DataFrame:
    names = ("initial_window_segments", "first_flight_segments", "segments_sent", "retransmissions", "tls_bytes")
    return pl.DataFrame(
        schema=dict.fromkeys((*names, "tls_flight_bytes", "tls_exchanges", "tls_answer_flight_segments"), pl.Int64)
    )


@pytest.mark.parametrize("counted", [True, False])
def test_the_condition_is_that_of_the_case_that_stops_the_window_and_never_its_opposite(counted: bool) -> None:
    """Of each case by itself: its own value is ruled out, and the reference's value, for which the window holds, is
    not.
    """
    reference, *others = cases(without_rates(counted))
    conditions = {}
    for case in others:
        plain = [replace(each, rates="seen") for each in (reference, case)]
        _, found = answer(plain, {case.name: 2.0})
        conditions[case.name] = found and found.conditions
    paths = "the paths to your users lose 0.5% of the packets rather than "
    of_loss = {"no loss": (f"{paths}none",), "high loss": (f"{paths}2%",)}
    if counted:
        said = "the retransmissions in the data come from loss on the paths rather than from queue overflow"
        of_loss = {"no random loss": (said,)}
    assert conditions == of_loss | {
        "shallow buffers": (HOLD,),
        "deep buffers": ("the queues before your users' access links hold 130 rather than 1000 ms",),
        "slow uplink": ("uplink rates are 20% rather than 5% of the downlink rates",),
        "slow lines": None,
        "fast lines": ("your users' link rates are those of UK homes of 2015 rather than of 2023",),
        "4 parallel connections": ("a user opens one connection at a time rather than 4 in parallel",),
        "cross traffic": None,
        "cross traffic, shallow buffers": (HOLD,),
    }


def test_a_capture_is_named_where_it_shows_the_condition_and_nowhere_else() -> None:
    found = {}
    for counted in (True, False):
        reference, *others = cases(without_rates(counted))
        for case in others:
            _, missing_data = answer([replace(each, rates="seen") for each in (reference, case)], {case.name: 2.0})
            if missing_data is not None:
                found[case.name] = bool(missing_data.command)
    # Which retransmissions were losses on the path no capture shows.
    assert {name for name, command in found.items() if command} == {"no loss", "high loss", "fast lines"}
