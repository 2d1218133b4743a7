"""Comparisons of odd samples: no interval is impossible, inverted, or without its own estimate."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.ab import Design, compare, compare_rate, of_aggregates
from odd_comparisons import faults

ARMS = Design(arm="iw", baseline=10, treatment=20, unit=["client"])


def test_no_comparison_of_a_small_odd_sample_has_an_impossible_interval() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {seed: list(faults(seed)) for seed in range(300)}
    assert {seed: what for seed, what in found.items() if what} == {}


def retransmissions(differing: int) -> pl.DataFrame:
    """Two thousand responses, of which all but a few have the same segments in both arms."""
    draw = np.random.default_rng(4)
    sent = draw.integers(1, 60, 2000)
    again = (draw.random(2000) < 0.1).astype(np.int64)
    more = again + np.where(np.arange(2000) < differing, 3, 0)
    sides = ((10, again, sent + again), (20, more, sent + more))
    return pl.concat(
        pl.DataFrame({"iw": iw, "client": range(2000), "again": part, "sent": whole}) for iw, part, whole in sides
    )


@pytest.mark.parametrize("differing", [1, 2, 3, 5])
def test_a_change_of_a_few_units_is_bounded_whatever_the_seed_of_the_resampling(differing: int) -> None:
    highs = []
    for seed in range(5):
        change = compare_rate(retransmissions(differing), "again", "sent", replace(ARMS, seed=seed)).difference
        assert change.low < change.value < change.high
        highs.append(change.high / change.value)
    assert 2 < min(highs) <= max(highs) < 6
    assert max(highs) < 1.2 * min(highs)


def test_where_nothing_changed_the_interval_is_exactly_nothing() -> None:
    change = compare_rate(retransmissions(0), "again", "sent", ARMS)
    assert (change.difference.value, change.difference.low, change.difference.high, change.p_value) == (0, 0, 0, 1)


def test_an_interval_of_a_share_or_a_time_ends_where_the_share_or_the_time_does() -> None:
    flags = pl.DataFrame({"iw": [10] * 400 + [20] * 400, "client": [*range(400)] * 2})
    rare = flags.with_columns(lost=pl.when(pl.col("client") == 7).then(1.0).otherwise(0.0))
    for rows, end in ((rare, "low"), (rare.with_columns(lost=1 - pl.col("lost")), "high")):
        found = compare(rows, "lost", replace(ARMS, paired=False))
        assert getattr(found.baseline, end) == (0.0 if end == "low" else 1.0)
        assert found.baseline.low < found.baseline.value < found.baseline.high


def test_an_interval_from_aggregates_ends_where_a_share_does() -> None:
    keys = {"iw": 10, "application": "web", "unit": "transfer", "dimension": "all", "bucket": 0}
    sums = pl.DataFrame(
        [
            keys | {"iw": iw, "replicate": number, "count": 10, "completed": 10 - (number == 0), "timeouts": timeouts}
            for iw in (10, 20)
            for number, timeouts in enumerate([1, 0, 0, 0, 0])
        ]
    ).with_columns(completion_ns_sum=pl.lit(10**9))
    bins = pl.DataFrame([keys | {"replicate": 0, "bin": 1, "count": 10}])
    arms = {"arm": "iw", "baseline": 10, "treatment": 20}
    timeouts = of_aggregates(sums, bins, statistic="timeouts", **arms)
    completed = of_aggregates(sums, bins, statistic="completed", **arms)
    assert timeouts.baseline.low == 0 < timeouts.baseline.value < timeouts.baseline.high
    assert completed.baseline.low < completed.baseline.value < completed.baseline.high == 1


def test_a_percentage_of_a_baseline_that_may_have_either_sign_includes_its_own_estimate() -> None:
    assert list(faults(100_895)) == []


def test_arms_may_be_whole_numbers_and_fractions() -> None:
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"share": [0.0] * 50 + [0.5] * 50, "client": [*range(50)] * 2, "time_s": draw.random(100)})
    found = compare(frame, "time_s", Design(arm="share", baseline=0, treatment=0.5, unit=["client"]))
    times = frame["time_s"].to_numpy()
    assert found.difference.value == pytest.approx(times[50:].mean() - times[:50].mean())
