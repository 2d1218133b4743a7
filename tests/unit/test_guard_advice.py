"""The advice.json that `guard run --advice` reads."""

import json
import sys
from pathlib import Path

import pytest

from firstflight.advise.advice import SCHEMA
from firstflight.cli.guard_run import _advised, _ceiling
from firstflight.cli.guard_undo import command as undo
from firstflight.errors import RequestError
from firstflight.guard.watchdog import STATUS


def ceiling(path: Path, iw: int | None = None) -> int:
    return _ceiling(iw, _advised(path)[0], path)


def advice(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "advice.json"
    path.write_text(
        json.dumps({"schema": SCHEMA, "decision": {"initial_window": 20}, "flows": {"handshake_bytes": 4000}} | changes)
    )
    return path


def test_the_recommended_window_is_the_ceiling(tmp_path: Path) -> None:
    assert ceiling(advice(tmp_path)) == 20
    assert ceiling(advice(tmp_path), 16) == 16
    with pytest.raises(RequestError, match=r"--iw 32: .* advises 20; drop one of the two"):
        ceiling(advice(tmp_path), 32)


def test_an_advice_of_another_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=f"has schema 3 and this firstflight reads {SCHEMA}; run `firstflight advise`"
    ):
        ceiling(advice(tmp_path, schema=3))


@pytest.mark.parametrize("changes", [{"schema": None, "decision": None}, {"decision": {"initial_window": "many"}}])
def test_a_file_that_is_no_advice_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(RequestError, match=r"no advice; name the advice\.json that `firstflight advise` wrote"):
        ceiling(advice(tmp_path, **changes))


@pytest.mark.skipif(sys.platform != "linux", reason="rtnetlink")
def test_after_undo_status_names_no_killed_guard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / STATUS).write_text("{}")
    undo(tmp_path)
    assert not (tmp_path / STATUS).exists()
    assert capsys.readouterr().out.startswith("0 routes removed")


def test_undo_with_a_directory_that_no_guard_has_used_says_so_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"elsewhere: no guard has run with this state; name its directory"):
        undo(tmp_path / "elsewhere")
    assert not list(tmp_path.iterdir())
