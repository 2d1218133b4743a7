"""The commands of the runner to a testbed. A command is a function of the testbed and of the runner's arguments.

It returns values that JSON can hold. RequestError and MachineError reach the runner as they are.
"""

import ctypes
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.inside import devices, processes, settings
from firstflight.engines.emulate.inside.driven import Capture
from firstflight.engines.emulate.inside.nginx import listening
from firstflight.engines.emulate.inside.processes import Namespace, ending
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError

_FILES = Path("/dev/shm")
_NAMES = Path("/etc/hosts")
_MS_BIND = 0x1000
# By host; from `start_captures` on.
_CAPTURES: dict[str, Capture] = {}

Command = Callable[..., Any]
COMMANDS: dict[str, Command] = {}


def command(function: Command) -> Command:
    """Let the runner call the function by its name."""
    COMMANDS[function.__name__] = function
    return function


def kernel() -> str:
    """The kernel that runs here."""
    system = os.uname()
    return f"{system.sysname} {system.release} {system.version}"


@command
def examine(testbed: Testbed) -> dict[str, Any]:
    """The machine, and its permissions here."""
    return {
        "kernel": kernel(),
        "congestion_controls": settings.sysctl(settings.TCP / "tcp_available_congestion_control").split(),
        "cubic": settings.cubic(),
        "tun_refusal": devices.tun_refusal(),
    }


@command
def surroundings(testbed: Testbed) -> dict[str, str]:
    """The environment of a result, in addition to scenario and code: the kernel, CUBIC's parameters, and the settings
    that a new host begins with. Left out: the congestion controls, whose modules come when they are asked for, and
    the Fast Open key, which only root can read.
    """
    begun = Namespace("begun").call(settings.dump)
    kept = {name: value for name, value in begun.items() if not name.endswith(("_congestion_control", "_key"))}
    cubic = {f"tcp_cubic.{name}": value for name, value in settings.cubic().items()}
    return {"kernel": kernel()} | cubic | kept


@command
def abilities(testbed: Testbed) -> dict[str, Any]:
    """The features that work within a testbed's namespaces: each is tested; and the congestion controls that a route
    accepts.
    """
    tried = Namespace("tried")
    refusals = {"tun_refusal": devices.tun_refusal(), "packet_refusal": None}
    end = Namespace("the other end")
    try:
        end.call(devices.open_pair, tried, "end", "02:00:00:00:00:01")
        tried.call(settings.set_sysctls, "tried", settings.everywhere())
    except MachineError as error:
        refusals["packet_refusal"] = str(error)
    available = settings.sysctl(settings.TCP / "tcp_available_congestion_control").split()
    return refusals | {"usable_on_a_route": [name for name in available if tried.call(settings.route_takes, name)]}


@command
def build(testbed: Testbed, **parameters: Any) -> None:
    """Make the hosts and the box."""
    testbed.build(**parameters)


@command
def configure(testbed: Testbed, host: str, **parameters: Any) -> None:
    """Kernel settings of one host."""
    testbed.set(host, **parameters)


@command
def box(testbed: Testbed, do: str, **parameters: Any) -> dict[str, Any]:
    """The link box's answer."""
    return testbed.box.ask(do, **parameters)


@command
def dump(testbed: Testbed) -> list[dict[str, Any]]:
    """Every net.ipv4.tcp_* of the hosts with their own kernel, hosts that agree in all of them together."""
    groups: list[dict[str, Any]] = []
    asked = [(host, host.namespace.begin(settings.dump)) for host in testbed.hosts.values() if host.stack == "kernel"]
    for host, answer in asked:
        found = answer.result()
        for group in groups:
            if group["sysctls"] == found:
                group["hosts"].append(host.name)
                break
        else:
            groups.append({"hosts": [host.name], "sysctls": found})
    return groups


@command
def round_trip(testbed: Testbed, client: str, server: str, port: int = 7) -> float:
    """Seconds that a TCP handshake takes between two hosts with their own kernels: a small packet's round trip."""
    asked, asking = testbed.host(server), testbed.host(client)

    def listen() -> socket.socket:
        return socket.create_server((asked.address, port), family=asked.family)

    def connect() -> float:
        with socket.socket(asked.family) as client_socket:
            client_socket.settimeout(10)
            began = time.perf_counter()
            client_socket.connect((asked.address, port))
            return time.perf_counter() - began

    with asked.namespace.call(listen):
        return asking.namespace.call(connect)


@command
def routes(testbed: Testbed, host: str) -> dict[str, dict[str, Any]]:
    """The attributes of a host's routes, by destination."""
    return testbed.host(host).namespace.call(settings.routes)


@command
def look(testbed: Testbed, host: str) -> dict[str, Any]:
    """The kind of a host's device."""
    return testbed.host(host).namespace.call(devices.look)


@command
def run(testbed: Testbed, host: str, program: list[str], within_s: float) -> str:
    """The output of a program that runs on a host, as nginx and curl do, until it has ended.

    MachineError with the last line of its complaints if it cannot be started, does not end with status 0, or takes
    longer.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        process = processes.spawn(testbed.host(host).namespace, program, **pipes)
    except OSError as error:
        raise MachineError(f"{program[0]} cannot be run on host {host}: {error.strerror}") from None
    try:
        printed, complaints = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise MachineError(f"{program[0]} on host {host} did not end within {within_s:g} s") from None
    if process.returncode != 0:
        last = complaints.decode(errors="replace").strip().splitlines()[-1:] or ["it says nothing"]
        raise MachineError(f"{program[0]} on host {host} failed ({ending(process.returncode)}): {last[0]}")
    return printed.decode(errors="replace")


# The commands with which programs of the user's get into a testbed.


@command
def open_doors(testbed: Testbed, names: dict[str, list[str]]) -> dict[str, int]:
    """Give the hosts the names that programs find in /etc/hosts. Answers the descriptor of each host's network
    namespace, by host, in this process.
    """
    lines = [f"{testbed.host(host).address} {' '.join(called)}" for host, called in names.items()]
    file = _FILES / "hosts"
    file.write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *lines, ""]), encoding="ascii")
    if ctypes.CDLL(None, use_errno=True).mount(bytes(file), bytes(_NAMES), None, _MS_BIND, None) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"{_NAMES} cannot be replaced inside the testbed: {reason}")
    return {host.name: host.namespace.fd for host in testbed.hosts.values()}


@command
def keep_file(testbed: Testbed, name: str, content: str) -> str:
    """Keep a file that vanishes with the testbed; its path, for programs of the user's."""
    file = _FILES / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return str(file)


@command
def ports(testbed: Testbed, host: str) -> list[int]:
    """The ports at which programs on a host accept connections."""
    return sorted(testbed.host(host).namespace.call(listening))


@command
def start_captures(testbed: Testbed, hosts: list[str]) -> None:
    """Keep the headers of packets at the devices of these hosts, from now on."""
    for host in hosts:
        _CAPTURES[host] = Capture(testbed.host(host).namespace, testbed.mtu, testbed.on_death)


@command
def write_packets(testbed: Testbed, host: str, path: str) -> dict[str, Any]:
    """Write the packets kept by a host's capture as pcapng; returns `packets`, their number."""
    return _CAPTURES[host].ask("pcapng", path=path)


@command
def captured(testbed: Testbed, origin_ns: int) -> dict[str, Any]:
    """The answers of `Capture.take`, by host."""
    return {host: capture.take(origin_ns, 0) for host, capture in _CAPTURES.items()}
