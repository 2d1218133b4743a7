"""Scenarios small enough to run hundreds of times, and the program called as a user would."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firstflight.engines.emulate import self_check
from firstflight.scenario import Scenario
from small import SMALL, Answer


def pytest_report_header() -> str:
    return f"load of the machine: {os.getloadavg()[0]:.1f}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "realtime":
            item.add_marker("realtime")


def pytest_collection_finish() -> None:
    # Modules and thousands of tests stay to the end: a tenth of all the time went to looking through them for garbage.
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def power_stays_on() -> Iterator[None]:
    """In the tests' own process nothing waits until it is on the disk; a descriptor that is not open stays an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests judge counts, order and rounds, on machines with other work: a self-check lets them be late for that."""
    monkeypatch.setattr(self_check, "RTT_TOLERANCE_S", 0.05)
    monkeypatch.setattr(self_check, "RATE_TOLERANCE", 0.1)


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
