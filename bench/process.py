"""Fresh processes and their cost."""

import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError


@dataclass(frozen=True)
class Finished:
    """The output of a process, and its user and system CPU in seconds."""

    output: str
    cpu_s: float


def run(command: Sequence[str], stdin: str = "") -> Finished:
    """Run a command to its end in a separate process. Raises MachineError, with its last line, if it fails.

    The benchmark runs one process at a time, so the children's usage before and after is this child's.
    """
    before = _children_cpu_s()
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing printed"]
        raise MachineError(f"{command[0]} ended with status {done.returncode}: {said[-1]}")
    return Finished(done.stdout, _children_cpu_s() - before)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Simulated:
    """A worker's results; sums over all its runs, except `links` to `page_delays_s`, of its first plan.

    cpu_s and wall_s hold the simulation calls only: no interpreter start, no imports.
    `links` maps a link's name to its `sent_packets`, `sent_bytes` and `dropped_packets`, over all replicates;
    `retransmissions` counts retransmitted data packets.
    """

    cpu_s: float
    wall_s: float
    memory_bytes: int
    events: int
    packet_hops: int
    data_packets: int
    links: Mapping[str, Mapping[str, int]]
    retransmissions: int
    page_delays_s: Sequence[float]


def simulate(
    plans: Sequence[Mapping[str, Any]],
    *,
    replicates: int = 1,
    repeat: int = 1,
    threads: int = 1,
    seed: int = 1,
) -> Simulated:
    """Run plans in a fresh worker process, `repeat` times over, on this number of threads."""
    job = {"plans": plans, "replicates": replicates, "repeat": repeat, "threads": threads, "seed": seed}
    finished = run([sys.executable, str(Path(__file__).with_name("worker.py"))], json.dumps(job))
    return Simulated(**json.loads(finished.output))
