"""The cost of a change: harm to other flows, fairness, retransmissions; and the run time needed to see it."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.ab import (
    Budget,
    Design,
    compare,
    compare_jain,
    harm,
    jain_index,
    minimum_detectable_effect,
    pilot_of,
    pilot_of_one_arm,
    units_needed,
    within_budget,
)

ARMS = Design(arm="iw", baseline=3, treatment=32, unit=["replicate", "client"])


def transfers(slower: float, count: int = 1500, seed: int = 4) -> pl.DataFrame:
    """Calls and searches; the calls' initial window is the same in both arms, and they become `slower`."""
    draw = np.random.default_rng(seed)
    parts = []
    for application, factor in (("call", slower), ("search", 0.8)):
        path = draw.lognormal(-1, 0.6, count)
        for iw in (3, 32):
            times = path * draw.lognormal(0, 0.1, count) * (factor if iw == 32 else 1)
            columns = {"replicate": 0, "client": np.arange(count), "application": application, "iw": iw}
            columns |= {"start_s": 0.0, "completion_time_s": times, "delivered_bytes": 20_000}
            sent = draw.poisson(12, count) + 1
            again = draw.binomial(sent, 0.02 if iw == 3 else 0.03)
            columns |= {"segments_sent": sent, "retransmissions": again, "timeouts": again > 2}
            columns |= {
                "first_flight_segments": np.minimum(sent, iw),
                "first_flight_lost_segments": np.minimum(again, 1),
            }
            parts.append(pl.DataFrame(columns))
    return pl.concat(parts).with_columns(pl.col("application").cast(pl.Enum(["call", "search"])))


def test_harm_is_measured_on_the_flows_that_did_not_change() -> None:
    for slower, verdict in ((1.0, "within budget"), (1.2, "over budget"), (1.05, "inconclusive")):
        found = harm(transfers(slower), ARMS, others=["call"], budget=Budget(5, 5))
        assert [one.measure for one in found] == ["latency p50", "latency p95", "throughput"]
        assert within_budget(found) == verdict
        assert found[0].low < 100 * (slower - 1) < found[0].high
    throughput = harm(transfers(1.2), ARMS, others=["call"])[2]
    assert throughput.harm_percent == pytest.approx(100 * (1 - 1 / 1.2), abs=2)
    assert throughput.low < throughput.harm_percent < throughput.high


def test_without_other_flows_there_is_no_verdict_on_them() -> None:
    found = harm(transfers(1.0), ARMS, others=["voice"])
    assert {one.verdict for one in found} == {"no flows"}
    assert within_budget(found) == "no flows"
    few = harm(transfers(1.0, count=30), ARMS, others=["call"])
    assert few[0].verdict == "too few flows"
    assert few[0].reason == "30 pairs are too few: p50 needs 100"


def test_jain_is_one_for_equals_and_one_in_n_for_a_monopoly() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == 1
    assert jain_index([0.0, 0.0, 0.0, 5.0]) == 0.25
    assert jain_index([1.0, 2.0], [2.0, 1.0]) == pytest.approx(jain_index([1.0, 1.0, 2.0]))
    assert math.isnan(jain_index([0.0, 0.0]))
    with pytest.raises(ValueError, match="at least 0"):
        jain_index([1.0, -1.0])


def test_fairness_of_two_arms_is_compared_with_an_interval() -> None:
    rows = transfers(1.0).with_columns(throughput=pl.col("delivered_bytes") / pl.col("completion_time_s"))
    found = compare_jain(rows.filter(pl.col("application") == "call"), "throughput", ARMS)
    calls = rows.filter(pl.col("application") == "call", pl.col("iw") == 3)
    assert found.baseline.value == pytest.approx(jain_index(calls["throughput"].to_numpy()))
    assert found.difference.low < 0 < found.difference.high


def test_a_pilot_tells_how_many_units_it_takes() -> None:
    rows = transfers(1.0).filter(pl.col("application") == "search")
    pilot = pilot_of(compare(rows, "completion_time_s", ARMS, statistic="p50"))
    needed = units_needed(pilot, percent=2)
    assert minimum_detectable_effect(pilot, needed).percent == pytest.approx(2, rel=0.01)
    assert units_needed(pilot, percent=1) == pytest.approx(4 * needed, rel=0.01)
    assert units_needed(pilot, percent=2, power=0.95) > needed
    today = rows.filter(pl.col("iw") == 3)
    unpaired = pilot_of_one_arm(today, "completion_time_s", unit=["client"], statistic="p50")
    assert units_needed(unpaired, percent=2) > 5 * needed
    with pytest.raises(ValueError, match="50 units are too few: p50 needs 100"):
        minimum_detectable_effect(pilot, 50)
    with pytest.raises(ValueError, match="either"):
        units_needed(pilot)
    with pytest.raises(ValueError, match="difference of 0"):
        units_needed(pilot, difference=0)


def test_the_effect_of_a_mean_is_the_textbooks() -> None:
    draw = np.random.default_rng(6)
    today = pl.DataFrame({"user": np.arange(4000), "x": draw.normal(10, 2, 4000)})
    pilot = pilot_of_one_arm(today, "x", unit=["user"])
    # 2.8 standard errors of the difference of two means of 1,000 each.
    assert minimum_detectable_effect(pilot, 1000).difference == pytest.approx(2.802 * 2 * math.sqrt(2 / 1000), rel=0.05)
