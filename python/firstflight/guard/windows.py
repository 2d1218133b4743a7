"""The windows that are set on this host: applies decisions so that changes by other programs take precedence."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from firstflight.guard.brain import Decision
from firstflight.guard.closed import Began, Row
from firstflight.guard.journal import Journal, undo
from firstflight.guard.outcome import Network
from firstflight.guard.policy import RFC6928_SEGMENTS
from firstflight.guard.routes import Route, RouteError, Routes

# A connection that was opened before a window was set may close soon after; whose window it had is not known.
_UNCERTAIN_S = 2.0
# After another program changed a route that ours was copied from: until the changes have settled.
_AGAIN_AFTER_S = 5.0
_CHECK_EVERY_S = 10.0
# Then all are tried again.
_MOST_HANDS_OFF = 65_536


class Note(Protocol):
    """The receiver of reports on events."""

    def __call__(self, event: str, prefix: Network | None, reason: str) -> None:
        """Write an event down."""


@dataclass(frozen=True, slots=True)
class _Set:
    segments: int
    route: Route


class Windows:
    """Routes of ours, journaled before they are set and read back afterwards."""

    def __init__(self, routes: Routes, journal: Journal, note: Note) -> None:
        self._routes, self._journal, self._note = routes, journal, note
        self._set: dict[Network, _Set] = {}
        self._wanted: dict[Network, int] = {}
        self._hands_off: set[Network] = set()
        self._again: dict[Network, float] = {}
        self._changed: dict[Network, float] = {}
        self._checked = time.monotonic()

    def __len__(self) -> int:
        return len(self._set)

    @property
    def hands_off(self) -> int:
        """Prefixes that are left alone since another program decided on them."""
        return len(self._hands_off)

    def began(self, prefix: Network, row: Row) -> Began | None:
        """How a connection that has closed began; None while that is uncertain, just after a change."""
        changed = self._changed.get(prefix)
        if changed is not None and time.monotonic() - changed < _UNCERTAIN_S:
            return None
        ours = self._set.get(prefix)
        segments = None if ours is None else ours.segments
        as_decided = prefix not in self._hands_off and self._wanted.get(prefix) == segments
        return Began(segments or RFC6928_SEGMENTS, judged=as_decided)

    def want(self, decision: Decision) -> None:
        """Carry out a decision."""
        prefix, segments = decision.prefix, decision.initial_window
        if segments is None:
            self._wanted.pop(prefix, None)
            self._withdraw(prefix)
            return
        self._wanted[prefix] = segments
        if prefix not in self._hands_off and time.monotonic() >= self._again.get(prefix, 0.0):
            self._apply(prefix, segments)

    def follow(self) -> None:
        """Check routes for changes by other programs, and withdraw where they affect ours."""
        changes = self._routes.changes_by_others()
        now = time.monotonic()
        if changes is None:
            for prefix in list(self._set):
                self._step_back(prefix, "changes of routes were missed", now)
        for route in changes or []:
            self._follow(route, now)
        if now - self._checked >= _CHECK_EVERY_S:
            self._checked = now
            self._changed = {prefix: at for prefix, at in self._changed.items() if now - at < _CHECK_EVERY_S}
            self._check(now)
        for prefix in [prefix for prefix, at in self._again.items() if at <= now]:
            del self._again[prefix]
            if prefix in self._wanted and prefix not in self._hands_off:
                self._apply(prefix, self._wanted[prefix])

    def undo(self) -> None:
        """Remove every route of ours."""
        self._wanted.clear()
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
        try:
            if old is not None:
                route = old.route.with_window(prefix, segments)
            else:
                base = self._routes.used_for(prefix)
                if base.initial_window is not None:
                    raise RouteError(f"{base.network} has initcwnd {base.initial_window} already")
                route = base.with_window(prefix, segments)
            self._journal.intend(prefix, segments, route)
            (self._routes.add if old is None else self._routes.replace)(route)
        except (RouteError, OSError) as error:
            self._journal.forget(prefix, segments)
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            self._give_up(prefix, f"not set: {why}")
            return
        if old is not None:
            self._journal.forget(prefix, old.segments)
        self._set[prefix] = _Set(segments, route)
        self._changed[prefix] = time.monotonic()
        try:
            found = self._routes.used_for(prefix)
        except RouteError:
            found = None
        if found is None or not found.is_ours or found.initial_window != segments:
            self._give_up(prefix, f"read back: {found.network if found else 'no route'} is used instead")
            return
        self._note("set", prefix, f"initcwnd {segments}")

    def _follow(self, route: Route, now: float) -> None:
        network = route.network
        ours = self._set.get(network)
        if ours is not None:
            if route.removed or not route.is_ours or route.initial_window != ours.segments:
                self._give_up(network, "somebody else set, changed or removed a route to it")
            return
        for prefix in [p for p in self._set if p.version == network.version and p.subnet_of(network)]:  # type: ignore[arg-type]
            self._step_back(prefix, f"somebody else changed the route to {network}", now)

    def _check(self, now: float) -> None:
        """Devices that go down take routes with them, and IPv4 does not say so."""
        there = self._routes.ours()
        for prefix, ours in list(self._set.items()):
            found = there.get(prefix)
            if found is None or found.initial_window != ours.segments:
                self._step_back(prefix, "our route is gone", now)

    def _step_back(self, prefix: Network, reason: str, now: float) -> None:
        self._withdraw(prefix)
        self._again[prefix] = now + _AGAIN_AFTER_S
        self._note("stepped back", prefix, reason)

    def _give_up(self, prefix: Network, reason: str) -> None:
        """Leave the prefix to the program that changed it, until the guard starts again."""
        self._withdraw(prefix)
        if len(self._hands_off) >= _MOST_HANDS_OFF:
            self._hands_off.clear()
        self._hands_off.add(prefix)
        self._note("hands off", prefix, reason)

    def _withdraw(self, prefix: Network) -> None:
        ours = self._set.pop(prefix, None)
        if ours is not None:
            self._changed[prefix] = time.monotonic()
            self._routes.remove(ours.route)
            self._journal.forget(prefix, ours.segments)
