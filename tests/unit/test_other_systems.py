"""Systems other than Linux: everything but features of Linux itself, and one sentence for that.

Windows is imitated: the modules, functions and flags that it lacks are taken away.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

_WINDOWS = """
import contextlib, io, json, os, platform, sys, types
# Libraries know other systems themselves; they are imported as they are here.
import dask.base, jinja2, numpy, polars, pydantic, rich.progress, scipy.stats, typer, vl_convert, xarray
from firstflight import _native
for name in ("open_device", "run_box", "run_capture", "run_wire", "CALIBRATED_BPS", "ClosedConnections"):
    delattr(_native, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios", "pyroute2"):
    sys.modules[name] = None
locked = []
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *of: locked.append(of))
for name in ("O_NOFOLLOW", "O_CLOEXEC", "pread", "sched_getaffinity", "geteuid", "getuid", "fork", "sysconf"):
    delattr(os, name)
sys.platform = "win32"
platform.system = lambda: "Windows"
from firstflight.cli import main
ended = []
for arguments in json.loads(sys.argv[1]):
    sys.argv, out, err = ["firstflight", *arguments], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code
    ended.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""
_LINUX = (
    ["run", "kernel-check"],
    ["shell", "examples.toml"],
    ["conform"],
    ["probe", "https://example.com"],
    ["guard", "run"],
    ["guard", "status"],
    ["guard", "undo"],
)


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def _firstflight(*commands: list[str], at: Path) -> list[Ended]:
    """One process for all: it takes two seconds to start."""
    program = [sys.executable, "-c", _WINDOWS, json.dumps(commands)]
    done = subprocess.run(program, cwd=at, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Ended(*of) for of in json.loads(done.stdout)]


@pytest.mark.slow
def test_a_study_runs_and_becomes_a_page_elsewhere(tmp_path: Path) -> None:
    commands = (["run", "rfc6928-rounds"], ["report", "runs/rfc6928-rounds"], ["explain", "--out", "explain.html"])
    for command, ended in zip(commands, _firstflight(*commands, at=tmp_path), strict=True):
        assert not ended.status, (command, ended.err)
    assert (tmp_path / "runs" / "rfc6928-rounds" / "report.html").exists()
    assert (tmp_path / "explain.html").exists()


def test_what_linux_does_is_refused_in_one_sentence_elsewhere_and_the_doctor_says_so(tmp_path: Path) -> None:
    *refused, doctor = _firstflight(*_LINUX, ["doctor"], at=tmp_path)
    for command, ended in zip(_LINUX, refused, strict=True):
        assert ended.status == 3, (command, ended.err)
        (line,) = ended.err.splitlines()
        assert "needs Linux's TCP, and this is Windows: use a Linux machine" in line, command
    assert "missing  linux" in doctor.out, doctor.out + doctor.err
    assert "namespaces" not in doctor.out
