"""The first users of a population, carried out by real programs over the running kernel."""

import polars as pl

import firstflight as ff
from emulations import skip_unless_possible
from small_population import SEARCH, scenario


def test_the_star_of_the_first_users_can_be_emulated() -> None:
    skip_unless_possible()
    made = scenario(SEARCH | {"size": "8kB"}, users=8)
    star = made.star_of_users(seed=1, users=3)
    star.duration = ff.Duration("5s")
    real = ff.run(star, engine="emulate", replicates=1).transfers.sort("client").collect()
    simulated = ff.run(made, seed=1, replicates=1)
    assert real["bytes"].to_list() == [8000] * 3
    # A busy machine makes a transfer later, never earlier: its round trips and its bytes take their time.
    users = simulated.users.filter(pl.col("client") < 3).collect()
    least = 2 * users["rtt_s"] + 8 * 8000 / users["down_bps"]
    assert (real["completion_time_s"] > least).all()
    assert (real["handshake_time_s"] > users["rtt_s"]).all()
