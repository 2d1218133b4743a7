"""Instructions that a data packet costs, as valgrind's callgrind counts them: the same from run to run.

Each work is run twice, for a short and for a long time, so that one-time work (reading the plan, setting up)
cancels: the figure is the slope. `bench/instructions.toml` holds the figures that a change is compared with.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from bench.row import Goal, Row, as_json, as_text
from bench.work import DIRECTORY, Plan, plan, rfc2415_cell
from firstflight.errors import MachineError
from firstflight.records.machine import usable_cpus

INSTALL = "sudo apt-get install valgrind"
UNIT = "instructions / data packet"

MOST = Goal(1.03, at_least=False)
"""Of the committed figure."""


@dataclass(frozen=True)
class Work:
    """A key of `bench/instructions.toml`, and the plan of a run of this number of simulated seconds or users."""

    name: str
    plan: Callable[[float], Plan]
    short: float
    long: float


def _page_views(duration_s: float) -> Plan:
    return rfc2415_cell(plan("rfc2415", duration_s), 16, 2)


def _searches(users: float) -> Plan:
    made = copy.deepcopy(plan("avgdc_search"))
    made["population"]["users"] = int(users)
    return made


WORKS = (
    Work("bulk_even", lambda s: plan("bulk_even", s), 0.5, 2.5),
    Work("bulk_uneven", lambda s: plan("bulk_uneven", s), 0.5, 2.5),
    Work("lossy", lambda s: plan("lossy", s), 0.5, 1.5),
    Work("rfc2415", _page_views, 60.0, 160.0),
    Work("avgdc_search", _searches, 200, 700),
)


def main(json: bool = False) -> int:
    """Measure, and print a table next to the committed values (JSON if asked).

    Returns 1 if a work costs more than 3% more than is committed, else 0. Raises MachineError where valgrind or
    cargo is missing, or where the compiler is not that of the committed figures, which then say nothing.
    """
    made = rows()
    print(as_json(made) if json else as_text(made))
    return 1 if any(row.ratio is None or not MOST.met(row.ratio) for row in made) else 0


def rows() -> list[Row]:
    """A row for each work, next to its committed value. Raises MachineError as `main` does."""
    if shutil.which("valgrind") is None:
        raise MachineError(f"valgrind is not installed, and it counts the instructions: {INSTALL}")
    committed = tomllib.loads((DIRECTORY / "instructions.toml").read_text())
    compiler = _said(["rustc", "--version"]).split()[1]
    if compiler != committed["rustc"]:
        raise MachineError(
            f"the committed figures are those of rustc {committed['rustc']}, and this is {compiler}: `rustup run "
            f"{committed['rustc']} python -m bench --instructions` compares like with like"
        )
    program = _build()
    # Other work on the machine changes no count.
    with ThreadPoolExecutor(usable_cpus()) as pool:
        slopes = pool.map(lambda work: _slope(program, work), WORKS)
    known = committed["instructions"]
    return [
        Row(work.name, slope, UNIT, peer="committed", peer_value=known.get(work.name), goals=(MOST,))
        for work, slope in zip(WORKS, slopes, strict=True)
    ]


def _slope(program: str, work: Work) -> float:
    (few, few_packets), (many, many_packets) = (_count(program, work.plan(size)) for size in (work.short, work.long))
    return (many - few) / (many_packets - few_packets)


def _count(program: str, made: Plan) -> tuple[int, int]:
    """Instructions and data packets of a run."""
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program]
    done = subprocess.run(counter, input=json.dumps(made), capture_output=True, text=True, check=False)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or counted is None:
        raise MachineError(f"valgrind ended with status {done.returncode}: {_last_line(done.stderr)}")
    return int(counted[1]), int(done.stdout)


def _build() -> str:
    """The program of `crates/sim/examples/replicate.rs`, compiled as the product is."""
    manifest = str(DIRECTORY.parent / "Cargo.toml")
    package = ["--package", "firstflight-sim", "--example", "replicate"]
    cargo = ["cargo", "build", "--quiet", "--locked", "--release", "--message-format=json", "--manifest-path", manifest]
    found = [json.loads(line) for line in _said(cargo + package).splitlines()]
    return next(str(message["executable"]) for message in found if message.get("executable"))


def _said(command: list[str]) -> str:
    # The profile and flags of the product, whatever the shell asks for: what `make setup` has compiled is taken.
    settings = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_")}
    settings["RUSTFLAGS"] = f"{settings.get('RUSTFLAGS', '')} {_flags()}"
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MachineError(f"{command[0]} is not installed, and it compiles what is counted") from error
    if done.returncode != 0:
        raise MachineError(f"{command[0]} ended with status {done.returncode}: {_last_line(done.stderr)}")
    return done.stdout


@cache
def _flags() -> str:
    flags = [sys.executable, str(DIRECTORY.parent / ".ci/wheel"), "--flags"]
    return subprocess.run(flags, capture_output=True, text=True, check=True).stdout.strip()


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["nothing printed"])[-1]
