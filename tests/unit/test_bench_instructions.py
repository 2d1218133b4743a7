"""The count of instructions a packet: the value that it is compared with, and the message where nothing can be
counted.
"""

import shutil
import tomllib

import pytest

from bench import instructions, work
from bench.row import Row
from firstflight.errors import MachineError

FIGURES = tomllib.loads((work.DIRECTORY / "instructions.toml").read_text())


def test_every_work_has_a_committed_figure():
    assert list(FIGURES["instructions"]) == [counted.name for counted in instructions.WORKS]


def test_a_plan_is_as_long_as_it_is_asked_to_be():
    bulk, _, _, pages, searches = (counted.plan(7) for counted in instructions.WORKS)

    assert bulk["duration_ns"] == pages["duration_ns"] == 7_000_000_000
    assert searches["population"]["users"] == 7


@pytest.mark.parametrize(("share", "status"), [(1.0299, 0), (1.0301, 1), (0.5, 0)])
def test_three_per_cent_more_than_committed_is_exit_status_1(monkeypatch, capsys, share, status):
    row = Row("bulk_even", share * 2000, instructions.UNIT, peer="committed", peer_value=2000.0)
    monkeypatch.setattr(instructions, "rows", lambda: [row])

    assert instructions.main() == status
    assert "bulk_even" in capsys.readouterr().out


def test_without_valgrind_the_error_names_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(MachineError, match="sudo apt-get install valgrind"):
        instructions.rows()


def test_with_another_compiler_nothing_is_compared(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(instructions, "_said", lambda command: "rustc 1.0.0 (a59de37e9 2015-05-13)")

    with pytest.raises(MachineError, match=f"those of rustc {FIGURES['rustc']}, and this is 1.0.0"):
        instructions.rows()
