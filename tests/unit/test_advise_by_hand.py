"""The parts of an advice, on a few made-up users with all different numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl
import pytest
from scipy import stats

from firstflight.advise import compare, experiment
from firstflight.advise.budget import Check, judged_check, parse
from firstflight.advise.compare import Change, _cells, _evened, _mix_p_value, _outcome, _overlap
from firstflight.advise.experiment import Experiment, _above, _lent
from firstflight.advise.fit import CurrentWindow, FittedPopulation, _loss, current_window, shrunken
from firstflight.advise.measure import DIMENSIONS, Measurements, _is_far_over, _is_near, holds
from firstflight.advise.missing import _within
from firstflight.advise.sensitivity import SensitivityCase
from firstflight.analysis.ab import Bucket
from firstflight.analysis.intervals import Estimate
from firstflight.records import Run

WEIGHTS = (1.0, 3.0)
REST_S = {"near": (0.25, 0.5), "far": (0.125, 1.0)}
CASES = (SensitivityCase("near", ""), SensitivityCase("far", "", cross_traffic=True))


def seconds(case: str, iw: int, client: int, application: str) -> float:
    """Its duration: another number for each."""
    of = {"response": 1, "other-short": 20, "other-long": 300}
    return of[application] * (1 + {"near": 0, "far": 7}[case] + client * 0.5) * (1 + iw / 64) * (1 + iw * client / 99)


def counts(iw: int, client: int) -> dict[str, int]:
    first = iw + client
    return {
        "segments_sent": 100 * (client + 1) + iw,
        "retransmissions": iw // 8 + 2 * client,
        "timeouts": (iw // 16) * client,
        "first_flight_segments": first,
        "first_flight_lost_segments": 0 if iw == 10 else 1 + client,
    }


def measurements(cases: tuple[SensitivityCase, ...] = CASES) -> Measurements:
    rows = [
        {"case": each.name, "iw": iw, "replicate": 0, "client": client, "application": application}
        | {"completed": 1, "completion_time_s": seconds(each.name, iw, client, application)}
        | counts(iw, client)
        for each in cases
        for iw in (4, 10, 32)
        for client in (0, 1)
        for application in ("response", *(("other-short", "other-long") if each.cross_traffic else ()))
    ]
    seen = pl.DataFrame({"weight": WEIGHTS, "segments": [7, 40], "subnet": [0, 1], "client": [5, 6]})
    population = SimpleNamespace(current=SimpleNamespace(window=10), rows=seen, usable=9, assumed_shares={"RTT": 40.0})
    paths = {"rtt_s": [0.03, 0.3], "down_bps": [2e6, 8e6]}
    users = {each.name: SimpleNamespace(columns=paths, rest_s=REST_S[each.name]) for each in cases}
    experiment = SimpleNamespace(population=population, sensitivity_cases=cases, windows=[4, 10, 32], users=users)
    frame = pl.DataFrame(rows).with_columns(pl.col("client").cast(pl.UInt32)).lazy()
    return Measurements(cast(Run, SimpleNamespace(transfers=frame)), cast(Experiment, experiment))


def mean(values: Any) -> float:
    """By the users' weights."""
    return float(np.average(list(values), weights=WEIGHTS))


def time(case: str, iw: int) -> float:
    return mean(seconds(case, iw, client, "response") + REST_S[case][client] for client in (0, 1))


def test_times_are_those_of_a_setting_and_two_windows_weighted_and_with_what_is_not_simulated() -> None:
    measured = measurements()
    for case in ("near", "far"):
        for window in (4, 32):
            found = measured.time(case, window)
            assert (found.baseline.value, found.treatment.value) == pytest.approx((time(case, 10), time(case, window)))
    step = measured.time("far", 32, against=4)
    assert (step.baseline.value, step.treatment.value) == pytest.approx((time("far", 4), time("far", 32)))
    assert measured.time("far", 32, against=4) is step
    other = measured.other("far", 32, "other-long")
    assert other.treatment.value == pytest.approx(mean(seconds("far", 32, client, "other-long") for client in (0, 1)))
    short = measured.other("far", 4, "other-short")
    assert short.treatment.value == pytest.approx(mean(seconds("far", 4, client, "other-short") for client in (0, 1)))


def test_rates_and_shares_are_those_of_the_responses() -> None:
    measured = measurements()

    def total(name: str, iw: int) -> float:
        return sum(weight * counts(iw, client)[name] for client, weight in enumerate(WEIGHTS))

    rate = measured.rate("near", 32, "retransmissions", "segments_sent")
    assert rate.baseline.value == pytest.approx(total("retransmissions", 10) / total("segments_sent", 10))
    assert rate.treatment.value == pytest.approx(total("retransmissions", 32) / total("segments_sent", 32))
    flagged = measured.share("near", 32, "lost_in_first_flight")
    assert (flagged.baseline.value, flagged.treatment.value) == (0, 1)
    # The second user, of 3 in 4 by weight.
    assert measured.share("near", 32, "timed_out").treatment.value == 0.75


def test_some_of_the_users_are_compared_by_themselves() -> None:
    alone = measurements().among(pl.Series([1], dtype=pl.UInt32))
    assert alone.time("far", 32).treatment.value == pytest.approx(seconds("far", 32, 1, "response") + 1.0)
    long = seconds("far", 32, 1, "other-long")
    assert alone.other("far", 32, "other-long").treatment.value == pytest.approx(long)


def test_the_evidence_holds_each_change_and_check_in_its_place() -> None:
    measured = measurements()
    terms = parse("retransmissions=+0.5,mean=+5%,others=+5%")
    done: list[int] = []
    found = measured.evidence(terms, done=done.append)
    assert (found.current, found.candidates, found.cases) == (10, [4, 32], ["near", "far"])
    assert (found.flows, found.usable, found.assumed, done) == (2, 9, {"RTT": 40.0}, [1, 2, 3, 4])
    for (case, window), change in found.changes.items():
        assert change.value == pytest.approx(100 * (time(case, window) / time(case, 10) - 1))
        checks = found.checks[case, window]
        others = ["short response (30 kB)", "long download (1 MB)"] if case == "far" else []
        assert [(each.term.name, each.where) for each in checks] == [
            ("retransmissions", ""),
            ("mean", ""),
            *(("others", where) for where in others),
        ]
        assert {(each.case, each.initial_window) for each in checks} == {(case, window)}
        assert checks[1].found.value == pytest.approx(change.value)
        # Two users are too few: an interval takes 400.
        assert [(each.verdict, each.flows_needed) for each in checks] == [("too few flows", 400)] * len(checks)
        rate = measured.rate(case, window, "retransmissions", "segments_sent").difference.value
        assert checks[0].found.value == pytest.approx(100 * rate)
        for each, application in zip(checks[2:], ("other-short", "other-long"), strict=False):
            assert each.found.value == pytest.approx(measured.other(case, window, application).percent.value)
    step = found.step("far", 4, 32)
    assert step.value == pytest.approx(100 * (time("far", 32) / time("far", 4) - 1))
    tail = measured.checks(parse("others_p99=+5%")[0], "far", 32)
    assert [each.flows_needed for each in tail] == [4000, 4000]


def test_buckets_of_a_dimension_hold_the_users_up_to_their_edges() -> None:
    rtt, rate, size, bdp = DIMENSIONS
    measured = measurements()
    used = {
        each.column: [bucket.bucket for bucket in measured.groups("near", 32, each) if bucket.units]
        for each in DIMENSIONS
    }
    # 30 and 300 ms, 2 and 8 Mbit/s, 7 and 40 segments, 7.5 and 300 kB.
    assert used == {
        "rtt_s": ["20 to 50 ms", "200 to 500 ms"],
        "down_bps": ["1 to 3 Mbit/s", "3 to 10 Mbit/s"],
        "segments": ["3 to 10 segments", "32 to 64 segments"],
        "bdp_bytes": ["5 to 15 kB", "150 to 500 kB"],
    }
    assert rtt.labels() == [
        "up to 20 ms",
        "20 to 50 ms",
        "50 to 100 ms",
        "100 to 200 ms",
        "200 to 500 ms",
        "above 500 ms",
    ]
    assert rate.labels()[0] == "up to 0.256 Mbit/s"
    assert size.labels()[-1] == "above 128 segments"
    assert bdp.labels()[3] == "50 to 150 kB"


def test_users_are_drawn_by_subnet_where_there_are_fifty() -> None:
    measured = measurements()
    rows = measured._experiment.population.rows.select("weight", "segments")
    for subnets, cluster in (([*range(49), 0], None), ([*range(50)], "subnet"), ([*range(50), None], None)):
        own = pl.concat([rows[:1]] * len(subnets)).with_columns(subnet=pl.Series(subnets))
        population = SimpleNamespace(current=SimpleNamespace(window=10), rows=own)
        experiment = SimpleNamespace(population=population, sensitivity_cases=(), windows=[10])
        run = cast(Run, SimpleNamespace(transfers=None))
        assert Measurements(run, cast(Experiment, experiment))._cluster == cluster


def test_a_change_is_scaled_with_both_its_ends() -> None:
    assert Estimate(1, -2, 3, 4).times(100) == Estimate(100, -200, 300, 4)


def test_the_connections_of_a_user_are_those_of_the_setting() -> None:
    rows = pl.DataFrame({"client": range(7)})
    population = cast(Any, SimpleNamespace(current=SimpleNamespace(window=11), rows=rows, has_handshakes=False))
    some, four, beside = (
        SensitivityCase("a", ""),
        SensitivityCase("b", "", parallel_connections=4),
        SensitivityCase("c", "", parallel_connections=2, cross_traffic=True),
    )
    experiment = Experiment(population, [some, four, beside], [11, 20], 3)
    names = [[each["name"] for each in experiment._applications(case)] for case in (some, four, beside)]
    assert names == [
        ["response"],
        ["response-1", "response-2", "response-3", "response-4"],
        ["response-1", "response-2", "other-short", "other-long"],
    ]
    response, _, short, long = experiment._applications(beside)
    assert "tcp" not in response
    assert (short["tcp"], short["size"], short["user_fraction"]) == ({"initial_window": 11}, "30kB", 0.5)
    assert (long["tcp"], long["size"], long["user_fraction"], long["start"]) == (
        {"initial_window": 11},
        "1MB",
        0.25,
        "0s",
    )
    assert response["start"] == short["start"] == {"distribution": "uniform", "low": "500ms", "high": "550ms"}
    assert "start" not in experiment._applications(some)[0]


@pytest.mark.parametrize(
    ("users", "replicates"), [(7, 12), (499, 12), (600, 10), (2999, 3), (3000, 2), (3001, 2), (6001, 1)]
)
def test_fewer_users_have_more_replicates(users: int, replicates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "WORK", 6000)
    population = cast(Any, SimpleNamespace(rows=pl.DataFrame({"client": range(users)})))
    assert Experiment(population, [], [], 1).replicates == replicates


def test_slow_lines_are_those_below_a_rate_and_as_many_stay_as_are_allowed() -> None:
    # Six users with 1 Mbit/s exactly or more, four with less; a quarter of all leaves two of these.
    rates = [1e6, 0.9e6, 2e6, 0.5e6, 3e6, 0.7e6, 4e6, 0.6e6, 5e6, 6e6]
    asked: list[list[int]] = []

    def among(clients: pl.Series) -> Any:
        asked.append(clients.to_list())
        gain = SimpleNamespace(percent=Estimate(-2, -3, -1))
        return SimpleNamespace(
            time=lambda *_: gain, checks=lambda term, *_: [judged_check(term, 20, "far", Estimate(1, 0, 2), 9)]
        )

    experiment = cast(Any, SimpleNamespace(users={"far": SimpleNamespace(columns={"down_bps": rates})}, seed=1))
    measured, budget = cast(Any, SimpleNamespace(among=among)), parse("mean=+5%")
    for share, kept in ((0.0, 0), (0.25, 2), (0.4, 4), (0.9, 4)):
        assert _within(SensitivityCase("far", ""), 20, 1e6, share, experiment, measured, budget)
        fast = [client for client in asked[-1] if rates[client] >= 1e6]
        assert (fast, len(asked[-1])) == ([0, 2, 4, 6, 8, 9], 6 + kept)
    assert not _within(SensitivityCase("far", ""), 20, 1e6, 0.0, experiment, measured, parse("mean=+1%"))


def test_what_is_assumed_of_users_is_the_part_that_the_data_does_not_tell() -> None:
    rows = pl.DataFrame({"rtt_s": [0.1] * 5, "down_bps": [1e6, None, None, None, 2e6], "bytes": [7] * 5})
    found = FittedPopulation(rows, CurrentWindow(10, 100.0, 5, ""), 5, (), 5, None)
    assert [found.assumed_percent(name) for name in ("rtt_s", "down_bps", "bytes")] == pytest.approx([0, 60, 0])
    assert found.known("down_bps") == 2
    known = replace(found, sizes="web-search", assumed_rtt_percent=30.0)
    assert [known.assumed_percent(name) for name in ("rtt_s", "down_bps", "bytes")] == pytest.approx([30, 60, 100])
    assert known.assumed == (
        "the RTT of 30% of the users",
        "the link rate of 60% of the users",
        "the response size of 100% of the users",
    )


def bucket(name: str, low: float, high: float, verdict: str = "no significant difference", units: int = 300) -> Bucket:
    percent = Estimate((low + high) / 2, low, high, units)
    return cast(
        Bucket,
        SimpleNamespace(bucket=name, percent_low=low, percent_high=high, verdict=verdict, units=units, percent=percent),
    )


class Bucketed(Measurements):
    """Made-up buckets by dimension."""

    made: ClassVar = {
        "rtt_s": [
            bucket("wide", -1, 9),
            bucket("over", 5.5, 6.5, "worse", 250),
            bucket("few", 99, 99, "too few flows"),
        ],
        "down_bps": [bucket("low", -3, 2), bucket("high", -4, 4, "better", 270), bucket("lower", -5, -4)],
        "segments": [bucket("none", math.nan, math.nan, "too few flows")],
        "bdp_bytes": [],
    }

    def __init__(self) -> None:
        self._experiment = cast(
            Experiment,
            SimpleNamespace(
                population=SimpleNamespace(
                    assumed_percent=lambda column: 40 if column == "rtt_s" else 0,
                    rows=SimpleNamespace(height=1000),
                )
            ),
        )

    def groups(self, case: str, window: int, dimension: Any) -> list[Bucket]:
        return self.made[dimension.column]


def test_of_buckets_one_over_the_limit_comes_before_one_that_reaches_further() -> None:
    term = parse("groups=+5%")[0]
    first, second = Bucketed().checks(term, "near", 32)
    assert (first.where, first.verdict, first.found) == (
        "RTT (assumed of 40%) over",
        "over",
        Estimate(6, 5.5, 6.5, 250),
    )
    assert (second.where, second.verdict, second.found) == ("link rate high", "within", Estimate(0, -4, 4, 270))
    assert (first.initial_window, first.case, first.term) == (32, "near", term)


def test_an_end_is_near_a_limit_within_a_quarter_of_the_width() -> None:
    # A width of 8: the upper end may be 2 off.
    assert [_is_near(Estimate(0, -4, 4), limit) for limit in (6, 6.5, 2, 1.5)] == [True, False, True, False]
    term = parse("mean=+5%")[0]
    far = [judged_check(term, 16, "near", Estimate(10, low, low + 8), 1000) for low in (7, 7.5)]
    assert [_is_far_over(each) for each in far] == [False, True]


def test_a_candidate_holds_in_a_setting_if_it_gains_and_is_within() -> None:
    term = parse("mean=+5%")[0]

    def of(change: Estimate, *harm: Estimate) -> bool:
        checks = [judged_check(term, 16, "near", each, 900, lacks=9 if math.isnan(each.low) else None) for each in harm]
        found = SimpleNamespace(time=lambda *_: SimpleNamespace(percent=change), checks=lambda *_: checks)
        return holds(cast(Measurements, found), [term], 16, ["near"])

    assert of(Estimate(-2, -3, -1), Estimate(1, 0, 5), Estimate(1))
    assert not of(Estimate(-2, -4, 0), Estimate(1, 0, 5))
    assert not of(Estimate(-2, -3, -1), Estimate(1, 0, 5), Estimate(3, 0, 5.5))


def first_responses(**columns: list[Any]) -> pl.DataFrame:
    rows = len(next(iter(columns.values())))
    names = ["initial_window_segments", "first_flight_segments", "segments_sent", "retransmissions", "tls_bytes"]
    nothing = {
        name: [None] * rows for name in [*names, "tls_flight_bytes", "tls_exchanges", "tls_answer_flight_segments"]
    }
    return pl.DataFrame(nothing | columns, schema_overrides=dict.fromkeys(nothing, pl.Int64))


def test_the_window_in_use_is_the_most_frequent_first_flight_that_more_followed() -> None:
    # Not 13 of 13, nor 10 of 11 and 14 of 16 of which one and two were retransmitted.
    # Of the others two are 10 and two are 16.
    found = current_window(
        first_responses(
            first_flight_segments=[10, 16, 10, 13, 10, 14, 0, 16],
            segments_sent=[11, 40, 11, 13, 11, 16, 40, 50],
            retransmissions=[0, 1, None, 0, 1, 2, 0, None],
        )
    )
    assert (found.window, found.flows, found.share_percent) == (10, 4, 50.0)
    told = current_window(
        first_responses(initial_window_segments=[20, 20, 30, None], first_flight_segments=[9, 9, 9, 9])
    )
    assert (told.window, told.flows, told.how) == (20, 3, "from the data")
    assert told.share_percent == pytest.approx(200 / 3)
    # Of as many the smaller one.
    assert current_window(first_responses(initial_window_segments=[30, 20])).window == 20


def test_a_handshake_of_half_the_window_leaves_it_as_it_was() -> None:
    # Handshakes of 3 and 4 segments; the flights of the answers are 6 and 7.
    tls = first_responses(tls_bytes=[3 * 1448, 3 * 1448 + 1], tls_answer_flight_segments=[6, 7], segments_sent=[40, 40])
    assert (current_window(tls).window, current_window(tls).flows) == (6, 1)


def test_the_loss_of_a_user_is_drawn_towards_that_of_all() -> None:
    events, trials = np.array([0.0, 4, 1, 15]), np.array([10.0, 20, 10, 60])
    # 20 of 100; squares of the shares' deviations, by trials: 10·0.04 + 0 + 10·0.01 + 60·0.0025.
    chance = 0.2 * 0.8
    between = (0.65 - 3 * chance) / (100 - (100 + 400 + 100 + 3600) / 100)
    prior = chance / between - 1
    expected = (events + prior * 0.2) / (trials + prior)
    assert between > 0
    assert shrunken(events, trials) == pytest.approx(expected)
    assert shrunken(np.array([3.0]), np.array([30.0])) == pytest.approx([0.1])
    assert shrunken(np.zeros(3), np.zeros(3)).tolist() == [0, 0, 0]
    # As much spread as chance makes, to the last bit: 8 · 2 / 64 and 1 / 4.
    assert shrunken(np.array([3.0, 5]), np.array([8.0, 8])).tolist() == [0.5, 0.5]


def test_a_loss_that_the_data_tells_counts_before_one_that_is_drawn() -> None:
    frame = pl.DataFrame({"loss": [0.3, None, None], "segments_sent": [10, 30, None], "retransmissions": [1, 3, None]})
    loss, seen = _loss(frame)
    # 4 of 40 in all, and no more spread than by chance.
    assert loss.to_list() == pytest.approx([0.3, 0.1, 0.1])
    assert seen == pytest.approx(10)
    told, share = _loss(frame.with_columns(segments_sent=pl.lit(None, pl.Int64)))
    assert (told.to_list(), share) == ([0.3, None, None], pytest.approx(30))


def test_a_rate_is_lent_by_those_nearest_by_round_trip() -> None:
    # Twenty known rates, one at each 10 ms; 0.05 of them, one on each side, lend to the one at 104 ms.
    rtt_s = np.array([*(0.01 * place for place in range(20)), 0.104])
    rates = np.array([*range(100, 120), math.nan])
    random = np.random.default_rng(1)
    drawn = {float(_lent(rtt_s, rates, np.isnan(rates), random)[0]) for _ in range(200)}
    assert drawn == {110.0, 111.0, 112.0}


def test_a_line_is_one_of_those_that_carry_what_came_through() -> None:
    lines, random = np.array([1.0, 2, 3, 4]), np.random.default_rng(1)
    drawn = _above(lines, np.full(300, 3.0), random)
    assert set(drawn.tolist()) == {3.0, 4.0}
    assert _above(lines, np.array([4.0, 5.0]), random).tolist() == [4, 5]


def compared(before: list[tuple[float, int]], after: list[tuple[float, int]]) -> pl.DataFrame:
    """RTT and segments of the connections of both arms."""
    rows = [("before", *each) for each in before] + [("after", *each) for each in after]
    frame = pl.DataFrame(rows, schema=["arm", "rtt_s", "segments"], orient="row")
    return _cells(frame.with_columns(weight=1.0))


def test_arms_are_weighted_to_the_mean_of_their_mixes() -> None:
    near, far, alone = (0.01, 2), (0.3, 2), (0.3, 200)
    frame = compared([near] * 60 + [far] * 20 + [alone] * 19, [near] * 30 + [far] * 90 + [alone] * 40)
    found = _evened(frame)
    # 3/4 and 1/4 before, 1/4 and 3/4 after: a half each. The third cell has 19 connections in one arm.
    weights = found.group_by("arm", "rtt_s").agg(pl.col("weight").sum()).iter_rows()
    assert {(arm, rtt_s): weight for arm, rtt_s, weight in weights} == pytest.approx(
        {("before", 0.01): 40, ("before", 0.3): 40, ("after", 0.01): 60, ("after", 0.3): 60}
    )
    assert found.height == 200


def test_the_p_value_of_a_mix_is_pearsons() -> None:
    near, far = (0.01, 2), (0.3, 2)
    frame = compared([near] * 60 + [far] * 20, [near] * 30 + [far] * 90)
    expected = stats.chi2_contingency([[60, 30], [20, 90]], correction=False).pvalue
    assert _mix_p_value(frame) == pytest.approx(expected)
    assert math.isnan(_mix_p_value(compared([near] * 60, [near] * 30)))
    assert math.isnan(_mix_p_value(compared([near] * 60 + [far] * 9, [])))


def test_two_spans_overlap_by_a_share_of_the_shorter() -> None:
    assert _overlap((0.0, 10.0), (6.0, 14.0)) == 0.5
    assert _overlap((6.0, 14.0), (0.0, 10.0)) == 0.5
    assert _overlap((0.0, 10.0), (10.0, 14.0)) == 0
    assert _overlap((0.0, 10.0), (11.0, 14.0)) == 0
    assert _overlap((0.0, 10.0), (3.0, 3.0)) == 1
    assert _overlap((None, None), (3.0, 4.0)) is None


@pytest.mark.parametrize(
    ("low", "high", "verdict", "outcome"),
    [
        (-3, -1, "within", "faster"),
        (-3, 0, "within", "inconclusive"),
        (0, 3, "within", "inconclusive"),
        (1, 3, "within", "slower"),
        (-3, -1, "inconclusive", "faster, budget inconclusive"),
        (1, 3, "inconclusive", "slower"),
        (-3, -1, "over", "over the budget"),
    ],
)
def test_the_outcome_of_two_arms_is_that_of_the_mean_and_of_the_budget(
    low: float, high: float, verdict: Any, outcome: str
) -> None:
    nothing = Estimate(0.0)
    changes = tuple(
        Change(statistic, nothing, nothing, change, nothing)
        for statistic, change in (("p99", Estimate(0, -9, 9)), ("mean", Estimate(0, low, high)))
    )
    checks = (Check(parse("mean=+5%")[0], 16, "observed", nothing, verdict),)
    assert _outcome(changes, checks) == outcome
    assert compare._outcome((), ()) == "inconclusive"
