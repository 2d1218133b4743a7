"""Buckets, summaries and comparisons of records so small that every number can be calculated by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.buckets import NO_FLOWS, bucket_table
from firstflight.analysis.claim import (
    Expectation,
    above,
    at_least,
    at_most,
    below,
    between,
    counts,
    near,
    tally,
)
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.link_share import median_share, others_share
from firstflight.analysis.summary import _aggregated, _users, as_in_the_scenario, of_records
from firstflight.analysis.table import Metric
from firstflight.analysis.varied import _both, _drawn, _rows, _stream_rows, _whole
from firstflight.records import Run
from firstflight.records.schema import GAMMA

EDGES = {"rtt_s": [0.1], "down_bps": [1e6], "bdp_bytes": [20e3], "segments": [10]}


def frame(names: str, *rows: tuple[Any, ...]) -> pl.LazyFrame:
    return pl.LazyFrame(list(rows), schema=names.split(), orient="row", infer_schema_length=None)


FLOWS = "webs replicate application client bytes completion_time_s completed retransmissions segments_sent page"
USERS = frame(
    "webs replicate client weight rtt_s down_bps subnet",
    (8, 0, 0, 1.0, 0.05, 8e5, 0),
    (8, 0, 1, 2.0, 0.1, 2e6, 0),
    (8, 0, 2, 3.0, 0.3, 2e6, 1),
)
TRANSFERS = frame(
    FLOWS,
    (8, 0, "file", 0, 14480, 1.0, 1, 4, 20, None),
    (8, 0, "file", 1, 14481, 2.0, 1, 0, 30, None),
    (8, 0, "file", 2, 1000, math.nan, 0, 7, 50, None),
    # Of a page, which counts as a whole.
    (8, 0, "site", 0, 500, 0.5, 1, 9, 90, 0),
).with_columns(pl.col("page", "segments_sent").cast(pl.UInt32))
PAGES = frame(FLOWS, (8, 0, "site", 0, 5000, 6.0, 1, 1, 10, 0), (8, 0, "site", 1, 50000, 8.0, 1, 2, 10, 0))
SUMS = (
    "webs replicate application unit dimension bucket count completed completion_ns_sum retransmissions segments_sent"
)
NOTHING = frame(SUMS + " bin", (8, 0, "x", "x", "x", 0, 0, 0, 0, 0, 0, 0)).filter(pl.col("count") > 0)


def run(**tables: pl.LazyFrame) -> Run:
    empty = {"transfers": TRANSFERS.clear(), "pages": PAGES.clear(), "users": USERS.clear()}
    made = empty | {"aggregates": NOTHING, "histograms": NOTHING} | tables
    return cast(Run, SimpleNamespace(cells=[{"webs": 8}], **made))


def in_buckets(of: Run, application: str) -> dict[tuple[str, str], dict[str, float]]:
    """Metrics by dimension and bucket."""
    table = bucket_table(of, EDGES, {"file": 1448, "site": 1448}).frame.filter(pl.col("application") == application)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in table.to_dicts():
        found.setdefault((row["dimension"], row["bucket"]), {})[row["metric"]] = row["ours"]
    return found


def bucket(share: float, mean: float | None, median: float | None, again: float) -> Any:
    times = {"mean_completion_time": mean, "median_completion_time": median}
    return pytest.approx({"share": share, "retransmissions": again} | times)


def test_transfers_are_counted_in_buckets_by_weight() -> None:
    # Bandwidth-delay products of 5, 25 and 75 kB; 10, 11 and 1 segments.
    assert in_buckets(run(transfers=TRANSFERS, users=USERS), "file") == {
        ("rtt_s", "to 100 ms"): bucket(50, 5 / 3, 2, 4 / 3),
        ("rtt_s", "above 100 ms"): bucket(50, None, None, 7),
        ("down_bps", "to 1,000 kbit/s"): bucket(100 / 6, 1, 1, 4),
        # Three of five by weight did not finish.
        ("down_bps", "above 1,000 kbit/s"): bucket(500 / 6, 2, None, 21 / 5),
        ("bdp_bytes", "to 20 kB"): bucket(100 / 6, 1, 1, 4),
        ("bdp_bytes", "above 20 kB"): bucket(500 / 6, 2, None, 21 / 5),
        ("segments", "to 10 segments"): bucket(400 / 6, 1, None, 25 / 4),
        ("segments", "above 10 segments"): bucket(200 / 6, 2, 2, 0),
    }


def test_pages_are_counted_in_the_place_of_their_transfers_and_a_bucket_without_any_says_so() -> None:
    found = in_buckets(run(transfers=TRANSFERS, pages=PAGES, users=USERS), "site")
    assert found["rtt_s", "to 100 ms"] == bucket(100, (6 + 2 * 8) / 3, 8, (1 + 2 * 2) / 3)
    assert found["rtt_s", f"above 100 ms{NO_FLOWS}"] == {"share": 0}
    assert found["segments", "to 10 segments"] == bucket(100 / 3, 6, 6, 1)


def test_aggregates_are_counted_in_buckets_by_pages_where_there_are_any() -> None:
    def sums(
        application: str, unit: str, place: int, count: int, done: int, seconds: float, again: int
    ) -> tuple[Any, ...]:
        return (8, 0, application, unit, "rtt_s", place, count, done, int(seconds * 1e9), again, 1)

    aggregates = frame(
        SUMS,
        sums("file", "transfer", 0, 10, 8, 16, 5),
        sums("file", "transfer", 1, 30, 30, 90, 6),
        sums("site", "transfer", 0, 900, 900, 900, 900),
        sums("site", "page", 0, 4, 2, 7, 10),
        (8, 0, "file", "transfer", "all", 0, 999, 999, 10**9, 9, 1),
    )
    bins = frame(
        "webs replicate application unit dimension bucket bin count",
        (8, 0, "file", "transfer", "rtt_s", 0, 2000, 8),
        (8, 0, "file", "transfer", "rtt_s", 1, 2100, 30),
        (8, 0, "site", "transfer", "rtt_s", 0, 1900, 900),
        (8, 0, "site", "page", "rtt_s", 0, 2200, 2),
    )
    of = run(aggregates=aggregates, histograms=bins)
    middle = {place: GAMMA**place * 2 / (1 + GAMMA) / 1e9 for place in (2000, 2100, 2200)}
    files, sites = in_buckets(of, "file"), in_buckets(of, "site")
    assert files["rtt_s", "to 100 ms"] == bucket(25, 2, middle[2000], 0.5)
    assert files["rtt_s", "above 100 ms"] == bucket(75, 3, middle[2100], 0.2)
    assert sites["rtt_s", "to 100 ms"] == bucket(100, 3.5, middle[2200], 2.5)


def test_verdicts_that_no_claim_has_are_left_out_of_the_tally() -> None:
    numbers = counts({"verdict": verdict, "given": False} for verdict in ("holds", "differs", "holds", "undecided"))
    assert numbers == {"holds": 2, "differs": 1, "undecided": 1, "cannot be checked": 0, "put in or fitted": 0}
    assert tally(numbers) == "2 hold, 1 differs, 1 undecided"


def test_the_share_of_others_is_the_median_over_responses_of_one_place() -> None:
    link = frame(
        "iw interval_start_s interval_s sent_bytes dropped_packets",
        *((3, at, 1.0, 30_000 * (at + 1), at) for at in range(5)),
        *((10, at, 1.0, 60_000, 0) for at in range(5)),
    )
    names = "iw start_s handshake_time_s completion_time_s bytes retransmissions"
    rows = frame(names, (3, 1.0, 0.5, 2.0, 1448, 0), (3, 2.0, 0.5, 2.5, 14480, 4), (10, 1.0, 0.0, 3.0, 2896, 1))
    found = median_share(rows, link, ["iw"], one_way_s=0.25).collect().sort("iw")
    # From 1.75 to 2.75 s a quarter of 60 kB and three of 90; from 2.75 to 4.25 s a quarter of 90 kB, 120 and a quarter
    # of 150. Three and nine packets were dropped meanwhile.
    one, other = 100 * (1 - 1500 / 82_500), 100 * (1 - 15_000 / 180_000)
    # From 1.25 to 3.75 s 150 kB, of which two packets and one that was retransmitted without a drop.
    assert found["share"].to_list() == pytest.approx([(one + other) / 2, 100 * (1 - 4500 / 150_000)])
    some = rows.filter(pl.col("iw") == 3).with_columns(retransmissions=pl.Series([5, 12])).collect()
    assert others_share(some, link.filter(pl.col("iw") == 3).collect(), 0.25) == pytest.approx(
        [100 * (1 - 4500 / 82_500), 100 * (1 - 19_500 / 180_000)]
    )


def test_a_change_over_replicates_is_in_percent_or_of_shares_in_points() -> None:
    part = pl.DataFrame(
        {
            "iw": [3] * 5 + [10] * 5,
            "replicate": [*range(5), *range(5)],
            "application": "web",
            "completion_time_s": [2.0, 4, 2, 4, 3, 3, 5, 3, 5, 4],
            "packets_lost": [2, 4, 2, 4, 3, 3, 5, 3, 5, 4],
            "packets_ended": 100,
        }
    )
    ((_, _, mean, _),) = _both(part, "iw", 3, 10, "replicates", ("mean",))
    assert (mean.value, mean.replicates) == (pytest.approx(100 / 3), 5)
    # Without one in turn 13, 11, 13, 11, 12 become 17, 15, 17, 15, 16. Student's t of four degrees is 2.77645.
    without = np.array([17 / 13, 15 / 11, 17 / 13, 15 / 11, 16 / 12]) * 100
    spread = float(((without - without.mean()) ** 2).sum())
    assert mean.high - mean.value == pytest.approx(2.77645 * math.sqrt(4 / 5 * spread), rel=1e-5)
    ((_, _, lost, _),) = _both(part, "iw", 3, 10, "replicates", ("lost",))
    assert (lost.value, lost.low, lost.high) == pytest.approx((1, 1, 1))
    ((_, _, p50, reason),) = _both(part, "iw", 3, 10, "replicates", ("p50",))
    assert math.isnan(p50.low)
    assert reason == "5 rows of iw 3 are too few: p50 needs 100, so some 100 replicates"
    assert list(_both(part.filter(pl.col("iw") == 3), "iw", 3, 10, "replicates", ("mean",))) == []
    # Of 0 and 0.5 the first is given as an integer.
    shares = part.with_columns(share=(pl.col("iw") == 10) * 0.5)
    ((_, _, same, _),) = _both(shares, "share", 0, 0.5, "replicates", ("mean",))
    assert same == mean


def test_an_interval_without_width_is_none() -> None:
    assert _drawn(Estimate(5, 4, 6, 3)) == Estimate(5, 4, 6, 3)
    none = _drawn(Estimate(5, 5 - 1e-10, 5 + 1e-10, 3))
    assert (none.value, none.replicates, math.isnan(none.low), math.isnan(none.high)) == (5, 3, True, True)


def named(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.with_columns(pl.col("application").cast(pl.Enum(["file", "site"])))


def test_what_is_compared_over_replicates_are_pages_before_transfers() -> None:
    rows = _rows(run(transfers=named(TRANSFERS), pages=named(PAGES), users=USERS), ["webs"], by_users=False)
    times = {name: part["completion_time_s"].to_list() for (name,), part in rows.group_by("application")}
    assert times == {"site": [6, 8], "file": [1, 2, pytest.approx(math.nan, nan_ok=True)]}


def test_what_is_compared_of_users_has_their_network_and_weight_in_the_order_of_the_records() -> None:
    # In another order, and one of whom nothing is in the records.
    idle = USERS.tail(1).with_columns(client=pl.lit(9, dtype=pl.Int64))
    users = pl.concat([idle, USERS.reverse()])
    rows = _rows(run(transfers=named(TRANSFERS), pages=named(PAGES), users=users), ["webs"], by_users=True)
    found = rows.select("application", "client", "completion_time_s", "segments_sent", "subnet", "weight").rows()
    assert found[:4] == [
        ("site", 0, 6.0, None, 0, 1.0),
        ("site", 1, 8.0, None, 0, 2.0),
        ("file", 0, 1.0, 20, 0, 1.0),
        ("file", 1, 2.0, 30, 0, 2.0),
    ]
    assert [row[:2] + row[3:] for row in found[4:]] == [("file", 2, 50, 1, 3.0)]


def test_of_aggregates_what_is_compared_is_of_all_users_and_of_pages_where_there_are_any() -> None:
    rows = frame(
        "application unit dimension count",
        ("file", "transfer", "all", 1),
        ("file", "transfer", "rtt_s", 2),
        ("site", "transfer", "all", 3),
        ("site", "page", "all", 4),
        ("site", "page", "rtt_s", 5),
    )
    assert _whole(rows)["count"].to_list() == [1, 4]


def test_datagrams_are_named_after_their_sender_and_a_share_is_of_those_that_ended() -> None:
    streams = frame(
        "webs replicate application from_server delay_mean_s jitter_mean_s packets_received packets_lost packets_late "
        "mos",
        (8, 0, "site", 1, 0.1, 0.01, 90, 10, 5, 4.0),
        (8, 0, "site", 1, 0.3, math.nan, 270, 30, 35, math.nan),
        (8, 0, "site", 0, 0.7, 0.02, 50, 0, 1, 3.0),
    )
    rows = _stream_rows(run(streams=named(streams)), ["webs"])
    assert rows["application"].to_list() == ["site, sender server", "site, sender server", "site, sender client"]
    assert rows["packets_ended"].to_list() == [100, 300, 50]


def test_a_summary_has_each_measure_of_transfers_and_links_over_replicates() -> None:
    transfers = frame(
        "iw replicate application completion_time_s completed delivered_bytes retransmissions segments_sent",
        *((10, 0, "web", place, 1, 10**6 * place, 1, 10 * place) for place in (1.0, 2.0, 5.0)),
        (10, 0, "web", 99.0, 0, 0, 5, 20),
        (10, 1, "web", 4.0, 1, 2 * 10**6, 3, 10),
    )
    links = frame(
        "iw replicate link interval_s busy_s offered_packets dropped_packets queue_mean_packets",
        (10, 0, "a", 2.0, 1.0, 50, 1, 6.0),
        (10, 0, "a", 6.0, 5.0, 150, 7, 2.0),
        (10, 1, "a", 4.0, 1.0, 10, 2, 1.0),
    )
    of = of_records(transfers, transfers.clear(), links, ["iw"])
    found = {row["metric"]: row["ours"] for table in of for row in table.frame.to_dicts()}
    assert found == pytest.approx(
        {
            "completed": (3 + 1) / 2,
            "mean_completion_time": 12 / 4,
            # Of 1, 2, 4, 5 and one that did not finish.
            "median_completion_time": 4,
            "p95_completion_time": None,
            "delivered": (8 + 2) / 2,
            "retransmitted": 1100 / 110,
            "link_utilization": 700 / 12,
            "packet_drop_rate": 1000 / 210,
            "mean_queue": (2 * 6 + 6 * 2 + 4) / 12,
        }
    )
    spread = next(row for row in of[0].frame.to_dicts() if row["metric"] == "delivered")
    # 8 and 2: Student's t of one degree of freedom is 12.7062; less than nothing is not delivered.
    assert (spread["low"], spread["high"]) == pytest.approx((0, 5 + 12.7062 * 3), rel=1e-5)
    assert of[0].notes == (
        "No 95th percentile of web: too many did not finish.",
        "No CI of the median completion time of web: too few rows or replicates.",
    )


def test_a_note_names_each_cell_as_one() -> None:
    names = "iw replicate application completion_time_s completed delivered_bytes retransmissions segments_sent"
    transfers = frame(names, (3, 0, "web", math.nan, 0, 0, 0, 1), (10, 0, "web", math.nan, 0, 0, 0, 1))
    links = frame("iw replicate link offered_packets interval_s busy_s dropped_packets queue_mean_packets").clear()
    (table,) = of_records(transfers, transfers.clear(), links, ["iw"])
    assert "No 95th percentile of 3 web, 10 web: too many did not finish." in table.notes


def test_where_users_weigh_differently_what_did_not_finish_has_its_weight_in_a_quantile() -> None:
    names = "iw replicate application client completion_time_s completed delivered_bytes retransmissions segments_sent"
    transfers = frame(
        names,
        (10, 0, "web", 0, 3.0, 1, 10**6, 1, 10),
        (10, 0, "web", 1, 1.0, 1, 10**6, 2, 20),
        (10, 0, "web", 2, math.nan, 0, 0, 4, 10),
    )
    weights = frame("iw replicate client weight", (10, 0, 0, 1.0), (10, 0, 1, 4.0), (10, 0, 2, 50.0))
    links = frame("iw replicate link offered_packets interval_s busy_s dropped_packets queue_mean_packets").clear()
    (table,) = of_records(transfers, transfers.clear(), links, ["iw"], weights=weights)
    found = {row["metric"]: row["ours"] for row in table.frame.to_dicts()}
    assert found == pytest.approx(
        {
            "completed": 2,
            "mean_completion_time": (1 * 3 + 4 * 1) / 5,
            # Of 55 users by weight 50 did not finish.
            "median_completion_time": None,
            "p95_completion_time": None,
            "delivered": 2,
            "retransmitted": 100 * (1 + 8 + 200) / (10 + 80 + 500),
        }
    )


def test_paths_of_users_are_quantiles_by_weight_in_the_units_people_use() -> None:
    users = frame(
        "webs replicate client weight rtt_s down_bps up_bps buffer_bytes loss",
        (8, 0, 0, 1.0, 0.03, 2e6, 5e5, 9000, 0.04),
        (8, 0, 1, 5.0, 0.01, 8e6, 1e5, 1000, 0.01),
        (8, 0, 2, 4.0, 0.02, 4e6, 2e5, 4000, None),
    )
    rows = _users(users, ["webs"]).frame.to_dicts()
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["quantity"], {})[row["metric"]] = row["ours"]
    expected = {
        "rtt_ms": (10, 10, 20),
        "down_mbps": (2, 4, 8),
        "up_mbps": (0.1, 0.1, 0.2),
        "buffer_kB": (1, 1, 4),
        "loss_percent": (1, 1, 4),
    }
    assert list(found) == list(expected)
    for name, (low, middle, high) in expected.items():
        assert found[name] == pytest.approx({"p10": low, "median": middle, "p90": high}), name


def test_a_summary_of_aggregates_is_of_all_users_by_application() -> None:
    names = SUMS.replace(" sent", " segments_sent")
    sums = frame(
        names,
        (8, 0, "site", "page", "all", 0, 9, 4, 10 * 10**9, 7, 50),
        (8, 1, "site", "page", "all", 0, 9, 2, 12 * 10**9, 9, 10),
        (8, 0, "site", "page", "rtt_s", 0, 9, 9, 99 * 10**9, 9, 99),
        (8, 0, "file", "transfer", "all", 0, 5, 5, 10 * 10**9, 3, 30),
    )
    bins = frame(
        "webs replicate application unit dimension bucket bin count",
        (8, 0, "site", "page", "all", 0, 2000, 4),
        (8, 1, "site", "page", "all", 0, 2100, 2),
        (8, 0, "site", "page", "rtt_s", 0, 1900, 9),
        (8, 0, "file", "transfer", "all", 0, 1800, 5),
    )
    middle = {place: GAMMA**place * 2 / (1 + GAMMA) / 1e9 for place in (1800, 2000, 2100)}
    pages, transfers = (_aggregated(sums, bins, ["webs"], unit).frame for unit in ("page", "transfer"))
    # Place 8.5 of 4 and 2 that finished and 12 that did not.
    assert dict(pages.select("metric", "ours").iter_rows()) == pytest.approx(
        {"completed": 3, "mean_completion_time": 22 / 6} | {"median_completion_time": None, "p95_completion_time": None}
    )
    assert dict(transfers.select("metric", "ours").iter_rows()) == pytest.approx(
        {"completed": 5, "mean_completion_time": 2, "retransmitted": 10}
        | {"median_completion_time": middle[1800], "p95_completion_time": middle[1800]}
    )


def test_applications_are_in_the_order_of_the_scenario_within_the_order_of_cells() -> None:
    names = pl.Enum(["web", "file", "call"])
    rows = frame(
        "iw application value", (10, "file", 1), (10, "web", 2), (3, "call", 3), (3, "web", 4), (10, "call", 5)
    )
    ordered = as_in_the_scenario(rows.with_columns(pl.col("application").cast(names)), ["iw", "application"]).collect()
    assert ordered["value"].to_list() == [2, 1, 5, 4, 3]
    assert ordered.schema["application"] == pl.String
    assert as_in_the_scenario(rows, ["iw", "application"]).collect()["value"].to_list() == [1, 2, 3, 4, 5]


def test_a_difference_from_print_is_in_steps_of_what_counts_as_near() -> None:
    # A tenth of 2 is 0.2, of -4 it is 0.4.
    assert Metric("m", "M").difference(1.2, 2.0) == pytest.approx(-4)
    assert Metric("m", "M").difference(-3.0, -4.0) == pytest.approx(2.5)
    assert Metric("m", "M", compare="absolute", near=0.5).difference(0.0, 0.0) == 0


def test_a_response_may_begin_in_the_first_interval_of_the_link() -> None:
    names = "interval_start_s interval_s sent_bytes dropped_packets"
    link = frame(names, (0.0, 1.0, 40_000, 0), (1.0, 1.0, 60_000, 0)).collect()
    row = frame(
        "start_s handshake_time_s completion_time_s bytes retransmissions", (0.0, 0.125, 1.75, 1448, 0)
    ).collect()
    # From 0.25 to 1.625 s: three quarters of 40 kB and five eighths of 60 kB.
    assert others_share(row, link, 0.125) == pytest.approx([100 * (1 - 1500 / 67_500)])


def test_buckets_are_those_of_each_cell() -> None:
    # The other cell has two users up to 100 ms, of whom one was not fast.
    other = TRANSFERS.filter(pl.col("application") == "file", pl.col("client") < 2).with_columns(
        webs=pl.lit(16, dtype=pl.Int64), completion_time_s=3 * pl.col("completion_time_s")
    )
    users = pl.concat([USERS, USERS.with_columns(webs=pl.lit(16, dtype=pl.Int64))])
    table = bucket_table(run(transfers=pl.concat([TRANSFERS, other]), users=users), EDGES, {"file": 1448, "site": 1})
    assert table.keys == ("webs", "application", "dimension", "bucket")
    times = table.frame.filter(pl.col("application") == "file", pl.col("metric") == "mean_completion_time")
    found = {tuple(row[:3]): row[3] for row in times.select("webs", "dimension", "bucket", "ours").rows()}
    assert found[8, "rtt_s", "to 100 ms"] == pytest.approx(5 / 3)
    assert found[16, "rtt_s", "to 100 ms"] == pytest.approx(5)
    assert found[16, "down_bps", "above 1,000 kbit/s"] == pytest.approx(6)
    shares = table.frame.filter(pl.col("webs") == 16, pl.col("metric") == "share", pl.col("dimension") == "rtt_s")
    assert shares["ours"].to_list() == [100, 0]


def test_applications_of_aggregates_are_in_the_order_of_their_first_row() -> None:
    names = [f"application {3 * place % 20}" for place in range(20)]
    sums = frame(SUMS.replace(" sent", " segments_sent"), *((8, 0, n, "page", "all", 0, 1, 1, 1, 1, 1) for n in names))
    bins = frame(
        "webs replicate application unit dimension bucket bin count",
        *((8, 0, name, "page", "all", 0, 2000, 1) for name in sorted(names)),
    )
    found = _aggregated(sums, bins, ["webs"], "page").frame
    assert found.filter(pl.col("metric") == "completed")["application"].to_list() == names


def test_what_a_source_expects_has_ends_words_unit_and_tolerance() -> None:
    up, down, inf = math.nextafter(3, 4), math.nextafter(3, 2), math.inf
    assert near(3, "s", 0.5) == Expectation(3, 3, 3, "s", 0.5)
    assert between(3, 7, "s", 0.5) == Expectation(3, 7, "3 to 7", "s", 0.5)
    assert at_least(3, "s", 0.5) == Expectation(3, inf, "at least 3", "s", 0.5)
    assert at_most(3, "s", 0.5) == Expectation(-inf, 3, "at most 3", "s", 0.5)
    assert above(3, "s", 0.5) == Expectation(up, inf, "above 3", "s", 0.5)
    assert below(3, "s", 0.5) == Expectation(-inf, down, "below 3", "s", 0.5)
