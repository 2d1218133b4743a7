"""When windows are withdrawn and set again, with routes in place of the kernel's."""

import struct
import time
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from firstflight.guard.brain import WindowDecision
from firstflight.guard.journal import Journal
from firstflight.guard.outcome import Network
from firstflight.guard.routes import Route, RoutedClient
from firstflight.guard.windows import Windows

PREFIX = ip_network("192.0.2.0/28")
OTHER = ip_network("198.51.100.0/28")
CLIENT = RoutedClient(PREFIX[5].packed, b"\x0a\0\0\1", mark=7, tos=16)


def route(network: Network) -> Route:
    """A route of another program's."""
    header = struct.pack("=8BI", 2, network.prefixlen, 0, 0, 254, 3, 0, 1, 0)
    return Route(header, {1: network.network_address.packed})


class Kernel:
    """A main table with a default route and ours."""

    def __init__(self) -> None:
        self.set: dict[Network, Route] = {}
        self.barred: str | None = None
        self.changes: list[Route] | None = []
        self.diverts: set[Network] = set()
        self.asked: list[RoutedClient] = []

    def policy_routing(self) -> str | None:
        return self.barred

    def changes_by_others(self) -> list[Route] | None:
        found, self.changes = self.changes, []
        return found

    def used_for(self, prefix: Network) -> Route:
        return self.set.get(prefix, route(ip_network("0.0.0.0/0")))

    def path(self, client: RoutedClient) -> tuple[object, ...]:
        self.asked.append(client)
        return tuple(
            prefix in self.set for prefix in self.diverts if int.from_bytes(client.remote) in range(*span(prefix))
        )

    def add(self, new: Route) -> None:
        self.set[new.network] = new

    replace = add

    def remove(self, old: Route) -> bool:
        return self.set.pop(old.network, None) is not None

    def ours(self) -> dict[Network, Route]:
        return dict(self.set)


def span(prefix: Network) -> tuple[int, int]:
    return int(prefix.network_address), int(prefix.broadcast_address) + 1


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Windows over a kernel, notes, and a clock."""

    class World:
        now = 1000.0

        def __init__(self) -> None:
            self.kernel = Kernel()
            self.notes: list[tuple[str, Network | None, str]] = []
            self.windows: Any = None

        def want(self, prefix: Network) -> None:
            self.windows.want(WindowDecision(prefix, 20, "", {}))

        def later(self, seconds: float) -> None:
            self.now += seconds
            self.windows.follow()

    made = World()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    note: Callable[..., None] = lambda event, prefix, reason: made.notes.append((event, prefix, reason))  # noqa: E731
    made.windows = Windows(made.kernel, Journal(tmp_path), note)  # type: ignore[arg-type, attr-defined]
    return made


def test_a_window_that_would_divert_a_client_is_withdrawn_at_once(world: Any) -> None:
    world.kernel.diverts = {PREFIX}
    world.windows.connected({PREFIX: [CLIENT]})
    world.want(PREFIX)
    world.want(OTHER)
    assert list(world.kernel.set) == [OTHER]
    assert ("hands off", PREFIX, "read back: packets of its clients would take another way") in world.notes
    # Of a prefix without an open connection the way is looked up as other clients' sockets would ask.
    assert world.kernel.asked[-1] == CLIENT._replace(remote=OTHER.network_address.packed)


def test_a_window_that_comes_to_divert_a_client_is_withdrawn_at_a_check(world: Any) -> None:
    world.windows.connected({PREFIX: [CLIENT]})
    world.want(PREFIX)
    world.later(10)
    assert list(world.kernel.set) == [PREFIX]
    world.kernel.diverts = {PREFIX}
    world.later(10)
    assert not world.kernel.set
    assert world.notes[-1] == ("stepped back", PREFIX, "packets of its clients take another way without our route")


def test_policy_routing_removes_every_window_at_the_next_look_and_they_come_back_later(world: Any) -> None:
    world.want(PREFIX)
    world.kernel.barred = "a rule"
    world.later(0.5)
    assert not world.kernel.set
    world.want(OTHER)
    world.later(60)
    assert not world.kernel.set
    world.kernel.barred = None
    world.later(0.5)
    assert not world.kernel.set
    world.later(5)
    assert set(world.kernel.set) == {PREFIX, OTHER}


def test_a_window_that_is_withdrawn_again_and_again_waits_twice_as_long_each_time(world: Any) -> None:
    world.want(PREFIX)
    waited = []
    for _ in range(8):
        world.kernel.changes = [route(ip_network("0.0.0.0/0"))]
        world.later(0.5)
        assert not world.kernel.set
        start = world.now
        while not world.kernel.set:
            world.later(0.5)
        waited.append(world.now - start)
    assert waited == [5, 5, 5, 10, 20, 40, 80, 160]
    assert world.windows.status()["route_changes"] == 17


def test_lost_events_withdraw_every_window(world: Any) -> None:
    world.want(PREFIX)
    world.kernel.changes = None
    world.later(0.5)
    assert not world.kernel.set


def test_a_change_that_is_less_specific_than_the_copied_route_withdraws_nothing(world: Any) -> None:
    world.kernel.used_for = lambda prefix: world.kernel.set.get(prefix, route(ip_network("192.0.0.0/16")))
    world.want(PREFIX)
    world.kernel.changes = [route(ip_network("0.0.0.0/0"))]
    world.later(0.5)
    assert list(world.kernel.set) == [PREFIX]
    world.kernel.changes = [route(ip_network("192.0.2.0/24"))]
    world.later(0.5)
    assert not world.kernel.set
