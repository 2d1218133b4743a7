"""The cells of the study.

A cell's keys: `experiment`, `year` (of the panel), `farther_ms` (added to every round trip) and `iw` (the server's
initial window in segments).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from firstflight.populations import uk_homes
from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
HOMES, MAP = "homes", "map"
NO_LOSS, SMALL_BUFFERS, LARGE_BUFFERS, ROOMY = "no loss", "small buffers", "large buffers", "64 packets at least"
ASSUMPTIONS = (NO_LOSS, SMALL_BUFFERS, LARGE_BUFFERS, ROOMY)
"""Experiments that turn one assumption round."""
PAGE = "page"
PAYLOAD_BYTES, PACKET_BYTES = 1448, 1500
"""Of a full packet, with timestamps, and the packet."""
LEAST_PACKETS = 10
"""What a queue holds at least, as the populations have it."""


class Point(NamedTuple):
    """A cell's place in the grid."""

    experiment: str
    year: int
    farther_ms: int
    iw: int


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def responses() -> list[str]:
    """Names of what every home fetches, in their order."""
    return [str(application.name) for application in _base(HOMES).application]


def points() -> Iterator[Point]:
    """The whole grid, in the order of the tables."""
    chosen = settings()
    windows, years = chosen["initial_windows"], chosen["years"]
    yield from (Point(HOMES, year, far, iw) for year in years for far in chosen["farther_ms"] for iw in windows)
    turned = chosen["assumptions"]
    for name in ASSUMPTIONS:
        # Without random losses every loss of a first flight is the queue's: that is worth all windows.
        some = windows if name == NO_LOSS else turned["initial_windows"]
        yield from (Point(name, year, turned["farther_ms"], iw) for year in years for iw in some)
    drawn = chosen["map"]
    yield from (Point(MAP, drawn["year"], drawn["farther_ms"], iw) for iw in drawn["initial_windows"])


def cells() -> list[Cell]:
    """One cell a point."""
    # Without losses nothing is drawn: every replicate would be the same.
    return [
        Cell(point._asdict(), scenario(point), 1 if point.experiment in (NO_LOSS, MAP) else None) for point in points()
    ]


def scenario(point: Point) -> Scenario:
    """What is run at a point."""
    return _at(point.experiment, point.year, point.farther_ms).replace("tcp.initial_window", point.iw)


@cache
def typical_home() -> dict[str, float]:
    """The path of the map's curves: the weighted median of each quantity of its panel, without loss."""
    homes = uk_homes.homes(settings()["map"]["year"])
    return {name: _median(homes, name) for name in ("rtt_s", "down_bps", "up_bps", "buffer_s")}


def _median(homes: pl.DataFrame, name: str) -> float:
    order = homes.sort(name)
    return float(order[name][int((order["weight"].cum_sum() >= order["weight"].sum() / 2).arg_max() or 0)])


def map_bytes() -> list[int]:
    """Sizes of the map's curves."""
    drawn = settings()["map"]
    spaced = np.geomspace(drawn["from_bytes"], drawn["to_bytes"], drawn["sizes"])
    return sorted({round(size) for size in spaced.tolist()})


@cache
def _at(experiment: str, year: uk_homes.Year, farther_ms: int) -> Scenario:
    base = _base(MAP if experiment == MAP else HOMES)
    farther = {"farther": f"{farther_ms}ms"}
    if experiment == MAP:
        sizes = map_bytes()
        path = {name: [value] * len(sizes) for name, value in typical_home().items()}
        columns = path | {"loss": [0.0] * len(sizes), "bytes": sizes}
        table = base.to_dict()["population"] | farther
        return base.replace("population", table | {"columns": columns, "users": len(sizes)})
    changed: dict[str, Any] = {}
    if experiment in (SMALL_BUFFERS, LARGE_BUFFERS):
        changed = uk_homes.population(year, "small" if experiment == SMALL_BUFFERS else "large")
    elif experiment == NO_LOSS:
        homes = uk_homes.population(year)
        changed = {"columns": homes["columns"] | {"loss": [0.0] * homes["users"]}}
    elif experiment == ROOMY:
        changed = {"least_buffer": "64p"}
    return base.replace("population", {"name": f"uk-{year}"} | farther | changed)


@cache
def _base(name: str) -> Scenario:
    return Scenario.load(HERE / f"{name}.toml")
