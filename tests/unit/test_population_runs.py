"""Populations from the scenario to the records: paired arms, users, the star of the first of them, and summaries."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import firstflight as ff
from firstflight import RequestError
from firstflight.analysis.summary import RELATIVE_ERROR, middle
from firstflight.engines.simulate import run_cell
from firstflight.records.schema import GAMMA, RETURNED, conforms
from firstflight.scenario import Cell, Scenario
from small import Answer
from small_population import SEARCH, scenario, whole


def simulated(made: Scenario, replicates: int = 1, first: int = 0) -> dict[str, pl.DataFrame]:
    return run_cell(Cell({"scenario": "users"}, made), seed=1, replicates=replicates, first_replicate=first)


def test_every_user_has_a_row_with_the_path_that_was_drawn() -> None:
    tables = simulated(scenario(subnet_users=8, subnet_variance_fraction=0.5, extra_rtt="30ms"), replicates=2)
    for name in (*RETURNED, "users"):
        conforms(name, tables[name])
    users = tables["users"]
    assert users["client"].to_list() == [*range(40)] * 2
    assert users["subnet"].to_list() == [user // 8 for user in range(40)] * 2
    assert users["row"].null_count() == users["max_rtt_s"].null_count() == 80
    assert users["rtt_s"].min() >= 0.032
    assert users["down_bps"].min() >= 56_000
    assert tables["links"].is_empty()
    assert tables["transfers"]["client"].to_list() == users["client"].to_list()


def test_arms_meet_the_same_users_with_the_same_sizes() -> None:
    size = {"distribution": "lognormal", "median": "9kB", "sigma": 0.56}
    three, ten = (simulated(scenario(SEARCH | {"size": size}, initial_window=iw)) for iw in (3, 10))
    assert three["users"].equals(ten["users"])
    assert three["transfers"]["bytes"].equals(ten["transfers"]["bytes"])
    assert not three["transfers"]["completion_time_s"].equals(ten["transfers"]["completion_time_s"])


def test_a_user_does_not_depend_on_the_others() -> None:
    few, many = simulated(scenario(users=5)), simulated(scenario(users=40))
    assert few["transfers"].equals(many["transfers"].head(5))
    assert simulated(scenario(), 3)["users"].tail(40).equals(simulated(scenario(), 1, first=2)["users"])


def test_rows_of_a_table_carry_their_weight_and_size() -> None:
    columns = {"rtt_s": [0.02, 0.3], "down_bps": [8e6, 1e6], "weight": [3, 1], "bytes": [1000, 50_000]}
    table = {"paths": "table", "columns": columns, "up": "1Mbit", "buffer": "100ms", "loss": 0}
    tables = simulated(whole(table, SEARCH | {"size": "row"}))
    assert tables["users"]["row"].to_list() == [0, 1]
    assert tables["users"]["weight"].to_list() == [3.0, 1.0]
    assert tables["users"]["subnet"].null_count() == 2
    assert tables["transfers"]["bytes"].to_list() == [1000, 50_000]
    drawn = simulated(whole(table | {"row_sampling": "weighted", "users": 400}))["users"]
    assert drawn["weight"].unique().to_list() == [1.0]
    assert 260 < drawn.filter(pl.col("row") == 0).height < 340, "three quarters of 400, within four deviations"


def test_a_share_of_the_users_runs_an_application() -> None:
    tables = simulated(scenario(SEARCH, SEARCH | {"name": "some", "user_fraction": 0.3}, users=400))
    some = tables["transfers"].filter(pl.col("application").cast(pl.String) == "some")
    assert 83 < some.height < 157, "120 of 400, within four deviations"


def test_the_star_of_the_first_users_takes_as_long_as_they_did() -> None:
    made = scenario(SEARCH, SEARCH | {"name": "some", "user_fraction": 0.5, "start": "30s"}, users=40)
    star = made.star_of_users(seed=1, replicate=2, users=10)
    assert star.population is None
    alone = simulated(made, first=2)["transfers"].filter(pl.col("client") < 10)
    together = simulated(star, first=2)["transfers"]
    assert alone.filter(pl.col("application").cast(pl.String) == "some").height not in (0, 10)

    def times(transfers: pl.DataFrame) -> list[float]:
        # A user who runs an application by a share has a separate one in the star, named by the user's number.
        named = transfers.with_columns(
            pl.col("application").cast(pl.String).str.split(".").list.first().alias("what"),
            pl.col("application").cast(pl.String).str.extract(r"\.(\d+)$").cast(pl.UInt32).alias("number"),
        )
        return named.sort("what", pl.coalesce("number", "client"))["completion_time_s"].to_list()

    assert times(together) == times(alone)


def test_a_star_of_a_tables_rows_fetches_their_sizes() -> None:
    columns = {"rtt_s": [0.02, 0.3], "down_bps": [8e6, 1e6], "bytes": [1000, 50_000]}
    table = {"paths": "table", "columns": columns, "up": "1Mbit", "buffer": "100ms", "loss": 0}
    made = whole(table, SEARCH | {"size": "row"})
    alone, together = (simulated(one)["transfers"] for one in (made, made.star_of_users(seed=1, users=2)))
    assert together.sort("bytes")["completion_time_s"].equals(alone["completion_time_s"])


@pytest.mark.parametrize(("users", "expected"), [(41, "users is 41; the population has 1 to 40"), (0, "users is 0")])
def test_a_star_has_no_more_users_than_the_population(users: int, expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        scenario().star_of_users(seed=1, users=users)


def test_only_a_population_has_users_for_a_star(small: Scenario) -> None:
    with pytest.raises(RequestError, match=r'"small" has a \[network\] already, and no \[population\]'):
        small.star_of_users(seed=1)


def test_a_law_that_draws_what_no_path_can_have_is_named_with_the_user() -> None:
    low = {"distribution": "lognormal", "median": "10bit", "sigma": 5}
    with pytest.raises(RequestError, match=r'scenario "users": user \d+ of replicate 0: down_bps is .* must be from 2'):
        simulated(scenario(down=low, users=400))


def test_a_run_keeps_users_and_says_what_they_met(firstflight: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text(scenario(users=50).to_toml())
    ran = firstflight("run", path, "--replicates", 4, "--out", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert "4 samples of 50 users, each with a separate path." in ran.out
    assert "search: 200 transfers; mean " in ran.out
    assert "(tables: transfers, users, buckets)" in ran.out
    run = ff.Run.open(tmp_path / "out")
    assert run.users.collect().height == 200
    shown = firstflight("table", tmp_path / "out", "users", "--format", "json")
    rows = {(row["quantity"], row["metric"]): row["ours"] for row in json.loads(shown.out)["rows"]}
    assert 50 < rows["rtt_ms", "median"] < 100
    assert rows["loss_percent", "p90"] == 0


@pytest.mark.parametrize("engine", ["model", "emulate"])
def test_the_program_refuses_other_engines_and_leaves_nothing(
    firstflight: Callable[..., Answer], tmp_path: Path, engine: str
) -> None:
    path = tmp_path / "users.toml"
    path.write_text(scenario().to_toml())
    ran = firstflight("run", path, "--engine", engine, "--out", tmp_path / "out")
    assert ran.status == 2
    assert f"The engine {engine} needs one [network]" in ran.err
    assert not (tmp_path / "out").exists()
    assert firstflight("trace", path).status == 2


def test_records_do_not_depend_on_jobs(tmp_path: Path) -> None:
    made = scenario(users=20)
    one, four = (ff.run(made, replicates=8, jobs=jobs, out=tmp_path / str(jobs)) for jobs in (1, 4))
    for table in ("transfers", "users"):
        assert getattr(one, table).collect().equals(getattr(four, table).collect())


def test_the_middle_of_a_bin_is_within_half_a_percent() -> None:
    times = pl.Series([0.001 * 1.37**n for n in range(40)])
    bins = pl.select(bin=(times * 1e9).log(GAMMA).ceil().cast(pl.Int32))
    off = bins.select(middle(pl.col("bin"))).to_series() / times - 1
    assert off.abs().max() <= 1.0001 * RELATIVE_ERROR  # type: ignore[operator]
