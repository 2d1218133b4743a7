"""firstflight: a laboratory for TCP's initial window.

    import firstflight

    scenario = firstflight.load_scenario("x.toml")
    scenario.duration = firstflight.Duration("60s")
    run = firstflight.run(scenario, replicates=5, seed=1)
    run.transfers.collect()            # a Polars frame; also run.pages and run.links

    run = firstflight.run("rfc2415", only={"webs": [8]}, out="runs/rfc2415")
    firstflight.study("rfc2415").claims(run)
    run.tables()                       # by name, what `firstflight table` prints

    firstflight.trace(scenario).segments                # one transfer, segment by segment; also plot, csv, pcap
    firstflight.compare(run_a, run_b)                   # run_b against run_a, paired, with 95% CIs

    scenario = firstflight.study("rfc2415").cells("simulate")[0].scenario   # one of its cells, to be changed
    scenario.tcp.initial_window = 10
    firstflight.run(scenario).pages.collect()

    firstflight.observe.read("access.log").users       # your own traffic as records
    firstflight.advise.advise("access.log", ...)       # and the initial window that suits it

A wrong request raises RequestError, a machine that cannot do it MachineError; each message is one sentence.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from firstflight.errors import FirstflightError, MachineError, RequestError, SelfCheckError

if TYPE_CHECKING:
    from pathlib import Path

    from firstflight import advise, observe, populations, probe
    from firstflight.comparing import compare
    from firstflight.scenario import BitsPerSecond, Bytes, Cell, Duration, Packets, Scenario, Tcp
    from firstflight.studies import Run, Study
    from firstflight.studies.execute import run
    from firstflight.tracing import Trace, trace

__all__ = [
    "BitsPerSecond",
    "Bytes",
    "Cell",
    "Duration",
    "FirstflightError",
    "MachineError",
    "Packets",
    "RequestError",
    "Run",
    "Scenario",
    "SelfCheckError",
    "Study",
    "Tcp",
    "Trace",
    "advise",
    "compare",
    "load_scenario",
    "observe",
    "open_run",
    "populations",
    "probe",
    "run",
    "study",
    "trace",
]

# Imported at first use: a command that only prints its help should not wait for Polars.
_HOMES = {
    "BitsPerSecond": "scenario",
    "Bytes": "scenario",
    "Cell": "scenario",
    "Duration": "scenario",
    "Packets": "scenario",
    "Run": "studies",
    "Scenario": "scenario",
    "Study": "studies",
    "Tcp": "scenario",
    "Trace": "tracing",
    "compare": "comparing",
    "run": "studies.execute",
    "trace": "tracing",
}
_MODULES = ("advise", "observe", "populations", "probe")


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file. RequestError states the problem in one sentence."""
    from firstflight.scenario import Scenario

    return Scenario.load(path)


def study(name: str) -> Study:
    """The study of that name; RequestError with the nearest known one."""
    from firstflight.studies import find

    return find(name)


def open_run(directory: str | Path) -> Run:
    """The run in a directory that `firstflight run` or `run(..., out=...)` wrote."""
    from firstflight.studies import Run

    return Run.open(directory)
