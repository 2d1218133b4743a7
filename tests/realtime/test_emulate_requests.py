"""Features that a kernel or real programs lack are refused, in one sentence with the field and the correct value."""

import re
from typing import Any

import pytest

from emulations import cell, download
from firstflight import Cell, MachineError, RequestError, Scenario
from firstflight.engines.emulate import campaign
from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.kernel import kernel_settings, tick_ns
from firstflight.scenario.tcp import profile


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tcp__profile": "rfc"}, 'client_tcp.recovery: the kernel has only "scoreboard", not "new_reno"'),
        (
            {"tcp__recovery": {"scoreboard": {"prr": False}}},
            "recovery.scoreboard.prr: the kernel has only true, not false",
        ),
        (
            {"tcp__startup": "jump_start"},
            'startup: the kernel has only "window", not "jump_start"',
        ),
        ({"tcp__initial_window": "remembered"}, 'initial_window: no kernel has the policy "remembered"'),
        ({"tcp__restart_window": "rfc5681"}, 'restart_window: a kernel knows "halving"'),
        ({"tcp__restart_window": "off"}, 'app_limited_decay: true does not go with restart_window = "off"'),
        ({"tcp__nagle": "classic"}, "nagle: a kernel has Minshall's variant"),
        ({"tcp__sack": False}, "recovery.scoreboard.undo_by_dsack have no effect without sack = true"),
        ({"tcp__mss": "64B"}, "mss: a kernel needs at least 88 bytes, not 64"),
        ({"tcp__mss": "65500B"}, "tcp.mss: its packets have 65540B, and a device carries at most 65535B"),
        ({"tcp__rto": {"minimum": "1.5ms"}}, "rto.minimum: a kernel counts in whole milliseconds"),
        (
            {"tcp__rto": {"minimum": "300ms"}},
            "recovery.scoreboard.tail_loss_probe.max_ack_delay: the kernel uses rto.minimum, here 300 ms;",
        ),
        ({"tcp__rto": {"initial": "3s"}}, 'rto.initial: the kernel has only "1s", not "3s"'),
        ({"tcp__max_syn_retries": 3}, "max_syn_retries: a kernel's net.ipv4.tcp_syn_retries is from 1 to 127"),
        (
            {"web__client_tcp": {"initial_ssthresh_segments": 20}},
            'initial_ssthresh_segments: the kernel has only "none", not 20',
        ),
        ({"header_size": "60B"}, "header_size is 60 B, but real packets have 40 B"),
        ({"web__direction": "upload"}, "direction: the emulator does downloads only"),
        ({"web__response_header": "0B"}, "response_header: nginx sends a header"),
        (
            {"link__gso": True},
            "gso of links[0] is set, but the link emulator gets the segments of a GSO packet one by one",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_before_anything_runs(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        campaign.run_cell(cell(**changes), 1, 1)


def test_two_applications_may_not_want_different_tcp_between_the_same_hosts() -> None:
    document = download().to_dict()
    other = document["application"][0] | {"name": "other", "server_tcp": {"initial_window": 3}}
    document["application"].append(other)
    with pytest.raises(RequestError, match="two applications or arms set different TCP between"):
        campaign.run_cell(Cell({"c": 1}, Scenario.from_dict(document)), 1, 1)


def test_our_own_tcp_does_not_wait_between_requests_of_a_client() -> None:
    exchange = {"kind": "request_response", "request": "90B", "response": "5kB", "think_time": "1s"}
    document = download().to_dict() | {"application": [exchange | {"client_tcp": {"stack": "firstflight"}}]}
    with pytest.raises(RequestError, match='but does not wait between requests; set "kernel" for the client'):
        campaign.run_cell(Cell({"c": 1}, Scenario.from_dict(document)), 1, 1)


def test_pipelining_is_refused_because_curl_does_not_do_it() -> None:
    page = {"kind": "web_page", "primary": "5kB", "inline": "8kB", "think_time": "1s"}
    document = download().to_dict() | {"application": [page | {"http_version": "1.1", "persistent": "pipelined"}]}
    with pytest.raises(RequestError, match='does not fetch pages with "pipelined"; set "single_response"'):
        campaign.run_cell(Cell({"c": 1}, Scenario.from_dict(document)), 1, 1)


def settings(**changes: object) -> Any:
    plan = download(**changes).to_plan()
    return kernel_settings(plan["applications"][0]["server_tcp"], "tcp")


def test_a_kernel_is_told_what_the_profile_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.12.9-amd64")
    told = settings(
        tcp__initial_window="rfc3390",
        tcp__congestion_control="reno",
        tcp__mss="1000B",
        tcp__receive_window="256KiB",
        tcp__ack="every_segment",
        tcp__ecn="on",
        tcp__recovery={"scoreboard": {"rack": False, "tail_loss_probe": "none"}},
        tcp__restart_window="off",
        tcp__window_validation={"cwnd_limited": {"app_limited_decay": False}},
        tcp__rto={"minimum": "300ms", "maximum": "60s"},
    )
    # 4380 bytes are four segments of 988.
    assert told.route == {"initcwnd": 4, "advmss": 1000, "congctl": "reno", "rto_min": 300, "quickack": 1}
    expected = {
        "tcp_rmem": "4096 524288 524288",
        "tcp_ecn": "1",
        "tcp_recovery": "0",
        "tcp_early_retrans": "0",
        "tcp_slow_start_after_idle": "0",
        "tcp_rto_max_ms": "60000",
        "tcp_syn_retries": "6",
        "tcp_no_metrics_save": "1",
    }
    assert expected.items() <= {name.removeprefix("net.ipv4."): value for name, value in told.sysctls.items()}.items()
    without = {"scoreboard": {"rack": False, "tail_loss_probe": "none", "undo_by_dsack": False}}
    no_sack = settings(tcp__sack=False, tcp__dsack=False, tcp__recovery=without)
    assert no_sack.sysctls["net.ipv4.tcp_sack"] == "0"
    # Linux 6.17 ignores tcp_recovery: it counts no duplicates, except without SACK.
    monkeypatch.setattr("platform.release", lambda: "6.17.0")
    assert settings(tcp__sack=False, tcp__dsack=False, tcp__recovery=without) == no_sack
    with pytest.raises(MachineError, match=r"scoreboard\.rack: Linux since 6\.17 has only true, not false"):
        settings(tcp__recovery={"scoreboard": {"rack": False, "tail_loss_probe": "none"}})
    # A kernel too old for a setting is refused only where it would do something else.
    assert "net.ipv4.tcp_rto_max_ms" not in told.missing
    assert "net.ipv4.tcp_rto_max_ms" in settings().missing


def test_draws_are_those_of_the_simulator() -> None:
    draws = Draws(seed=1, replicate=0, application=0, client=0)
    laws: list[dict[str, Any]] = [
        {"distribution": "uniform", "low": 1000.0, "high": 3000.0},
        {"distribution": "exponential", "mean": 2000.0},
        {"distribution": "pareto", "shape": 1.2, "minimum": 1000.0, "maximum": 9000.0},
    ]
    for law in laws:
        sizes = [draws.size(law, "response_size", index) for index in range(400)]
        assert len(set(sizes)) > 300
        assert 1500 < sum(sizes) / len(sizes) < 2700
    assert {draws.server("random", 3, index) for index in range(30)} == {0, 1, 2}
    assert draws.server("by_client", 3, 7) == 0


def test_ticks_are_those_of_the_kernel_that_runs_here_or_not_asked_for() -> None:
    linux = profile("linux")
    own = linux | {"timer_tick": {"period_ns": tick_ns(), "wheel": True}}
    assert kernel_settings(own, "tcp") == kernel_settings(linux, "tcp")
    with pytest.raises(MachineError, match=r"timer_tick\.period: this kernel was built with ticks of"):
        kernel_settings(own | {"timer_tick": {"period_ns": tick_ns() + 1, "wheel": True}}, "tcp")
    with pytest.raises(RequestError, match=r"timer_tick\.wheel: a kernel's timers wait in a wheel"):
        kernel_settings(own | {"timer_tick": {"period_ns": tick_ns(), "wheel": False}}, "tcp")
