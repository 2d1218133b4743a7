"""The guard's decisions: when it raises, when it falls back, and for whom."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network
from random import Random

import pytest

from firstflight.guard.brain import Brain, Settings, WindowDecision
from firstflight.guard.groups import Groups
from firstflight.guard.outcome import Network, Outcome
from firstflight.guard.policy import Policy
from firstflight.guard.stop_rule import StopAnswer, StopRule

HOUR = 3600.0
Risk = Callable[[Network, int], float]


def host(subnet: int, number: int) -> Network:
    """A host of 10.SUBNET.0.0/16, spread over its /24s."""
    return ip_network((0x0A000000 + (subnet << 16) + number, 32))


class World:
    """Connections of some hosts in virtual time, with the windows that the brain has set when they open."""

    def __init__(self, brain: Brain, hosts: list[Network], *, by_connection: bool = False) -> None:
        self.brain, self.hosts, self.by_connection = brain, hosts, by_connection
        self.random = Random(1)
        self.windows: dict[Network, int] = {}
        self.shares: dict[Network, float] = {}
        self.decisions: list[WindowDecision] = []
        self.at = 0.0

    def take(self, decisions: list[WindowDecision]) -> None:
        """Carry out the decisions."""
        self.decisions += decisions
        for decision in decisions:
            if decision.initial_window is None:
                self.windows.pop(decision.prefix, None)
            else:
                self.windows[decision.prefix] = decision.initial_window
                self.shares[decision.prefix] = decision.share

    def run(self, connections: int, risk: Risk, apart_s: float = 10.0) -> None:
        """Let connections finish one by one; `risk` is the probability of a loss in the first flight."""
        for outcome in self.outcomes(connections, risk, apart_s):
            self.take(self.brain.decide([outcome]))

    def outcomes(self, connections: int, risk: Risk, apart_s: float) -> Iterator[Outcome]:
        for _ in range(connections):
            self.at += apart_s
            prefix = self.random.choice(self.hosts)
            window = self.windows.get(prefix, 10)
            if self.by_connection and self.random.random() >= self.shares.get(prefix, 0):
                window = 10
            lost = self.random.random() < risk(prefix, window)
            arm = "raised" if window > 10 else "control"
            yield Outcome(self.at, prefix, arm, window, 60_000, 40, int(lost), lost, 0, 0.05, None, None)


def brain(policy: str = "static", ceiling: int = 32, least: int = 200, **more: object) -> Brain:
    settings = Settings(Policy(policy, ceiling), **more)  # type: ignore[arg-type]
    return Brain(settings, Groups(least_connections=least))


def harmless(prefix: Network, window: int) -> float:
    return 0.05


def harmful(prefix: Network, window: int) -> float:
    return 0.5 if window > 10 else 0.05


HOSTS = [host(0, number) for number in range(200)]


def test_nothing_is_raised_before_there_are_samples() -> None:
    world = World(brain(least=300), HOSTS)
    world.run(299, harmless)
    assert world.windows == {}
    world.run(500, harmless)
    assert set(world.windows.values()) == {32}


def test_about_half_of_the_prefixes_are_raised_and_others_in_the_next_period() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    first = set(world.windows)
    assert 70 <= len(first) <= 130
    world.run(360, harmless)
    assert 70 <= len(world.windows) <= 130
    assert first != set(world.windows)


def test_harm_is_stopped_and_held_and_everything_falls_back() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    assert world.windows
    world.run(1500, harmful)
    assert world.windows == {}
    stops = [decision for decision in world.decisions if decision.reason.startswith("stopped")]
    assert stops[0].evidence["e_value"] >= 20
    assert stops[0].evidence["losses_raised"] > stops[0].evidence["losses"] / 2
    world.run(2000, harmless)
    assert world.windows == {}


def test_after_the_hold_there_is_another_trial() -> None:
    world = World(brain(hold_s=2 * HOUR), HOSTS)
    world.run(2000, harmless)
    world.run(1500, harmful)
    world.run(2000, harmless)
    assert world.windows


def test_stops_of_two_groups_may_fall_back_to_three_segments_and_one_to_no_less_than_the_hosts_own_window() -> None:
    world = World(brain(fallback="rfc3390"), HOSTS)
    world.run(3500, harmful)
    assert world.windows == {}
    world = World(brain(fallback="rfc3390"), HOSTS + [host(1, number) for number in range(200)])
    world.run(7000, harmful)
    assert set(world.windows.values()) == {3}


def site(number: int, subnet: int) -> Network:
    """A /56 of one of the /48s of 2001:db8::/32."""
    return ip_network(((0x20010DB8 << 96) + (number << 80) + (subnet << 72), 56))


@pytest.mark.parametrize(
    ("honest", "fakers", "source"),
    [
        ([site(k, 0) for k in range(1, 1500)], [site(0, 0)], None),
        ([site(k, 0) for k in range(1, 1500)], [site(0, k) for k in range(256)], "2001:db8::/48"),
        ([site(4096 + k, 0) for k in range(1500)], [site(k % 16, k // 16) for k in range(2048)], "2001:db8::/40"),
        (
            [ip_network((0x0A000000 + (k << 8), 28)) for k in range(1, 256)],
            [ip_network((0x0A000000 + 16 * k, 28)) for k in range(16)],
            "10.0.0.0/24",
        ),
    ],
)
def test_of_an_aggregated_group_only_the_network_of_a_client_that_fakes_losses_stops(
    honest: list[Network], fakers: list[Network], source: str | None
) -> None:
    fake = set(fakers)
    world = World(brain(least=1000, fallback="rfc3390"), honest * max(9 * len(fakers) // len(honest), 1) + fakers)
    world.run(20_000, lambda prefix, window: float(window > 10) if prefix in fake else 0.02, apart_s=2.0)
    stopped = {decision.prefix for decision in world.decisions if decision.reason.startswith("stopped")}
    assert stopped <= fake
    assert {decision.evidence.get("network") for decision in world.decisions if decision.prefix in stopped} <= {
        source,
        None,
    }
    held = {name for name, group in world.brain.states().items() if group.held_until is not None}
    assert held == ({source} if source else set())
    assert sum(world.windows.get(prefix, 10) > 10 for prefix in honest) > len(honest) / 4
    assert all(world.windows.get(prefix, 10) >= 10 for prefix in honest)


def test_equal_arms_let_the_share_grow_and_a_control_arm_stays() -> None:
    world = World(brain(rule=StopRule(tolerated_ratio=3.0)), HOSTS)
    world.run(6000, lambda prefix, window: 0.1)
    shares = {decision.evidence["share"] for decision in world.decisions}
    assert shares == {0.5, 0.9}
    assert 150 < len(world.windows) < 200


def test_silence_removes_every_window() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    world.take(world.brain.decide([], now=world.at + HOUR + 1))
    assert world.windows == {}
    assert world.decisions[-1].reason == "no connection finished for 3600 s"


def test_without_monitoring_every_window_is_removed() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    world.take(world.brain.decide([], monitored=False))
    assert world.windows == {}
    assert world.decisions[-1].reason == "monitoring stopped"


def test_a_learned_window_stays_below_the_ceiling() -> None:
    world = World(brain("ewma", ceiling=24), HOSTS)
    world.run(2000, harmless)
    assert set(world.windows.values()) == {24}


@pytest.mark.parametrize("policy", ["static", "lossaware"])
def test_a_client_that_fakes_losses_lowers_no_window_of_another_group(policy: str) -> None:
    fakers, others = [host(1, number) for number in range(100)], HOSTS

    def faked(prefix: Network, window: int) -> float:
        return float(window > 10) if prefix in fakers else 0.02

    world = World(brain(policy), fakers + others)
    world.run(6000, faked)
    raised = {prefix: window for prefix, window in world.windows.items() if prefix not in fakers}
    assert raised == world.windows
    assert len(raised) >= 70
    assert set(raised.values()) == {32}
    verdicts = world.brain.verdicts()
    assert all(verdicts[name].answer is not StopAnswer.STOP for name in verdicts if name.startswith("10.0."))


def test_one_client_that_repeats_itself_does_not_stop_its_group_within_a_period() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    before = world.brain.verdicts()
    loud = next(iter(world.windows))
    lost = [Outcome(world.at, loud, "raised", 32, 60_000, 40, 9, True, 0, 0.05, None, None)] * 10_000
    world.take(world.brain.decide(lost))
    after = world.brain.verdicts()
    assert sum(v.losses for v in after.values()) - sum(v.losses for v in before.values()) <= 1


def test_handshakes_that_stay_unfinished_in_raised_prefixes_stop_the_group() -> None:
    world = World(brain(), HOSTS)
    world.run(2000, harmless)
    raised = list(world.windows)
    unknown = Outcome(world.at, host(9, 1), "raised", 32, 0, 0, 0, None, 1, None, None, None, is_finished=False)
    assert world.brain.decide([unknown]) == []
    assert world.brain.group_of(unknown.prefix) is None
    for prefix in raised[:20]:
        world.take(world.brain.decide([replace(unknown, prefix=prefix)]))
    assert world.windows == {}
    stops = [decision for decision in world.decisions if decision.reason.startswith("stopped")]
    assert stops[0].evidence["timeouts_raised"] > 0


def test_the_number_of_prefixes_is_bounded() -> None:
    world = World(brain(most_prefixes=50), HOSTS)
    world.run(3000, harmless)
    assert len(world.windows) <= 50
    assert any(decision.reason == "room for another prefix" for decision in world.decisions)


def test_a_client_with_many_prefixes_lowers_no_window_of_another_network() -> None:
    world = World(brain(most_prefixes=600), HOSTS)
    world.run(2000, harmless)
    before = dict(world.windows)
    flood = [
        Outcome(world.at, host(1, number), "control", 10, 60_000, 40, 0, False, 0, 0.05, None, None)
        for number in range(2000)
    ]
    world.take(world.brain.decide(flood))
    assert {prefix: window for prefix, window in world.windows.items() if prefix in HOSTS} == before
    # Whoever comes later still finds room, at the expense of the many.
    world.hosts = HOSTS + [host(2, number) for number in range(40)]
    world.run(50, harmless)
    assert before.keys() <= {prefix for prefix in HOSTS if world.brain.group_of(prefix) is not None}
    assert any(world.brain.group_of(late) is not None for late in world.hosts[len(HOSTS) :])


def test_connections_may_be_drawn_by_the_host() -> None:
    world = World(brain(draw="connection"), HOSTS, by_connection=True)
    world.run(3000, harmless)
    assert len(world.windows) == 200
    assert set(world.shares.values()) == {0.5}
    # A harmless window gets the larger share immediately, with the windows as they are.
    world.run(20_000, lambda *_: 0.3)
    assert set(world.shares.values()) == {0.9}
    assert set(world.windows.values()) == {32}


def test_the_same_connections_give_the_same_decisions() -> None:
    worlds = [World(brain(), HOSTS) for _ in range(2)]
    for world in worlds:
        world.run(1500, harmful)
    assert worlds[0].decisions == worlds[1].decisions


@pytest.mark.parametrize("secret", [b"one", b"two"])
def test_arms_depend_on_the_secret(secret: bytes) -> None:
    plain, secret_world = World(brain(), HOSTS), World(brain(secret=secret), HOSTS)
    for world in (plain, secret_world):
        world.run(1000, harmless)
    assert set(plain.windows) != set(secret_world.windows)
