"""Applications that send datagrams: their keys, their table, and the engines that refuse them."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight import load_scenario, trace
from firstflight.engines import model, simulate
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario

EXAMPLES = Path(__file__).parents[2] / "examples"
LINK = {"rate": "2Mbit", "delay": "10ms", "queue": "50p"}


def scenario(**application: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "name": "datagrams",
            "duration": "10s",
            "tcp": {"profile": "linux"},
            "network": {"topology": "chain", "links": LINK},
            "application": [application],
        },
        source="",
    )


@pytest.mark.parametrize(
    ("application", "error"),
    [
        ({"kind": "voice", "codec": "opus", "frame": "30ms"}, 'frame: "opus" has no frames of "30ms"; it has 2.5ms'),
        ({"kind": "voice", "bitrate": "32kbit"}, 'bitrate: "g711" has 64kbit, not "32kbit"; leave it out'),
        ({"kind": "voice", "codec": "g729"}, '"g729" is not known; write "g711" or "opus"'),
        ({"kind": "voice", "frame": "0s"}, '"0s" leaves no time between datagrams'),
        ({"kind": "voice", "count": 3}, 'unknown key "count"'),
        ({"kind": "game", "tcp": {"profile": "rfc"}}, 'unknown key "tcp"'),
        ({"kind": "constant_rate", "rate": "1Mbit", "payload": "70kB"}, '"70kB" does not fit: a UDP datagram carries'),
        ({"kind": "constant_rate", "rate": "1Mbit", "header_size": "70kB"}, '"70kB" is too long'),
        ({"kind": "dns", "think_time": "1s", "backoff": 0.5}, "backoff"),
        ({"kind": "dns", "think_time": "1s", "length": "5s"}, 'unknown key "length"'),
    ],
)
def test_what_makes_no_sense_is_an_error_that_names_it(application: dict[str, Any], error: str) -> None:
    with pytest.raises(RequestError) as raised:
        scenario(**application)
    assert error in str(raised.value)


def test_an_application_of_datagrams_is_read_again_as_it_was_written() -> None:
    for application in (
        {"kind": "voice", "codec": "opus", "impairment": {"ie": 5, "bpl": 12}, "length": "5s"},
        {"kind": "game", "deadline": "100ms"},
        {"kind": "dns", "think_time": "1s", "count": 3},
        {"kind": "constant_rate", "rate": "1Mbit"},
    ):
        one = scenario(**application)
        assert Scenario.from_toml(one.to_toml()).to_plan() == one.to_plan()


def test_the_engines_that_have_no_datagrams_say_so() -> None:
    call = scenario(kind="voice")
    with pytest.raises(RequestError, match="is of kind voice"):
        model.run_cell(Cell({}, call), 1, 1)


def test_a_trace_of_datagrams_is_refused_whatever_is_asked_of_it(tmp_path: Path) -> None:
    call = trace(scenario(kind="voice"))
    for asked in (lambda: call.plot(tmp_path / "call.svg"), lambda: call.marks, lambda: call.segments):
        with pytest.raises(RequestError, match="the first application sends datagrams"):
            asked()


def test_the_table_of_streams_has_a_row_an_application_and_sender() -> None:
    found = simulate.run_cell(Cell({}, scenario(kind="voice")), seed=1, replicates=2)
    streams = found["streams"]
    assert streams["from_server"].to_list() == [0, 1, 0, 1]
    assert streams["packets_sent"].to_list() == [500] * 4
    assert streams["mos"].to_list() == pytest.approx([4.41] * 4, abs=0.005)


def test_a_look_up_is_a_transfer_without_a_connection() -> None:
    found = simulate.run_cell(Cell({}, scenario(kind="dns", think_time="1s", count=3)), seed=1, replicates=1)
    looked_up = found["transfers"]
    assert looked_up["completed"].to_list() == [1, 1, 1]
    assert looked_up["connection"].to_list() == [None, None, None]


def test_a_population_keeps_streams_as_rows_only() -> None:
    document = {
        "name": "homes",
        "duration": "5s",
        "tcp": {"profile": "linux"},
        "population": {
            "users": 2,
            "paths": "marginals",
            "rtt": "20ms",
            "down": "10Mbit",
            "up": "2Mbit",
            "buffer": "100ms",
            "loss": 0.0,
        },
        "application": [{"kind": "voice"}],
    }
    homes = Scenario.from_dict(document, source="")
    assert simulate.run_cell(Cell({}, homes), 1, 1)["streams"]["client"].to_list() == [0, 0, 1, 1]


def test_a_population_that_keeps_aggregates_keeps_a_row_of_each_stream() -> None:
    document: dict[str, Any] = {
        "name": "homes",
        "duration": "5s",
        "tcp": {"profile": "linux"},
        "population": {
            "users": 20,
            "paths": "marginals",
            "rtt": {"distribution": "uniform", "low": "10ms", "high": "50ms"},
            "down": "10Mbit",
            "up": "2Mbit",
            "buffer": "100ms",
            "loss": 0.01,
        },
        "application": [
            {"kind": "voice", "name": "call"},
            {"kind": "dns", "name": "names", "think_time": "1s"},
            {"kind": "file_transfer", "name": "file", "size": "20kB", "idle_time": "1s"},
        ],
    }
    rows = simulate.run_cell(Cell({}, Scenario.from_dict(document, source="")), 1, 2)
    document["population"]["records"] = "aggregates"
    sums = simulate.run_cell(Cell({}, Scenario.from_dict(document, source="")), 1, 2)
    assert sums["streams"].equals(rows["streams"])
    assert sums["transfers"].is_empty()
    assert rows["streams"].height == 2 * 20 * 4
    whole = sums["aggregates"].filter(pl.col("dimension").cast(pl.String) == "all")
    counts = dict(whole.group_by("application").agg(pl.col("count").sum()).rows())
    transfers = rows["transfers"].group_by("application").len().rows()
    assert counts == dict(transfers)
    assert set(map(str, counts)) == {"names", "file"}


@pytest.mark.parametrize("name", ["voice", "game", "dns", "constant_rate"])
def test_each_example_runs(name: str) -> None:
    example = load_scenario(EXAMPLES / f"{name}.toml").replace("duration", "5s")
    assert simulate.run_cell(Cell({}, example), 1, 1)["streams"]["packets_received"].min() > 0
