"""The guard's memory outlives its process."""

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest

from firstflight.errors import MachineError
from firstflight.guard.brain import Brain, Settings, WindowDecision
from firstflight.guard.groups import Groups
from firstflight.guard.memory import Memory
from firstflight.guard.outcome import Outcome
from firstflight.guard.policy import Policy
from firstflight.guard.stop_rule import StopRule

HOUR = 3600.0
SETTINGS = Settings(Policy("lossaware", 32), StopRule(period_s=60.0), hold_s=24 * HOUR)
HOSTS = [ip_network((0x0A000000 + number, 32)) for number in range(100)]


class Guard:
    """Brain and groups with their state from a directory."""

    def __init__(self, directory: Path, now: float, settings: Settings = SETTINGS) -> None:
        self.groups = Groups(least_connections=100)
        self.brain = Brain(settings, self.groups)
        self.memory = Memory(directory, settings, self.groups, self.brain, now)

    def see(self, outcomes: Iterator[Outcome]) -> list[WindowDecision]:
        return [decision for outcome in outcomes for decision in self.brain.decide([outcome])]


def outcomes(start: float, count: int, *, lost: bool = False) -> Iterator[Outcome]:
    """Connections of all hosts in turn, one per second, half of them raised; the raised ones lose with `lost`."""
    for number in range(count):
        raised = number % 2 == 0
        arm, window = ("raised", 20) if raised else ("control", 10)
        bad = lost and raised
        yield Outcome(start + number, HOSTS[number % 100], arm, window, 60_000, 24, int(bad), bad, 0, 0.05, None, None)  # type: ignore[arg-type]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Unix time, in a list of one."""
    unix = [1.8e9]
    monkeypatch.setattr(time, "time", lambda: unix[0])
    return unix


def test_a_hold_and_its_evidence_last_over_a_restart_and_a_new_boot(tmp_path: Path, clock: list[float]) -> None:
    first = Guard(tmp_path, now=50_000.0)
    decided = first.see(outcomes(50_000.0, 2000, lost=True))
    assert "stopped: the raised arm is worse" in {decision.reason for decision in decided}
    evidence = first.brain.e_values()
    assert max(evidence.values()) >= 20
    first.memory.save(52_000.0)
    first.memory.close()

    # An hour later, by a clock that has started again.
    clock[0] += HOUR
    second = Guard(tmp_path, now=100.0)
    assert {name: state.trial.e_value for name, state in second.brain.states().items()} == evidence
    decided = second.see(outcomes(100.0, 500))
    assert {decision.initial_window for decision in decided} <= {None}
    second.memory.save(600.0)
    second.memory.close()

    # A day after the stop it is tried again, with nothing held against it.
    clock[0] += 24 * HOUR
    third = Guard(tmp_path, now=90_000.0)
    decided = third.see(outcomes(90_000.0, 500))
    assert any(decision.initial_window for decision in decided)
    assert max(third.brain.e_values().values()) < 20


def test_a_group_need_not_be_counted_again_and_its_connections_age(tmp_path: Path, clock: list[float]) -> None:
    first = Guard(tmp_path, now=0.0)
    first.see(outcomes(0.0, 300))
    first.memory.save(300.0)
    counts = first.groups.counts()
    assert counts["10.0.0.0/24"] == pytest.approx(300, rel=0.001)
    clock[0] += first.groups.half_life_s
    second = Guard(tmp_path, now=0.0)
    assert second.groups.counts() == pytest.approx({name: count / 2 for name, count in counts.items()})
    estimate = second.brain.states()["10.0.0.0/24"].estimate
    assert estimate == first.brain.states()["10.0.0.0/24"].estimate
    # 24 segments were learned, and the first draw of the second process may raise.
    assert any(decision.initial_window == 24 for decision in second.see(outcomes(0.0, 100)))


@pytest.mark.parametrize(
    "changed", [{"policy": Policy("lossaware", 64)}, {"rule": StopRule(alpha=0.01, period_s=60.0)}]
)
def test_evidence_about_another_window_or_rule_does_not_count(
    tmp_path: Path, clock: list[float], changed: dict[str, object]
) -> None:
    first = Guard(tmp_path, now=0.0)
    first.see(outcomes(0.0, 2000, lost=True))
    first.memory.save(2000.0)
    held = {name for name, state in first.brain.states().items() if state.is_held(2000.0)}
    second = Guard(tmp_path, 0.0, replace(SETTINGS, **changed))  # type: ignore[arg-type]
    assert set(second.brain.states()) == set(first.brain.states())
    assert all(state.trial.e_value == pytest.approx(1) for state in second.brain.states().values())
    assert {name for name, state in second.brain.states().items() if state.is_held(0.0)} == held
    assert held


def test_it_is_written_once_a_minute(tmp_path: Path) -> None:
    guard = Guard(tmp_path, now=0.0)
    guard.see(outcomes(0.0, 50))
    rows = sqlite3.connect(tmp_path / "learned.sqlite")
    for now, count in ((59.0, 0), (61.0, 3), (62.0, 3)):
        guard.memory.keep(now)
        assert rows.execute("SELECT count(*) FROM network").fetchone() == (count,)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "learned.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(MachineError, match=r"learned\.sqlite: cannot be used .*; remove it"):
        Guard(tmp_path, now=0.0)
