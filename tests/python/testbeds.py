"""A scenario for testbeds, whether this machine makes them, and what of one is left."""

import contextlib
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from firstflight.engines.emulate import probe
from firstflight.engines.emulate.layout import Layout, lay_out
from firstflight.engines.emulate.start import MARK, Inside
from firstflight.errors import MachineError
from firstflight.scenario import Scenario

DELAY_S = 0.02
CHAIN = """
name = "one link"
duration = "10s"

[tcp]
profile = "linux"

[network]
topology = "chain"
links = { rate = "10Mbit", delay = "20ms", queue = "100p" }

[[application]]
kind = "file_transfer"
size = "100kB"
"""


def one_link() -> Layout:
    """Two hosts, a link of 10 Mbit/s between, 20 ms each way."""
    return lay_out(Scenario.from_toml(CHAIN))


def star(users: int) -> Layout:
    """A server behind that link, and users with links of 1 Mbit/s and 1 ms each way."""
    hub = CHAIN.replace('"chain"', '"star"').replace("links =", "hub =")
    spokes = f'spokes = {{ count = {users}, rate = "1Mbit", delay = "1ms", queue = "10p" }}\n\n[[application]]'
    written = hub.replace("[[application]]", spokes) + f"clients = {users}\n"
    return lay_out(Scenario.from_toml(written))


@cache
def refusal() -> str | None:
    """Why this machine makes no testbed, or None if it does."""
    try:
        Inside().close()
    except MachineError as error:
        return str(error)
    return None


@cache
def has_tun() -> bool:
    """Whether this user may have TUN devices here."""
    return next(found.ok for found in probe.abilities() if found.name == "tun")


def processes_of(mark: str, variable: str = MARK) -> dict[int, list[str]]:
    """The testbed's processes, by their numbers here, each with its command line.

    They are told by what the environment variable is in them, and by their session: not every program of a testbed
    keeps the environment.
    """
    wanted = f"{variable}={mark}".encode()
    found, sessions, others = {}, set(), {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                session = (directory / "stat").read_text().rpartition(")")[2].split()[3]
                command = (directory / "cmdline").read_text().split("\0")
                others[int(directory.name)] = session, command
                if wanted in (directory / "environ").read_bytes().split(b"\0"):
                    found[int(directory.name)] = command
                    # unshare begins the session of a testbed; the runner is in somebody else's.
                    if session == directory.name:
                        sessions.add(session)
            except OSError:
                continue
    return found | {pid: command for pid, (session, command) in others.items() if session in sessions}


def in_session(session: int) -> list[int]:
    """The processes of a session, whose first one may be gone; one that only waits to be asked for its status is."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, its = (directory / "stat").read_text().rpartition(")")[2].split()[:4]
                if its == str(session) and state != "Z":
                    found.append(int(directory.name))
    return found


def process(mark: str, role: str, variable: str = MARK) -> int:
    """The number of one of a testbed's processes; LookupError while there is none of that role."""
    for pid, command in processes_of(mark, variable).items():
        program = Path(command[0]).name
        roles = {
            "unshare": program == "unshare",
            "first process": program != "unshare" and "firstflight.engines.emulate.inside" in command,
            "box": "run_box" in " ".join(command),
            "capture": "run_capture" in " ".join(command),
            "nginx": program == "nginx",
            "curl": program == "curl",
            "client": command[2].endswith("inside/requests.py") if len(command) > 2 else False,
        }
        if roles[role]:
            return pid
    raise LookupError(f"the testbed has no {role}: {processes_of(mark, variable)}")


def namespaces(processes: Iterable[int] | None = None) -> set[str]:
    """The network namespaces that the threads of these processes are in, or those of all that are to be seen."""
    if processes is None:
        processes = [int(directory.name) for directory in Path("/proc").iterdir() if directory.name.isdigit()]
    found = set()
    for pid in processes:
        for namespace in Path(f"/proc/{pid}/task").glob("*/ns/net"):
            with contextlib.suppress(OSError):
                found.add(str(namespace.readlink()))
    return found


def devices() -> set[str]:
    """The network devices to be seen from here."""
    return {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}


def seconds_until_gone(mark: str, variable: str = MARK) -> float:
    """How long from now until no process of the testbed is left; fails after 10 s."""
    began = time.monotonic()
    while left := processes_of(mark, variable):
        if time.monotonic() - began > 10:
            raise AssertionError(f"still there after 10 s: {left}")
        time.sleep(0.01)
    return time.monotonic() - began


def columns(table: dict[str, tuple[str, bytes]]) -> dict[str, list[Any]]:
    """A table of a control socket's answer, as lists; NaN is null."""
    return {
        name: [None if value != value else value for value in np.frombuffer(content, dtype).tolist()]
        for name, (dtype, content) in table.items()
    }
