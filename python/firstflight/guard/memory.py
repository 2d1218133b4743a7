"""The guard's learned state, stored in `DIR/learned.sqlite`: networks, estimates, trials and holds."""

import json
import sqlite3
import time
from dataclasses import asdict
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError
from firstflight.guard.brain import Brain, NetworkGroup, Settings
from firstflight.guard.groups import Groups
from firstflight.guard.policy import LearnedWindow
from firstflight.guard.stop_rule import EProcess, Events, Trial

_VERSION = 1
_SAVE_S = 60.0


class Memory:
    """Fills a guard's groups and brain at its start and keeps them from then on; at most `_SAVE_S` are lost to a kill.

    Raises MachineError if the file cannot be used. `now` is the guard's clock, the file has Unix time.
    """

    def __init__(self, directory: Path, settings: Settings, groups: Groups, brain: Brain, now: float) -> None:
        self._settings, self._groups, self._brain = settings, groups, brain
        self._saved = now
        self._path = directory / "learned.sqlite"
        try:
            self._base = sqlite3.connect(self._path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = NORMAL")
            if self._base.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                self._base.execute("DROP TABLE IF EXISTS network")
                self._base.execute(f"PRAGMA user_version = {_VERSION}")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS network (name TEXT PRIMARY KEY, saved REAL, connections REAL, state TEXT)"
            )
            self._load(now, time.time())
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MachineError(
                f"{self._path}: cannot be used ({error}); remove it, and the guard begins with nothing learned"
            ) from None

    def keep(self, now: float) -> None:
        """Store the state, unless that was done in the last minute."""
        if now - self._saved >= _SAVE_S:
            self.save(now)

    def save(self, now: float) -> None:
        """Store the state."""
        self._saved, unix = now, time.time()
        states = self._brain.states()
        rows = [
            (name, unix, connections, self._packed(states[name], unix - now) if name in states else None)
            for name, connections in self._groups.counts().items()
        ]
        # A group that is held stays known, also when nothing of its network has been seen for long.
        known = {row[0] for row in rows}
        rows += [
            (name, unix, 0.0, self._packed(state, unix - now)) for name, state in states.items() if name not in known
        ]
        with self._base:
            self._base.execute("BEGIN")
            self._base.execute("DELETE FROM network")
            self._base.executemany("INSERT INTO network VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _load(self, now: float, unix: float) -> None:
        counts: dict[str, float] = {}
        states: dict[str, NetworkGroup] = {}
        elapsed_s = 0.0
        for name, saved, connections, state in self._base.execute("SELECT * FROM network"):
            elapsed_s = max(unix - saved, 0.0)
            if connections > 0:
                counts[name] = connections
            if state is not None:
                states[name] = self._unpacked(json.loads(state), unix - now)
        self._groups.restore(counts)
        self._groups.age(elapsed_s, set())
        self._brain.restore(states)

    def _tried(self) -> Any:
        """The settings on which a trial's evidence depends: results of another window or rule do not count."""
        settings = self._settings
        return json.loads(json.dumps([asdict(settings.policy), asdict(settings.rule), settings.shares, settings.draw]))

    def _packed(self, group: NetworkGroup, offset_s: float) -> str:
        trial = group.trial
        events = [[kind.raised, kind.events, kind.earlier_log_e] for kind in (trial.losses, trial.timeouts)]
        state = {
            "estimate": [group.estimate.segments, group.estimate.samples],
            "held_until": None if group.held_until is None else group.held_until + offset_s,
            "seen_at": group.seen_at + offset_s,
            "evidence": group.evidence,
            "tried": self._tried(),
            "trial": [group.stage, trial.share, trial.connections, *events],
            "parts": group.parts,
        }
        return json.dumps(state)

    def _unpacked(self, state: dict[str, Any], offset_s: float) -> NetworkGroup:
        stage, share, connections, losses, timeouts = state["trial"]
        parts: dict[str, Events] = {}
        if state["tried"] == self._tried():
            trial = Trial(self._settings.rule, share)
            trial.connections = connections
            trial.losses, trial.timeouts = EProcess(share, *losses), EProcess(share, *timeouts)
            parts = {str(ip_network(name)): Events(*counts) for name, counts in state.get("parts", {}).items()}
        else:
            stage, trial = 0, Trial(self._settings.rule, self._settings.shares[0])
        held = state["held_until"]
        return NetworkGroup(
            trial,
            LearnedWindow(*state["estimate"]),
            stage,
            None if held is None else held - offset_s,
            state["evidence"],
            state["seen_at"] - offset_s,
            parts,
        )
