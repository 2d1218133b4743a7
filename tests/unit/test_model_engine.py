"""`--engine model`: the accepted scenarios, the refused ones, and the records it writes."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from firstflight.engines import model
from firstflight.engines.model import single_transfer
from firstflight.engines.model.single_transfer import from_plan, from_scenario
from firstflight.errors import RequestError
from firstflight.records.schema import RETURNED, conforms
from firstflight.scenario import Cell, Scenario

DOCUMENT: dict[str, Any] = {
    "name": "one",
    "duration": "60s",
    "tcp": {"profile": "rfc", "initial_window": 10, "ack": "every_segment"},
    "network": {"topology": "chain", "links": {"rate": "10Mbit", "delay": "50ms", "queue": "100p"}},
    "application": [{"name": "file", "kind": "file_transfer", "count": 1, "size": "29200B"}],
}


def _scenario(**changes: Any) -> Scenario:
    """The document above with keys replaced; `application` and `tcp` are merged."""
    document = copy.deepcopy(DOCUMENT)
    document["application"][0] |= changes.pop("application", {})
    document["tcp"] |= changes.pop("tcp", {})
    return Scenario.from_dict(document | changes)


def _compute(**changes: Any) -> model.ModeledTransfer:
    return model.compute(model.from_scenario(_scenario(**changes)))


def test_records_have_the_schema_and_a_row_for_each_replicate() -> None:
    tables = model.run_cell(Cell({"name": "one"}, _scenario()), seed=7, replicates=3, first_replicate=2)
    for name in RETURNED:
        conforms(name, tables[name])
    assert tables["transfers"]["replicate"].to_list() == [2, 3, 4]
    assert tables["transfers"]["application"].to_list() == ["file"] * 3
    assert tables["transfers"]["completed"].to_list() == [1] * 3
    assert tables["pages"].is_empty()
    assert tables["links"].is_empty()


def test_the_first_flight_takes_the_path_that_paper_gives() -> None:
    outcome = _compute(application={"size": "14600B"})
    delay, header, full, request = 50_000_000, 32_000, 1_200_000, 96_000
    # SYN, SYN-ACK; the handshake's ACK and the request behind it; ten segments back to back.
    handshake = 2 * (delay + header)
    assert outcome.handshake_ns == handshake
    assert outcome.first_byte_ns == handshake + header + request + delay + full + delay
    assert outcome.completion_ns == outcome.first_byte_ns + 9 * full
    assert (outcome.segments_sent, outcome.first_flight_segments) == (10, 10)


def test_a_transfer_longer_than_the_run_is_not_complete() -> None:
    transfers = model.run_cell(Cell({"name": "one"}, _scenario(duration="250ms")), 1, 1)["transfers"]
    assert transfers["completed"].item() == 0
    assert transfers["completion_time_s"].is_nan().item()
    assert 0 < transfers["delivered_bytes"].item() < 29200


def test_a_transfer_that_starts_after_the_run_leaves_no_row() -> None:
    late = _scenario(duration="1s", application={"start": "2s"})
    assert model.run_cell(Cell({"name": "one"}, late), 1, 1)["transfers"].is_empty()


def test_the_receive_window_bounds_the_flight() -> None:
    outcome = _compute(tcp={"window_scaling": False, "receive_window": "8760B"})
    assert outcome.first_flight_segments == 6


def test_segments_that_arrive_as_the_ack_timer_expires_are_counted() -> None:
    acks = {"policy": "delayed", "segments": 2, "timer": "200ms"}
    endless = {"topology": "chain", "links": {"rate": "unlimited", "delay": "100ms", "queue": "100p"}}
    assert _compute(tcp={"initial_window": 3, "ack": acks}, network=endless).ties > 0
    assert _compute().ties == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"application": {"count": 2}}, "count = 2"),
        ({"application": {"clients": 3}}, "clients = 3"),
        ({"application": {"size": {"distribution": "uniform", "low": "1kB", "high": "2kB"}}}, "draws its size"),
        (
            {
                "network": {
                    "topology": "chain",
                    "links": {"rate": "1Mbit", "delay": "1ms", "queue": "9p", "loss": 0.1},
                }
            },
            "loses packets at random",
        ),
        (
            {
                "network": {
                    "topology": "chain",
                    "links": {"rate": "1Mbit", "delay": "1ms", "queue": "9p", "loss_list": [3]},
                }
            },
            r"loses data packets \(loss_list = \[3\]\)",
        ),
        (
            {
                "network": {
                    "topology": "chain",
                    "links": {"rate": "1Mbit", "delay": "1ms", "queue": "9p", "burst": "15kB"},
                }
            },
            r"has a token bucket \(burst = 15000 B\)",
        ),
    ],
)
def test_more_than_one_loss_free_transfer_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says) as refusal:
        _compute(**changes)
    assert "--engine simulate" in str(refusal.value)


def test_web_pages_and_several_applications_are_refused() -> None:
    web = {"kind": "web_page", "primary": "2kB", "inline": "2kB", "think_time": "1s"}
    with pytest.raises(RequestError, match="of kind web_page"):
        _compute_document([web])
    with pytest.raises(RequestError, match="2 applications"):
        _compute_document([*DOCUMENT["application"], {**DOCUMENT["application"][0], "name": "other"}])


def _compute_document(applications: list[dict[str, Any]]) -> model.ModeledTransfer:
    return model.compute(model.from_scenario(Scenario.from_dict(DOCUMENT | {"application": applications})))


def test_an_endless_application_is_refused() -> None:
    endless = {key: value for key, value in DOCUMENT["application"][0].items() if key != "count"}
    with pytest.raises(RequestError, match="no count, so it has no end"):
        _compute_document([endless])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"application": {"request": "2kB"}}, "does not fit one segment"),
        ({"tcp": {"window_scaling": False, "receive_window": "1000B"}}, "receive window of 1000 bytes"),
        (
            {"tcp": {"initial_window": 1, "ack": {"policy": "delayed", "segments": 2, "timer": "10s"}}},
            "timer",
        ),
        (
            {"network": {"topology": "chain", "links": {"rate": "1Mbit", "delay": "600ms", "queue": "100p"}}},
            "retransmission timer of 1 s",
        ),
        (
            {
                "network": {
                    "topology": "chain",
                    "links": {"rate": "1Mbit", "delay": "50ms", "queue": {"kind": "red", "limit": "50p"}},
                }
            },
            "RED may drop",
        ),
    ],
)
def test_the_end_of_the_regime_is_reported(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match="outside the model's regime") as refusal:
        _compute(**changes)
    assert says in str(refusal.value)


def test_a_server_drawn_among_different_links_is_refused() -> None:
    link = {"rate": "10Mbit", "delay": "1ms", "queue": "100p"}
    network = {
        "topology": "dumbbell",
        "bottleneck": link,
        "left": link,
        "right": [link, {**link, "delay": "2ms"}],
    }
    with pytest.raises(RequestError, match="whose links differ"):
        _compute(network=network)
    chosen = _compute(network=network, application={"server_hosts": "right[1]"})
    assert chosen.handshake_ns == 2 * 4_000_000 + 6 * 32_000
    alike: dict[str, Any] = {**network, "right": {**link, "count": 4}}
    assert _compute(network=alike).completion_ns is not None


def test_the_servers_that_the_client_does_not_ask_do_not_matter() -> None:
    link = {"rate": "10Mbit", "delay": "1ms", "queue": "100p"}
    network = {"topology": "dumbbell", "bottleneck": link, "left": {**link, "count": 3}, "right": link}
    hosts = {"client_hosts": "left[1]", "server_hosts": "left", "server_choice": "by_client"}
    assert _compute(network=network, application=hosts).handshake_ns == 2 * 2_000_000 + 4 * 32_000
    with pytest.raises(RequestError, match=r'sit on one host, "left\[1\]"'):
        _compute(network=network, application={**hosts, "server_choice": "random"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"recovery": "scoreboard"},
            'client_tcp has recovery = "scoreboard", but the model engine knows only "tahoe" or "reno"',
        ),
        ({"congestion_control": "cubic"}, 'congestion_control = "cubic", but the model engine knows only "reno"'),
        ({"startup": "paced"}, 'startup = "paced"'),
        ({"slow_start_growth": "abc_unlimited"}, 'slow_start_growth = "abc_unlimited"'),
        ({"window_validation": "cwnd_limited"}, 'window_validation = "cwnd_limited"'),
        ({"timestamps": True}, "timestamps = true, but the model engine knows only false"),
        ({"rto": {"estimator": "linux"}}, 'rto.estimator = "linux"'),
    ],
)
def test_a_tcp_beyond_the_model_is_refused_by_the_field(fields: dict[str, Any], says: str) -> None:
    scenario = _scenario()
    for field, value in fields.items():
        scenario = scenario.replace(f"tcp.{field}", value)
    with pytest.raises(RequestError, match=re.escape(says)) as refusal:
        from_scenario(scenario)
    assert "use --engine simulate" in str(refusal.value)


def test_the_model_refuses_a_key_of_a_plan_that_it_does_not_name() -> None:
    plan = _scenario().to_plan()
    application = plan["applications"][0]
    for where, table in (("plan", plan), ("application.", application)):
        table["newer"] = 1
        with pytest.raises(RequestError, match=f"{where}.*does not know newer; leave it out"):
            from_plan(plan)
        del table["newer"]
    from_plan(plan)


def test_the_model_refuses_a_key_of_a_link_that_it_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_transfer, "_LINK", single_transfer._LINK.replace("queue ", ""))
    with pytest.raises(RequestError, match="a link on its way: the engine model does not know queue; leave it out"):
        from_scenario(_scenario())


def test_the_model_refuses_a_queue_of_gso_packets() -> None:
    gso = _scenario().replace("network.links[0].gso", True)
    with pytest.raises(RequestError, match="does not know gso"):
        from_scenario(gso)


def test_a_plan_with_unknown_hosts_or_policies_is_refused() -> None:
    plan = _scenario().to_plan()
    plan["applications"][0]["client_hosts"] = "elsewhere"
    with pytest.raises(RequestError, match='there are no hosts "elsewhere" in this network'):
        from_plan(plan)
    plan = _scenario().to_plan()
    plan["applications"][0]["client_hosts"] = plan["applications"][0]["server_hosts"]
    says = r'application\.file: .* on one host, "node\[0\]", with no link between them; name other client_hosts'
    with pytest.raises(RequestError, match=says):
        from_plan(plan)
    plan = _scenario().to_plan()
    plan["applications"][0]["server_tcp"]["initial_window"] = {"policy": "unheard-of"}
    with pytest.raises(RequestError, match="unheard-of"):
        from_plan(plan)
