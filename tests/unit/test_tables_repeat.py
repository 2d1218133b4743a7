"""A table of a run is the same to the last bit each time that it is asked for."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.buckets import _of_rows
from firstflight.analysis.summary import estimates
from firstflight.analysis.varied import _rows
from firstflight.studies.rfc2415 import BUSY, INTERVAL

_USERS = 40_000


@pytest.fixture(scope="module")
def run():
    """Records of one file for each of many users, with two windows, as a run has them."""
    random = np.random.default_rng(1)
    client = np.tile(np.arange(_USERS, dtype=np.uint32), 2)
    cell = {"iw": np.repeat([3, 10], _USERS), "replicate": np.zeros(2 * _USERS, np.uint32), "client": client}
    transfers = pl.LazyFrame(
        cell
        | {
            "page": pl.repeat(None, 2 * _USERS, dtype=pl.UInt32, eager=True),
            "bytes": random.integers(1000, 100_000, 2 * _USERS),
            "completion_time_s": random.exponential(size=2 * _USERS),
            "completed": np.ones(2 * _USERS, np.uint8),
            "retransmissions": random.integers(0, 3, 2 * _USERS),
            "segments_sent": random.integers(1, 70, 2 * _USERS).astype(np.uint32),
        }
    ).with_columns(application=pl.lit("search"))
    users = pl.LazyFrame(
        cell
        | {
            "subnet": client // 5,
            "weight": random.exponential(size=2 * _USERS),
            "rtt_s": random.exponential(size=2 * _USERS),
            "down_bps": 1e6 * random.exponential(size=2 * _USERS),
        }
    )
    return SimpleNamespace(transfers=transfers, pages=transfers.head(0), users=users)


def _exact(frame):
    return frame.with_columns(pl.col(pl.Float64).reinterpret(signed=False)).rows()


def test_rows_of_users_are_compared_in_the_order_of_their_records(run):
    wanted = run.transfers.select("iw", "client").collect()
    for _ in range(5):
        assert _rows(run, ["iw"], by_users=True).select("iw", "client").equals(wanted)


def test_buckets_of_users_are_the_same_each_time(run):
    edges = {"rtt_s": [0.1, 1.0], "down_bps": [1e6], "bdp_bytes": [1e4], "segments": [10.0]}
    first, *others = (_exact(_of_rows(run, ["iw"], edges, {"search": 1448})) for _ in range(5))
    assert all(other == first for other in others)


def test_a_mean_over_replicates_does_not_depend_on_the_order_of_their_rows():
    random = np.random.default_rng(2)
    rows = pl.DataFrame({"iw": 3, "replicate": range(1000), "value": random.lognormal(sigma=8.0, size=1000)})
    shuffled = (rows.sample(fraction=1, shuffle=True, seed=seed).lazy() for seed in range(5))
    first, *others = (list(estimates(each, ["iw"], {"time": pl.col("value").sum()}, {})) for each in shuffled)
    assert all(other == first for other in others)


def test_utilization_does_not_depend_on_the_order_of_the_intervals():
    random = np.random.default_rng(3)
    busy_ns = random.integers(0, 10**9, 1000)
    links = pl.DataFrame({"busy_s": busy_ns / 1e9, "interval_s": 1.0})
    for seed in range(5):
        found = links.sample(fraction=1, shuffle=True, seed=seed).select(used=100 * BUSY / INTERVAL)
        assert found["used"].to_list() == [100 * int(busy_ns.sum()) / (1000 * 10**9)]
