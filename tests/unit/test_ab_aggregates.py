"""Comparisons from counts, sums and histograms agree with those from the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.ab import Design, by_bucket_of_aggregates, compare, compare_rate, of_aggregates
from firstflight.records.schema import GAMMA

ARMS: dict[str, Any] = {"arm": "iw", "baseline": 3, "treatment": 10}
REPLICATES, CONNECTIONS = 8, 1500


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    draw = np.random.default_rng(3)
    count = REPLICATES * CONNECTIONS
    path = draw.lognormal(-1, 0.8, count)
    arms = []
    for iw, factor in ((3, 1.0), (10, 0.9)):
        times = path * factor * draw.lognormal(0, 0.05, count)
        times[draw.random(count) < 0.01] = np.nan
        columns = {"iw": iw, "replicate": np.repeat(np.arange(REPLICATES, dtype=np.uint32), CONNECTIONS)}
        columns |= {"client": np.arange(count), "time_s": times, "segments_sent": 10 + draw.poisson(5, count)}
        columns |= {"retransmissions": draw.poisson(0.2, count), "bucket": (path > 0.4).astype(np.uint16)}
        arms.append(pl.DataFrame(columns))
    return pl.concat(arms)


def aggregated(rows: pl.DataFrame, dimension: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The two tables as the records have them, of one dimension."""
    labels = [pl.lit(name).alias(key) for key, name in (("dimension", dimension), ("unit", "transfer"))]
    rows = rows if dimension == "rtt_s" else rows.with_columns(bucket=pl.lit(0, pl.UInt16))
    nanoseconds = (1e9 * pl.col("time_s").fill_nan(None)).round().cast(pl.Int64)
    keys = ["iw", "replicate", "bucket"]
    sums = rows.group_by(keys).agg(
        nanoseconds.sum().alias("completion_ns_sum"),
        nanoseconds.count().alias("completed"),
        pl.len().alias("count"),
        pl.col("segments_sent", "retransmissions").sum(),
    )
    place = (nanoseconds.cast(pl.Float64).log() / math.log(GAMMA)).ceil().cast(pl.Int32).alias("bin")
    bins = rows.filter(pl.col("time_s").is_not_nan()).group_by(*keys, place).agg(pl.len().alias("count"))
    return sums.with_columns(labels), bins.with_columns(labels)


def test_sums_and_rates_are_exact(rows: pl.DataFrame) -> None:
    tables = aggregated(rows, "all")
    mean = of_aggregates(*tables, **ARMS)
    apart = compare(rows, "time_s", Design(**ARMS, unit=["client"], paired=False))
    assert mean.difference.value == pytest.approx(apart.difference.value, abs=1e-8)
    assert mean.unfinished == apart.unfinished
    assert mean.units == REPLICATES
    assert mean.difference.low < mean.difference.value < mean.difference.high < 0
    rate = of_aggregates(*tables, statistic="retransmission rate", **ARMS)
    exact = compare_rate(rows, "retransmissions", "segments_sent", Design(**ARMS, unit=["client"]))
    assert rate.percent.value == pytest.approx(exact.percent.value)


def test_nothing_is_a_hundred_percent_less_than_something(rows: pl.DataFrame) -> None:
    sums, bins = aggregated(rows.with_columns(pl.col("retransmissions") * (pl.col("iw") == 3)), "all")
    percent = of_aggregates(sums, bins, statistic="retransmission rate", **ARMS).percent
    assert (percent.value, percent.low, percent.high) == (-100, -100, -100)


def test_a_quantile_is_right_within_its_bin_and_its_interval_says_so(rows: pl.DataFrame) -> None:
    tables = aggregated(rows, "all")
    for statistic, p in (("p50", 0.5), ("p95", 0.95)):
        found = of_aggregates(*tables, statistic=statistic, **ARMS)
        base = np.sort(rows.filter(pl.col("iw") == 3)["time_s"].fill_nan(math.inf).to_numpy())
        exact = base[math.ceil(p * len(base)) - 1]
        assert found.baseline.value == pytest.approx(exact, rel=0.01)
        bare = of_aggregates(*tables, statistic=statistic, add_bins=False, **ARMS)
        wider = (found.baseline.high - found.baseline.low) - (bare.baseline.high - bare.baseline.low)
        assert 0.01 * exact <= wider <= 0.02 * exact
        assert "bins" in found.method
    beyond = of_aggregates(*tables, statistic="p99.5", **ARMS)
    assert math.isinf(beyond.baseline.value)
    assert beyond.reason.startswith("too many did not finish")


def test_merging_replicates_in_any_order_gives_the_same(rows: pl.DataFrame) -> None:
    tables = aggregated(rows, "all")
    shuffled = [table.sample(fraction=1, shuffle=True, seed=1) for table in tables]
    for statistic in ("mean", "p90"):
        one, other = (of_aggregates(*both, statistic=statistic, **ARMS) for both in (tables, shuffled))
        assert one == other


def test_buckets_of_aggregates_are_judged_together(rows: pl.DataFrame) -> None:
    tables = aggregated(rows, "rtt_s")
    names = ["to 0.4", "above", "nobody"]
    found = by_bucket_of_aggregates(*tables, dimension="rtt_s", buckets=names, statistic="p50", **ARMS)
    assert [one.bucket for one in found] == names
    assert [one.verdict for one in found] == ["better", "better", "no flows"]
    assert sum(one.share_percent for one in found) == pytest.approx(100)
    assert found[2].reason == "no connections"


def test_few_replicates_get_no_interval(rows: pl.DataFrame) -> None:
    tables = [table.filter(pl.col("replicate") < 3) for table in aggregated(rows, "all")]
    found = of_aggregates(*tables, **ARMS)
    assert found.reason == "3 replicates are too few for an interval: it takes 5"
    assert math.isnan(found.difference.low)
    assert found.difference.value < 0
