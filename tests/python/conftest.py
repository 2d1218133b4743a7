"""Scenarios small enough to run hundreds of times, and the program called as a user would."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firstflight.engines.emulate import selfcheck
from firstflight.scenario import Scenario

SMALL = """
name = "small"
duration = "20s"

[tcp]
profile = "rfc"
initial_window = 3

[network]
topology = "dumbbell"
bottleneck = { rate = "1.5Mbit", delay = "50ms", queue = "25p" }
left = { count = 2, rate = "10Mbit", delay = "1ms", queue = "100p" }
right = { count = 2, rate = "10Mbit", delay = "1ms", queue = "100p" }

[[application]]
name = "web"
kind = "web_page"
clients = 4
primary = { law = "lognormal", median = "2kB", sigma = 1.0 }
inline = "3kB"
think = { law = "uniform", low = "1s", high = "5s" }
"""


@dataclass
class Answer:
    """What the program printed and returned."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests judge counts, order and rounds, on machines with other work: a self-check lets them be late for that."""
    monkeypatch.setattr(selfcheck, "RTT_TOLERANCE_S", 0.05)
    monkeypatch.setattr(selfcheck, "RATE_TOLERANCE", 0.1)


@pytest.fixture
def small_toml() -> str:
    return SMALL


@pytest.fixture
def small() -> Scenario:
    return Scenario.from_toml(SMALL)


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def firstflight(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Call the program in this process: `firstflight("run", file, "--out", directory)`."""
    from firstflight.cli import main

    def call(*arguments: Any) -> Answer:
        monkeypatch.setattr(sys, "argv", ["firstflight", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Answer(int(ended.value.code or 0), printed.out, printed.err)

    return call
