"""Any error in a scenario gives one sentence with the file, the key, the value and the correct form."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstflight import Duration, RequestError
from firstflight.cli.settings import load_scenario
from firstflight.scenario import Scenario

WRONG: list[tuple[str, Any, str]] = [
    ("nme", "x", 'nme: unknown key "nme"; did you mean "name"?'),
    ("duration", 360, 'duration: 360 has no unit: write a time such as "50ms"'),
    ("duration", "0s", 'duration: a length of "0s" leaves nothing to simulate'),
    ("stats_interval", "0s", "stats_interval: "),
    ("name", "", "name: this is empty"),
    ("tcp.profile", "rcf", 'tcp.profile: unknown profile "rcf"; did you mean "rfc"?'),
    ("tcp.initial_window", 0, "tcp.initial_window.segments: 0 is below 1"),
    ("tcp.initial_window", 2**32, "tcp.initial_window.segments: 4294967296 is too large; write at most 4294967295"),
    ("tcp.receive_window", "5GB", 'tcp.receive_window: 5000000000 is too large; write at most "4294967295B"'),
    ("tcp.initial_window", -3, "tcp.initial_window.segments: -3 is negative"),
    ("tcp.initial_window", "rfc6298", 'tcp.initial_window: unknown policy "rfc6298"; did you mean "rfc6928"?'),
    ("tcp.initial_window", True, "tcp.initial_window: true is not a policy"),
    ("application.web.clients", True, "application.web.clients: true is not a number"),
    ("application.web.clients", np.True_, "application.web.clients: true is not a number"),
    ("application.web.count", True, "application.web.count: true is not a number"),
    (
        "application.web.inline",
        {"distribution": "lognormal", "median": "3kB", "sigma": False},
        "application.web.inline.sigma: false is not a number",
    ),
    ("network.bottleneck.loss_list", True, "network.bottleneck.loss_list: true is not a list; write [ ... ]"),
    ("network.bottleneck.loss_list", [True, 3], "network.bottleneck.loss_list: true is not a number"),
    ("network.bottleneck.loss_list", [2**32], "network.bottleneck.loss_list: [4294967296] are not ascending numbers"),
    ("header_size", "70kB", 'header_size: "70kB" is too large; write at most "65535B"'),
    ("application.web.count", 2**32, "application.web.count: 4294967296 is too large; write at most 4294967295"),
    ("tcp.initial_windo", 3, 'tcp.initial_windo: unknown key "initial_windo"; did you mean "initial_window"?'),
    ("tcp.recovery", "newreno", 'tcp.recovery: unknown choice "newreno"; did you mean "new_reno"?'),
    ("tcp.recovery", 3, "tcp.recovery: unknown choice 3; known here: new_reno, reno, scoreboard, tahoe"),
    ("tcp.recovery", {"tahoe": {}, "reno": {}}, "names 2 of tahoe, reno, new_reno, scoreboard; write one of them"),
    ("tcp.recovery", {"tahoe": {"exit": 1}}, '"tahoe" has no rules; write recovery = "tahoe"'),
    ("tcp.recovery", {"reno": 3}, "tcp.recovery.reno: 3 is not a table; known keys: exit"),
    ("tcp.recovery.reno.exit", "cwnd", 'tcp.recovery.reno.exit: unknown choice "cwnd"'),
    ("tcp.recovery", {"reno": {"rack": True}}, 'tcp.recovery.reno.rack: unknown key "rack"; known here: exit'),
    ("tcp.ecn", True, "tcp.ecn: unknown choice true; known here: off, on, passive"),
    ("tcp.congestion_control", "qubic", 'tcp.congestion_control: unknown algorithm "qubic"; did you mean "cubic"?'),
    ("tcp.initial_window", "10", 'tcp.initial_window: "10" is text; write the number without quotes'),
    (
        "tcp.congestion_control",
        {"hystart": "off"},
        'tcp.congestion_control: the algorithm is missing; write for example { algorithm = "cubic", hystart = ... }',
    ),
    ("tcp.congestion_control", 3, "tcp.congestion_control: 3 is not an algorithm: write for example"),
    ("tcp.congestion_control", {"hystat": "off"}, '{"hystat": "off"} is not an algorithm: write for example'),
    (
        "tcp.congestion_control",
        {"algorithm": "cubic", "hystart": "hystart++"},
        'tcp.congestion_control.hystart: unknown choice "hystart++"; did you mean "hystart"?',
    ),
    (
        "tcp.congestion_control",
        {"algorithm": "reno", "hystart": "off"},
        'tcp.congestion_control.hystart: unknown key "hystart"; none is known here',
    ),
    ("tcp.startup", "jumpstart", 'tcp.startup: unknown scheme "jumpstart"; did you mean "jump_start"?'),
    ("tcp.startup", "quick_start", 'tcp.startup: the scheme "quick_start" needs "rate"'),
    ("tcp.startup", {"scheme": "paced", "over_rtt_percent": 0}, "tcp.startup.over_rtt_percent: 0 is below 1"),
    ("tcp.startup", {"scheme": "rapid_start", "queue_delay": 4}, "tcp.startup.queue_delay: 4 has no unit"),
    ("tcp.pacing", True, "tcp.pacing: true is not a table; known keys: slow_start_percent, avoidance_percent"),
    ("tcp.pacing", {"bursts": 2}, 'tcp.pacing.bursts: unknown key "bursts"; did you mean "burst_segments"?'),
    ("tcp.recovery.scoreboard.rack", True, "tcp.recovery.scoreboard.rack has no effect without sack = true; set that"),
    ("tcp.dsack", True, "tcp.dsack has no effect without sack = true; set that, or switch it off"),
    ("application.web.tls", True, "application.web.tls: true is not a table: write { chain = ... }"),
    ("application.web.tls", {"flights": []}, "application.web.tls.flights: this is empty; give at least one"),
    ("application.web.tls", {"flights": [["srv", "1kB"]]}, 'tls.flights[0][0]: "srv" is not known; write "client" or'),
    ("application.web.tls", {"flights": [["client"]]}, "application.web.tls.flights[0][1]: this key is missing"),
    ("tcp.timer_tick", "4ms", 'tcp.timer_tick: "4ms" is not a table; known keys: period, wheel'),
    ("tcp.timestamps", "on", 'tcp.timestamps: "on" is not true or false'),
    ("tcp.rto.estimator", "rfc2988", 'tcp.rto.estimator: unknown choice "rfc2988"; did you mean "rfc6298"?'),
    ("tcp.rto.minimum", 3, 'tcp.rto.minimum: 3 has no unit: write a time such as "50ms"'),
    ("tcp.rto.minimun", "3s", 'tcp.rto.minimun: unknown key "minimun"; did you mean "minimum"?'),
    ("tcp.rto", "1s", 'tcp.rto: "1s" is not a table; known keys: initial, minimum'),
    ("tcp.ack", "heartbeat", 'tcp.ack: the policy "heartbeat" needs "segments"'),
    ("tcp.receive_window", "64k", 'tcp.receive_window: "64k" is not a size'),
    ("tcp.window_scaling", "yes", 'tcp.window_scaling: "yes" is not true or false'),
    ("tcp.max_retries", 1.5, "tcp.max_retries: 1.5 is not a whole number"),
    ("network.topology", "ring", 'network: unknown topology "ring"; known here: chain, dumbbell, star'),
    ("network.bottleneck.rate", "-1Mbit", 'network.bottleneck.rate: "-1Mbit" is negative'),
    ("network.bottleneck.rate", "0bit", 'network.bottleneck.rate: a rate of "0bit" sends nothing'),
    ("network.bottleneck.rate", 1.5, 'network.bottleneck.rate: 1.5 has no unit: write a rate such as "1.5Mbit"'),
    ("network.bottleneck.rate", "50ms", 'network.bottleneck.rate: "50ms" is not a rate: unknown unit "ms"'),
    ("network.bottleneck.loss", 1.5, "network.bottleneck.loss: 1.5 is too large; write less than 1"),
    (
        "network.bottleneck.loss_list",
        [0],
        "network.bottleneck.loss_list: [0] are not ascending numbers of data packets",
    ),
    ("network.bottleneck.loss_list", [4, 3], "[4, 3] are not ascending numbers of data packets, such as [3, 14]"),
    ("network.bottleneck.burst", "0B", 'network.bottleneck.burst: burst is "0B", and must be from 1 B to 4 GB'),
    ("network.bottleneck.burst", "15", 'network.bottleneck.burst: "15" has no unit'),
    ("network.bottleneck.gso", 1, "network.bottleneck.gso: gso is 1, and must be true, false or a number of segments"),
    ("network.bottleneck.queue", "0p", 'a queue of "0p" drops everything: write at least "1p"'),
    ("network.bottleneck.queue", 25, '25 is not a queue limit: write packets, such as "25p", bytes, such as "32kB"'),
    ("network.bottleneck.queue", {"kind": "rde", "limit": "25p"}, 'unknown kind "rde"; did you mean "red"?'),
    (
        "network.bottleneck.queue",
        {"kind": "red", "limit": "25p", "min_threshold_packets": 20},
        "min_threshold_packets is 20.0; it must be below max_threshold_packets (15)",
    ),
    ("network.bottleneck.quue", "25p", 'network.bottleneck.quue: unknown key "quue"; did you mean "queue"?'),
    ("network.left[0].count", 0, "network.left[0].count: 0 is too small; write at least 1"),
    ("network.left", [], "network.left: this is empty"),
    ("network.left[9].rate", "1Mbit", '"network.left[9].rate": there is no left[9]'),
    ("network.bottleneck.rate.unit", 1, 'the value before "unit" is not a table'),
    ("network.right.delay", "5ms", 'is a list; write which one, such as "network.right[0].delay"'),
    ("application", [], "application: this is empty"),
    ("application.web.clients", 0, "application.web.clients: 0 is too small; write at least 1"),
    ("application.web.kind", "webpage", 'application.web: unknown kind "webpage"; did you mean "web_page"?'),
    (
        "application.web.http_version",
        "2.0",
        'application.web.http_version: "2.0" is not known; write "1.0", "1.1" or "2"',
    ),
    ("application.web.inline", 3000, 'application.web.inline.value: 3000 has no unit: write a size such as "32kB"'),
    (
        "application.web.think_time",
        {"distribution": "unifrm"},
        'application.web.think_time: unknown distribution "unifrm"; did you mean "uniform"?',
    ),
    (
        "application.web.think_time",
        {"distribution": "uniform", "low": "1s"},
        "application.web.think_time.high: this key is missing",
    ),
    (
        "application.web.think_time",
        {"distribution": "uniform", "low": "5s", "high": "1s"},
        "low (5s) is above high (1s)",
    ),
    ("application.web.think_time", {"mean": "1s"}, 'the distribution has no "distribution"; known: constant, uniform'),
    (
        "application.web.primary",
        {"distribution": "pareto", "shape": 0, "minimum": "1kB"},
        "primary.shape: 0 is too small",
    ),
    (
        "application.web.inline",
        {"distribution": "empirical", "points": [[0, "1kB"], [1, "2kB"]]},
        "points[0]: a point is [cumulative probability, value], two numbers (bytes, seconds or bit/s)",
    ),
    ("application.web.count", 1e30, "application.web.count: 1e+30 is too large"),
    ("network.bottleneck.loss", math.nan, "network.bottleneck.loss: nan is not a finite number"),
    ("application.web.client_hosts", "left[7]", 'there is no host "left[7]"; left[0] to left[1] exist'),
    ("application.web.server_hosts", "middle", 'there are no hosts "middle"; known here: left, right'),
    ("application.web.tcp", {"initial_window": 0}, "application.web.tcp.initial_window.segments: 0 is below 1"),
    ("application.wb.clients", 3, 'nothing is called "wb"; did you mean "web"?'),
]


@pytest.mark.parametrize(("path", "value", "expected"), WRONG, ids=[f"{path}={value}" for path, value, _ in WRONG])
def test_a_wrong_value_is_named_with_what_would_be_right(small: Scenario, path: str, value: Any, expected: str) -> None:
    with pytest.raises(RequestError) as refusal:
        small.replace(path, value)
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_numbers_of_numpy_and_quantities_are_values_as_those_of_a_file(small: Scenario) -> None:
    changed = small.replace("tcp.initial_window", np.int64(4)).replace("duration", Duration("7s"))
    assert (changed.tcp.initial_window, changed.duration) == (4, Duration("7s"))
    document = small.to_dict() | {"duration": Duration("7s"), "tcp": {"profile": "rfc", "initial_window": np.int64(4)}}
    assert Scenario.from_dict(document).tcp.initial_window == 4
    changed.tcp.initial_window = {"policy": "fixed", "segments": np.int32(5)}
    changed.tcp.sack = np.True_  # type: ignore[assignment]
    assert changed.tcp.sack is True
    assert Scenario.from_toml(changed.to_toml()) == changed


def test_true_is_no_number_where_it_is_assigned_either(small: Scenario) -> None:
    before = small.application[0].clients
    with pytest.raises(RequestError, match="clients: true is not a number"):
        small.application[0].clients = True
    assert small.application[0].clients is before


def test_a_path_that_is_no_text_is_one_sentence(small: Scenario) -> None:
    with pytest.raises(RequestError, match=r"'tcp', 'sack'. is not a path of keys: write for example"):
        small.replace(("tcp", "sack"), True)  # type: ignore[arg-type]


def test_the_file_is_named_first(tmp_path: Path, small_toml: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(small_toml.replace('rate = "1.5Mbit"', 'rate = "1.5"'))
    with pytest.raises(RequestError, match=r"x\.toml: network\.bottleneck\.rate: "):
        Scenario.load(path)


def test_what_is_not_toml_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\nduration = = 3\n')
    with pytest.raises(RequestError, match=r"this is not TOML: .*line 2"):
        Scenario.load(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no file"):
        Scenario.load(tmp_path / "nowhere.toml")


def test_a_scenario_without_profile_is_refused(small_toml: str) -> None:
    with pytest.raises(RequestError, match=r'tcp\.profile is missing: write for example profile = "'):
        Scenario.from_toml(small_toml.replace('profile = "rfc"\n', ""))


def test_two_applications_of_one_name_are_refused(small_toml: str) -> None:
    again = small_toml[small_toml.index("[[application]]") :]
    with pytest.raises(RequestError, match='two are called "web"'):
        Scenario.from_toml(small_toml + again)


def test_assignment_is_checked_like_the_file(small: Scenario) -> None:
    with pytest.raises(RequestError, match="duration: 3 has no unit"):
        small.duration = 3  # type: ignore[assignment]
    with pytest.raises(RequestError, match=r'unknown key "durtion"; did you mean "duration"\?'):
        small.durtion = "3s"  # type: ignore[attr-defined]
    with pytest.raises(RequestError, match=r"tcp\.initial_window\.segments: 0 is below 1"):
        small.tcp.initial_window = 0


CDFS = [
    ("0,0\n0.5,100\n0.4,200\n1,300\n", "line 3: the cumulative probability falls from 0.5 to 0.4; a CDF never falls"),
    ("0,0\n0.5,200\n1,100\n", "line 3: the value falls from 200.0 to 100.0"),
    ("0,0\n0.5,100\n0.5,200\n1,300\n", "line 3: the cumulative probability stays at 0.5"),
    ("0,0\n0.9,100\n", "line 2: the CDF ends at 0.9"),
    ("0.1,0\n1,100\n", "line 1: the CDF starts at 0.1"),
    ("0,0\n1.5,100\n", "line 2: the cumulative probability 1.5 is outside 0 to 1"),
    ("0,-5\n1,100\n", "line 1: the value -5.0 is negative"),
    ("p,bytes\n0,0\nhalf,100\n1,200\n", 'line 3: "half,100" is not "cumulative probability, value"'),
    ("0,0\n", "a CDF needs at least two points"),
]


@pytest.mark.parametrize(("text", "expected"), CDFS, ids=[expected for _, expected in CDFS])
def test_a_wrong_cdf_is_refused_with_file_and_line(tmp_path: Path, small_toml: str, text: str, expected: str) -> None:
    (tmp_path / "sizes.csv").write_text(text)
    scenario = tmp_path / "x.toml"
    scenario.write_text(
        small_toml.replace('inline = "3kB"', 'inline = { distribution = "empirical", file = "sizes.csv" }')
    )
    with pytest.raises(RequestError) as refusal:
        Scenario.load(scenario)
    assert f"sizes.csv, {expected}" in str(refusal.value) or expected in str(refusal.value)
    assert "x.toml: application.web.inline" in str(refusal.value)


def test_a_cdf_that_is_not_there_is_said(small: Scenario) -> None:
    with pytest.raises(RequestError, match=r'application\.web\.inline: there is no file "nope\.csv"'):
        small.replace("application.web.inline", {"distribution": "empirical", "file": "nope.csv"})


def test_a_bucket_needs_a_rate_in_each_direction_that_has_it(small: Scenario) -> None:
    shaped = small.replace("network.bottleneck.burst", "15kB")
    with pytest.raises(RequestError, match="burst: a link of unlimited rate has no token bucket"):
        shaped.replace("network.bottleneck.rate", "unlimited")
    with pytest.raises(RequestError, match=r"reverse\.burst: a link of unlimited rate"):
        shaped.replace("network.bottleneck.reverse", {"rate": "unlimited"})


def test_settings_that_fit_only_together_may_be_set_in_any_order(tmp_path: Path, small_toml: str) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(small_toml, encoding="utf-8")
    wanted = ["tcp.recovery.scoreboard.rack=true", "tcp.sack=true"]
    for settings in (wanted, wanted[::-1]):
        assert load_scenario(path, settings).tcp.recovery == {"scoreboard": {"rack": True}}
    with pytest.raises(RequestError, match=r"rack=true: tcp.recovery.scoreboard.rack has no effect without sack"):
        load_scenario(path, wanted[:1])


def test_a_value_that_may_also_be_a_word_is_one_mistake(small: Scenario) -> None:
    transfer = {"name": "a", "kind": "file_transfer", "size": "20.5B"}
    with pytest.raises(RequestError, match=r"application\.a\.size\.value: .* the smallest step of a size$"):
        Scenario.from_dict(small.to_dict() | {"application": [transfer]})
