"""Links whose rate changes: from the file to the records. And every example of a path runs."""

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import pytest
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from firstflight import RequestError
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.model.single_transfer import from_scenario
from firstflight.engines.simulate import run_cell
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.network import Direction, Link
from firstflight.scenario.parts import IMPAIRMENTS, LOSSES, QUEUES, RATES, Part

EXAMPLES = Path(__file__).parents[2] / "examples" / "paths"
DOWNLOAD = """
name = "path"
duration = "20s"

[tcp]
profile = "linux"

[network]
topology = "chain"
links = {{ rate = {rate}, delay = "10ms", queue = {queue}{more} }}

[[application]]
kind = "file_transfer"
size = "1MB"
count = 1
"""


def _scenario(rate: str = '"10Mbit"', queue: str = '"100p"', more: str = "", directory: Path | None = None) -> Scenario:
    text = DOWNLOAD.format(rate=rate, queue=queue, more=f", {more}" if more else "")
    return Scenario.from_toml(text, directory=directory)


def _forward(scenario: Scenario) -> dict[str, Any]:
    forward: dict[str, Any] = scenario.to_plan()["network"]["links"][0]["forward"]
    return forward


def _simulated(scenario: Scenario) -> dict[str, pl.DataFrame]:
    return run_cell(Cell({}, scenario), seed=1, replicates=1)


def _completion_s(scenario: Scenario) -> float:
    return float(_simulated(scenario)["transfers"]["completion_time_s"][0])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_of_a_path_runs_and_reads_back_the_same(path: Path) -> None:
    scenario = Scenario.load(path)
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    assert _simulated(scenario)["links"]["sent_packets"].sum() > 1000


def test_a_trace_is_relative_to_the_scenario_and_its_content_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "down.trace").write_text("1\n1\n5\n10\n")
    scenario = _scenario('{ trace = "down.trace" }', directory=tmp_path)
    # Four times 1500 bytes in 10 ms.
    assert _forward(scenario)["rate_bps"] == 4_800_000
    assert _forward(scenario)["rate_schedule"] == {"kind": "trace", "opportunities_ms": [1, 1, 5, 10]}
    (tmp_path / "down.trace").write_text("10\n")
    other = _scenario('{ trace = "down.trace" }', directory=tmp_path)
    assert other.to_toml() != scenario.to_toml()
    assert _completion_s(other) > 3 * _completion_s(scenario)


def test_another_file_is_read_when_it_is_set(tmp_path: Path) -> None:
    (tmp_path / "slow.trace").write_text("10\n20\n")
    scenario = _scenario("{ opportunities_ms = [1, 2, 3] }")
    changed = scenario.replace_all([("network.links[0].rate.trace", "slow.trace")], directory=tmp_path)
    assert changed.to_dict()["network"]["links"][0]["rate"]["opportunities_ms"] == [10, 20]
    with pytest.raises(RequestError, match="no file"):
        changed.replace("network.links[0].rate.trace", "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "bad is empty"),
        ("1\n\n3\n", 'bad, line 2: "" is not a time in ms'),
        ("1\n2.5\n", 'bad, line 2: "2.5" is not a time in ms'),
        ("1\n-2\n", 'bad, line 2: "-2" is not'),
        ("1\n99999999999\n", "bad, line 2"),
        ("5\n4\n", "bad, line 2: 4 ms comes after 5 ms"),
        ("0\n0\n", "bad, line 2: the last time is the length of the trace"),
    ],
)
def test_a_malformed_trace_is_one_sentence_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad").write_text(content)
    with pytest.raises(RequestError) as refused:
        _scenario('{ trace = "bad" }', directory=tmp_path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_trace_that_is_not_there_is_named() -> None:
    with pytest.raises(RequestError, match="there is no file"):
        _scenario('{ trace = "nowhere" }')


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ('{ steps = [["1s", "1Mbit"]] }', 'begin at "0s"'),
        ('{ steps = [["0s", "1Mbit"], ["0s", "2Mbit"]] }', "order of time"),
        ('{ steps = [["0s", "1Mbit"], ["5s", "0bit"]] }', "0 for ever"),
        ('{ steps = [["0s", "0bit"]], repeat = "1s" }', "0 for ever"),
        ('{ steps = [["0s", "1Mbit"], ["5s", "2Mbit"]], repeat = "5s" }', "after the last step"),
        ("{ speed = 3 }", "a table as a rate"),
    ],
)
def test_steps_that_cannot_be_are_refused(rate: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        _scenario(rate)


def test_a_limit_in_time_of_a_rate_that_changes_is_by_its_mean() -> None:
    steps = '{ steps = [["0s", "10Mbit"], ["1s", "2Mbit"]], repeat = "2s" }'
    assert _forward(_scenario(steps, '"100ms"'))["queue"]["limit"]["bytes"] == 6_000_000 // 80  # type: ignore[index]
    trace = "{ opportunities_ms = [1, 2, 3, 1000] }"
    assert _forward(_scenario(trace, '"1s"'))["queue"]["limit"]["bytes"] == 6000  # type: ignore[index]


def test_a_download_takes_as_long_as_the_steps_let_it() -> None:
    slow = _completion_s(_scenario('{ steps = [["0s", "10Mbit"], ["200ms", "1Mbit"], ["5s", "10Mbit"]] }'))
    assert _completion_s(_scenario()) < 1.5 < 5 < slow < 7


def test_what_befalls_packets_is_counted_and_reads_back_the_same() -> None:
    scenario = _scenario(more='jitter = "2ms", reordering = { share = 0.05, delay = "5ms" }, duplication = 0.05')
    assert _forward(scenario)["impairments"] == [
        {"kind": "jitter", "distribution": "uniform", "mean_ns": 2_000_000, "keep_order": True},
        {"kind": "reordering", "share": 0.05, "delay_ns": 5_000_000},
        {"kind": "duplication", "share": 0.05, "delay_ns": 0},
    ]
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    found = _simulated(scenario)
    assert found["links"]["reordered_packets"].sum() > 20
    assert found["links"]["duplicated_packets"].sum() > 20
    assert found["transfers"]["completed"].to_list() == [1]


VALUES = ("50p", "50kB", "5ms", 0.25, 5, [1, 5], [["0s", "10Mbit"], ["1s", "5Mbit"]])


def _written(model: type[Part]) -> dict[str, Any]:
    """The keys of a part that have no default, each with the first of `VALUES` that it takes."""

    def value(field: FieldInfo) -> Any:
        taken: TypeAdapter[Any] = TypeAdapter(Annotated[field.annotation, *field.metadata])
        for one in VALUES:
            with suppress(ValueError):
                taken.validate_python(one)
                return one
        raise AssertionError(f"no value for {field}")

    return {key: value(field) for key, field in model.model_fields.items() if field.is_required()}


PARTS = [
    *[("queue", model, {"kind": kind}) for kind, model in QUEUES.items()],
    *[("loss", model, {"kind": kind}) for kind, model in LOSSES.items()],
    *[("rate", model, {}) for model in RATES.values()],
    *[(kind, model, {}) for kind, model in IMPAIRMENTS.items()],
]


@pytest.mark.parametrize(("key", "model", "head"), PARTS, ids=[model.__name__ for _, model, _ in PARTS])
def test_every_part_of_the_native_module_can_be_written_runs_and_reads_back_the_same(
    key: str, model: type[Part], head: dict[str, str]
) -> None:
    table = head | _written(model)
    scenario = _scenario().replace(f"network.links[0].{key}", table)
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    assert pickle.loads(pickle.dumps(scenario)).to_plan() == scenario.to_plan()
    assert _simulated(scenario)["links"]["sent_packets"].sum() > 10
    with pytest.raises(RequestError, match="nosuch"):
        _scenario().replace(f"network.links[0].{key}", table | {"nosuch": 1})


def test_each_key_of_a_link_can_differ_on_the_reverse_path() -> None:
    """The plan of a link has the keys of `Direction`: another one would be left out."""
    assert Direction.model_fields.keys() == Link.model_fields.keys() - {"reverse"}


def test_a_host_that_sleeps_is_simulated_and_a_real_one_sleeps_as_it_does() -> None:
    scenario = _scenario(more='wake = "40us", duplication = 0.05')
    assert _forward(scenario)["impairments"][1] == {"kind": "wake", "delay_ns": 40_000, "after_ns": 5_000_000}
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    for link in lay_out(scenario).links.values():
        assert [impairment["kind"] for impairment in link["impairments"]] == ["duplication"]
    assert "impairments" not in lay_out(_scenario(more='wake = "40us"')).links["links[0]"]


@pytest.mark.parametrize("more", ["duplication = 1.5", "reordering = { share = 0.1 }", 'jitter = "5"'])
def test_impairments_that_cannot_be_are_refused(more: str) -> None:
    with pytest.raises(RequestError, match=more.split()[0]):
        _scenario(more=more)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"more": 'jitter = "5ms"'}, "are subject to jitter"),
        ({"more": "duplication = 0.1"}, "are subject to duplication"),
        ({"rate": '{ steps = [["0s", "10Mbit"]] }'}, r"the rate of a link on its way changes \(steps\)"),
        ({"rate": "{ opportunities_ms = [1] }"}, r"the rate of a link on its way changes \(trace\)"),
        ({"queue": '{ kind = "codel" }'}, "queue of a link on its way is codel"),
        ({"queue": '{ kind = "pie" }'}, "queue of a link on its way is pie"),
    ],
)
def test_the_model_refuses_what_it_cannot_compute_before_it_begins(parts: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        from_scenario(_scenario(**parts))
