"""Populations: the cost of a short connection when there are ten thousand to ten million in each of two arms."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.process import run
from bench.row import Goal, Row
from bench.work import DIRECTORY
from firstflight.records.machine import usable_cpus

ARMS = (3, 10)
"""Initial windows, in segments."""

CONNECTIONS = (10_000, 100_000, 1_000_000, 10_000_000)
"""In each arm."""

_LEAST_USERS, _REPLICATES = 1_000, 100
_BUSY_SHARE = 0.9


@dataclass(frozen=True)
class Measured:
    """The duration of a run of both arms: from the request to the last record on disk, without the start of Python.

    `memory_bytes` is the most that the process ever held, Python and its libraries included; `connections` counts both
    arms.
    """

    connections: int
    wall_s: float
    cpu_s: float
    memory_bytes: int


def replicates_of(connections: int) -> tuple[int, int]:
    """The numbers of replicates and of users: a hundred, but of 1,000 users at least."""
    users = max(_LEAST_USERS, connections // _REPLICATES)
    return connections // users, users


def measure(connections: int, jobs: int) -> Measured:
    """Run both arms in a fresh process on this number of threads, with aggregates kept."""
    replicates, users = replicates_of(connections)
    job = {
        "scenario": str(DIRECTORY / "scenarios" / "avgdc_search.toml"),
        "users": users,
        "replicates": replicates,
        "initial_windows": ARMS,
        "jobs": jobs,
    }
    finished = run([sys.executable, str(Path(__file__).with_name("population_worker.py"))], json.dumps(job))
    return Measured(**json.loads(finished.output))


def rows() -> list[Row]:
    """For each number of connections: seconds, connections a core and second, cost of one, peak memory."""
    cores = usable_cpus()
    found: list[Measured] = []
    for connections in CONNECTIONS:
        if sys.stderr.isatty():
            print(f"measuring {connections:,} connections in each of {len(ARMS)} arms ...", file=sys.stderr)
        found.append(measure(connections, cores))
    return rows_of(found, cores)


def rows_of(found: list[Measured], cores: int) -> list[Row]:
    """The rows of the measurements, the most connections last: each cost is compared with theirs."""
    last = found[-1]
    made = []
    for measured in found:
        title = f"population, {len(ARMS)} x {measured.connections // len(ARMS):,}"
        busy = measured.cpu_s / (measured.wall_s * cores)
        note = f"IW {' and '.join(map(str, ARMS))}, {cores} threads, {busy:.0%} busy"
        if busy < _BUSY_SHARE:
            note += ": others used the machine, or there was too little to do"
        is_last = measured is last
        made += [
            Row(
                title,
                measured.wall_s,
                "s",
                goals=(Goal(33, at_least=False), Goal(20, at_least=False)) if is_last else (),
                goals_of_ratio=False,
                note=note,
            ),
            Row(f"{title}, rate", measured.connections / measured.cpu_s, "connections / CPU s"),
            Row(
                f"{title}, cost",
                _cost_us(measured),
                "CPU us / connection",
                peer=None if is_last else f"{last.connections // len(ARMS):,}",
                peer_value=None if is_last else _cost_us(last),
            ),
            Row(
                f"{title}, memory",
                measured.memory_bytes / 2**20,
                "MiB",
                goals=(Goal(1024, at_least=False),),
                goals_of_ratio=False,
            ),
        ]
    return made


def _cost_us(measured: Measured) -> float:
    return 1e6 * measured.cpu_s / measured.connections
