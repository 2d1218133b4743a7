"""The cells of the study.

A cell's key is `experiment, stack, size_segments, loss_percent, rate_kbps, iw`. Experiments:

- `flight`: one loss in a first flight of `iw` segments, for every position; the response is that flight
  (`size_segments` equals `iw`);
- `response`: the same with more to send after the flight;
- `random`: responses of `size_segments` with random loss, with either initial window, for the comparison of windows;
- `congested`: the same, five responses at once over a link of `rate_kbps` whose queue overflows.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
FLIGHT, RESPONSE, RANDOM, CONGESTED = "flight", "response", "random", "congested"
COMPARED_STACKS = ("new_reno", "sack", "linux_no_sack", "linux")
"""The stacks of the comparison: with and without SACK, as RFCs of the time and as a kernel of today."""


FAST_KBPS = 10_000
"""The link of `one_loss.toml` and `random_loss.toml`."""
_FILES = {FLIGHT: "one_loss", RESPONSE: "one_loss", RANDOM: "random_loss", CONGESTED: "congested"}


class Point(NamedTuple):
    """One cell's key."""

    experiment: str
    stack: str
    size_segments: int
    loss_percent: float
    rate_kbps: int
    iw: int


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def conditions() -> list[tuple[str, str, int, float, int]]:
    """What the comparison varies besides stack, size and window: the start of a point, without these."""
    chosen = settings()
    random = [(RANDOM, "", 0, loss, FAST_KBPS) for loss in chosen["loss_percents"]]
    return random + [(CONGESTED, "", 0, 0.0, rate) for rate in chosen["rates_kbps"]]


def points() -> list[Point]:
    """The whole grid, the matrices first."""
    chosen = settings()
    windows, long = chosen["initial_windows"], chosen["long_response_segments"]
    grid = [
        Point(experiment, stack, iw if experiment == FLIGHT else long, 0.0, FAST_KBPS, iw)
        for experiment in (FLIGHT, RESPONSE)
        for stack in chosen["stacks"]
        for iw in windows
    ]
    grid += [
        Point(*condition, iw)._replace(stack=stack, size_segments=size)
        for stack in COMPARED_STACKS
        for size in chosen["sizes_segments"]
        for condition in conditions()
        for iw in chosen["compared_windows"]
    ]
    return grid


def cell(point: Point) -> Cell:
    """The scenario of a point."""
    scenario = _base(_FILES[point.experiment], point.stack).replace("tcp.initial_window", point.iw)
    scenario = scenario.replace("application.response.size", f"{point.size_segments * _payload_bytes(scenario)}B")
    if point.experiment == RANDOM:
        scenario = scenario.replace("network.links[0].loss", point.loss_percent / 100)
        return Cell(point._asdict(), scenario, settings()["replicates"])
    if point.experiment == CONGESTED:
        scenario = scenario.replace("network.links[0].rate", f"{point.rate_kbps}kbit")
        return Cell(point._asdict(), scenario, settings()["congested_replicates"])
    (spoke,) = scenario.to_dict()["network"]["spokes"]
    # The request is a data packet too, the first of the other direction.
    spokes = [spoke | {"lose": [lost] if lost else [], "reverse": {"lose": []}} for lost in range(point.iw + 1)]
    scenario = scenario.replace("network.spokes", spokes).replace("application.response.clients", point.iw + 1)
    return Cell(point._asdict(), scenario)


@cache
def _base(name: str, stack: str) -> Scenario:
    return Scenario.load(HERE / f"{name}.toml").replace("tcp", settings()["stacks"][stack]["tcp"])


def _payload_bytes(scenario: Scenario) -> int:
    """Payload of a full segment, less than the MSS where timestamps take their place (RFC 7323 appendix A)."""
    tcp = scenario.to_plan()["applications"][0]["server_tcp"]
    return int(tcp["mss_bytes"]) - (TIMESTAMP_BYTES if tcp["timestamps"] else 0)


TIMESTAMP_BYTES = 12
"""The option with its padding."""
