"""The cells of the study: every point twice, once an engine.

A cell's key is `engine, queue, control, size_kb, rtt_ms, rate_mbit, iw`: `queue` in packets, `iw` in segments.
"""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.engines.emulate.kernel import tick_ns
from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
EMULATE, SIMULATE = "emulate", "simulate"


class Point(NamedTuple):
    """One condition: a cell's key without the engine."""

    queue: int
    control: str
    size_kb: int
    rtt_ms: int
    rate_mbit: int
    iw: int

    def __str__(self) -> str:
        return (
            f"{self.size_kb} kB, {self.rtt_ms} ms, {self.rate_mbit} Mbit/s, IW {self.iw}, {self.control}, "
            f"queue {self.queue}"
        )


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def ample() -> int:
    """The queue, in packets, that never overflows: the longest."""
    return max(int(queue) for queue in settings()["grid"]["queues"])


def captured() -> dict[str, Point]:
    """Points of which every segment is kept, by the name of their picture."""
    return {name: Point(**fields) for name, fields in settings()["captured"].items()}


@cache
def points() -> tuple[Point, ...]:
    """The whole grid, in the order of the tables."""
    grid = settings()["grid"]
    axes = ("queues", "controls", "sizes_kb", "rtts_ms", "rates_mbit", "windows")
    return tuple(Point(*values) for values in product(*(grid[axis] for axis in axes)))


def cells(engine: str) -> list[Cell]:
    """Both halves for "emulate", the simulated half alone for "simulate"."""
    halves = (SIMULATE,) if engine == SIMULATE else (EMULATE, SIMULATE)
    return [cell(point, half) for point in points() for half in halves]


def cell(point: Point, engine: str) -> Cell:
    """The same scenario for either engine."""
    key = {"engine": engine, **point._asdict()}
    return Cell(key, _scenario(point), capture=point in captured().values(), engine=engine)


@cache
def _scenario(point: Point) -> Scenario:
    scenario = Scenario.load(HERE / "transfer.toml")
    for path, value in {
        "tcp.congestion_control": point.control,
        "tcp.initial_window": point.iw,
        # The kernel that runs here, so that simulated timers wait for its ticks, too.
        "tcp.timer_tick": {"period": f"{tick_ns()}ns", "wheel": True},
        "network.links[0].rate": f"{point.rate_mbit}Mbit",
        "network.links[0].delay": f"{1000 * point.rtt_ms // 2}us",
        "network.links[0].queue": f"{point.queue}p",
        "application.download.size": f"{point.size_kb}kB",
    }.items():
        scenario = scenario.replace(path, value)
    return scenario
