"""A population as a scenario spells it: its plan, and one sentence for an error."""

import json
from typing import Any

import pytest

from firstflight import RequestError
from firstflight.engines import find
from firstflight.engines.simulate import capture
from firstflight.scenario import Cell, Scenario
from small_population import MARGINALS, SEARCH, scenario, whole


def test_laws_arrive_in_nanoseconds_and_bits_a_second() -> None:
    plan = scenario(
        rtt={"distribution": "empirical", "points": [[0, 0.01], [1, 0.2]]},
        buffer={"distribution": "uniform", "low": "10ms", "high": "1s"},
        extra_rtt="30ms",
    ).to_plan()
    assert "network" not in plan
    population = plan["population"]
    assert (population["users"], population["keep"], population["farther_ns"]) == (40, "rows", 30_000_000)
    assert population["least_buffer_packets"] == 10
    paths = population["paths"]
    assert paths["rtt_ns"]["points"] == [[0, 1e7], [1, 2e8]]
    assert paths["buffer_ns"] == {"distribution": "uniform", "low": 10_000_000, "high": 1_000_000_000}
    assert paths["down_bps"] == {"distribution": "lognormal", "median": 2_000_000, "sigma": 1.0, "minimum": 56_000}
    assert paths["loss"] == {"distribution": "constant", "value": 0.0}
    assert paths["correlation"][:10] == [1, -0.3, 0, 0, 0, -0.3, 1, 0, 0, 0]
    (application,) = plan["applications"]
    assert (application["share"], application["size_from_row"]) == (1.0, False)
    assert "client_hosts" not in application
    json.dumps(plan, allow_nan=False)


def test_a_measured_law_of_losses_runs_linearly() -> None:
    loss = scenario(loss={"distribution": "empirical", "points": [[0, 0], [1, 0.1]]}).to_plan()["population"]["paths"][
        "loss"
    ]
    assert loss["interpolation"] == "linear"


def test_a_population_survives_being_written_as_toml() -> None:
    made = scenario(SEARCH | {"user_fraction": 0.5}, records="aggregates", subnet_users=4, subnet_variance_fraction=0.5)
    again = Scenario.from_toml(made.to_toml())
    assert again.to_plan() == made.to_plan()
    assert again.to_toml() == made.to_toml()


def test_keys_of_a_population_are_set_by_their_path() -> None:
    changed = scenario().replace("population.users", 7).replace("population.dependence", {})
    assert changed.population is not None
    assert changed.population.users == 7
    assert changed.to_plan()["population"]["paths"]["correlation"][1] == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": 0}, "population.users: 0 is too small; write at least 1"),
    ({"users": None}, "population.users: this key is missing"),
    ({"records": "everything"}, 'population.records: "everything" is not known; write "rows" or "aggregates"'),
    ({"paths": "table "}, 'population: unknown paths "table "; did you mean "table"?'),
    ({"paths": None}, 'population: the population has no "paths"; known: marginals, table'),
    ({"min_buffer": "0p"}, 'population.min_buffer: a queue of "0p" drops everything'),
    ({"rtt": 0.07}, 'population.rtt.value: 0.07 has no unit: write a time such as "50ms"'),
    ({"rtt": None}, "population.rtt: this key is missing"),
    (
        {"rtt": {"distribution": "empirical", "points": [[0, 0.1], [0.5, 0.05], [1, 0.2]]}},
        "population.rtt: points[1]: the value falls from 0.1 to 0.05; sort the points of a CDF by value",
    ),
    ({"down": "1Mbps"}, 'population.down.value: "1Mbps" is not a rate: unknown unit "Mbps"; tc reads'),
    (
        {"down": "0bit"},
        "population.down: this constant distribution can draw a rate of zero, over which nothing arrives",
    ),
    (
        {"down": {"distribution": "uniform", "low": "0bit", "high": "1Mbit"}},
        "this uniform distribution can draw a rate of zero",
    ),
    (
        {"down": {"distribution": "empirical", "points": [[0, 0], [1, 1e6]]}},
        "this empirical distribution can draw a rate of zero",
    ),
    ({"loss": 1.0}, "population.loss.value: 1.0 is too large; write less than 1"),
    ({"loss": -0.1}, "population.loss.value: -0.1 is too small; write at least 0"),
    (
        {"loss": {"distribution": "empirical", "points": [[0, 0], [1, 1]]}},
        "population.loss: this distribution reaches 1: a probability",
    ),
    (
        {"loss": {"distribution": "exponential", "mean": 0.01}},
        "population.loss: this exponential distribution has no upper end: a probability is below 1",
    ),
    ({"loss": {"distribution": "lognormal", "median": 0.01, "sigma": 1}}, "add maximum = 0.5, for example"),
    (
        {"loss": {"distribution": "empirical", "points": [[0, 0], [1, 0.1]], "interpolation": "log"}},
        "population.loss: a measured law of probabilities begins at zero, which has no logarithm: write interpolation",
    ),
    ({"dependence": {"rtt_down": 1.0}}, "population.dependence: rtt_down is 1: write a correlation between -1 and 1"),
    ({"dependence": {"rtt_dwn": 0.1}}, 'population.dependence: "rtt_dwn" is not a pair of rtt, down, up, buffer, loss'),
    ({"dependence": {"rtt_rtt": 0.1}}, '"rtt_rtt" is not a pair'),
    ({"dependence": {"rtt_down": 0, "down_rtt": 0.5}}, '"down_rtt" is given both ways round; keep one'),
    (
        {"dependence": {"rtt_down": 0.9, "rtt_up": 0.9, "down_up": -0.9}},
        "population.dependence: no quantities have rtt_down = 0.9, rtt_up = 0.9 and down_up = -0.9 together (the "
        "matrix of these is not positive definite: its smallest eigenvalue is -0.8); move them towards 0",
    ),
    (
        {"dependence": {"buffer_loss": 0.1, "rtt_down": 0.8, "down_up": 0.8}},
        "no quantities have rtt_down = 0.8, rtt_up = 0 and down_up = 0.8 together",
    ),
    ({"subnet_users": 0}, "population.subnet_users: 0 is too small"),
    ({"subnet_variance_fraction": 1.0}, "population.subnet_variance_fraction: 1.0 is too large; write less than 1"),
    ({"buckets": {"rtt_s": [0.1, 0.1]}}, "population.buckets.rtt_s: [0.1, 0.1] are not ascending numbers above zero"),
    ({"buckets": {"rtt_s": [0.1, float("nan")]}}, "population.buckets.rtt_s[1]: nan is not a finite number"),
    ({"buckets": {"segments": [float("inf")]}}, "population.buckets.segments[0]: inf is not a finite number"),
    ({"min_buffer": "4294967296p"}, 'population.min_buffer: "4294967296p" is too large'),
    (
        {"rtt": {"distribution": "lognormal", "median": "70ms", "sigma": 1, "minimum": "1s", "maximum": "10ms"}},
        "population.rtt: minimum (1s) is above maximum (10ms)",
    ),
    (
        {"rtt": {"distribution": "empirical", "points": [[0, 0.01], [1, 0.1]], "minimum": "1s", "maximum": "10ms"}},
        "population.rtt: minimum (1s) is above maximum (10ms)",
    ),
    (
        {"rtt": {"distribution": "lognormal", "median": "70ms", "sigma": float("inf")}},
        "rtt.sigma: inf is not a finite number",
    ),
    ({"rate": "1Mbit"}, 'population.rate: unknown key "rate"'),
]


@pytest.mark.parametrize(("keys", "expected"), WRONG, ids=[str(keys)[:50] for keys, _ in WRONG])
def test_what_is_wrong_is_said_in_a_sentence(keys: dict[str, Any], expected: str) -> None:
    with pytest.raises(RequestError) as found:
        scenario(**keys)
    assert expected in str(found.value)
    assert "\n" not in str(found.value)


NETWORK = {"topology": "chain", "links": {"rate": "1Mbit", "delay": "10ms", "queue": "20p"}}


def test_a_scenario_has_either_a_network_or_a_population() -> None:
    document = scenario().to_dict()
    with pytest.raises(RequestError, match=r"either \[network\] or \[population\]: both are given; keep one"):
        Scenario.from_dict(document | {"network": NETWORK})
    del document["population"]
    with pytest.raises(RequestError, match="neither is given; write one of them"):
        Scenario.from_dict(document)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"clients": 2}, "application.search.clients: in a population each user has one client"),
        ({"client_hosts": "node[1]"}, "application.search.client_hosts: in a population"),
        ({"server_choice": "by_client"}, "application.search.server_choice: in a population"),
        ({"user_fraction": 0}, "application.search.user_fraction: 0 is too small; write more than 0"),
        ({"user_fraction": 1.5}, "application.search.user_fraction: 1.5 is too large; write at most 1"),
        ({"size": "row"}, 'application.search.size: "row" needs a population of paths = "table" with a column bytes'),
    ],
)
def test_an_application_of_a_population_names_no_hosts(keys: dict[str, Any], expected: str) -> None:
    with pytest.raises(RequestError) as found:
        scenario(SEARCH | keys)
    assert expected in str(found.value)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"user_fraction": 0.5},
            "application.search.user_fraction: a share of the users needs a [population] or a tree; set clients",
        ),
        ({"size": "row"}, 'application.search.size: "row" is that of a [population]; write a size'),
    ],
)
def test_what_only_a_population_has_is_refused_in_a_network(keys: dict[str, Any], expected: str) -> None:
    document = scenario(SEARCH).to_dict() | {"network": NETWORK, "application": [SEARCH | keys]}
    del document["population"]
    with pytest.raises(RequestError) as found:
        Scenario.from_dict(document)
    assert expected in str(found.value)


def test_links_of_a_population_are_not_metered() -> None:
    with pytest.raises(RequestError, match="stats_interval cuts the counters of links, which a population has none of"):
        scenario().replace("stats_interval", "1s")


@pytest.mark.parametrize("engine", ["model", "emulate"])
def test_other_engines_refuse_a_population_and_say_what_to_do(engine: str) -> None:
    cell = Cell({"scenario": "users"}, scenario())
    with pytest.raises(RequestError, match=f"The engine {engine} needs one .network., .* has a .population.: take its"):
        find(engine).run_cell(cell, seed=1, replicates=1)


def test_a_population_is_not_traced() -> None:
    with pytest.raises(RequestError, match=r"A capture of segments needs one \[network\].*scenario.star_of_users"):
        capture(scenario(), seed=1)


def test_an_unknown_population_is_named_with_its_neighbors() -> None:
    with pytest.raises(RequestError, match='population: unknown population "nowhere"; '):
        whole(MARGINALS | {"name": "nowhere"})
