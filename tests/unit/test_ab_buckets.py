"""Comparisons bucket by bucket, and the verdicts that look at all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.ab import Bucket, Design, bucketed, by_bucket

APART = Design(arm="iw", baseline=3, treatment=10, unit=["client"], paired=False)


def transfers() -> pl.DataFrame:
    """Round trips of 10, 50 and 300 ms: the treatment gains nothing, a tenth and a third; four clients at 2 s."""
    draw = np.random.default_rng(2)
    rtt = np.concatenate([np.repeat([0.01, 0.05, 0.3], [1400, 1200, 1100]), np.full(4, 2.0)])
    client = np.arange(len(rtt))
    times = {3: rtt * draw.lognormal(1, 0.5, len(rtt)), 10: rtt * draw.lognormal(1, 0.5, len(rtt))}
    times[10] *= np.select([rtt == 0.05, rtt == 0.3], [0.85, 0.66], 1.0)
    return pl.concat(
        pl.DataFrame({"iw": iw, "client": client, "rtt_s": rtt, "time_s": time, "sent": 1 + 5 * time})
        for iw, time in times.items()
    )


def looked_at(**request: Any) -> list[Bucket]:
    rows = bucketed(transfers(), "rtt_s", [0.02, 0.1, 0.2, 1.0], "bucket")
    return by_bucket(rows, "time_s", "bucket", APART, buckets=range(5), **request)


def test_every_bucket_says_what_is_known_of_it() -> None:
    found = looked_at()
    assert [one.verdict for one in found] == [
        "no significant difference",
        "better",
        "no flows",
        "better",
        "too few flows",
    ]
    assert [round(one.share_percent, 1) for one in found] == [37.8, 32.4, 0.0, 29.7, 0.1]
    assert found[2].comparison is None
    assert found[2].reason == "no clients of iw 3: mean needs 400"
    assert math.isnan(found[2].low)
    assert found[4].reason == "4 clients of iw 3 are too few: mean needs 400"
    assert found[3].percent_high < -20


def test_intervals_that_hold_at_once_are_wider_than_each_by_itself() -> None:
    one = looked_at()[3]
    assert one.comparison is not None
    assert one.low < one.comparison.difference.low < one.comparison.difference.high < one.high
    alone = looked_at(correction="none")[3]
    assert (alone.low, alone.high) == pytest.approx((one.comparison.difference.low, one.comparison.difference.high))


def test_the_interval_of_a_bucket_that_is_looked_at_alone_is_its_own() -> None:
    (one,) = by_bucket(bucketed(transfers(), "rtt_s", [10.0], "bucket"), "time_s", "bucket", APART, buckets=[0])
    assert one.comparison is not None
    assert (one.low, one.high) == pytest.approx((one.comparison.difference.low, one.comparison.difference.high))


def test_p_values_are_corrected_for_the_number_of_buckets_that_have_one() -> None:
    plain, corrected = (
        np.array([one.p_adjusted for one in looked_at(correction=name)]) for name in ("none", "bonferroni")
    )
    assert corrected[[0, 1, 3]] == pytest.approx(np.minimum(1, 3 * plain[[0, 1, 3]]))
    assert np.isnan(corrected[[2, 4]]).all()
    with pytest.raises(ValueError, match="fisher"):
        looked_at(correction="fisher")


def test_a_verdict_never_stands_beside_an_interval_that_says_otherwise() -> None:
    """Of buckets whose effect is about as large as their intervals are wide, by milliseconds and by percent."""
    seen = []
    for seed in range(25):
        draw = np.random.default_rng(seed)
        place = np.repeat(np.arange(6), 110)
        base = draw.lognormal(0, 1, len(place))
        times = {3: base, 10: base * draw.lognormal(-0.055, 0.25, len(place)) ** draw.choice([-1, 1], len(place))}
        rows = pl.concat(
            pl.DataFrame({"iw": iw, "client": np.arange(len(place)), "bucket": place, "time_s": time})
            for iw, time in times.items()
        )
        design = Design(arm="iw", baseline=3, treatment=10, unit=["client"], least=100, resamples=400)
        for statistic in ("mean", "p50"):
            seen += by_bucket(rows, "time_s", "bucket", design, buckets=range(6), statistic=statistic)
    apart = [one for one in seen if one.verdict in ("better", "worse")]
    assert apart
    assert len(apart) < len(seen)
    for one in seen:
        for low, high in ((one.low, one.high), (one.percent_low, one.percent_high)):
            assert (one.verdict == "no significant difference") == (low <= 0 <= high)
            assert (one.verdict == "better") == (high < 0)


def test_a_rate_is_compared_in_buckets_too() -> None:
    found = looked_at(denominator="sent")
    assert found[0].comparison is not None
    assert found[0].comparison.statistic == "rate"


def test_edges_belong_to_the_bucket_below() -> None:
    rows = bucketed(pl.DataFrame({"x": [0.5, 1.0, 1.1, 3.0, math.nan, None]}), "x", [1.0, 2.0], "place")
    assert rows["place"].to_list() == [0, 0, 1, 2, None, None]
    with pytest.raises(ValueError, match="do not rise"):
        bucketed(rows, "x", [2.0, 1.0], "place")
