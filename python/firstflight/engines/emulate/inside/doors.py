"""The commands with which programs of the user's get into a testbed: host names, and the way into each namespace."""

import ctypes
import os
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.inside.commands import command
from firstflight.engines.emulate.inside.driven import Capture
from firstflight.engines.emulate.inside.nginx import listening
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError

_FILES = Path("/dev/shm")
_NAMES = Path("/etc/hosts")
_MS_BIND = 0x1000
# By host; from `start_captures` on.
_CAPTURES: dict[str, Capture] = {}


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
