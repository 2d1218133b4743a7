"""Populations that keep aggregates: the same users, counted."""

from collections import Counter

import polars as pl
import pytest

import firstflight as ff
from firstflight.analysis.buckets import NO_FLOWS, labels
from firstflight.analysis.summary import RELATIVE_ERROR, summary_tables
from firstflight.records.schema import GAMMA
from firstflight.scenario import Scenario
from firstflight.studies.varied import SingleScenario
from small_population import SEARCH, scenario

PAGE = {"preset": "photos", "user_fraction": 0.5}


@pytest.fixture(scope="module")
def runs() -> dict[str, ff.Run]:
    return {keep: ff.run(scenario(SEARCH, PAGE, users=200, loss=0.01, records=keep), replicates=2) for keep in KEEPS}


KEEPS = ("rows", "aggregates")


def _all(run: ff.Run, unit: str) -> pl.DataFrame:
    wanted = (pl.col("unit").cast(pl.String) == unit) & (pl.col("dimension").cast(pl.String) == "all")
    return run.aggregates.filter(wanted).collect().sort("replicate", pl.col("application").cast(pl.String))


def test_sums_are_those_of_the_rows(runs: dict[str, ff.Run]) -> None:
    found = _all(runs["aggregates"], "transfer")
    done = pl.col("completed") == 1
    expected = (
        runs["rows"]
        .transfers.group_by("replicate", pl.col("application").cast(pl.String))
        .agg(
            pl.len().cast(pl.UInt64).alias("count"),
            done.sum().cast(pl.UInt64).alias("completed"),
            (1e9 * pl.col("completion_time_s").filter(done)).round().cast(pl.Int64).sum().alias("completion_ns_sum"),
            pl.col("bytes").sum(),
            *(pl.col(name).cast(pl.UInt64).sum() for name in ("segments_sent", "retransmissions", "timeouts")),
            (pl.col("retransmissions") > 0).sum().cast(pl.UInt64).alias("with_retransmission"),
            *(pl.col(name).cast(pl.UInt64).sum() for name in ("first_flight_segments", "first_flight_lost_segments")),
            (pl.col("first_flight_lost_segments") > 0).sum().cast(pl.UInt64).alias("with_first_flight_loss"),
        )
        .sort("replicate", "application")
        .collect()
    )
    for column in expected.columns[2:]:
        assert found[column].to_list() == expected[column].to_list(), column
    pages = _all(runs["aggregates"], "page")
    assert pages["count"].sum() == runs["rows"].pages.collect().height


def test_every_dimension_counts_everything_once(runs: dict[str, ff.Run]) -> None:
    sums = runs["aggregates"].aggregates.group_by("replicate", "application", "unit", "dimension")
    counts = sums.agg(pl.col("count").sum()).collect()
    per_group = counts.group_by("replicate", "application", "unit").agg(pl.col("count").n_unique(), pl.len())
    assert per_group["count"].to_list() == [1] * per_group.height
    histograms = runs["aggregates"].histograms.select(pl.col("count").sum()).collect().item()
    assert histograms == runs["aggregates"].aggregates.select(pl.col("completed").sum()).collect().item()


def test_bins_hold_the_times_they_say(runs: dict[str, ff.Run]) -> None:
    wanted = (pl.col("unit").cast(pl.String) == "transfer") & (pl.col("dimension").cast(pl.String) == "all")
    bins = runs["aggregates"].histograms.filter(wanted).group_by("bin").agg(pl.col("count").sum()).collect()
    times = runs["rows"].transfers.filter(pl.col("completed") == 1).select(1e9 * pl.col("completion_time_s")).collect()
    expected = Counter((times.to_series().log(GAMMA)).ceil().cast(pl.Int32).to_list())
    assert dict(bins.iter_rows()) == expected


def test_the_summary_of_aggregates_is_that_of_rows(runs: dict[str, ff.Run]) -> None:
    rows, counted = ({table.name: table.frame for table in summary_tables(runs[keep])} for keep in KEEPS)
    assert set(counted) == set(rows) - {"users"}
    for name, frame in counted.items():
        key = ["application", "metric"]
        joined = frame.join(rows[name], on=key, suffix="_rows")
        assert joined.height == frame.height
        for metric, ours, exact in joined.select("metric", "ours", "ours_rows").iter_rows():
            tolerance = RELATIVE_ERROR if metric in ("median_completion_time", "p95_completion_time") else 1e-9
            assert ours == pytest.approx(exact, rel=1.001 * tolerance), (name, metric)


def test_buckets_of_aggregates_are_those_of_rows(runs: dict[str, ff.Run]) -> None:
    made = scenario(SEARCH, PAGE)
    rows, counted = (SingleScenario(made).tables(runs[keep])[-1] for keep in KEEPS)
    assert rows.name == counted.name == "buckets"
    keys = ["application", "dimension", "bucket", "metric"]
    joined = counted.frame.join(rows.frame, on=keys, suffix="_rows", nulls_equal=True)
    assert joined.height == counted.frame.height == rows.frame.height
    for metric, ours, exact in joined.select("metric", "ours", "ours_rows").iter_rows():
        # With an even number of flows two medians are right; few flows lie far apart.
        if metric != "median_completion_time":
            assert ours == pytest.approx(exact, rel=1e-9), metric
    shares = (
        rows.frame.filter(pl.col("metric") == "share").group_by("application", "dimension").agg(pl.col("ours").sum())
    )
    assert shares["ours"].to_list() == pytest.approx([100] * 8)


def test_a_bucket_without_flows_says_so(runs: dict[str, ff.Run]) -> None:
    for run in runs.values():
        table = SingleScenario(scenario(SEARCH, PAGE)).tables(run)[-1]
        empty = table.frame.filter(pl.col("bucket").str.ends_with(NO_FLOWS))
        assert empty["metric"].unique().to_list() == ["share"]
        assert empty["ours"].unique().to_list() == [0.0]
        assert "above 50 segments (no flows)" in empty.filter(pl.col("application") == "search")["bucket"].to_list()


def test_a_bucket_is_named_by_its_ends() -> None:
    assert labels([0.02, 0.05], (1e3, "ms")) == ["to 20 ms", "20 to 50 ms", "above 50 ms"]
    assert labels([], (1e3, "ms")) == ["all"]


def test_aggregates_do_not_depend_on_jobs() -> None:
    made: Scenario = scenario(users=50, records="aggregates")
    one, four = (ff.run(made, replicates=6, jobs=jobs) for jobs in (1, 4))
    for table in ("aggregates", "histograms"):
        assert getattr(one, table).collect().equals(getattr(four, table).collect())
