"""The cells of the study.

A cell's key is `experiment, control, rtt_ms, buffer_bdp, flows, size_kb`; `buffer_bdp` is the queue in bandwidth-delay
products. Experiments:

- `download`: one download of `size_kb`; `flows` is 1;
- `parallel`: `flows` objects of `size_kb` over as many connections, opened together;
- `mice`: short transfers of `size_kb` one after the other, with `flows` long ones beside them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
DOWNLOAD, PARALLEL, MICE = "download", "parallel", "mice"
LINK = "links[0]"
"""The bottleneck's name in the records."""
RATE_BPS = 10_000_000
PACKET_BYTES = 1500


class Point(NamedTuple):
    """One cell's key."""

    experiment: str
    control: str
    rtt_ms: int
    buffer_bdp: float
    flows: int
    size_kb: int


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def titles() -> dict[str, str]:
    """The algorithms by the name that a scenario calls them, with the one that people do."""
    return dict(settings()["controls"])


def talk() -> list[str]:
    """The algorithms that the talk shows."""
    return list(settings()["talk"]["controls"])


def drawn(control: str) -> Point:
    """The download of which every segment is kept."""
    chosen = settings()["download"]
    return Point(DOWNLOAD, control, chosen["rtt_ms"], chosen["buffer_bdp"], 1, chosen["size_kb"])


def together(control: str, flows: int) -> Point:
    """Objects over so many connections at once, on the path of the download that is drawn."""
    return drawn(control)._replace(experiment=PARALLEL, flows=flows, size_kb=settings()["parallel"]["size_kb"])


def mouse(control: str, flows: int, size_kb: int) -> Point:
    """Short transfers beside so many long ones, on the same path."""
    return drawn(control)._replace(experiment=MICE, flows=flows, size_kb=size_kb)


def points() -> list[Point]:
    """The whole grid, the downloads that are drawn first."""
    chosen = settings()
    base = [drawn(control) for control in titles()]
    around = [
        point._replace(rtt_ms=rtt, buffer_bdp=buffer)
        for rtt in chosen["download"]["rtts_ms"]
        for buffer in chosen["download"]["buffers_bdp"]
        for point in base
    ]
    grid = base + [point for point in around if point not in base]
    grid += [together(control, flows) for flows in chosen["parallel"]["flows"] for control in titles()]
    grid += [
        mouse(control, flows, size)
        for size in chosen["mice"]["sizes_kb"]
        for flows in chosen["mice"]["flows"]
        for control in titles()
    ]
    return grid


def queue_packets(rtt_ms: int, buffer_bdp: float) -> int:
    """A queue of so many bandwidth-delay products, in whole full packets."""
    return max(1, round(buffer_bdp * RATE_BPS * rtt_ms / 1000 / 8 / PACKET_BYTES))


def cell(point: Point) -> Cell:
    """The scenario of a point."""
    scenario = _base(point.experiment).replace("tcp.congestion_control", point.control)
    scenario = scenario.replace("network.links[0].delay", f"{1000 * point.rtt_ms // 2}us")
    scenario = scenario.replace("network.links[0].queue", f"{queue_packets(point.rtt_ms, point.buffer_bdp)}p")
    name = {DOWNLOAD: "download", PARALLEL: "object", MICE: "mouse"}[point.experiment]
    scenario = scenario.replace(f"application.{name}.size", f"{point.size_kb}kB")
    if point.experiment == DOWNLOAD:
        return Cell(point._asdict(), scenario, capture=point == drawn(point.control))
    if point.experiment == PARALLEL:
        scenario = scenario.replace("application.object.clients", point.flows)
    elif point.flows == 0:
        scenario = scenario.replace("application", scenario.to_dict()["application"][:1])
    return Cell(point._asdict(), scenario, settings()[point.experiment]["replicates"])


@cache
def _base(name: str) -> Scenario:
    return Scenario.load(HERE / f"{name}.toml")
