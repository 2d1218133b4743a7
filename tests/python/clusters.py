"""Dask schedulers and workers as processes of their own, started as a user would, and found again to be killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

WITHIN_S = 120


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for what must happen, however busy the machine is."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@dataclass
class Cluster:
    """A scheduler and the workers that were added to it."""

    scheduler: subprocess.Popen[str]
    address: str
    scratch: Path
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def on(self) -> str:
        return self.address.replace("tcp://", "dask://").replace("tls://", "dask+tls://")

    def add_worker(self, *options: str) -> subprocess.Popen[str]:
        """One thread, and nobody who would start it again."""
        worker = _dask(
            "worker",
            self.address,
            *(
                "--nthreads",
                "1",
                "--no-nanny",
                "--dashboard-address",
                "127.0.0.1:0",
                "--local-directory",
                str(self.scratch),
            ),
            *options,
        )
        self.workers.append(worker)
        _read_until(worker, "Registered to")
        return worker


@contextlib.contextmanager
def cluster(scratch: Path, workers: int, protocol: str = "tcp") -> Iterator[Cluster]:
    address = ("--protocol", protocol, "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    scheduler = _dask("scheduler", *address, "--no-show")
    made = Cluster(scheduler, "", scratch)
    try:
        line = _read_until(scheduler, "Scheduler at")
        found = re.search(r"t(cp|ls)://[\d.:]+", line)
        assert found, line
        made.address = found.group()
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        for process in (*made.workers, scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()


def children_of(pid: int) -> list[psutil.Process]:
    """Dask's worker processes below a process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            child for child in psutil.Process(pid).children(recursive=True) if "spawn_main" in " ".join(_command(child))
        ]
    return []


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _dask(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def _read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"it ended without saying {text}")
