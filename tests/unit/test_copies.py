"""Scenarios and their parts are ordinary Python objects: copies and pickles are equal, complete and independent."""

import copy
import itertools
import multiprocessing
import pickle
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import firstflight
from firstflight.scenario import Scenario, laws

ROOT = Path(__file__).parents[2]
FILES = [
    *sorted((ROOT / "examples").rglob("*.toml")),
    *sorted(path for path in (ROOT / "python").rglob("*.toml") if path.name != "study.toml"),
]
SCENARIOS = [path for path in FILES if "[[application]]" in path.read_text(encoding="utf-8")]
WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}
LAWS = {
    "constant": "value = {0}",
    "uniform": "low = {0}, high = {1}",
    "exponential": "mean = {0}",
    "lognormal": "median = {0}, sigma = 0.5, maximum = {1}",
    "pareto": "shape = 1.5, minimum = {0}, maximum = {1}",
    "empirical": "points = [[0.0, 0.1], [1.0, 0.2]]",
}
KINDS: dict[str, tuple[Any, str, str]] = {
    "time": (laws.TimeLaw, '"1ms"', '"2ms"'),
    "size": (laws.SizeLaw, '"1kB"', '"2kB"'),
    "rate": (laws.RateLaw, '"1Mbit"', '"2Mbit"'),
    "number": (laws.CountLaw, "1", "2"),
    "probability": (laws.ProbabilityLaw, "0.1", "0.2"),
}


def test_the_scenarios_of_the_project_are_there() -> None:
    assert len(SCENARIOS) > 50


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.relative_to(ROOT)))
def test_copies_and_pickles_of_every_scenario_are_equal_and_independent(path: Path) -> None:
    scenario = Scenario.load(path)
    for way in (*WAYS.values(), lambda of: of.model_copy(deep=True)):
        again = way(scenario)
        assert again == scenario
        assert again.to_plan() == scenario.to_plan()
        assert again.to_toml() == scenario.to_toml()
    before = scenario.to_toml()
    again.tcp.initial_window = 17
    again.duration = firstflight.Duration("7s")
    assert scenario.to_toml() == before


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("text", ["20s", "3kB", "25p", "1.5Mbit"])
def test_quantities_keep_their_type_and_value(way: Callable[[Any], Any], text: str) -> None:
    kinds = (firstflight.Duration, firstflight.Bytes, firstflight.Packets, firstflight.BitsPerSecond)
    quantity = next(kind(text) for kind in kinds if text.lstrip("0123456789.") in kind.units)
    again = way(quantity)
    assert (type(again), again) == (type(quantity), quantity)


# A probability has an upper end, and the exponential distribution none.
@pytest.mark.parametrize(
    ("law", "kind"), [pair for pair in itertools.product(LAWS, KINDS) if pair != ("exponential", "probability")]
)
def test_every_distribution_of_every_kind_of_value_can_be_pickled(law: str, kind: str) -> None:
    read, least, most = KINDS[kind]
    (table,) = tomllib.loads(f'a = {{ distribution = "{law}", {LAWS[law].format(least, most)} }}').values()
    made = TypeAdapter(read).validate_python(table)
    assert pickle.loads(pickle.dumps(made)) == made


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
def test_scenarios_cells_and_traces_pass_between_processes(start: str, small: Scenario) -> None:
    trace = firstflight.trace(small)
    sent = [small, small.tcp, small.duration, firstflight.Cell({"iw": 3}, small)]
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.map(same, sent) == sent
        assert pool.apply(same, (trace,)).segments.equals(trace.segments)


def test_errors_pass_between_processes() -> None:
    error = pickle.loads(pickle.dumps(firstflight.MachineError("no TUN", "modprobe tun")))
    assert (str(error), error.reason, error.fix) == ("no TUN; fix: modprobe tun", "no TUN", "modprobe tun")
