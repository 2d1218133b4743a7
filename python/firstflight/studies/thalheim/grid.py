"""The cells of the study.

A cell's key is `experiment, rate_mbit, delay_ms, queue_packets, size_kb, flows, iw`; the delay is that of one way.
Experiments:

- `transfer`: one file of `size_kb` alone on its path; `flows` is 1;
- `shallow`: the same with a small queue, on paths of one delay;
- `parallel`: `flows` files of `size_kb` over as many connections that open together, the same bytes in all;
- `mice`: short files of `size_kb` one after the other, with `flows` long ones beside them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.scenario import Cell, Scenario
from firstflight.scenario.units import Bytes

HERE = Path(__file__).parent
NAME = "thalheim"
TRANSFER, SHALLOW, PARALLEL, MICE = "transfer", "shallow", "parallel", "mice"
LINK = "links[0]"
"""The bottleneck's name in the records."""
_FILES = {TRANSFER: "transfer", SHALLOW: "transfer", PARALLEL: "parallel", MICE: "mice"}
_FIRST = {TRANSFER: "download", SHALLOW: "download", PARALLEL: "object", MICE: "mouse"}


class Point(NamedTuple):
    """One cell's key."""

    experiment: str
    rate_mbit: int
    delay_ms: int
    queue_packets: int
    size_kb: int
    flows: int
    iw: int


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def transfer(rate_mbit: int, delay_ms: int, size_kb: int, iw: int) -> Point:
    """One file alone over an ample queue."""
    return Point(TRANSFER, rate_mbit, delay_ms, settings()["ample_packets"], size_kb, 1, iw)


def shallow(rate_mbit: int, size_kb: int, iw: int) -> Point:
    """One file alone over a small queue."""
    delay = settings()["path"]["delay_ms"]
    return Point(SHALLOW, rate_mbit, delay, settings()["small_packets"], size_kb, 1, iw)


def together(queue_packets: int, connections: int, iw: int) -> Point:
    """The same bytes over so many connections that open together."""
    path = settings()["path"]
    size = settings()["parallel"]["total_kb"] // connections
    return Point(PARALLEL, path["rate_mbit"], path["delay_ms"], queue_packets, size, connections, iw)


def mouse(flows: int, iw: int) -> Point:
    """Short requests beside so many long downloads."""
    path, chosen = settings()["path"], settings()["mice"]
    return Point(MICE, path["rate_mbit"], path["delay_ms"], chosen["queue_packets"], chosen["size_kb"], flows, iw)


def points() -> list[Point]:
    """The whole grid: the figure's, then the small queue, parallel connections, short requests beside a long one."""
    chosen = settings()
    windows, sizes, rates = chosen["initial_windows"], chosen["sizes_kb"], chosen["rates_mbit"]
    grid = [
        transfer(rate, delay, size, iw)
        for rate in rates
        for size in sizes
        for delay in chosen["delays_ms"]
        for iw in windows
    ]
    grid += [shallow(rate, size, iw) for rate in rates for size in sizes for iw in windows]
    grid += [
        together(queue, connections, iw)
        for queue in (chosen["ample_packets"], chosen["small_packets"])
        for connections in chosen["parallel"]["connections"]
        for iw in chosen["parallel"]["windows"]
    ]
    return grid + [mouse(flows, iw) for flows in chosen["mice"]["flows"] for iw in chosen["mice"]["windows"]]


def cell(point: Point, engine: str, shaper: str | None = None) -> Cell:
    """The scenario of a point, with as many replicates as `engine` needs for it; on request with one of the shapers in
    place of the line.
    """
    name = f"application.{_FIRST[point.experiment]}"
    scenario = _base(_FILES[point.experiment]).replace("tcp.initial_window", point.iw)
    scenario = scenario.replace("network.links[0].rate", f"{point.rate_mbit}Mbit")
    scenario = scenario.replace("network.links[0].delay", f"{point.delay_ms}ms")
    scenario = scenario.replace("network.links[0].queue", f"{point.queue_packets}p")
    scenario = scenario.replace(f"{name}.size", f"{point.size_kb}kB")
    if shaper is not None:
        scenario = scenario.replace("network.links[0].burst", settings()["shapers"][shaper])
    if point.experiment == PARALLEL:
        scenario = scenario.replace(f"{name}.clients", point.flows)
    if point.experiment == MICE and point.flows == 0:
        scenario = scenario.replace("application", scenario.to_dict()["application"][:1])
    return Cell(point._asdict(), scenario, _replicates(point, engine))


def _replicates(point: Point, engine: str) -> int | None:
    chosen = settings().get(point.experiment, settings())
    count: int | None = chosen.get("emulated_replicates" if engine == "emulate" else "replicates")
    return count


@cache
def _base(name: str) -> Scenario:
    return Scenario.load(HERE / f"{name}.toml")


@cache
def header_bytes() -> int:
    """What the server sends before a file."""
    header = _base(TRANSFER).to_dict()["application"][0]["response_header"]
    return int(Bytes(header))
