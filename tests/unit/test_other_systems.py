"""Systems other than Linux: everything but features of Linux itself, and one sentence for that.

Windows is imitated: the modules, functions and flags that it lacks are taken away.
"""

import subprocess
import sys
from pathlib import Path

import pytest

_WINDOWS = """
import os, platform, sys, types
# Libraries know other systems themselves; they are imported as they are here.
import altair, dask.base, jinja2, numpy, polars, pydantic, rich.progress, scipy.stats, typer, vl_convert, xarray
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
sys.argv = ["firstflight", *sys.argv[1:]]
from firstflight.cli import main
main()
"""


def _firstflight(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _WINDOWS, *arguments]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)


def test_a_study_runs_and_becomes_a_page_elsewhere(tmp_path: Path) -> None:
    for arguments in (
        ["run", "rfc6928-rounds"],
        ["report", "runs/rfc6928-rounds"],
        ["explain", "--out", "explain.html"],
    ):
        done = _firstflight(*arguments, at=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "rfc6928-rounds" / "report.html").exists()
    assert (tmp_path / "explain.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "kernel-check"],
        ["shell", "examples.toml"],
        ["conform"],
        ["probe", "https://example.com"],
        ["guard", "run"],
        ["guard", "status"],
        ["guard", "undo"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_linux_does_is_refused_in_one_sentence_elsewhere(arguments: list[str], tmp_path: Path) -> None:
    done = _firstflight(*arguments, at=tmp_path)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert "needs Linux's TCP, and this is Windows: use a Linux machine" in line


def test_the_doctor_names_linux_as_missing_elsewhere(tmp_path: Path) -> None:
    done = _firstflight("doctor", at=tmp_path)
    assert "missing  linux" in done.stdout, done.stdout + done.stderr
    assert "namespaces" not in done.stdout
