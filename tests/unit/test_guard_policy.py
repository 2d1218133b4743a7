"""The rules that choose a window, and the groups they choose it for."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from firstflight.errors import RequestError
from firstflight.guard.groups import AsTable, Groups
from firstflight.guard.outcome import Outcome
from firstflight.guard.policy import LearnedWindow, Policy

HOST = ip_network("192.0.2.1/32")


def closed(largest: int, *, delivered: int = 1000, retransmissions: int = 0, window: int = 10) -> Outcome:
    return Outcome(0.0, HOST, "control", window, delivered * 1448, largest, retransmissions, False, 0, 0.05, None, None)


def learned(name: str, *outcomes: Outcome) -> float | None:
    estimate, policy = LearnedWindow(), Policy(name, ceiling=110)
    for outcome in outcomes:
        policy.learn(estimate, outcome)
    return estimate.segments


@pytest.mark.parametrize(
    ("name", "outcomes", "expected"),
    [
        ("ewma", [closed(40)], 40),
        ("ewma", [closed(40), closed(20)], 35),
        ("ewma", [closed(40), closed(80, delivered=20)], 35),
        ("ewma", [closed(40), closed(20, retransmissions=5)], 35),
        ("ewma", [closed(40), closed(400, delivered=9)], 40),
        ("lossaware", [closed(40), closed(40, retransmissions=1)], 20),
        ("lossaware", [closed(16), closed(16, retransmissions=1)], 10),
        ("lossaware", [closed(32, retransmissions=1, window=32)], 16),
        ("lossaware", [closed(32, retransmissions=1, window=32), closed(50)], 50),
        ("lossaware-disc", [closed(40), closed(61, retransmissions=1, window=40)], 40),
        ("lossaware-disc", [closed(40), closed(60, retransmissions=1, window=40)], 20),
        ("static", [closed(40)], None),
    ],
)
def test_each_policy_follows_its_rule(name: str, outcomes: list[Outcome], expected: float | None) -> None:
    assert learned(name, *outcomes) == expected


@pytest.mark.parametrize(
    ("name", "segments", "window"), [("static", None, 110), ("ewma", None, 10), ("ewma", 300, 110), ("ewma", 4, 10)]
)
def test_a_window_stays_between_ten_and_the_ceiling(name: str, segments: float | None, window: int) -> None:
    assert Policy(name, ceiling=110).window(LearnedWindow(segments)) == window


@pytest.mark.parametrize(("name", "ceiling", "said"), [("best", 32, "no policy"), ("ewma", 4, "at least 10")])
def test_a_policy_that_makes_no_sense_is_refused(name: str, ceiling: int, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        Policy(name, ceiling)


def test_a_prefix_joins_larger_networks_until_there_are_samples() -> None:
    groups = Groups(least_connections=100)
    chain = groups.chain(HOST)
    assert [node.name for node in chain] == ["192.0.2.0/24", "192.0.0.0/20", "192.0.0.0/16"]
    assert groups.chosen(chain).name == "192.0.0.0/16"
    chain[1].connections = 100
    assert groups.chosen(chain).name == "192.0.0.0/20"
    chain[0].connections = 100
    assert groups.chosen(chain).name == "192.0.2.0/24"


def test_ipv6_has_sites_and_an_as_is_the_largest_group(tmp_path: Path) -> None:
    table = tmp_path / "as.txt"
    table.write_text("# documentation\n192.0.0.0/16 64499\n192.0.2.0/24, AS64500\n2001:db8::/32 AS64501\n")
    groups = Groups(table=AsTable.read(table))
    assert [node.name for node in groups.chain(HOST)][-1] == "AS64500"
    names = [node.name for node in groups.chain(ip_network("2001:db8:1:2::/64"))]
    assert names == ["2001:db8:1::/48", "2001:db8::/40", "2001:db8::/32", "AS64501"]


def test_a_line_that_is_no_prefix_is_named(tmp_path: Path) -> None:
    table = tmp_path / "as.txt"
    table.write_text("192.0.2.0/24 64500\n192.0.2.1/24 64500\n")
    with pytest.raises(RequestError, match=r"as.txt:2"):
        AsTable.read(table)


def test_networks_age_and_are_forgotten_and_are_bounded() -> None:
    groups = Groups(most=3, half_life_s=100)
    chain = groups.chain(HOST)
    chain[0].connections, chain[1].connections = 8, 1.5
    assert groups.chain(ip_network("198.51.100.1/32")) == ()
    groups.age(200, in_use=set())
    assert chain[0].connections == 2
    assert len(groups.chain(ip_network("192.0.2.9/32"))) == 3


def test_the_handshake_of_tls_is_no_response_to_learn_from() -> None:
    # 12 kB of certificates and 4 kB: no flight above ten segments was needed. As a response of 16 kB they would be one.
    both = closed(12, delivered=11)
    for handshake_bytes, samples in ((0, 1), (12_000, 0)):
        estimate = LearnedWindow()
        Policy("ewma", ceiling=110, handshake_bytes=handshake_bytes).learn(estimate, both)
        assert estimate.samples == samples
    # Of 40 segments, of which the handshake has 8, a response shows 32.
    estimate = LearnedWindow()
    Policy("ewma", ceiling=110, handshake_bytes=8 * 1448).learn(estimate, closed(40, delivered=40))
    assert estimate.segments == 32
