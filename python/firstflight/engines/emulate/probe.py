"""Features of this machine that a testbed needs, found by trying, and how to fix those that are missing."""

import importlib.metadata
import json
import os
import platform
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from firstflight.engines.emulate.lab import TUN_FIX, fix, make_realtime
from firstflight.engines.emulate.start import Inside, harmless, search_path
from firstflight.errors import FirstflightError, MachineError

_PATIENCE_S = 20.0
_PROGRAMS = {"nginx": ("-v",), "curl": ("--version",)}
# The extra `pq`: packages and their first versions that can.
_ML_DSA_BY = {"cryptography": 50, "pyOpenSSL": 26}


@dataclass(frozen=True)
class Ability:
    """One feature that a testbed needs or profits from; `fix` is empty if it is there."""

    name: str
    state: str
    ok: bool
    fix: str


def abilities() -> Iterator[Ability]:
    """Everything looked at, one after the other."""
    if sys.platform != "linux":
        yield Ability("namespaces", f"{platform.system()} has none", False, "use Linux, in a virtual machine for one")
        return
    yield from _namespaces()
    yield _realtime()
    yield _program("nginx", ("-v",), "apt-get install nginx-light")
    yield _curl()
    backend = "pyOpenSSL" if has_ml_dsa() else "padded certificates instead"
    yield Ability("ML-DSA", backend, has_ml_dsa(), "" if has_ml_dsa() else 'pip install "firstflight[pq]"')


def surroundings() -> dict[str, str]:
    """The environment of a run's records besides scenario and code, by name. MachineError without a testbed."""
    inside = Inside()
    try:
        answer: dict[str, str] = inside.connection.call("surroundings", {}, _PATIENCE_S)
    finally:
        inside.close()
    programs = {name: _program(name, option, "").state for name, option in _PROGRAMS.items()}
    return answer | programs | {"tls": f"{ssl.OPENSSL_VERSION}, {'with' if has_ml_dsa() else 'without'} ML-DSA"}


@cache
def has_ml_dsa() -> bool:
    """Whether the extra `pq` is installed."""
    try:
        return all(int(importlib.metadata.version(name).split(".")[0]) >= least for name, least in _ML_DSA_BY.items())
    except importlib.metadata.PackageNotFoundError:
        return False


def _namespaces() -> Iterator[Ability]:
    try:
        inside = Inside()
    except MachineError as error:
        yield Ability("namespaces", error.reason, False, error.fix)
        return
    try:
        answer = inside.connection.call("abilities", {}, _PATIENCE_S)
    except FirstflightError as error:
        yield Ability("namespaces", str(error), False, "run as root on a kernel with veth and packet sockets")
        return
    finally:
        inside.close()
    yield Ability("namespaces", "user, network, PID and mount namespaces", True, "")
    for name, key, there, command in (
        ("tun", "tun_refusal", "TUN devices", TUN_FIX),
        ("packets", "packet_refusal", "veth and AF_PACKET", "modprobe -a veth af_packet"),
    ):
        refusal = answer[key]
        yield Ability(name, refusal or there, refusal is None, command if refusal else "")
    usable = answer["usable_on_a_route"]
    ok = {"reno", "cubic"} <= set(usable)
    yield Ability("congestion", f"{', '.join(usable)} on a route", ok, "" if ok else "modprobe tcp_cubic")


def _realtime() -> Ability:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        pidfd = os.pidfd_open(waiting.pid)
        try:
            refusal = make_realtime(pidfd)
        finally:
            os.close(pidfd)
            waiting.kill()
    return Ability("real time", refusal or "SCHED_FIFO", refusal is None, fix() if refusal else "")


def _program(name: str, version: tuple[str, ...], command: str) -> Ability:
    path = shutil.which(name, path=search_path())
    if path is None:
        return Ability(name, "not found", False, command)
    try:
        done = subprocess.run(
            [path, *version], capture_output=True, text=True, timeout=_PATIENCE_S, check=True, **harmless()
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Ability(name, str(error), False, command)
    return Ability(name, (done.stdout or done.stderr).strip().splitlines()[0], True, "")


def _curl() -> Ability:
    there = _program("curl", ("--version",), "apt-get install curl")
    if not there.ok:
        return there
    # Both came within a few releases of one another; it matters only that they work.
    program = shutil.which("curl", path=search_path()) or "curl"
    options = ("-q", "--silent", "--parallel", "--output", os.devnull, "--write-out", "%{json}")
    try:
        command = [program, *options, f"file://{os.devnull}"]
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=True, **harmless())
        json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        reason = f"{there.state}, without --parallel or %{{json}}"
        return Ability("curl", reason, False, "install curl 7.70 or later")
    return Ability("curl", " ".join(there.state.split()[:2]), True, "")
