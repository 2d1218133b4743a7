"""Files that the guard reads and keeps: damaged, endless, of another user, or of a guard that is dead."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.errors import MachineError, RequestError
from firstflight.guard.groups import AsTable
from firstflight.guard.journal import Journal, is_held

Program = Callable[..., Any]
STATUS = {
    "pid": 7,
    "written_at": 4e9,
    "running_s": 3.0,
    "acts": True,
    "policy": {"name": "static", "ceiling": 20},
    "connections": {"reported": 1, "passed_over": 0, "beyond": 0, "dropped": 0},
    "uncertain": 0,
    "unfinished_handshakes": 0,
    "timeouts_unknown": 0,
    "windows_set": 5,
    "windows_decided": 5,
    "hands_off": 0,
    "barred": "`ip rule` has rule 100 in addition to local, main and default",
    "route_changes": 12,
    "route_changes_in_a_minute": 4,
    "windows_waiting": 2,
    "groups": [],
    "groups_in_all": 0,
}
DAMAGED = ["", "{", "[]", "7", "null", '{"written_at": 1}', '{"written_at": "x"}', "[" * 100_000, "\0" * 100]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


def test_the_state_is_for_the_guards_user_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    journal.close()


def test_a_state_that_others_can_write_or_that_has_links_is_refused(state: Path, tmp_path: Path) -> None:
    (state / "status.json.new").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineError, match=r"status\.json\.new: is a link"):
        Journal(state)
    (state / "status.json.new").unlink()
    state.chmod(0o777)
    with pytest.raises(MachineError, match="other users can write there"):
        Journal(state)
    state.chmod(0o700)
    (tmp_path / "link").symlink_to(state)
    if os.geteuid() == 0:
        with pytest.raises(MachineError, match="link: is a link"):
            Journal(tmp_path / "link")


def test_the_status_of_a_dead_guard_says_so_and_what_to_run(firstflight: Program, state: Path) -> None:
    (state / "status.json").write_text(json.dumps(STATUS))
    dead = firstflight("guard", "status", "--state", state)
    assert dead.status == 1
    assert dead.err == f"the guard with pid 7 was killed; run `firstflight guard undo --state {state}`\n"
    journal = Journal(state)
    assert is_held(state)
    running = firstflight("guard", "status", "--state", state)
    journal.close()
    assert running.status == 0
    assert "`ip rule` has rule 100 in addition to local, main and default" in " ".join(running.out.split())
    assert "12 changes of routes, 4 in a minute" in " ".join(running.out.split())


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_status_is_one_sentence(firstflight: Program, state: Path, text: str) -> None:
    (state / "status.json").write_text(text)
    found = firstflight("guard", "status", "--state", state)
    assert found.status == 2
    assert "not the status of a guard" in found.err
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize("text", [*DAMAGED, '{"schema": 5, "decision": {"initial_window": 1e999}}'])
def test_a_damaged_advice_is_one_sentence(firstflight: Program, tmp_path: Path, text: str) -> None:
    (tmp_path / "advice.json").write_text(text)
    found = firstflight("guard", "run", "--advice", tmp_path / "advice.json", "--state", tmp_path / "state")
    assert found.status == 2
    assert "no advice; name the advice.json" in found.err


def test_devices_and_pipes_are_refused_at_once(firstflight: Program, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        for option in ("--advice", "--as-file"):
            found = firstflight("guard", "run", option, path, "--state", tmp_path / "state")
            assert found.status == 2
            assert "is a pipe or a device" in found.err


@pytest.mark.parametrize("line", ["192.0.2.0/24 AS99999999999", "192.0.2.0/24 AS-1", "192.0.2.1/24 AS1", "x" * 10_000])
def test_a_line_that_is_no_prefix_with_an_as_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "as").write_text(line + "\n")
    with pytest.raises(RequestError, match="is no prefix with an AS") as refused:
        AsTable.read(tmp_path / "as")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("command", [["run"], ["rehearse", "log"]])
@pytest.mark.parametrize("segments", ["0", "-5", "1001", "99999999999"])
def test_a_window_outside_1_to_1000_is_refused(firstflight: Program, command: list[str], segments: str) -> None:
    found = firstflight("guard", *command, "--iw", segments)
    assert found.status == 2
    assert "Invalid value for '--iw': Input should be " in found.err
    assert "than or equal to 1" in found.err
