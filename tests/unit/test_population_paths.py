"""The draws follow the given laws and the requested dependence, and neighbors are alike."""

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from firstflight import _native
from firstflight.records.schema import from_native
from firstflight.scenario import Scenario
from small_population import scenario

USERS = 20_000


def drawn(made: Scenario) -> pl.DataFrame:
    """The users' paths, without their simulation."""
    return from_native("users", _native.draw_users(json.dumps(made.to_plan()), 1, 0, USERS)["users"], {})


PAIRS = {"rtt_down": -0.5, "down_up": 0.8, "rtt_up": -0.4, "rtt_loss": 0.3}
LOSS = {"distribution": "uniform", "low": 0, "high": 0.1}
BUFFER = {"distribution": "exponential", "mean": "300ms"}


@pytest.fixture(scope="module", params=[1, 20], ids=["alone", "with neighbors"])
def users(request: pytest.FixtureRequest) -> pl.DataFrame:
    together = {"subnet_users": request.param, "subnet_variance_fraction": 0.5 if request.param > 1 else 0.0}
    return drawn(scenario(users=USERS, dependence=PAIRS, loss=LOSS, buffer=BUFFER, min_buffer="1p", **together))


def test_the_marginals_are_the_laws_whatever_the_dependence(users: pl.DataFrame) -> None:
    # A thousand subnets stand for as many users at least: the largest distance of that many is below this in 99.9%.
    distance = 1.95 / math.sqrt(USERS / 20)
    for column, law in (
        ("rtt_s", stats.lognorm(0.7, scale=0.07)),
        ("down_bps", stats.lognorm(1.0, scale=2e6)),
        ("up_bps", stats.lognorm(0.7, scale=5e5)),
        ("loss", stats.uniform(0, 0.1)),
    ):
        assert stats.kstest(users[column].to_numpy(), law.cdf).statistic < distance, column
    seconds = (8 * users["buffer_bytes"] / users["down_bps"]).to_numpy()
    held = users["buffer_bytes"].to_numpy() > 1500
    assert np.median(seconds[held]) > 0.3 * math.log(2), "short queues are held up by the least buffer"
    assert abs(np.mean(seconds > 1) - math.exp(-1 / 0.3)) < 0.01


def test_ranks_hang_together_as_the_copula_says(users: pl.DataFrame) -> None:
    columns = {"rtt": "rtt_s", "down": "down_bps", "up": "up_bps", "loss": "loss"}
    for pair in ("rtt_down", "down_up", "rtt_up", "rtt_loss", "down_loss", "up_loss"):
        first, second = (users[columns[name]].to_numpy() for name in pair.split("_"))
        expected = 6 / math.pi * math.asin(PAIRS.get(pair, 0) / 2)
        assert stats.spearmanr(first, second).statistic == pytest.approx(expected, abs=0.05), pair


def test_neighbors_are_alike_by_the_share_that_was_asked_for() -> None:
    made = scenario(users=USERS, subnet_users=20, subnet_variance_fraction=0.5)
    logs = drawn(made).select("subnet", pl.col("rtt_s").log())
    within = logs.group_by("subnet").agg(pl.col("rtt_s").var())["rtt_s"].mean()
    whole = logs["rtt_s"].var()
    assert within / whole == pytest.approx(0.5, abs=0.03)
    assert logs["subnet"].n_unique() == USERS / 20
