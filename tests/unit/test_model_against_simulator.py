"""The per-segment computation and the simulator, which share no code, agree to the nanosecond."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from firstflight.engines import model, simulate
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario

AFTER_LOSS = ("sack", "dsack", "limited_transmit", "early_retransmit")
RATES = ("unlimited", "56kbit", "500kbit", "1.5Mbit", "10Mbit", "1Gbit")


def _tcp(draw: random.Random) -> dict[str, Any]:
    scaling = draw.random() < 0.5
    tcp = {
        "profile": draw.choice(["rfc", "ns2-full-1998"]),
        "initial_window": draw.choice([draw.randint(1, 50), "rfc2581", "rfc3390", "rfc6928", "linux"]),
        "ack": draw.choice(
            [
                "every_segment",
                {"policy": "delayed", "segments": 2, "timer": draw.choice(["40ms", "200ms", "10s"])},
                {"policy": "heartbeat", "segments": 2, "interval": "200ms", "every_segment": "none"},
            ]
        ),
        "slow_start_growth": draw.choice(["abc_l1", "per_ack"]),
        "congestion_avoidance": draw.choice(["per_window", "per_ack"]),
        "initial_ssthresh_segments": draw.choice(["none", "none", 4, 11, 50]),
        "max_send_window_segments": draw.choice(["none", "none", 11, 40]),
        "mss": draw.choice(["1460B", "1460B", "536B", "1200B", "8960B"]),
        "data_on_handshake_ack": draw.random() < 0.5,
        # Settings that act only after a loss, a mark or a duplicate.
        "recovery": draw.choice(
            [
                "tahoe",
                {"reno": {"exit": "ssthresh"}},
                {"new_reno": {rule: draw.random() < 0.5 for rule in ("slow_but_steady", "ack_heuristic")}},
            ]
        ),
        "rto": {"samples": "round_trip"},
        "ecn": draw.choice(["off", "passive", "on"]),
        **{switch: draw.random() < 0.5 for switch in AFTER_LOSS},
        "window_scaling": scaling,
        "receive_window": f"{draw.choice([1 << 20, 65535, 300001] if scaling else [65535, 32768, 5000])}B",
    }
    # It would have no effect without the other, which is refused.
    return tcp | {"dsack": tcp["dsack"] and tcp["sack"]}


def _link(draw: random.Random) -> dict[str, Any]:
    def direction() -> dict[str, Any]:
        return {"rate": draw.choice(RATES), "delay": f"{draw.randint(0, 100_000_000)}ns"}

    return {**direction(), "queue": "100000p", "reverse": direction()}


def _network(draw: random.Random) -> dict[str, Any]:
    match draw.choice(["chain", "dumbbell", "star"]):
        case "chain":
            return {"topology": "chain", "links": [_link(draw) for _ in range(draw.randint(1, 3))]}
        case "dumbbell":
            sides = {"left": _link(draw), "right": _link(draw)}
            return {"topology": "dumbbell", "bottleneck": _link(draw), **sides}
        case _:
            return {"topology": "star", "hub": _link(draw), "spokes": _link(draw)}


def _application(draw: random.Random) -> dict[str, Any]:
    size = f"{draw.choice([draw.randint(1, 3000), draw.randint(1, 60_000), draw.randint(1, 600_000)])}B"
    ends = {
        "client_tcp": _tcp(draw),
        "server_tcp": _tcp(draw),
        "count": 1,
        "start": draw.choice(["0s", "1.2345s"]),
    }
    if draw.random() < 0.5:
        return ends | {"kind": "request_response", "request": f"{draw.randint(1, 536)}B", "response": size}
    return ends | {"kind": "file_transfer", "size": size, "direction": draw.choice(["download", "upload"])}


def _scenario(number: int) -> Scenario:
    draw = random.Random(number)
    return Scenario.from_dict(
        {
            "name": f"transfer {number}",
            "duration": draw.choice(["1000s", "3s"]),
            "tcp": {"profile": "rfc"},
            "network": _network(draw),
            "application": [_application(draw)],
        }
    )


def _transfers(engine: Any, scenario: Scenario) -> pl.DataFrame:
    frame: pl.DataFrame = engine.run_cell(Cell({"name": scenario.name}, scenario), 1, 1)["transfers"]
    return frame


@pytest.mark.slow
def test_any_transfer_within_the_regime_is_the_same_to_the_nanosecond() -> None:
    compared, outside = 0, 0
    for number in range(400):
        scenario = _scenario(number)
        try:
            outcome = model.compute(model.from_scenario(scenario))
        except RequestError:
            outside += 1
            continue
        if outcome.ties:
            continue
        modeled, simulated = _transfers(model, scenario), _transfers(simulate, scenario)
        assert modeled.equals(simulated), f"{scenario.to_toml()}\n{modeled.to_dicts()}\n{simulated.to_dicts()}"
        compared += 1
    # The generator must not drift into refusals unnoticed.
    assert compared > 350
    assert outside > 0


@pytest.mark.parametrize("counts_packet_in_service", [False, True])
@pytest.mark.parametrize("kind", ["packets", "bytes"])
def test_the_regime_ends_with_the_first_drop_and_not_before(kind: str, counts_packet_in_service: bool) -> None:
    """An initial window of 10 over a slow link piles up nine packets behind the one on the line."""
    for packets in range(7, 12):
        limit = f"{packets}p" if kind == "packets" else f"{packets * 1500}B"
        queue = {"kind": "drop_tail", "limit": limit, "counts_packet_in_service": counts_packet_in_service}
        scenario = Scenario.from_dict(
            {
                "name": "queue",
                "duration": "100s",
                "tcp": {"profile": "rfc", "initial_window": 10},
                "network": {"topology": "chain", "links": {"rate": "1Mbit", "delay": "50ms", "queue": queue}},
                "application": [{"kind": "file_transfer", "count": 1, "size": "14600B"}],
            }
        )
        drops = int(simulate.run_cell(Cell({"q": 1}, scenario), 1, 1)["links"]["dropped_packets"].sum())
        if drops:
            with pytest.raises(RequestError, match="queue overflows"):
                model.compute(model.from_scenario(scenario))
        else:
            assert _transfers(model, scenario).equals(_transfers(simulate, scenario))
