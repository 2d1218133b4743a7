"""Pages over connections that are kept, videos, arrivals at a load, and arms: their keys, errors and effects."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import firstflight as ff
from firstflight import RequestError
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.emulate.prepared import Prepared
from firstflight.engines.simulate import run_cell
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.laws import mean

EXAMPLES = Path(__file__).parents[2] / "examples"
ADOPTION = Scenario.load(EXAMPLES / "adoption.toml")
STAR = """
name = "one"
duration = "40s"
tcp = { profile = "linux" }
[network]
topology = "star"
hub = { rate = "10Mbit", delay = "10ms", queue = "100p" }
spokes = { count = 4, rate = "unlimited", delay = "5ms", queue = "100p" }
[[application]]
name = "app"
"""
PAGE = 'kind = "web_page"\nprimary = "10kB"\ninline = "5kB"\nthink_time = "1s"\n'
LOADED = PAGE.replace('think_time = "1s"', 'load = 0.6\nof = "hub"')
FILES = 'kind = "arrivals"\nsize = "20kB"\n'


def star(application: str) -> Scenario:
    return Scenario.from_toml(STAR + application)


def tables(scenario: Scenario, seed: int = 1) -> dict[str, pl.DataFrame]:
    return run_cell(Cell({}, scenario), seed=seed, replicates=1)


@pytest.mark.parametrize(
    ("application", "error"),
    [
        (PAGE + "hosts = 2", 'app: hosts has a meaning with persistent = "keep_alive" or http_version = "2" only'),
        (
            PAGE + 'http_version = "2"\nconnections = 2',
            'app: connections has a meaning with http_version = "1.1" with persistent',
        ),
        (
            PAGE + 'http_version = "1.1"\nframe = "1kB"',
            'app: frame has a meaning with http_version = "2" only; leave it out',
        ),
        (PAGE + 'http_version = "2"\nparallel = 2', 'app: parallel has a meaning with http_version = "1.0" only'),
        (PAGE + 'request = "0B"', 'app.request: "0B" is too small; write at least "1B"'),
        (PAGE + 'request = "5GB"', 'app.request: "5GB" is too large; write at most "4294967295B"'),
        (PAGE + 'response_header = "5GB"', 'app.response_header: "5GB" is too large; write at most'),
        ('kind = "constant_rate"\nrate = "0bit"', 'app.rate: "0bit" is too small; write more than "0bit"'),
        (PAGE + 'http_version = "2"\nframe = "0B"', 'app: frame is "0B", and a frame of HTTP/2 has 1 B to 16777215 B'),
        (
            PAGE + 'then = [{ inline = "5kB", inlinecount = 3 }]',
            'unknown key "inlinecount"; did you mean "inline_count"?',
        ),
        (
            'kind = "video"\nchunk = "1MB"\ninterval = "0s"',
            'chunks of "0s" have nothing to play: write for example "4s"',
        ),
        (PAGE + 'load = 0.5\nof = "hub"', "app: pages have either a time between them, such as"),
        (PAGE.replace("think_time", "idle"), 'app.idle: unknown key "idle"'),
        (LOADED.replace("0.6", "0"), "app.load: 0 is too small; write at least 1e-09"),
        (LOADED.replace('"hub"', '"spokes[1]"'), 'app.of: the rate of "spokes[1]" is unlimited'),
        (PAGE + 'dns = { query = "0B" }', 'app.dns.query: "0B" does not fit: a UDP datagram carries 1B to 65507B'),
        (PAGE + 'dns = { think_time = "1s" }', 'app.dns.think_time: unknown key "think_time"'),
        (FILES, 'app: arrivals have either idle_time = "50ms", or a load'),
        (FILES + 'idle_time = "1s"\nload = 0.5\nof = "hub"', 'app: arrivals have either idle_time = "50ms", or a load'),
        (FILES + "load = 0.5", 'app: arrivals have either idle_time = "50ms", or a load'),
        (FILES + 'load = 0\nof = "hub"', "app.load: 0 is too small; write at least 1e-09"),
        (FILES + 'load = 0.5\nof = "bottleneck"', 'app.of: there is no link "bottleneck"; write its name as the table'),
        (FILES + 'load = 0.5\nof = "spokes[9]"', 'app.of: there is no link "spokes[9]"'),
        (
            FILES + 'load = 0.5\nof = "spokes[1]"',
            'app.of: the rate of "spokes[1]" is unlimited; name a link that has one',
        ),
    ],
)
def test_a_mistake_in_an_application_is_named(application: str, error: str) -> None:
    with pytest.raises(RequestError) as raised:
        star(application)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ("10kB", 10_000.0),
        ({"distribution": "uniform", "low": "1kB", "high": "3kB"}, 2_000.0),
        ({"distribution": "exponential", "mean": "7kB"}, 7_000.0),
        ({"distribution": "lognormal", "median": "10kB", "sigma": 1.0}, 16_487.2),
        ({"distribution": "lognormal", "median": "10kB", "sigma": 0.0, "maximum": "8kB"}, 8_000.0),
        ({"distribution": "pareto", "shape": 2.0, "minimum": "5kB"}, 10_000.0),
        ({"distribution": "empirical", "points": [[0, 0], [1, 100]], "interpolation": "linear"}, 50.0),
    ],
)
def test_the_mean_of_a_law_is_known(law: Any, expected: float) -> None:
    size: Any = FileTransfer(size=law).size
    assert mean(size) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "law",
    [
        {"distribution": "lognormal", "median": "10kB", "sigma": 1.5, "minimum": "4kB", "maximum": "100kB"},
        {"distribution": "pareto", "shape": 1.2, "minimum": "4kB", "maximum": "1MB"},
        {"distribution": "pareto", "shape": 1.0, "minimum": "4kB", "maximum": "1MB"},
        {"distribution": "empirical", "points": [[0, 100], [0.5, 2000], [1, 60000]], "scale": 2, "maximum": "50kB"},
    ],
)
def test_the_mean_of_a_law_is_that_of_what_the_simulator_draws(law: dict[str, Any]) -> None:
    scenario = star(FILES + 'idle_time = "1ms"\n').replace("application.app.size", law)
    drawn = tables(scenario.replace_all([("duration", "15s"), ("network.hub.rate", "unlimited")]))["transfers"]["bytes"]
    assert len(drawn) > 14_000
    application: Any = scenario.application[0]
    assert drawn.to_numpy().mean() == pytest.approx(mean(application.size), rel=0.06)


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_a_load_is_met_on_its_link(load: float) -> None:
    scenario = star(FILES + f'load = {load}\nof = "hub"\nclients = "each"\n').replace("duration", "200s")
    hub = tables(scenario)["links"].filter(pl.col("link") == "hub")
    assert float(hub["busy_s"].to_numpy().sum()) / 200 == pytest.approx(load, rel=0.06)
    overload = tables(star(FILES + 'load = 2\nof = "hub"\n'))
    assert (overload["transfers"]["completed"] == 0).sum() > 100


def test_pages_meet_a_load_from_the_beginning_to_the_end() -> None:
    sizes = 'then = [{ inline = "3kB", inline_count = 4 }]\nresponse_header = "200B"\nclient_hosts = "spokes"\n'
    scenario = star(LOADED + sizes + "clients = 200\n").replace_all(
        [("duration", "100s"), ("stats_interval", "25s"), ("application.app.http_version", "2")]
    )
    hub = tables(scenario)["links"].filter(pl.col("link") == "hub")
    assert (hub["busy_s"] / 25).to_list() == pytest.approx([0.6] * 4, rel=0.1)


def test_a_page_waits_for_the_look_up_of_its_names() -> None:
    known, asked = (tables(star(PAGE + more)) for more in ("count = 2\n", 'count = 2\ndns = { resolve = "50ms" }\n'))
    waits = (asked["pages"]["completion_time_s"] - known["pages"]["completion_time_s"]).to_list()
    # 30 ms there and back, and two datagrams at 10 Mbit/s.
    assert waits == [pytest.approx(0.0802, abs=1e-4), pytest.approx(0, abs=1e-4)]
    assert asked["streams"]["packets_sent"].to_list() == [1, 1]
    assert known["transfers"].height == asked["transfers"].height


def test_pages_of_each_kind_come_whole_and_are_the_same_pages() -> None:
    scenario = Scenario.load(EXAMPLES / "browsing.toml")
    kept = [("application.web.http_version", "1.1"), ("application.web.persistent", "keep_alive")]
    two, one = tables(scenario), tables(scenario.replace_all(kept))
    both = two["pages"].join(one["pages"], on=["client", "page"])
    assert both.height >= 3
    assert both["objects"].equals(both["objects_right"].rename("objects"))
    assert two["transfers"]["connection"].n_unique() < one["transfers"]["connection"].n_unique() <= 12 * 5


def test_arms_are_called_apart_and_a_sweep_goes_from_none_to_all() -> None:
    rows = {}
    for share in (0, 0.5, 1):
        transfers = tables(ADOPTION.replace_all([("arm.iw10.share", share), ("duration", "10s")]))["transfers"]
        in_arm = transfers["application"].cast(pl.String).str.ends_with(".iw10")
        rows[share] = float(in_arm.to_numpy().mean())
        windows = transfers.with_columns(in_arm=in_arm).group_by("in_arm").agg(pl.col("initial_window_segments").max())
        assert dict(windows.iter_rows()) == {True: 10, False: 3} if share == 0.5 else windows.height == 1
    assert rows[0] == 0
    assert 0.2 < rows[0.5] < 0.8
    assert rows[1] == 1


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("arm.iw10.share", 1.5, "1.5 is too large; write at most 1"),
        ("arm.iw10.of", "homes", 'homes" is not known; write "users" or "connections"'),
        ("arm.iw10.name", "a.b", "holds characters other than"),
        ("arm.iw10.server_tcp", {"initial_windw": 3}, 'unknown key "initial_windw"; did you mean "initial_window"?'),
        ("arm", [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.7}], "the shares of the arms add up to 1.4"),
        ("arm", [{"name": "a", "share": 0.1}, {"name": "a", "share": 0.7}], 'two are called "a"'),
    ],
)
def test_a_mistake_in_an_arm_is_named(path: str, value: Any, error: str) -> None:
    with pytest.raises(RequestError) as raised:
        ADOPTION.replace(path, value)
    assert error in str(raised.value)


def test_scenarios_without_arms_are_written_as_before() -> None:
    assert "arm" not in star(PAGE).to_toml()
    assert "arms" not in star(PAGE).to_plan()
    assert Scenario.from_toml(ADOPTION.to_toml()).to_plan() == ADOPTION.to_plan()


def test_runs_with_all_of_it_do_not_depend_on_threads(tmp_path: Path) -> None:
    runs = {}
    for jobs in (1, 3):
        run = ff.run(ADOPTION.replace("duration", "6s"), replicates=3, jobs=jobs, seed=2, out=tmp_path / str(jobs))
        runs[jobs] = {path.name: path.read_bytes() for path in sorted(run.directory.rglob("*.parquet"))}
    assert runs[1] == runs[3]
    assert runs[1]


@pytest.mark.parametrize(
    ("application", "error"),
    [
        ('kind = "video"\nchunk = "1MB"', "application.app.kind: the emulator has no video; use simulate"),
        (FILES + 'idle_time = "1s"', "application.app.kind: the emulator has no arrivals; use simulate"),
        (PAGE + 'http_version = "2"', 'application.app.http_version: the emulator fetches pages by "1.0" or "1.1"'),
        (
            PAGE + 'http_version = "1.1"\npersistent = "keep_alive"',
            'application.app.persistent: the emulator does not fetch pages with "keep_alive"',
        ),
        (PAGE + 'then = [{ inline = "5kB" }]', "application.app.then: the emulator fetches pages without it"),
        (PAGE + "dns = {}", "application.app.dns: the emulator fetches pages without it"),
        (LOADED, "application.app.load: the emulator fetches pages without it"),
    ],
)
def test_the_emulator_refuses_what_its_programs_cannot(application: str, error: str) -> None:
    scenario = star(application)
    with pytest.raises(RequestError) as raised:
        Prepared(Cell({}, scenario), lay_out(scenario))
    assert error in str(raised.value)


def test_the_model_refuses_arms_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='The engine model has no arms, and "adoption" has some; leave them out'):
        ff.run(ADOPTION, engine="model", out=tmp_path / "run")
