"""The windows that are set on this host: applies decisions so that changes by other programs take precedence."""

import os
import random
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight import _native
from firstflight.errors import MachineError
from firstflight.guard.brain import WindowDecision
from firstflight.guard.closed import Began, Row
from firstflight.guard.journal import Journal, undo
from firstflight.guard.outcome import Network
from firstflight.guard.policy import RFC6928_SEGMENTS
from firstflight.guard.routes import Route, RoutedClient, RouteError, Routes

# A connection that was opened before a window was set may close soon after; whose window it had is not known.
_UNCERTAIN_S = 2.0
# After another program changed a route that ours was copied from: until the changes have settled. Twice as long after
# each time beyond the third, until the window has stayed for an hour.
_AGAIN_AFTER_S = 5.0
_AGAIN_AT_MOST_S = 3600.0
_CHECK_EVERY_S = 10.0
# While windows are set, events are read so often that none is lost. Windows that waited are set for as long at a time.
_FOLLOW_EVERY_S = 0.2
# Connections whose path is looked up at a change; prefixes whose path is looked up without our route at a check.
_CLIENTS_ASKED, _KINDS_ASKED = 3, 8
_PREFIXES_ASKED = 4
# Then all are tried again.
_MOST_HANDS_OFF = 65_536


Note = Callable[[str, Network | None, str], None]
"""Writes down an event of a prefix and its reason."""


@dataclass(frozen=True, slots=True)
class _Set:
    segments: int
    route: Route
    copied_length: int
    """Prefix length of the route that it was copied from."""
    since: float


class Windows:
    """Routes of ours, journaled before they are set and read back afterwards."""

    def __init__(self, routes: Routes, journal: Journal, note: Note) -> None:
        self._routes, self._journal, self._note = routes, journal, note
        self._clients: dict[Network, list[RoutedClient]] = {}
        self._kinds: list[RoutedClient] = []
        self._set: dict[Network, _Set] = {}
        self._wanted: dict[Network, int] = {}
        self._hands_off: set[Network] = set()
        self._again: dict[Network, float] = {}
        self._steps: dict[Network, int] = {}
        self._changed: dict[Network, float] = {}
        self._changes = 0
        self._checked = self._followed = time.monotonic()
        self._minute = (self._followed, 0, 0)
        """The last full minute: its end, changes until then and in it."""
        self.barred = routes.policy_routing()
        """Why no route may be set now."""

    def __len__(self) -> int:
        return len(self._set)

    def status(self) -> dict[str, Any]:
        """The state for `status.json`."""
        now = time.monotonic()
        end, until, within = self._minute
        if now - end >= 60:
            within = self._changes - until
            self._minute = (now, self._changes, within)
        return {
            "barred": self.barred,
            "windows_set": len(self._set),
            "windows_waiting": len(self._again),
            "route_changes": self._changes,
            "route_changes_in_a_minute": within,
            "hands_off": len(self._hands_off),
        }

    def connected(self, clients: dict[Network, list[RoutedClient]]) -> None:
        """Some of the connections that are open now, by prefix: the paths that a route of ours must not change."""
        self._clients = clients
        kinds = {(len(key.remote), key.source, key.mark, key.tos): key for some in clients.values() for key in some}
        self._kinds = list(kinds.values())[:_KINDS_ASKED]

    def began(self, prefix: Network, row: Row | None = None) -> Began | None:
        """How a connection that has closed began; None while that is uncertain, just after a change."""
        changed = self._changed.get(prefix)
        if changed is not None and time.monotonic() - changed < _UNCERTAIN_S:
            return None
        ours = self._set.get(prefix)
        segments = None if ours is None else ours.segments
        as_decided = prefix not in self._hands_off and self._wanted.get(prefix) == segments
        return Began(segments or RFC6928_SEGMENTS, judged=as_decided)

    def want(self, decision: WindowDecision) -> None:
        """Carry out a decision."""
        prefix, segments = decision.prefix, decision.initial_window
        if segments is None:
            self._wanted.pop(prefix, None)
            self._again.pop(prefix, None)
            self._withdraw([prefix], time.monotonic())
            return
        self._wanted[prefix] = segments
        if prefix not in self._hands_off:
            if self.barred is None and time.monotonic() >= self._again.get(prefix, 0.0):
                self._again.pop(prefix, None)
                self._apply(prefix, segments)
            else:
                self._again.setdefault(prefix, 0.0)
        if time.monotonic() - self._followed >= _FOLLOW_EVERY_S:
            self.follow()

    def follow(self) -> None:
        """Check routes and rules for changes by other programs, and withdraw where they affect ours."""
        changes = self._routes.changes_by_others()
        now = time.monotonic()
        if (barred := self._routes.policy_routing()) != self.barred:
            self.barred = barred
            self._note("barred" if barred else "free", None, barred or "routes depend on the destination alone")
            if barred is not None:
                self._step_back(list(self._set), barred, now)
            self._again = {prefix: max(at, now + _AGAIN_AFTER_S) for prefix, at in self._again.items()}
        if changes is None:
            self._step_back(list(self._set), "changes of routes were missed", now)
        else:
            self._follow(changes, now)
        if now - self._checked >= _CHECK_EVERY_S:
            self._checked = now
            self._changed = {prefix: at for prefix, at in self._changed.items() if now - at < _CHECK_EVERY_S}
            self._steps = {prefix: steps for prefix, steps in self._steps.items() if prefix in self._wanted}
            self._check(now)
        if self.barred is None:
            self._set_again(now)
        self._followed = time.monotonic()

    def undo(self) -> None:
        """Remove every route of ours."""
        self._wanted.clear()
        self._again.clear()
        removed, left = undo(self._journal, self._routes)
        self._set.clear()
        # On a full disk they are removed, too, without a report.
        with suppress(OSError):
            for prefix in removed:
                self._note("removed", prefix, "undo")
            for prefix in left:
                self._note("left", prefix, "a route with our number that is not in the journal")

    def _apply(self, prefix: Network, segments: int) -> None:
        old = self._set.get(prefix)
        if old is not None and old.segments == segments:
            return
        clients = self._asked(prefix)
        before = [self._routes.path(client) for client in clients]
        try:
            if old is not None:
                route, length = old.route.with_window(prefix, segments), old.copied_length
            else:
                base = self._routes.used_for(prefix)
                if base.initial_window is not None:
                    raise RouteError(f"{base.network} has initcwnd {base.initial_window} already")
                route, length = base.with_window(prefix, segments), base.network.prefixlen
            self._journal.intend(prefix, segments, route)
            (self._routes.add if old is None else self._routes.replace)(route)
        except (RouteError, OSError) as error:
            self._journal.forget((prefix, segments))
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            self._give_up(prefix, f"not set: {why}")
            return
        if old is not None:
            self._journal.forget((prefix, old.segments))
        self._changes += 1
        now = time.monotonic()
        self._set[prefix] = _Set(segments, route, length, now if old is None else old.since)
        self._changed[prefix] = now
        try:
            used = self._routes.used_for(prefix)
        except RouteError:
            used = None
        if used is None or not used.is_ours or used.initial_window != segments:
            self._give_up(prefix, f"read back: {used.network if used else 'no route'} is used instead")
        elif [self._routes.path(client) for client in clients] != before:
            self._give_up(prefix, "read back: packets of its clients would take another way")
        else:
            self._note("set", prefix, f"initcwnd {segments}")

    def _asked(self, prefix: Network) -> list[RoutedClient]:
        """Connections by which the way to a prefix is looked up: its own, else such as others have."""
        clients, address = self._clients.get(prefix, [])[:_CLIENTS_ASKED], prefix.network_address.packed
        return clients or [kind._replace(remote=address) for kind in self._kinds if len(kind.remote) == len(address)]

    def _follow(self, changes: list[Route], now: float) -> None:
        covering: dict[Network, None] = {}
        for route in changes:
            ours = self._set.get(route.network)
            if ours is None:
                covering[route.network] = None
            elif route.removed or not route.is_ours or route.initial_window != ours.segments:
                self._give_up(route.network, "another process set, changed or removed a route to it")
        if not covering or not self._set:
            return
        by_address = sorted((prefix.version, int(prefix.network_address), prefix) for prefix in self._set)
        for network in covering:
            first = (network.version, int(network.network_address))
            place = bisect_left(by_address, first)
            affected = []
            while place < len(by_address) and by_address[place][:2] <= (first[0], int(network.broadcast_address)):
                prefix = by_address[place][2]
                # A route that is less specific than the copied one leads none of our clients.
                if prefix in self._set and self._set[prefix].copied_length <= network.prefixlen <= prefix.prefixlen:
                    affected.append(prefix)
                place += 1
            self._step_back(affected, f"another process changed the route to {network}", now)

    def _check(self, now: float) -> None:
        """Devices that go down take routes with them, and IPv4 does not say so; gateways die without an event."""
        there = self._routes.ours()
        gone = []
        for prefix, ours in self._set.items():
            used = there.get(prefix)
            if used is None:
                # The kernel's list lacks some while others change routes.
                with suppress(RouteError):
                    used = self._routes.used_for(prefix)
            if used is None or not used.is_ours or used.initial_window != ours.segments:
                gone.append(prefix)
        self._step_back(gone, "our route is gone", now)
        connected = [prefix for prefix in self._clients if prefix in self._set]
        for prefix in random.sample(connected, min(_PREFIXES_ASKED, len(connected))):
            self._compare(prefix, now)

    def _compare(self, prefix: Network, now: float) -> None:
        """Take our route away for a moment and look whether packets of clients go the same way."""
        clients, route = self._asked(prefix), self._set[prefix].route
        paths = [self._routes.path(client) for client in clients]
        try:
            if self._routes.remove(route):
                without = [self._routes.path(client) for client in clients]
                self._routes.add(route)
                if without != paths:
                    self._step_back([prefix], "packets of its clients take another way without our route", now)
        except OSError as error:
            self._give_up(prefix, f"not set again: {os.strerror(error.errno or 0)}")

    def _set_again(self, now: float) -> None:
        due = [prefix for prefix, at in self._again.items() if at <= now]
        for prefix in due:
            if time.monotonic() - now >= _FOLLOW_EVERY_S:
                return
            del self._again[prefix]
            if prefix in self._wanted and prefix not in self._hands_off:
                self._apply(prefix, self._wanted[prefix])

    def _step_back(self, prefixes: list[Network], reason: str, now: float) -> None:
        """Withdraw for a while."""
        self._withdraw(prefixes, now)
        for prefix in prefixes:
            steps = self._steps[prefix] = self._steps.get(prefix, 0) + 1
            self._again[prefix] = now + min(_AGAIN_AFTER_S * 2.0 ** max(steps - 3, 0), _AGAIN_AT_MOST_S)
            self._note("stepped back", prefix, reason)

    def _give_up(self, prefix: Network, reason: str) -> None:
        """Leave the prefix to the program that changed it, until the guard starts again."""
        self._withdraw([prefix], time.monotonic())
        if len(self._hands_off) >= _MOST_HANDS_OFF:
            self._hands_off.clear()
        self._hands_off.add(prefix)
        self._note("hands off", prefix, reason)

    def _withdraw(self, prefixes: list[Network], now: float) -> None:
        removed = []
        for prefix in prefixes:
            ours = self._set.pop(prefix, None)
            if ours is not None:
                if now - ours.since >= _AGAIN_AT_MOST_S:
                    self._steps.pop(prefix, None)
                self._changed[prefix] = now
                self._changes += 1
                self._routes.remove(ours.route)
                removed.append((prefix, ours.segments))
        self._journal.forget(*removed)


class RandomWindows:
    """Windows as `Windows` sets them by routes, but drawn for each connection, by a BPF program on a cgroup, which the
    kernel removes when the process ends.

    Raises MachineError where the program cannot be attached to `cgroup`. `compared` is the largest window under trial.
    """

    def __init__(self, cgroup: Path, ports: list[int], compared: int) -> None:
        self._set: dict[Network, tuple[int, float]] = {}
        try:
            self._program = _native.DrawnWindows(cgroup, ports, compared)
        except OSError as error:
            raise MachineError(
                f"{cgroup}: a BPF program cannot be attached: {error.strerror}; name a directory of cgroup "
                "version 2, as root or with CAP_BPF and CAP_NET_ADMIN, on Linux 5.15 or later"
            ) from None

    def status(self) -> dict[str, Any]:
        """The state for `status.json`. The program leaves connections alone that a route gave another window."""
        return {"windows_set": len(self._set), "hands_off": 0}

    def want(self, decision: WindowDecision) -> None:
        """Carry out a decision."""
        prefix, segments = decision.prefix, decision.initial_window
        place = (prefix.network_address.packed, prefix.prefixlen)
        if segments is None:
            if self._set.pop(prefix, None) is not None:
                self._program.remove(*place)
            return
        self._program.set(*place, segments, decision.share)
        self._set[prefix] = segments, decision.share

    def began(self, prefix: Network, row: Row) -> Began:
        """How a connection that has closed began: not judged if nothing was drawn for it."""
        drawn = self._program.take(row.cookie)
        if drawn is None:
            return Began(RFC6928_SEGMENTS, judged=False)
        segments, lost = drawn
        # As without a record of the flight: segments that a DSACK explains had arrived.
        return Began(segments, judged=True, lost=lost and row.retransmissions > row.dsacks)

    def follow(self) -> None:
        """Nobody else changes these windows, and no packet takes another way."""

    def undo(self) -> None:
        """Draw nothing any more; windows of open connections stay."""
        for prefix in list(self._set):
            self._program.remove(prefix.network_address.packed, prefix.prefixlen)
        self._set.clear()
