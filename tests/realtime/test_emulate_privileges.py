"""Programs of a testbed that root has started may do nothing that any other user could not."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import emulations
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.start import search_path
from testbeds import one_link, refusal

Program = Callable[..., Any]

pytestmark = [
    pytest.mark.skipif(refusal() is not None, reason=f"no testbed here: {refusal()}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are about root's testbeds"),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "download.toml"


@pytest.fixture
def secret() -> Iterator[Path]:
    """A file as /etc/shadow is: its owner's alone, where everyone may go."""
    path = Path("/var/tmp") / f"firstflight-{os.getpid()}"
    path.write_text("secret\n")
    path.chmod(0o600)
    yield path
    path.unlink()


def test_a_program_in_a_testbed_of_root_cannot_read_roots_files(secret: Path) -> None:
    script = f"id -u; cat {secret} 2>&1; grep CapEff /proc/self/status"
    with Lab(one_link()) as lab:
        said = lab.call("run", host="node[0]", program=["sh", "-c", script], within_s=10.0)
    assert "secret\n" not in said.splitlines()
    assert "Permission denied" in said
    assert "CapEff:\t0000000000000000" in said


def test_a_program_in_a_testbed_does_not_see_the_callers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_SECRET", "token")
    with Lab(one_link()) as lab:
        said = lab.call(
            "run", host="node[0]", program=["sh", "-c", "env; cat /proc/1/environ 2>&1; true"], within_s=10.0
        )
    assert "token" not in said
    assert "Permission denied" in said


def test_a_false_nginx_reads_nothing_of_roots(
    firstflight: Program, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulations.skip_unless_possible()
    shelf = Path("/var/tmp") / f"firstflight-bin-{os.getpid()}"
    shelf.mkdir()
    taken = shelf / "taken"
    taken.touch()
    taken.chmod(0o666)
    false = shelf / "nginx"
    false.write_text(f"#!/bin/sh\n(id -u; env; cat {secret}) >> {taken} 2>&1\nexit 1\n")
    false.chmod(false.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("PATH", f"{shelf}:{os.environ['PATH']}")
    monkeypatch.setenv("FIRSTFLIGHT_SECRET", "token")
    try:
        ran = firstflight("run", EXAMPLE, "--engine", "emulate", "--replicates", 1, "--out", tmp_path / "out")
        firstflight("doctor")
        said = taken.read_text().splitlines()
    finally:
        for path in shelf.iterdir():
            path.unlink()
        shelf.rmdir()
    assert ran.status == 3
    assert "nginx on node[0] does not start" in ran.err
    # It ran in the testbed and was asked for its version outside, and never with anything of root's.
    assert {line for line in said if line.isdigit()} == {"1", "65534"}
    assert not [line for line in said if line == "secret" or "token" in line]
    assert any("Permission denied" in line for line in said)


def test_a_relative_directory_of_the_path_is_not_looked_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    assert all(Path(directory).is_absolute() for directory in search_path().split(":"))
    assert search_path().startswith(os.environ["PATH"].split(":")[3])


def test_roots_testbed_works_whatever_its_umask(firstflight: Program, tmp_path: Path) -> None:
    emulations.skip_unless_possible()
    before = os.umask(0o077)
    try:
        ran = firstflight("run", EXAMPLE, "--engine", "emulate", "--replicates", 1, "--out", tmp_path / "out")
    finally:
        os.umask(before)
    assert ran.status == 0, ran.err
