"""Trees of users: their keys, their errors, and results that depend on no thread and no interruption."""

from pathlib import Path
from typing import Any

import pytest

import firstflight as ff
from firstflight import RequestError
from firstflight.engines.memory import about_bytes
from firstflight.engines.simulate import run_cell
from firstflight.scenario import Cell, Scenario

NEIGHBORS = Path(__file__).parents[2] / "examples/neighbors.toml"


def small(**network: Any) -> Scenario:
    """Two homes of three devices, whose lines are drawn."""
    document = Scenario.load(NEIGHBORS).to_dict()
    document["duration"] = "4s"
    document["network"]["group"][1]["count"] = 2
    for path, value in network.items():
        document["network"][path] = value
    return Scenario.from_dict(document)


def test_a_tree_has_servers_at_the_root_and_users_where_nothing_is_behind() -> None:
    scenario = Scenario.load(NEIGHBORS)
    assert scenario.network is not None
    assert scenario.network.hosts() == {"server": 1, "device": 150, "users": 150}
    assert scenario.network.link_count() == 1 + 1 + 50 + 150
    assert "202 links" in about_bytes(scenario)
    assert [application["clients"] for application in scenario.to_plan()["applications"]] == [150, 150]
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


def test_what_is_a_law_is_drawn_and_the_rest_is_a_link() -> None:
    groups = small().to_plan()["network"]["group"]
    cabinet, home, device = groups
    assert cabinet["draw"] == [{}, {}]
    assert cabinet["link"]["forward"]["rate_bps"] == 200_000_000
    assert [sorted(laws) for laws in home["draw"]] == [["delay_ns", "rate_bps"]] * 2
    assert [laws["rate_bps"]["median"] for laws in home["draw"]] == [40_000_000, 8_000_000]
    assert home["draw"][1]["delay_ns"] == {"distribution": "uniform", "low": 2_000_000, "high": 8_000_000}
    assert device["draw"][0] == device["draw"][1] == {"loss": {"distribution": "uniform", "low": 0.0, "high": 0.001}}


def test_a_constant_for_the_way_back_takes_the_place_of_what_is_drawn() -> None:
    scenario = small()
    plan = scenario.replace("network.group.home.link.reverse", {"rate": "1Mbit"}).to_plan()
    home = plan["network"]["group"][1]
    assert sorted(home["draw"][1]) == ["delay_ns"]
    assert home["link"]["reverse"]["rate_bps"] == 1_000_000


def test_a_limit_in_time_is_that_of_each_link_that_is_drawn() -> None:
    timed = small().replace("network.group.home.link.queue", "50ms").to_plan()["network"]["group"][1]
    assert timed["draw"][0]["limit"] == timed["draw"][1]["limit"] == {"time_ns": 50_000_000}
    scenario = small().replace("network.group.home.link.queue", {"kind": "codel", "limit": "2bdp"})
    assert scenario.to_plan()["network"]["group"][1]["draw"][0]["limit"] == {"bdp_thousandths": 2000}
    assert run_cell(Cell({}, scenario), seed=1, replicates=1)["transfers"].height > 0


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("network.group.home.behind", "cabinett", 'group "home" is behind "cabinett", and no group before it'),
        ("network.group.home.name", "users", 'two groups of hosts are called "users"; give this one another name'),
        ("network.group.home.count", 0, "0 is too small; write at least 1"),
        ("network.group.home.count", 20_000, "the tree has 80002 links; write fewer or smaller groups, at most 32767"),
        ("network.group.device.name", "Device", "holds characters"),
        ("network.group.home.link.rate", "40", '"40" has no unit'),
        (
            "network.group.home.link.loss",
            {"distribution": "uniform", "low": 0, "high": 1},
            "1 is too large; write less than 1",
        ),
        ("network.group.home.link.rat", "1Mbit", 'unknown key "rat"; did you mean "rate"?'),
        ("application.web.client_hosts", "home", 'there are no hosts "home"; known here: device, server, users'),
        ("application.web.client_hosts", "device[150]", "device[0] to device[149] exist"),
        ("application.web.clients", "every", '"every" is not a number of clients; write for example 4, or "each"'),
        ("application.download.user_fraction", 0, "0 is too small; write more than 0"),
    ],
)
def test_a_mistake_is_named(path: str, value: Any, error: str) -> None:
    with pytest.raises(RequestError) as raised:
        Scenario.load(NEIGHBORS).replace(path, value)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_model_refuses_a_tree_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"The engine model has no trees, and the network of .* is one; write a"):
        ff.run(small(), engine="model", out=tmp_path / "run")


def test_a_run_does_not_depend_on_threads_or_interruption(tmp_path: Path) -> None:
    runs = {}
    for jobs in (1, 3):
        run = ff.run(small(), replicates=3, jobs=jobs, seed=5, out=tmp_path / str(jobs))
        runs[jobs] = {path.name: path.read_bytes() for path in sorted(run.directory.rglob("*.parquet"))}
    assert runs[1] == runs[3]
    assert runs[1]


def test_a_replicate_is_another_sample_of_the_lines() -> None:
    tables = run_cell(Cell({}, small()), seed=1, replicates=2)
    busy = tables["links"].filter(tables["links"]["link"] == "home[0]")
    per_byte = (busy["busy_s"] / busy["sent_bytes"]).to_list()
    assert per_byte[0] != pytest.approx(per_byte[1], rel=1e-3)
