"""Comparisons so small that every number can be calculated by hand; no two cells are equal."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from scipy import stats

from firstflight.analysis.ab import (
    Budget,
    Comparison,
    Design,
    Pilot,
    by_bucket,
    compare,
    compare_jain,
    compare_rate,
    harm,
    jain_index,
    minimum_detectable_effect,
    of_aggregates,
    pilot_of,
    pilot_of_one_arm,
    retransmissions,
    units_needed,
    within_budget,
)
from firstflight.analysis.ab.compare import _verdict
from firstflight.analysis.ab.contrast import least_units
from firstflight.analysis.ab.resampling import Blocks, draws
from firstflight.analysis.ab.sample import ArmRows
from firstflight.analysis.ab.statistic import Jain, Quantile, _kernel, _Steps, share_of
from firstflight.analysis.intervals import Percentiles, Studentized, possible, within
from firstflight.records.schema import GAMMA

ARMS = Design(arm="iw", baseline=3, treatment=10, unit=["client"])
# Degrees of freedom with which Student's t is the normal distribution.
MANY = 1e12


def arms(base: list[float], treat: list[float], **columns: list[Any]) -> pl.DataFrame:
    """Values of both arms, a row a client; `columns` are those of the baseline's rows and then of the treatment's."""
    client = [*range(len(base)), *range(len(treat))]
    frame = {"iw": [3] * len(base) + [10] * len(treat), "client": client, "x": [*base, *treat]}
    return pl.DataFrame(frame | columns)


def around(low: float, high: float) -> np.ndarray:
    """39 numbers: the ends, and all others within 0.5 of 0. The ends of a 95% interval are the first and the last."""
    return np.array([*np.linspace(-0.5, 0.5, 37), high, low])


def test_the_long_tail_of_the_resamples_is_that_of_the_lower_end() -> None:
    # In their own errors of 2 the resamples are off by -3 to +5; the sample's error is 4.
    spread = Studentized(10.0, 4.0, around(-6, 10), np.full(39, 2.0), MANY)
    assert spread.interval(0.95) == pytest.approx((10 - 5 * 4, 10 + 3 * 4))


def test_an_end_is_at_least_as_far_as_students_t_and_an_error_at_least_a_third_of_the_samples() -> None:
    # Student's t of 4 degrees of freedom is 2.776445 at 97.5%.
    near = Studentized(10.0, 2.0, around(-1, 9), np.ones(39), 4)
    assert near.interval(0.95) == pytest.approx((10 - 9 * 2, 10 + 2.776445 * 2))
    other = Studentized(10.0, 2.0, around(-9, 1), np.ones(39), 4)
    assert other.interval(0.95) == pytest.approx((10 - 2.776445 * 2, 10 + 9 * 2))
    # Errors of 0.5 count as 6 / 3 = 2.
    few = Studentized(10.0, 6.0, around(-8, 12), np.full(39, 0.5), MANY)
    assert few.interval(0.95) == pytest.approx((10 - 6 * 6, 10 + 4 * 6))


def test_the_p_value_counts_the_sample_among_its_resamples() -> None:
    # None of 39 is as far out: twice one of 40.
    assert Studentized(50.0, 1.0, around(-3, 5), np.ones(39), MANY).p_value() == pytest.approx(2 / 40)
    # 18 and 19 of -19 to 19 are at least 18: twice three of 40, on either side.
    ranks = np.arange(-19.0, 20)
    for value in (18.0, -18.0):
        assert Studentized(value, 1.0, ranks, np.ones(39), MANY).p_value() == pytest.approx(6 / 40)
        assert Percentiles(value, 1.0, ranks + value, MANY).p_value() == pytest.approx(6 / 40)
    assert Percentiles(99.0, 1.0, around(-3, 5) + 99, MANY).p_value() == pytest.approx(2 / 40)
    assert Studentized(0.2, 1.0, ranks, np.ones(39), MANY).p_value() == 1


def test_the_p_value_is_never_below_students() -> None:
    found = Studentized(3.0, 1.5, np.linspace(-1, 1, 3999), np.ones(3999), 4).p_value()
    assert found == pytest.approx(2 * stats.t.sf(2, 4))
    drawn = np.arange(-18.0, 21) + 17
    far = NormalDist().inv_cdf(1 - 3 / 40) / math.sqrt(1 + 1 / 4)
    assert Percentiles(19.0, 1.0, drawn, 4).p_value() == pytest.approx(2 * stats.t.sf(far, 4))


def test_the_ends_of_a_percentile_interval_are_those_of_students_t() -> None:
    # Of 10 degrees of freedom 2.228139, times the root of 1 + 1/10.
    share = NormalDist().cdf(-2.228139 * math.sqrt(1.1))
    place = share * 1001 - 1
    drawn = np.arange(1000.0) ** 2
    low, high = Percentiles(5e5, 1.0, drawn, 10).interval(0.95)
    between = [float(np.interp(at, np.arange(1000.0), drawn)) for at in (place, 999 - place)]
    assert (low, high) == pytest.approx(tuple(between), rel=1e-6)
    # An estimate outside its resamples is within its interval.
    assert Percentiles(-4.0, 1.0, drawn, 10).interval(0.95)[0] == -4
    assert Percentiles(2e6, 1.0, drawn, 10).interval(0.95)[1] == 2e6


def test_a_figure_can_be_what_both_arms_can_be() -> None:
    assert possible((0.0, 2.0), (1.0, 5.0)) == {
        "baseline": (0.0, 2.0),
        "treatment": (1.0, 5.0),
        "difference": (-1.0, 5.0),
        "percent": (-100.0, math.inf),
    }
    assert possible((-1.0, 2.0), (1.0, 5.0))["percent"] == (-math.inf, math.inf)
    assert within((0.0, 1.0), 0.5, -0.25, 1.25) == (0.5, 0.0, 1.0)


def test_the_standard_error_of_a_mean_is_the_textbooks() -> None:
    base, treat = [1.0, 2, 6, 11], [4.0, 3, 13, 8]
    frame = arms(base, treat)
    paired = compare(frame, "x", replace(ARMS, least=4))
    # Differences 3, 1, 7, -3: mean 2, squares 1, 1, 25, 25.
    assert (paired.difference.value, paired.units) == (2, 4)
    assert paired.percent.value == pytest.approx(40)
    assert paired.standard_error == pytest.approx(math.sqrt(52 / 3 / 4))
    apart = compare(frame, "x", replace(ARMS, least=4, paired=False))
    # Squares about 5: 16, 9, 1, 36; about 7: 9, 16, 36, 1.
    assert apart.standard_error == pytest.approx(math.sqrt(62 / 3 / 4 + 62 / 3 / 4))
    assert (apart.units, apart.baseline.replicates, apart.difference.replicates) == (8, 4, 8)


def test_the_standard_error_of_a_rate_is_that_of_its_residuals() -> None:
    frame = arms([1.0, 2, 6, 11], [4.0, 3, 13, 8], sent=[10, 10, 40, 40, 10, 20, 30, 40])
    found = compare_rate(frame, "x", "sent", replace(ARMS, least=4, paired=False))
    assert (found.baseline.value, found.treatment.value) == pytest.approx((0.2, 0.28))
    # Residuals -1, 0, -2, 3 of 25 a unit; 1.2, -2.6, 4.6, -3.2 of 25 a unit.
    squares = (1 + 0 + 4 + 9, 1.44 + 6.76 + 21.16 + 10.24)
    assert found.standard_error == pytest.approx(math.sqrt(sum(squares) / 3 / 4) / 25)


def test_a_stratum_counts_by_its_share_in_both_arms_together() -> None:
    # Of stratum a three rows and one, of b one and three.
    stratum, weight = [*"aaab", *"abbb"], [1.0] * 4 + [2.0] * 4
    frame = arms([1.0, 2, 3, 10], [4.0, 20, 22, 27], stratum=stratum, weight=weight)
    request = replace(ARMS, strata="stratum", paired=False)
    alike = compare(frame, "x", request)
    assert (alike.baseline.value, alike.treatment.value) == pytest.approx((2 / 2 + 10 / 2, 4 / 2 + 23 / 2))
    # Weights 3 + 2 of a, 1 + 6 of b.
    weighted = compare(frame, "x", replace(request, weight="weight"))
    assert weighted.baseline.value == pytest.approx((5 * 2 + 7 * 10) / 12)
    assert weighted.treatment.value == pytest.approx((5 * 4 + 7 * 23) / 12)
    given = compare(frame, "x", replace(request, shares={"b": 1, "a": 3}))
    assert (given.baseline.value, given.treatment.value) == pytest.approx((4, 8.75))


def test_a_quantile_of_strata_is_of_weights_that_give_each_its_share() -> None:
    # 15 of 1, 15 of 2 and 10 of 5 by number; shares of 0.2, 0.2 and 0.6.
    values, stratum = [1.0] * 15 + [2.0] * 15 + [5.0] * 10, ["a"] * 30 + ["b"] * 10
    frame = arms(values, [3 * x for x in values], stratum=stratum * 2)
    for shares, median in (({"a": 0.4, "b": 0.6}, 5), ({"a": 0.9, "b": 0.1}, 2)):
        found = compare(frame, "x", replace(ARMS, strata="stratum", shares=shares), statistic="p50")
        assert (found.baseline.value, found.treatment.value) == (median, 3 * median)


def test_the_standard_error_of_strata_is_that_of_each_by_its_share() -> None:
    base, treat = [1.0, 3, 10, 14, 30], [2.0, 8, 11, 11, 17]
    frame = arms(base, treat, stratum=[*"aabbb", *"aabbb"])
    found = compare(frame, "x", replace(ARMS, strata="stratum", shares={"a": 0.75, "b": 0.25}, least=5))
    # Differences 1 and 5 of a, 1, -3 and -13 of b: means 3 and -5, squares 8 and 104.
    assert found.difference.value == pytest.approx(0.75 * 3 - 0.25 * 5)
    assert found.standard_error == pytest.approx(math.sqrt(0.75**2 * 8 / 1 / 2 + 0.25**2 * 104 / 2 / 3))
    with pytest.raises(ValueError, match="a share above 0"):
        compare(frame, "x", replace(ARMS, strata="stratum", shares={"a": 1.0, "b": 0.0}, least=5))
    with pytest.raises(ValueError, match="give each of the strata a, b"):
        compare(frame, "x", replace(ARMS, strata="stratum", shares={"a": 1.0}, least=5))


def test_units_of_one_arm_alone_and_rows_without_a_value_are_counted_in_their_places() -> None:
    frame = pl.DataFrame(
        {
            "iw": [3] * 6 + [10] * 4,
            "client": [0, 1, 2, 3, 4, 5, 0, 1, 2, 9],
            "x": [1.0, 2, math.nan, None, 5, 6, 7, 9, 4, 8],
        }
    )
    found = compare(frame, "x", ARMS)
    # Clients 4 and 5 of the baseline, 9 of the treatment; 2 did not finish, of 3 nothing is known.
    assert (found.unmatched, found.unfinished, found.unknown) == ((2, 1), (1, 0), (1, 0))
    assert (found.baseline.value, found.treatment.value, found.units) == (1.5, 8, 2)


def test_fairness_is_jains_index_of_each_arm() -> None:
    found = compare_jain(arms([1.0, 1, 2], [1.0, 2, 6]), "x", ARMS)
    assert (found.baseline.value, found.treatment.value) == pytest.approx((16 / (3 * 6), 81 / (3 * 41)))
    weighted = compare_jain(arms([1.0, 2], [3.0, 1], w=[2.0, 1, 1, 3]), "x", replace(ARMS, weight="w"))
    # (2 + 2)² of 3 · 6; (3 + 3)² of 4 · 12.
    assert (weighted.baseline.value, weighted.treatment.value) == pytest.approx((16 / 18, 36 / 48))


def transfers() -> pl.DataFrame:
    """Two clients whose calls matter and one that searches; each count is another one."""
    rows = [
        # iw, client, application, start, time, delivered, sent, again, timeouts, first flight, lost of it
        (3, 0, "call", 0.0, 4.0, 1000, 10, 1, 0, 3, 1),
        (3, 1, "call", 7.0, math.nan, 300, 30, 0, 2, 3, 0),
        (3, 2, "search", 1.0, 5.0, 70, 12, 3, 1, 3, 2),
        (10, 0, "call", 0.0, 2.0, 1000, 20, 4, 3, 10, 5),
        (10, 1, "call", 2.0, 6.0, 900, 60, 4, 2, 8, 1),
        (10, 2, "search", 1.0, 9.0, 90, 20, 0, 0, 2, 0),
    ]
    names = ["iw", "client", "application", "start_s", "completion_time_s", "delivered_bytes", "segments_sent"]
    names += ["retransmissions", "timeouts", "first_flight_segments", "first_flight_lost_segments"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_an_unfinished_transfer_took_from_its_own_beginning_to_the_end() -> None:
    *_, throughput = harm(transfers(), ARMS, others=["call"], duration_s=10.0)
    # 1000 + 300 bytes in 4 + 3 s; 1000 + 900 in 2 + 6 s.
    assert throughput.measure == "throughput"
    assert throughput.comparison.baseline.value == pytest.approx(1300 / 7)
    assert throughput.comparison.treatment.value == pytest.approx(1900 / 8)
    assert throughput.harm_percent == pytest.approx(100 * (1 - 1900 * 7 / (8 * 1300)))
    *_, finished = harm(transfers(), ARMS, others=["call"])
    assert (finished.comparison.baseline.value, finished.comparison.treatment.value) == (250, 500)
    assert finished.comparison.unfinished == (1, 0)


def test_what_is_retransmitted_is_told_as_rate_share_of_flows_timeouts_and_first_flights() -> None:
    found = retransmissions(transfers(), ARMS)
    figures = {
        name: (of.baseline.value, of.treatment.value)
        for name, of in (
            ("rate", found.rate),
            ("flows", found.flows),
            ("timeouts", found.timeouts),
            ("first flight", found.first_flight),
        )
    }
    assert figures == {
        "rate": pytest.approx((4 / 52, 8 / 100)),
        "flows": pytest.approx((2 / 3, 2 / 3)),
        "timeouts": pytest.approx((3 / 3, 5 / 3)),
        "first flight": pytest.approx((3 / 9, 6 / 20)),
    }


@pytest.mark.parametrize(
    ("budget", "verdicts", "together"),
    [
        (Budget(latency_percent=10, throughput_percent=2), ["within budget"] * 2 + ["over budget"], "over budget"),
        (Budget(latency_percent=2, throughput_percent=10), ["over budget"] * 2 + ["within budget"], "over budget"),
        (Budget(latency_percent=10, throughput_percent=11), ["within budget"] * 3, "within budget"),
    ],
)
def test_latency_and_throughput_have_each_its_own_budget(budget: Budget, verdicts: list[str], together: str) -> None:
    draw = np.random.default_rng(1)
    base = draw.lognormal(-1, 0.5, 500)
    frame = arms(base.tolist(), (1.05 * base * draw.uniform(0.999, 1.001, 500)).tolist()).with_columns(
        pl.col("x").alias("completion_time_s"), application=pl.lit("call"), delivered_bytes=1000
    )
    found = harm(frame, ARMS, others=["call"], latency=["p50", "p90"], budget=budget)
    assert [one.verdict for one in found] == verdicts
    assert [one.budget_percent for one in found] == [
        budget.latency_percent,
        budget.latency_percent,
        budget.throughput_percent,
    ]
    # 5% longer is 4.76% slower.
    assert [one.harm_percent for one in found] == pytest.approx([5, 5, 100 - 100 / 1.05], abs=0.1)
    assert within_budget(found) == together


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1, 5, "within budget"), (1, 5.25, "inconclusive"), (5, 9, "inconclusive"), (5.25, 9, "over budget")],
)
def test_harm_whose_interval_ends_exactly_at_the_budget_is_within_it(low: float, high: float, verdict: str) -> None:
    assert _verdict(cast(Comparison, SimpleNamespace(units=7)), low, high, 5) == verdict


def test_units_that_an_interval_needs() -> None:
    assert [least_units(name) for name in ("mean", "rate", "jain", "p50", "p75", "p90", "p95", "p99", "p1")] == [
        400,
        400,
        400,
        100,
        160,
        400,
        800,
        4000,
        4000,
    ]


def test_a_plan_is_the_textbooks() -> None:
    # 1.959964 of 95% confidence and 0.841621 of 80% power; squared 7.848880.
    pilot = Pilot("mean", 10.0, 4.0, 50, paired=True)
    assert units_needed(pilot, difference=0.5) == math.ceil(7.848880 * 64)
    assert units_needed(pilot, difference=-0.5) == 503
    assert units_needed(pilot, percent=5) == 503
    assert units_needed(pilot, difference=4) == 400
    # 2.575829 and 1.281552; squared 14.879384.
    assert units_needed(pilot, difference=0.5, confidence=0.99, power=0.9) == math.ceil(14.879384 * 64)
    found = minimum_detectable_effect(pilot, 900)
    assert found.difference == pytest.approx(2.801585 * 4 / 30, rel=1e-6)
    assert found.percent == pytest.approx(2.801585 * 4 / 30 * 10, rel=1e-6)
    assert (found.units, found.power, found.confidence) == (900, 0.8, 0.95)
    assert minimum_detectable_effect(pilot, 400).units == 400
    with pytest.raises(ValueError, match="399 units are too few"):
        minimum_detectable_effect(pilot, 399)
    with pytest.raises(ValueError, match="between 0 and 1"):
        units_needed(pilot, difference=0.5, power=1.0)


def test_the_deviation_of_a_pilot_is_that_of_a_pair_or_of_both_arms() -> None:
    base, treat = [1.0, 2, 6, 11], [4.0, 3, 13, 8]
    pairs = pilot_of(compare(arms(base, treat), "x", replace(ARMS, least=4)))
    assert (pairs.deviation, pairs.value) == pytest.approx((math.sqrt(52 / 3), 5))
    assert (pairs.units, pairs.paired) == (4, True)
    # Squares about 5 are 62, of 3 freedoms; of 2, 2, 11 about 5 they are 54, of 2.
    apart = pilot_of(compare(arms(base, [2.0, 2, 11]), "x", replace(ARMS, least=3, paired=False)))
    assert apart.deviation == pytest.approx(math.sqrt(62 / 3 + 54 / 2))
    assert (apart.units, apart.paired) == (3, False)
    today = pilot_of_one_arm(pl.DataFrame({"user": range(4), "x": base}), "x", unit=["user"], least=4)
    assert today.deviation == pytest.approx(math.sqrt(2 * 62 / 3))
    assert (today.value, today.units, today.paired) == (5, 4, False)


def test_a_pilot_refuses_a_keyword_that_it_does_not_know() -> None:
    frame = pl.DataFrame({"user": range(4), "x": [1.0, 2, 6, 11]})
    with pytest.raises(TypeError, match=r"pilot_of_one_arm.* unexpected keyword argument 'clusters'"):
        pilot_of_one_arm(frame, "x", unit=["user"], clusters="subnet")  # type: ignore[call-arg]


def test_the_kernel_has_no_value_for_what_is_no_distance() -> None:
    assert _kernel(np.array([-math.inf, -9.0, 0, 9, math.inf, math.nan])) == pytest.approx(
        [0, 0, 0.5, 1, 1, math.nan], abs=1e-6, nan_ok=True
    )


def test_arms_are_without_a_difference_only_if_each_unit_is() -> None:
    values = np.random.default_rng(2).normal(10, 3, 400).tolist()
    for statistic in ("mean", "p50"):
        # The same values of other units, and of units that have no partner.
        for frame, paired in ((arms(values, values[::-1]), True), (arms(values, values), False)):
            found = compare(frame, "x", replace(ARMS, paired=paired), statistic=statistic).difference
            assert found.value == pytest.approx(0, abs=1e-9)
            assert found.low < -0.1 < 0.1 < found.high


def test_a_comparison_says_how_its_units_were_drawn() -> None:
    values = np.random.default_rng(2).normal(10, 3, 400)
    frame = arms(values.tolist(), (values**1.01).tolist(), side=[*"ab"] * 400)
    paired, median = (compare(frame, "x", ARMS, statistic=statistic).method for statistic in ("mean", "p50"))
    apart = compare(frame, "x", replace(ARMS, strata="side", paired=False)).method
    assert ("drawn together" in paired, "(percentile of one arm)" in paired, "strata" in paired) == (True, False, False)
    assert ("drawn together" in median, "(percentile of one arm)" in median) == (True, True)
    assert ("drawn together" in apart, "drawn apart" in apart, "within strata" in apart) == (False, True, True)


def test_a_plain_quantile_is_the_least_value_that_a_share_does_not_exceed() -> None:
    steps = _Steps(np.array([30.0, 10, 20]), np.array([1.0, 1, 2]), 0.5)
    # 10 up to a quarter, 20 up to three, 30 beyond.
    shares = np.array([0.0, 0.25, 0.26, 0.75, 0.76, 1.0, 1.25])
    assert steps.at(shares).tolist() == [10, 10, 20, 20, 30, 30, 30]
    assert steps.passed.tolist() == [0, 1, 1]


def test_the_share_of_a_statistic() -> None:
    shares = [share_of(name) for name in ("mean", "median", "p5", "p99", "p99.9")]
    assert shares == [None, 0.5, 0.05, 0.99, pytest.approx(0.999)]
    for wrong in ("p0", "p100", "p", "p-5", "Mean"):
        with pytest.raises(ValueError, match="is not mean, median or p"):
            share_of(wrong)
    assert jain_index([3.0]) == 1
    with pytest.raises(ValueError, match="at least one"):
        jain_index([])


def test_in_a_bucket_the_unfinished_are_last_in_a_quantile_and_not_in_a_mean() -> None:
    nan = math.nan
    frame = arms([1.0, 2, nan, 5], [1.0, 4, 4, 8], place=[*"aaab"] * 2)
    for statistic, expected in (("mean", (1.5, 2.5)), ("p90", (math.inf, None))):
        found = by_bucket(frame, "x", "place", ARMS, buckets=["a", "b"], statistic=statistic)
        first, second = (one.comparison for one in found)
        assert first is not None
        assert second is not None
        assert first.baseline.value == expected[0]
        assert expected[1] in (None, first.treatment.value)
        assert (first.units, second.units) == ((2, 1) if statistic == "mean" else (3, 1))
        assert [one.share_percent for one in found] == [75, 25]


def aggregated(base: list[dict[str, int]], treat: list[dict[str, int]]) -> pl.DataFrame:
    """Sums of the records, one row per replicate of each arm."""
    labels = {"application": "web", "unit": "transfer", "dimension": "all", "bucket": 0}
    rows = [
        labels | {"iw": iw, "replicate": replicate} | sums
        for iw, arm in ((3, base), (10, treat))
        for replicate, sums in enumerate(arm)
    ]
    return pl.DataFrame(rows)


OF_SUMS: dict[str, Any] = {"arm": "iw", "baseline": 3, "treatment": 10}
NO_BINS = pl.DataFrame(
    {"application": "web", "unit": "transfer", "dimension": "all", "bucket": 0, "iw": 3, "replicate": 0}
    | {"bin": 1, "count": 0}
)


def two_each(seconds: list[int]) -> list[dict[str, int]]:
    """Two transfers a replicate, whose mean is given."""
    return [{"count": 2, "completed": 2, "completion_ns_sum": 2_000_000_000 * each} for each in seconds]


def test_a_mean_of_aggregates_has_students_interval_over_replicates() -> None:
    sums = aggregated(two_each([1, 2, 4, 7, 11]), two_each([3, 2, 3, 9, 13]))
    paired = of_aggregates(sums, NO_BINS, **OF_SUMS)
    assert (paired.baseline.value, paired.treatment.value, paired.units) == (5, 6, 5)
    # Differences 2, 0, -1, 2, 2: squares about 1 are 8. Student's t of 4 degrees of freedom is 2.776445.
    error = math.sqrt(8 / 4 / 5)
    assert paired.standard_error == pytest.approx(error)
    assert (paired.difference.low, paired.difference.high) == pytest.approx(
        (1 - 2.776445 * error, 1 + 2.776445 * error)
    )
    assert paired.p_value == pytest.approx(2 * stats.t.sf(1 / error, 4))
    apart = of_aggregates(sums, NO_BINS, paired=False, **OF_SUMS)
    # Welch's: squares about 5 are 66, about 6 they are 92.
    one, other = 66 / 4 / 5, 92 / 4 / 5
    half = stats.t.isf(0.025, (one + other) ** 2 / (one**2 / 4 + other**2 / 4)) * math.sqrt(one + other)
    assert (apart.difference.low, apart.difference.high) == pytest.approx((1 - half, 1 + half))
    assert (apart.units, apart.unmatched) == (10, (0, 0))
    fewer = of_aggregates(sums.filter((pl.col("iw") == 3) | (pl.col("replicate") != 1)), NO_BINS, **OF_SUMS)
    assert (fewer.unmatched, fewer.units, fewer.baseline.value) == ((1, 0), 4, (1 + 4 + 7 + 11) / 4)
    assert "4 replicates are too few" in fewer.reason


def test_each_rate_of_aggregates_is_a_ratio_of_its_own_two_sums() -> None:
    names = "count completed completion_ns_sum retransmissions segments_sent with_retransmission timeouts "
    names += "first_flight_lost_segments first_flight_segments with_first_flight_loss"
    base = dict(zip(names.split(), (100, 90, 10**9, 40, 1000, 30, 20, 6, 300, 5), strict=True))
    treat = dict(zip(names.split(), (200, 150, 10**9, 90, 3000, 80, 70, 60, 900, 50), strict=True))
    sums = aggregated([base] * 5, [treat] * 5)
    expected = {
        "retransmission rate": (40 / 1000, 90 / 3000),
        "with retransmission": (30 / 100, 80 / 200),
        "timeouts": (20 / 100, 70 / 200),
        "first-flight loss": (6 / 300, 60 / 900),
        "with first-flight loss": (5 / 100, 50 / 200),
        "completed": (90 / 100, 150 / 200),
    }
    for statistic, values in expected.items():
        found = of_aggregates(sums, NO_BINS, statistic=statistic, **OF_SUMS)
        assert (found.baseline.value, found.treatment.value) == pytest.approx(values)
        assert found.unfinished == (50, 250)


def in_bins(base: list[dict[int, int]], treat: list[dict[int, int]]) -> pl.DataFrame:
    """Histograms, counts by bin of each replicate of each arm."""
    labels = {"application": "web", "unit": "transfer", "dimension": "all", "bucket": 0}
    return pl.DataFrame(
        [
            labels | {"iw": iw, "replicate": replicate, "bin": place, "count": count}
            for iw, arm in ((3, base), (10, treat))
            for replicate, bins in enumerate(arm)
            for place, count in bins.items()
        ]
    )


def test_an_interval_of_a_quantile_of_aggregates_has_the_width_of_the_bins_added() -> None:
    ten = {"count": 10, "completed": 10, "completion_ns_sum": 1}
    found = of_aggregates(
        aggregated([ten] * 5, [ten] * 5), in_bins([{1000: 10}] * 5, [{900: 10}] * 5), statistic="p25", **OF_SUMS
    )
    # A quarter of the way, in the logarithm, through the one bin that there is; its upper end is farther.
    base, treat = GAMMA**999.25 / 1e9, GAMMA**899.25 / 1e9
    base_off, treat_off = GAMMA**1000 / 1e9 - base, GAMMA**900 / 1e9 - treat
    percent = 100 * (treat / base - 1)
    percent_off = 100 * treat / base * (base_off / base + treat_off / treat)
    for estimate, value, off in (
        (found.baseline, base, base_off),
        (found.treatment, treat, treat_off),
        (found.difference, treat - base, base_off + treat_off),
        (found.percent, percent, percent_off),
    ):
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((value, value - off, value + off))


def test_a_quantile_that_one_replicate_less_does_not_reach_has_no_interval() -> None:
    finished = [10, 8, 8, 7, 7]
    sums = [{"count": 10, "completed": each, "completion_ns_sum": 1} for each in finished]
    bins = [{1000 + each: each} for each in finished]
    # 40 of 50 have finished; without the first replicate 30 of 40.
    found = of_aggregates(aggregated(sums, sums), in_bins(bins, bins), statistic="p80", **OF_SUMS)
    assert math.isfinite(found.baseline.value)
    assert math.isnan(found.difference.low)
    assert found.reason.startswith("too many did not finish")
    assert found.unfinished == (10, 10)


def test_as_many_resamples_are_drawn_as_are_asked_for_each_of_as_many_blocks() -> None:
    state = json.dumps(np.random.default_rng(1).bit_generator.state)
    whole, *pieces = draws((state, ((3,), (200_000,))), 7)
    assert [(counts == 1).all() for counts in whole] == [True, True]
    assert sum(len(few) for few, _ in pieces) == sum(len(many) for _, many in pieces) == 7
    for few, many in pieces:
        assert set(few.sum(axis=1)) == {3}
        assert set(many.sum(axis=1)) == {200_000}


def _one_each(values: list[float]) -> tuple[ArmRows, Blocks, np.ndarray[Any, np.dtype[np.float64]]]:
    count = len(values)
    blocks = Blocks(np.arange(count), np.array([count]))
    column, weight = np.array(values).reshape(-1, 1), np.ones(count)
    return ArmRows(column, weight, np.arange(count), np.zeros(count, np.int64), count, 0, 0, 0), blocks, weight


def test_the_line_of_jains_index_is_its_derivative() -> None:
    jain = Jain(*_one_each([1.0, 2.0, 6.0]))
    sums = np.array([[3.0], [9.0], [41.0]])
    _, line = jain.line(sums)
    for place in range(3):
        step = np.zeros((3, 1))
        step[place] = 1e-6
        assert line[place, 0] == pytest.approx(float((jain.of(sums + step) - jain.of(sums - step))[0]) / 2e-6, rel=1e-6)


def test_the_degrees_of_freedom_of_a_share_are_those_of_its_variance() -> None:
    """With p = 0.9 of 100 units: 2 n p (1 - p) / (1 - 2p)^2."""
    assert Quantile(*_one_each([*map(float, range(1, 101))]), 0.9).freedom == pytest.approx(28.125)
    assert Quantile(*_one_each([*map(float, range(1, 101))]), 0.5).freedom == math.inf
