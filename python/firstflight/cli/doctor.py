"""`firstflight doctor`: features of this machine, and how to fix each one that is missing."""

import contextlib
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import typer

from firstflight.cli.options import Json
from firstflight.cli.terminal import show
from firstflight.engines import NAMES
from firstflight.errors import FirstflightError, MachineError
from firstflight.records import machine

# Below this much free space a large run could fill the disk.
_ENOUGH_DISK_BYTES = 1_000_000_000
_PATIENCE_S = 20.0
_OF_LINUX = "run --engine emulate, shell, conform, probe, guard"


@dataclass(frozen=True)
class Finding:
    """One feature. `fix` is the command that adds it where it is missing."""

    name: str
    needed_for: str
    found: str
    ok: bool
    required: bool = False
    fix: str = ""


def command(as_json: Json = False) -> None:
    """List the features of this machine and how to fix each one that is missing."""
    findings = [*_required(), *_optional(), *_emulation()]
    if as_json:
        print(json.dumps([asdict(finding) | ({"fix": ""} if finding.ok else {}) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = "ok" if finding.ok else "missing"
            show(f"{mark:7}  {finding.name:14} {finding.found}")
            if not finding.ok:
                show(f"         {'':14} needed for {finding.needed_for}; fix:")
                # A break in a command would be copied with it.
                print(f"         {'':14} {finding.fix}")
    if any(finding.required and not finding.ok for finding in findings):
        raise typer.Exit(MachineError.exit_status)


def _required() -> list[Finding]:
    return [
        Finding("python", "everything", platform.python_version(), True, True),
        _native(),
        Finding("processors", "speed", f"{machine.usable_cpus()} usable", True),
        Finding("memory", "large runs", _gib(machine.memory_bytes()), True),
        _disk(),
    ]


def _optional() -> list[Finding]:
    ns2, tshark = shutil.which("ns"), shutil.which("tshark")
    return [
        _extra("figures", "reports, scorecard, --plot", "vl-convert-python"),
        _extra("studies", "run STUDY, claims, scorecard", "xarray", "scipy"),
        _extra("cluster", "run --on dask", "distributed"),
        _tool("rust", "building from source", ("cargo", "--version"), "install Rust 1.85 or later from rustup.rs"),
        Finding("tshark", "some tests", tshark or "not found", tshark is not None, fix="apt-get install tshark"),
        Finding("ns-2", "make bench", ns2 or "not found", ns2 is not None, fix="apt-get install ns2"),
        _tool(
            "ns-3",
            "make bench",
            ("pkg-config", "--modversion", "ns3-core", "ns3-internet"),
            "apt-get install libns3-dev pkg-config g++",
        ),
    ]


def _emulation() -> list[Finding]:
    if platform.system() != "Linux":
        return [Finding("linux", _OF_LINUX, platform.system(), False, fix="use a Linux machine or a virtual one")]
    from firstflight.engines.emulate.prepared import has_ml_dsa

    real = has_ml_dsa()
    state, fix = "pyOpenSSL" if real else "padded certificates instead", 'pip install "firstflight[pq]"'
    return [
        *_namespaces(),
        _realtime(),
        _program("nginx", "apt-get install nginx-light"),
        _curl(),
        Finding("ML-DSA", "real post-quantum chains in run --engine emulate", state, real, fix=fix),
        _offloads(),
    ]


_EMULATION = "run --engine emulate"


def _namespaces() -> list[Finding]:
    """The features that work within a testbed's namespaces, each tried."""
    from firstflight.engines.emulate.lab import TUN_FIX
    from firstflight.engines.emulate.start import Inside

    try:
        inside = Inside()
    except MachineError as error:
        return [Finding("namespaces", _EMULATION, error.reason, False, fix=error.fix)]
    try:
        answer = inside.connection.call("abilities", {}, _PATIENCE_S)
    except FirstflightError as error:
        fix = "run as root on a kernel with veth and packet sockets"
        return [Finding("namespaces", _EMULATION, str(error), False, fix=fix)]
    finally:
        inside.close()
    tun, packets, usable = answer["tun_refusal"], answer["packet_refusal"], answer["usable_on_a_route"]
    exact = "a link emulator exact to microseconds; packet sockets are used without it"
    ok = {"reno", "cubic"} <= set(usable)
    controls = f"{', '.join(usable)} on a route"
    return [
        Finding("namespaces", _EMULATION, "user, network, PID and mount namespaces", True),
        Finding("tun", exact, tun or "TUN devices", tun is None, fix=TUN_FIX),
        Finding(
            "packets",
            f"{_EMULATION} without TUN",
            packets or "veth and AF_PACKET",
            packets is None,
            fix="modprobe -a veth af_packet",
        ),
        Finding("congestion", _EMULATION, controls, ok, fix="modprobe tcp_cubic"),
    ]


def _realtime() -> Finding:
    from firstflight.engines.emulate.lab import fix, make_realtime

    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        pidfd = os.pidfd_open(waiting.pid)
        try:
            refusal = make_realtime(pidfd)
        finally:
            os.close(pidfd)
            waiting.kill()
    needed_for = "runs without host stalls on a busy machine"
    return Finding("real time", needed_for, refusal or "SCHED_FIFO", refusal is None, fix=fix())


def _program(name: str, fix: str) -> Finding:
    from firstflight.engines.emulate.start import version_of

    state, ok = version_of(name)
    return Finding(name, _EMULATION, state, ok, fix=fix)


def _curl() -> Finding:
    from firstflight.engines.emulate.start import answer_of

    there = _program("curl", "apt-get install curl")
    if not there.ok:
        return there
    # Both came within a few releases of one another; it matters only that they work.
    options = ("-q", "--silent", "--parallel", "--output", os.devnull, "--write-out", "%{json}")
    try:
        json.loads(answer_of("curl", *options, f"file://{os.devnull}"))
    except (MachineError, ValueError):
        state = f"{there.found}, without --parallel or %{{json}}"
        return Finding("curl", _EMULATION, state, False, fix="install curl 7.70 or later")
    return replace(there, found=" ".join(there.found.split()[:2]))


def _offloads() -> Finding:
    """The interfaces whose queue holds GSO packets; nothing is missing either way."""
    from firstflight.engines.emulate.inside.settings import offloads_on

    segmenting = []
    for _, device in socket.if_nameindex():
        with contextlib.suppress(OSError):
            if device != "lo" and any("segmentation" in name for name in offloads_on(device)):
                segmenting.append(device)
    state = "no interface segments packets: a queue entry is one segment"
    if segmenting:
        state = (
            f"on, for {', '.join(segmenting)}: a queue entry is a packet of several segments; simulate with gso = true"
        )
    return Finding("offloads", "comparing short queues", state, True)


def _native() -> Finding:
    fix = "make setup"
    try:
        from firstflight import _native

        builds = ", ".join(f"{name} {machine.code_version(name)}" for name in NAMES)
        state = f"{_native.version()}, builds: {builds}"
    except ImportError as error:
        return Finding("native module", "every command", str(error), False, True, fix)
    ok = _native.version() == machine.version()
    return Finding("native module", "every command", state, ok, True, "" if ok else fix)


def _disk() -> Finding:
    free = shutil.disk_usage(Path()).free
    ok = free >= _ENOUGH_DISK_BYTES
    return Finding("disk here", "large runs", f"{_gib(free)} free", ok, fix="make room, or use --out")


def _package(name: str) -> str:
    """Its version, empty if it is not installed. It is not imported: that takes half a second."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _extra(name: str, needed_for: str, *packages: str) -> Finding:
    versions = {package: _package(package) for package in packages}
    state = ", ".join(f"{package} {version or 'not found'}" for package, version in versions.items())
    ok = all(versions.values())
    return Finding(name, needed_for, state, ok, fix=f'pip install "firstflight[{name}]"')


def _tool(name: str, needed_for: str, command: tuple[str, ...], fix: str) -> Finding:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding(name, needed_for, "not found", False, fix=fix)
    return Finding(name, needed_for, done.stdout.strip().partition("\n")[0], True)


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**30:.1f} GiB"
