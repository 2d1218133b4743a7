"""Two arms compared: pairs, resampling, and values that are not a number."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from firstflight.analysis.ab import Design, compare, compare_rate
from firstflight.analysis.intervals import Studentized

ARMS = Design(arm="iw", baseline=3, treatment=10, unit=["replicate", "client"])


def arms(base: np.ndarray, treat: np.ndarray) -> pl.DataFrame:
    """Values of both arms, one row a client."""
    return pl.concat(
        pl.DataFrame({"iw": iw, "replicate": 0, "client": np.arange(len(values)), "time_s": values})
        for iw, values in ((3, base), (10, treat))
    )


def latencies(count: int, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    base = draw.lognormal(-1, 1, count) + (draw.random(count) < 0.03)
    return arms(base, base * draw.uniform(0.7, 1.0, count))


def test_the_figures_are_those_of_the_two_arms() -> None:
    frame = latencies(1200)
    base, treat = (frame.filter(pl.col("iw") == iw)["time_s"].to_numpy() for iw in (3, 10))
    found = compare(frame, "time_s", ARMS)
    assert found.baseline.value == pytest.approx(base.mean())
    assert found.difference.value == pytest.approx(treat.mean() - base.mean())
    assert found.percent.value == pytest.approx(100 * (treat.mean() / base.mean() - 1))
    assert found.difference.low < found.difference.value < found.difference.high < 0
    assert (found.units, found.unmatched, found.unfinished, found.unknown) == (1200, (0, 0), (0, 0), (0, 0))
    assert found.verdict() == "better"
    median = compare(frame, "time_s", ARMS, statistic="p50")
    plain = np.quantile(treat, 0.5, method="inverted_cdf")
    assert median.treatment.value == pytest.approx(plain, abs=(median.treatment.high - median.treatment.low) / 8)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_quantile_behind_a_gap_in_the_values_is_not_smoothed_across_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = np.concatenate([draw.lognormal(0, 0.3, 3952), draw.lognormal(2, 0.4, 48)])
    found = compare(arms(base, 0.95 * base), "time_s", ARMS, statistic="p99")
    low, plain, high = np.quantile(base, [0.9884, 0.99, 0.9916])
    assert low < found.baseline.value < high
    assert low < 0.9 * plain
    assert found.baseline.low < plain < found.baseline.high
    assert found.percent.value == pytest.approx(-5)


@pytest.mark.parametrize("statistic", ["p50", "p90"])
def test_quantiles_of_arms_that_rank_their_units_alike_still_differ(statistic: str) -> None:
    base = np.repeat(np.arange(1.0, 41.0), 50)
    found = compare(arms(base, base / 2), "time_s", ARMS, statistic=statistic)
    assert found.percent.value == pytest.approx(-50)
    assert found.difference.value == pytest.approx(-found.baseline.value / 2)
    assert found.difference.high < 0


def test_pairs_tell_more_than_two_samples() -> None:
    frame = latencies(1200)
    paired, apart = (compare(frame, "time_s", replace(ARMS, paired=paired)) for paired in (True, False))
    assert paired.difference.value == pytest.approx(apart.difference.value)
    assert apart.standard_error > 3 * paired.standard_error


def test_an_unfinished_transfer_is_beyond_every_quantile_and_out_of_a_mean_with_its_partner() -> None:
    frame = arms(np.array([1.0, 2.0, 3.0, math.nan]), np.array([1.0, math.nan, 2.0, 5.0]))
    mean = compare(frame, "time_s", ARMS)
    assert (mean.baseline.value, mean.treatment.value, mean.units) == (2.0, 1.5, 2)
    assert mean.unfinished == (1, 1)
    high = compare(frame, "time_s", ARMS, statistic="p90")
    assert math.isinf(high.baseline.value)
    assert math.isinf(high.treatment.value)
    assert math.isnan(high.difference.value)


def test_a_quantile_near_the_unfinished_is_the_plain_one_and_its_interval_may_be_open() -> None:
    draw = np.random.default_rng(3)
    base = np.sort(draw.lognormal(-1, 1, 1000))
    lost = np.where(np.arange(1000) >= 960, np.nan, base)
    found = compare(arms(base, lost), "time_s", replace(ARMS, paired=False), statistic="p95")
    assert found.treatment.value == np.sort(base)[949]
    assert math.isinf(found.treatment.high)
    assert math.isfinite(found.baseline.high)


def test_too_few_units_get_no_interval_and_hear_how_many_it_takes() -> None:
    found = compare(latencies(100), "time_s", ARMS, statistic="p99")
    assert math.isnan(found.difference.low)
    assert found.reason == "100 pairs are too few: p99 needs 4,000"
    assert found.verdict() == "too few flows"
    empty = compare(latencies(100).filter(pl.col("iw") == 3), "time_s", ARMS)
    assert empty.verdict() == "no flows"


def test_a_rate_is_a_ratio_of_sums() -> None:
    frame = latencies(200).with_columns(sent=pl.col("client") % 7 + 1.0)
    found = compare_rate(frame, "time_s", "sent", ARMS)
    treat = frame.filter(pl.col("iw") == 10)
    assert found.treatment.value == pytest.approx(treat["time_s"].sum() / treat["sent"].sum())


def test_equal_arms_do_not_differ() -> None:
    same = latencies(1200).filter(pl.col("iw") == 3)["time_s"].to_numpy()
    for statistic in ("mean", "p50"):
        found = compare(arms(same, same), "time_s", ARMS, statistic=statistic)
        assert (found.difference.low, found.difference.high, found.p_value) == (0, 0, 1)
        assert found.verdict() == "no significant difference"


def test_groups_of_units_give_the_interval_of_the_plain_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = latencies(6000)
    requests = [("mean", True), ("p95", True), ("p50", False)]
    in_groups = [compare(frame, "time_s", replace(ARMS, paired=paired), statistic=name) for name, paired in requests]
    monkeypatch.setattr("firstflight.analysis.ab.contrast.MOST_BLOCKS", 10**9)
    for grouped, (name, paired) in zip(in_groups, requests, strict=True):
        plain = compare(frame, "time_s", replace(ARMS, paired=paired), statistic=name)
        assert "groups" in grouped.method
        assert "groups" not in plain.method
        # The width by which a quantile is smoothed comes from the groups.
        assert grouped.difference.value == pytest.approx(plain.difference.value, rel=1e-3)
        assert grouped.standard_error == pytest.approx(plain.standard_error, rel=0.1)


def test_the_intervals_are_scipys_where_both_can_be_used() -> None:
    draw = np.random.default_rng(5)
    base, treat = draw.lognormal(0, 1, 1100), draw.lognormal(0, 1, 1100)
    # Studentized and BCa are both of second order; SciPy has no studentized one.
    for statistic, theirs, method in (("mean", np.mean, "BCa"), ("p50", np.median, "percentile")):
        ours = compare(arms(base, treat), "time_s", replace(ARMS, paired=False, resamples=9999), statistic=statistic)
        scipys = stats.bootstrap(
            (treat, base),
            lambda t, b, axis, of=theirs: of(t, axis) - of(b, axis),
            method=method,
            rng=draw,
            n_resamples=2000,
            batch=200,
        ).confidence_interval
        reach = ours.difference.high - ours.difference.low
        assert ours.difference.low == pytest.approx(scipys.low, abs=0.08 * reach)
        assert ours.difference.high == pytest.approx(scipys.high, abs=0.08 * reach)


def test_the_order_of_the_rows_does_not_matter() -> None:
    frame = latencies(1200)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=9)
    one, other = (compare(rows, "time_s", ARMS).difference for rows in (frame, shuffled))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-12)


def test_weights_strata_and_clusters_change_the_figure_or_its_error_as_they_should() -> None:
    frame = latencies(1200).with_columns(
        weight=pl.when(pl.col("client") % 3 == 0).then(4.0).otherwise(1.0),
        stratum=(pl.col("client") % 3).cast(pl.String),
        household=pl.col("client") // 9,
    )
    treat = frame.filter(pl.col("iw") == 10)
    weighted = compare(frame, "time_s", replace(ARMS, weight="weight"))
    assert weighted.treatment.value == pytest.approx(np.average(treat["time_s"], weights=treat["weight"]))
    by_hand = [treat.filter(pl.col("stratum") == name)["time_s"].mean() for name in "012"]
    shares = {"0": 0.5, "1": 0.3, "2": 0.2}
    stratified = compare(frame, "time_s", replace(ARMS, strata="stratum", shares=shares))
    assert stratified.treatment.value == pytest.approx(np.dot(list(shares.values()), by_hand))
    copies = pl.concat(
        [frame.with_columns(client=pl.col("client") + 5000 * copy, of=pl.col("client")) for copy in range(4)]
    )
    alone, together = (compare(copies, "time_s", replace(ARMS, cluster=cluster)) for cluster in (None, "of"))
    assert together.standard_error == pytest.approx(2 * alone.standard_error, rel=0.15)


def test_a_resample_without_an_error_of_its_own_does_not_make_an_interval_endless() -> None:
    draw = np.random.default_rng(1)
    off, errors = draw.normal(size=1999), np.full(1999, 1.0)
    assert Studentized(1.0, 1.0, off, errors, 100).interval(0.95) == pytest.approx((-1.0, 3.0), abs=0.2)
    # A twentieth of the resamples hold alike units only; their own error is 0 but for the last digit.
    errors[::20] = 1e-8
    low, high = Studentized(1.0, 1.0, off, errors, 100).interval(0.95)
    assert low == pytest.approx(-1.3, abs=0.3)
    assert high == pytest.approx(3.3, abs=0.3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"treatment": 3}, "both arms"),
        ({"unit": []}, "at least one column"),
        ({"unit": ["user"]}, "lacks the column user"),
        ({"weight": "minus"}, "weight"),
        ({"cluster": "time_s"}, "more than one cluster"),
        ({"confidence": 0.0}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"shares": {"a": 1.0}}, "no strata"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    frame = latencies(1200).with_columns(minus=pl.lit(-1.0))
    with pytest.raises(ValueError, match=said):
        compare(frame, "time_s", replace(ARMS, **wrong))


def test_a_percentile_above_100_is_refused() -> None:
    with pytest.raises(ValueError, match="p101"):
        compare(latencies(100), "time_s", ARMS, statistic="p101")
