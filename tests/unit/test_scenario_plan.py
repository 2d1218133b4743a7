"""The plan of a scenario for an engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from firstflight import Duration, RequestError, _native
from firstflight.scenario import Scenario, profiles
from firstflight.scenario.tcp import choices


def test_every_unit_arrives_in_base_units(small: Scenario) -> None:
    plan = small.to_plan()
    assert plan["duration_ns"] == 20_000_000_000
    assert plan["meter_interval_ns"] is None
    assert plan["header_bytes"] == 40
    queue = {"kind": "drop_tail", "limit": {"packets": 25}, "counts_packet_in_service": False}
    link = {"rate_bps": 1_500_000, "delay_ns": 50_000_000, "loss": 0.0, "lose": [], "queue": queue}
    assert plan["network"]["bottleneck"] == {"forward": link, "reverse": link}
    assert len(plan["network"]["left"]) == 2
    web = plan["applications"][0]
    assert web["primary"] == {"distribution": "lognormal", "median": 2000, "sigma": 1.0}
    assert web["inline"] == {"distribution": "constant", "value": 3000}
    assert web["think"] == {"distribution": "uniform", "low": 1.0, "high": 5.0}
    assert web["inline_count"] == {"distribution": "constant", "value": 3}
    assert (web["client_hosts"], web["server_hosts"]) == ("left", "right")
    json.dumps(plan, allow_nan=False)


def test_reverse_replaces_only_what_it_names(small: Scenario) -> None:
    changed = small.replace("network.bottleneck.reverse", {"rate": "64kbit", "queue": "32kB"})
    pair = changed.to_plan()["network"]["bottleneck"]
    assert pair["reverse"]["rate_bps"] == 64_000
    assert pair["reverse"]["delay_ns"] == pair["forward"]["delay_ns"]
    assert pair["reverse"]["queue"]["limit"]["bytes"] == 32_000
    assert pair["forward"]["queue"]["limit"]["packets"] == 25


def test_listed_losses_hold_for_both_directions_unless_reverse_has_its_own(small: Scenario) -> None:
    both = small.replace("network.bottleneck.loss_list", [3, 14])
    assert [both.to_plan()["network"]["bottleneck"][way]["lose"] for way in ("forward", "reverse")] == [
        [3, 14],
        [3, 14],
    ]
    one = both.replace("network.bottleneck.reverse", {"loss_list": []})
    assert [one.to_plan()["network"]["bottleneck"][way]["lose"] for way in ("forward", "reverse")] == [[3, 14], []]
    assert Scenario.from_toml(one.to_toml()).to_plan() == one.to_plan()


def test_a_bucket_holds_for_both_directions_unless_reverse_has_its_own(small: Scenario) -> None:
    both = small.replace("network.bottleneck.burst", "15kB")
    pair = both.to_plan()["network"]["bottleneck"]
    assert pair["forward"]["burst"] == pair["reverse"]["burst"] == {"bytes": 15_000}
    own = both.replace("network.bottleneck.reverse", {"burst": "1600B", "gso": 44})
    back = own.to_plan()["network"]["bottleneck"]["reverse"]
    assert (back["burst"], back["gso"]) == ({"bytes": 1600}, {"max_segs": 44})
    trains = both.replace_all([("network.bottleneck.gso", True), ("network.bottleneck.reverse", {"gso": False})])
    ways = trains.to_plan()["network"]["bottleneck"]
    assert ways["forward"]["gso"] == {"max_segs": None}
    assert "gso" not in ways["reverse"]
    for scenario in (both, own):
        assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


def test_an_end_takes_the_nearest_table_that_names_a_field(small: Scenario) -> None:
    changed = small.replace("application.web.tcp", {"initial_window": 4, "recovery": "tahoe"})
    changed = changed.replace("application.web.server_tcp", {"initial_window": "rfc6928"})
    web = changed.to_plan()["applications"][0]
    assert web["client_tcp"]["initial_window"] == {"policy": "fixed", "segments": 4}
    assert web["server_tcp"]["initial_window"] == {"policy": "rfc6928"}
    assert web["client_tcp"]["recovery"] == web["server_tcp"]["recovery"] == "tahoe"


def test_a_table_that_names_a_profile_starts_afresh_from_it(small: Scenario) -> None:
    changed = small.replace("application.web.server_tcp", {"profile": "ns2-full-1998"})
    web = changed.to_plan()["applications"][0]
    assert web["server_tcp"] == profiles()["ns2-full-1998"]
    assert web["client_tcp"]["initial_window"] == {"policy": "fixed", "segments": 3}


def test_fields_with_a_unit_can_be_written_with_it_or_by_their_native_name(small: Scenario) -> None:
    a = small.replace("tcp.rto", {"minimum": "200ms"}).replace("tcp.receive_window", "64KiB")
    b = small.replace("tcp.rto", {"minimum_ns": 200_000_000}).replace("tcp.receive_window_bytes", 65_536)
    assert a.to_plan() == b.to_plan()
    rto = a.to_plan()["applications"][0]["server_tcp"]["rto"]
    assert rto == profiles()["rfc"]["rto"] | {"minimum_ns": 200_000_000}


def test_what_an_rfc_leaves_unbounded_is_none(small: Scenario) -> None:
    changed = small.replace("tcp.profile", "ns2-full-1998").replace("tcp.initial_ssthresh_segments", "none")
    assert changed.to_plan()["applications"][0]["server_tcp"]["initial_ssthresh_segments"] is None


def test_a_policy_keeps_the_parameters_that_are_not_named(small: Scenario) -> None:
    changed = small.replace("tcp.ack", {"policy": "delayed", "timer": "40ms"})
    assert changed.to_plan()["applications"][0]["client_tcp"]["ack"] == {
        "policy": "delayed",
        "segments": 2,
        "timer_ns": 40_000_000,
    }


def test_another_policy_keeps_the_parameters_that_were_set_and_that_it_has_too(small: Scenario) -> None:
    learned = small.replace("tcp.initial_window", {"policy": "remembered", "max_segments": 20})
    adaptive = learned.replace("application.web.server_tcp", {"initial_window": "adaptive"})
    assert _server(adaptive)["initial_window"]["max_segments"] == 20
    # An unset key is no choice of the user: each policy has its own default.
    unset = small.replace("tcp.initial_window", "remembered")
    adaptive = unset.replace("application.web.server_tcp", {"initial_window": "adaptive"})
    assert _server(adaptive)["initial_window"]["max_segments"] == 10
    # Keys without a default are required.
    with pytest.raises(RequestError, match=r'tcp.ack: the policy "heartbeat" needs "segments"'):
        small.replace("tcp.ack", {"policy": "heartbeat", "interval": "100ms"})


def test_the_idle_check_outlives_a_change_of_the_restart_window_and_is_refused_without_one(small: Scenario) -> None:
    linux = small.replace("tcp.profile", "linux").replace("tcp.restart_window", "off")
    again = linux.replace("application.web.server_tcp", {"restart_window": "rfc5681"})
    assert _server(again)["idle_check"] == "on_write"
    with pytest.raises(RequestError, match=r'tcp.idle_check has no effect with restart_window = "off"; leave it out'):
        linux.replace("tcp.idle_check", "on_send")
    with pytest.raises(RequestError, match=r'server_tcp.idle_check has no effect with restart_window = "off"'):
        linux.replace("application.web.server_tcp", {"idle_check": "on_send"})


# Choices among the parameters of a variant, with the variant.
VARIANTS_WITH_WORDS = {
    "congestion_control.hystart": {"algorithm": "cubic"},
    "initial_window.of": {"policy": "remembered"},
    "initial_window.lesson": {"policy": "remembered", "of": "closed"},
}


def test_algorithms_and_schemes_are_named_alone_or_with_parameters(small: Scenario) -> None:
    cubic = small.replace("tcp.congestion_control", "cubic")
    assert _server(cubic)["congestion_control"] == {"algorithm": "cubic", "hystart": "hystart"}
    table = {"algorithm": "cubic", "hystart": "hystart_plus_plus"}
    assert _server(small.replace("tcp.congestion_control", table))["congestion_control"] == table
    rapid = small.replace("tcp.startup", {"scheme": "rapid_start", "queue_delay": "8ms"})
    found = _server(rapid)["startup"]
    assert (found["queue_delay_ns"], found["window_factor"]) == (8_000_000, 2)
    assert Scenario.from_toml(rapid.to_toml()).to_plan() == rapid.to_plan()


def test_a_router_says_what_it_makes_of_quick_start(small: Scenario) -> None:
    for written, expected in (
        ("grant", {"policy": "grant", "limit_bps": None}),
        ({"policy": "grant", "limit": "5Mbit"}, {"policy": "grant", "limit_bps": 5_000_000}),
        ({"policy": "lower", "rate": "1Mbit"}, {"policy": "lower", "rate_bps": 1_000_000}),
        ("refuse", {"policy": "refuse"}),
    ):
        scenario = small.replace("network.bottleneck.quick_start", written)
        bottleneck = scenario.to_plan()["network"]["bottleneck"]
        assert (bottleneck["forward"]["quick_start"], bottleneck["reverse"]["quick_start"]) == (expected, expected)
        assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    assert "quick_start" not in small.to_plan()["network"]["bottleneck"]["forward"]


def test_every_value_of_every_choice_reaches_the_simulator(small: Scenario) -> None:
    for path, values in choices().items():
        for value in values:
            field = path
            if isinstance(value, dict) and isinstance(next(iter(value.values())), dict):
                kind, rules = next(iter(value.items()))
                chosen: Any = {kind: {rule: given for rule, given in rules.items() if given is not None}}
            elif isinstance(value, dict):
                tag = next(iter(value))
                numbers = {key: number for key, number in value.items() if key != tag and number is not None}
                given = {key: number or _number(number) for key, number in numbers.items()}
                chosen = {tag: value[tag]} | given
            elif path in VARIANTS_WITH_WORDS:
                field, parameter = path.split(".")
                chosen = VARIANTS_WITH_WORDS[path] | {parameter: value}
            else:
                chosen = value
            # BBR needs a scoreboard, and these the opposite.
            recovery = "reno" if path in ("recovery.reno.exit", "rto.samples") else "scoreboard"
            settings = [("duration", "1ns"), ("tcp.recovery", recovery), (f"tcp.{field}", chosen)]
            plan = small.replace_all(settings).to_plan()
            _native.simulate(json.dumps(plan), 1, 0, 1)


def test_pacing_which_no_profile_has_reaches_the_simulator_with_linux_values_for_what_is_left_out(
    small: Scenario,
) -> None:
    scenario = small.replace("duration", "1ns").replace("tcp.pacing", {"burst_segments": 4})
    assert _server(scenario)["pacing"] == {"slow_start_percent": 200, "avoidance_percent": 120, "burst_segments": 4}
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()
    _native.simulate(json.dumps(scenario.to_plan()), 1, 0, 1)
    assert _server(scenario.replace("tcp.pacing", "none"))["pacing"] is None


def _number(parameter: Any) -> Any:
    """Something for a number that must be given, which 0 stands for."""
    return parameter if isinstance(parameter, bool) else 2


def _server(scenario: Scenario) -> dict[str, Any]:
    tcp: dict[str, Any] = scenario.to_plan()["applications"][0]["server_tcp"]
    return tcp


def test_a_red_queue_may_mark(small: Scenario) -> None:
    changed = small.replace("network.bottleneck.queue", {"kind": "red", "limit": "60p", "ecn": True})
    assert changed.to_plan()["network"]["bottleneck"]["forward"]["queue"]["ecn"] is True


@pytest.mark.parametrize(
    ("network", "hosts"),
    [
        (
            """topology = "star"
               hub = { rate = "10Mbit", delay = "10ms", queue = "50p" }
               spokes = [{ count = 2, rate = "1Mbit", delay = "5ms", queue = "32kB" },
                         { rate = "unlimited", delay = "0s", queue = "1000p" }]""",
            ("spokes", "hub"),
        ),
        (
            'topology = "chain"\nlinks = { count = 3, rate = "10Mbit", delay = "1ms", queue = "50p" }',
            ("node[3]", "node[0]"),
        ),
    ],
)
def test_other_topologies_have_their_own_sides(small_toml: str, network: str, hosts: tuple[str, str]) -> None:
    start, end = small_toml.index("topology"), small_toml.index("[[application]]")
    scenario = Scenario.from_toml(f"{small_toml[:start]}{network}\n\n{small_toml[end:]}")
    web = scenario.to_plan()["applications"][0]
    assert (web["client_hosts"], web["server_hosts"]) == hosts
    links = scenario.to_plan()["network"].get("spokes") or scenario.to_plan()["network"]["links"]
    assert len(links) == 3
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


def test_every_application_kind_reads_and_writes(small: Scenario) -> None:
    document = small.to_dict()
    document["application"] = [
        {
            "kind": "file_transfer",
            "size": "1MB",
            "direction": "upload",
            "count": 2,
            "idle_time": {"distribution": "exponential", "mean": "1s"},
        },
        {
            "kind": "request_response",
            "request": "100B",
            "response": {"distribution": "pareto", "shape": 1.2, "minimum": "1kB"},
        },
        {
            "kind": "web_page",
            "primary": "1kB",
            "inline": "1kB",
            "think_time": "1s",
            "http_version": "1.1",
            "persistent": "pipelined",
        },
    ]
    scenario = Scenario.from_dict(document)
    assert [a["name"] for a in scenario.to_plan()["applications"]] == [
        "file_transfer0",
        "request_response1",
        "web_page2",
    ]
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


def test_a_measured_distribution_is_read_beside_the_file_and_dumped_in_full(tmp_path: Path, small_toml: str) -> None:
    (tmp_path / "sizes.csv").write_text("# after Mah\nprobability,bytes\n0,100\n0.5,2000\n1,1e6\n")
    path = tmp_path / "x.toml"
    path.write_text(
        small_toml.replace(
            'inline = "3kB"',
            'inline = { distribution = "empirical", file = "sizes.csv", scale = 0.7, maximum = "1MB" }',
        )
    )
    scenario = Scenario.load(path)
    law = scenario.to_plan()["applications"][0]["inline"]
    assert law["points"] == [[0, 100], [0.5, 2000], [1, 1e6]]
    assert (law["scale"], law["maximum"], law["interpolation"]) == (0.7, 1_000_000, "log")
    (tmp_path / "sizes.csv").unlink()
    assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


def test_assigning_a_field_changes_the_plan(small: Scenario) -> None:
    small.duration = Duration("60s")
    small.tcp.initial_window = 10
    small.application[0].clients = 7
    plan = small.to_plan()
    assert plan["duration_ns"] == 60_000_000_000
    assert plan["applications"][0]["server_tcp"]["initial_window"]["segments"] == 10
    assert plan["applications"][0]["clients"] == 7


def test_a_refused_assignment_leaves_the_value_that_was_there(small: Scenario) -> None:
    before = small.to_toml()
    think = small.application[0].think_time  # type: ignore[union-attr]
    for table, field, value in (
        (small.tcp, "initial_window", 0),
        (small.tcp, "profile", "rcf"),
        (small, "duration", "0s"),
        (small.application[0], "clients", 0),
        # Only the whole table shows that this is wrong: low is then above high.
        (think, "low", "9s"),
    ):
        with pytest.raises(RequestError):
            setattr(table, field, value)
    assert small.to_toml() == before
    assert small.to_plan()["applications"][0]["server_tcp"]["initial_window"] == {"policy": "fixed", "segments": 3}


def test_replacing_leaves_the_original_alone(small: Scenario) -> None:
    before = small.to_toml()
    small.replace("application.web.clients", 9).tcp.initial_window = 9
    assert small.to_toml() == before


def test_every_example_is_a_scenario() -> None:
    examples = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
    assert examples
    for path in examples:
        Scenario.load(path)
