import polars as pl
import pytest

from firstflight.analysis.summary import of_records

TRANSFERS = pl.LazyFrame(
    {
        "scenario": "own",
        "replicate": [0, 0, 0, 1],
        "application": ["web", "web", "file", "web"],
        "completion_time_s": [1.0, 3.0, float("nan"), 4.0],
        "completed": pl.Series([1, 1, 0, 1], dtype=pl.UInt8),
        "delivered_bytes": [1_000_000, 2_000_000, 500_000, 5_000_000],
        "retransmissions": [0, 1, 0, 0],
        "segments_sent": [50, 50, 10, 100],
    }
)
LINKS = pl.LazyFrame(
    {
        "scenario": "own",
        "replicate": [0, 0, 0],
        "link": ["busy", "busy", "idle"],
        "interval_s": [1.0, 3.0, 4.0],
        "busy_s": [1.0, 1.0, 0.0],
        "offered_packets": [60, 40, 0],
        "dropped_packets": [5, 0, 0],
        "queue_mean_packets": [8.0, 0.0, 0.0],
    }
)
PAGES = TRANSFERS.filter(pl.col("replicate") > 5)


def test_transfers_are_summarized_by_application_over_replicates():
    table = of_records(TRANSFERS, PAGES, LINKS, ["scenario"])[0]
    rows = {(row["application"], row["metric"]): row for row in table.frame.to_dicts()}
    assert rows["web", "completed"]["ours"] == 1.5
    # Of 1, 3 and 4.
    assert rows["web", "median_completion_time"]["ours"] == 3.0
    assert rows["web", "delivered"]["ours"] == (3.0 + 5.0) / 2
    assert rows["web", "retransmitted"]["ours"] == 100 * 1 / 200
    assert rows["web", "delivered"]["low"] < 4.0 < rows["web", "delivered"]["high"]
    assert rows["file", "completed"]["ours"] == 0
    assert rows["file", "median_completion_time"]["ours"] is None
    assert "No median completion time of file: too many did not finish." in table.notes
    assert "No mean completion time of file: there are no data." in table.notes


def test_links_weigh_their_intervals_and_idle_ones_are_left_out():
    tables = of_records(TRANSFERS, PAGES, LINKS, ["scenario"])
    assert [table.name for table in tables] == ["transfers", "links"]
    rows = {(row["link"], row["metric"]): row["ours"] for row in tables[1].frame.to_dicts()}
    assert rows == {("busy", "link_utilization"): 50, ("busy", "packet_drop_rate"): 5, ("busy", "mean_queue"): 2}


def test_links_of_a_large_group_share_a_row_in_the_order_of_the_network():
    names = ["root", *(f"home[{index}]{way}" for index in range(17) for way in ("", ".reverse")), "few[0]", "few[1]"]
    links = pl.LazyFrame(
        {
            "scenario": "own",
            "replicate": 0,
            "link": names[::-1],
            "interval_s": 4.0,
            "busy_s": [1.0 if name == "home[3]" else 0.0 for name in names[::-1]],
            "offered_packets": 10,
            "dropped_packets": 0,
            "queue_mean_packets": 2.0,
        },
        schema_overrides={"link": pl.Enum(names)},
    )
    table = of_records(TRANSFERS, PAGES, links, ["scenario"])[1].frame
    rows = {row["link"]: row["ours"] for row in table.to_dicts() if row["metric"] == "link_utilization"}
    together = 100 / 4 / 17
    assert list(rows.items()) == [
        ("root", 0),
        ("home[0..16]", together),
        ("home[0..16].reverse", 0),
        ("few[0]", 0),
        ("few[1]", 0),
    ]


def test_a_key_that_all_rows_share_is_not_printed():
    assert of_records(TRANSFERS, PAGES, LINKS, ["scenario"])[0].quiet == ("scenario",)


def test_a_run_in_real_time_says_how_much_was_disturbed():
    some = TRANSFERS.with_columns(pl.col("replicate").eq(0).cast(pl.UInt8).alias("disturbed"))
    table = of_records(some, PAGES, LINKS, ["scenario"], in_real_time=True)[0]
    rows = {(row["application"], row["metric"]): row["ours"] for row in table.frame.to_dicts()}
    assert rows["web", "disturbed"] == pytest.approx(100 * 2 / 3)
    # A share of this run's own events has no interval, which could reach beyond 100%.
    disturbed = table.frame.filter(table.frame["metric"] == "disturbed")
    assert disturbed["low"].is_null().all()
    assert "included in all values" in table.caption


USERS = pl.LazyFrame({"scenario": "own", "replicate": [0, 0], "client": [0, 1], "weight": [3.0, 1.0]})


def test_users_of_other_weights_count_by_them():
    mine = TRANSFERS.head(2).with_columns(pl.Series("client", [0, 1]))
    table = of_records(mine, mine.filter(pl.col("replicate") > 5), LINKS, ["scenario"], weights=USERS)[0]
    rows = {row["metric"]: row["ours"] for row in table.frame.to_dicts()}
    assert rows["completed"] == 2
    assert rows["mean_completion_time"] == (3 * 1.0 + 3.0) / 4
    assert rows["median_completion_time"] == 1.0
    assert rows["p95_completion_time"] == 3.0
    assert rows["retransmitted"] == 100 * 1 / (3 * 50 + 50)
    assert "by their weight" in table.caption
