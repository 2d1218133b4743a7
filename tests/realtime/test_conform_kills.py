"""Whenever `firstflight conform` is killed or interrupted, nothing of it is left; it checks its requirements first."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import testbeds
from firstflight.cli.conform import command as conform
from firstflight.conform import oracle
from firstflight.engines.emulate.start import MARK
from firstflight.errors import MachineError

WITHIN_S = 10.0


def _mark_of_child(parent: int) -> str:
    """The mark of the testbed that this process began; waits until there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                stat = (directory / "stat").read_text().rpartition(")")[2].split()
                variables = (directory / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            marks = [variable.partition("=")[2] for variable in variables if variable.startswith(f"{MARK}=")]
            if stat[1] == str(parent) and marks:
                return marks[0]
        time.sleep(0.05)
    pytest.fail("no testbed began")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_recording(tmp_path: Path, how: signal.Signals) -> None:
    if testbeds.refusal() or not testbeds.has_tun():
        pytest.skip(testbeds.refusal() or "this machine has no TUN device")
    command = [sys.executable, "-c", "from firstflight.cli import main; main()", "conform", "--count", "60"]
    command += ["--cc", "reno", "--record", "scripts"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        mark = _mark_of_child(running.pid)
        # The first process's own, and a recorded kernel's.
        with testbeds.namespaces_end(mark, at_least=2):
            running.send_signal(how)
            assert testbeds.seconds_until_gone(mark) < WITHIN_S
        _, said = running.communicate(timeout=WITHIN_S)
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


class _WithoutTun:
    """A testbed on a machine that has no TUN device, which records nothing."""

    def __init__(self, *modules: str) -> None:
        self.connection = self

    def call(self, name: str, arguments: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        assert name == "examine"
        return {"kernel": "a kernel", "congestion_controls": ["reno"], "tun_refusal": "No such file or directory"}

    def close(self) -> None:
        """Nothing to end."""


def _refused(monkeypatch: pytest.MonkeyPatch, inside: Any) -> str:
    monkeypatch.setattr(oracle, "Inside", inside)
    with pytest.raises(MachineError) as refused:
        conform(5)
    return str(refused.value)


def test_without_tun_devices_it_says_so_before_it_records_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no TUN device" in _refused(monkeypatch, _WithoutTun)


def test_without_user_namespaces_it_says_so_before_it_records_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*modules: str) -> None:
        raise MachineError("there are no user namespaces", "...")

    assert "no user namespaces" in _refused(monkeypatch, refuse)
