"""The cells: two populations, four services, and how round trip and bandwidth go together.

A cell's key is `population, service, dependence, connections, iw`. Dependence "fitted" is the built-in population; the
others, for web search with IW 3 and 10 only, differ in the correlation of round trip and bandwidth and in nothing else.
Connections are "new" for every response; "reused", likewise for web search only, asks three times on each.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from firstflight import populations
from firstflight.populations import applications, avgdc
from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
FEW, MANY = 3, 10
FITTED, INDEPENDENT, STRONGER = "fitted", "independent", "stronger"
NEW, REUSED = "new", "reused"
AVGDC, SLOWDC = "avgdc", "slowdc"
SEARCH, MAPS, PHOTOS, BLOG = "web-search", "maps", "photos", "blog"
NAMES = {AVGDC: "AvgDC", SLOWDC: "SlowDC"}
BACKGROUND = "bulk"


class Place(NamedTuple):
    """Cells that differ in the initial window only."""

    population: str
    service: str
    dependence: str = FITTED
    connections: str = NEW


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def places() -> list[Place]:
    """Every population and service, then web search with the other dependences and with connections that are reused."""
    chosen = settings()
    fitted = [Place(population, service) for population in chosen["populations"] for service in chosen["users"]]
    others = [Place(population, SEARCH, name) for population in chosen["populations"] for name in chosen["dependence"]]
    reused = [Place(population, SEARCH, FITTED, REUSED) for population in chosen["populations"]]
    return fitted + others + reused


def windows(place: Place) -> list[int]:
    """The initial windows of a place."""
    every: list[int] = settings()["initial_windows"]
    return every if (place.dependence, place.connections) == (FITTED, NEW) else [FEW, MANY]


def scenario(place: Place, iw: int) -> Scenario:
    """What a user does: one page or response, in some cases beside a download whose window never changes."""
    chosen = settings()
    users = populations.find(place.population) | {"users": chosen["users"][place.service]}
    if place.dependence != FITTED:
        users["dependence"] = avgdc.dependence(chosen["dependence"][place.dependence])
    background = chosen["background"]
    keys: dict[str, Any] = chosen["changed"].get(place.service, {})
    fetched = applications.preset(place.service, **keys)
    server: dict[str, Any] = {"initial_window": iw}
    if place.connections == REUSED:
        fetched = _kept_open(fetched)
        server["restart_window"] = "off"
    return Scenario.from_dict(
        _base()
        | {
            "population": users,
            "application": [
                fetched
                | {"service_time": chosen["service_time"], "start": background["head_start"], "server_tcp": server},
                applications.preset(BACKGROUND, share=background["share"], server_tcp={"initial_window": FEW}),
            ],
        },
        source=str(HERE / "scenario.toml"),
    )


def _kept_open(single: dict[str, Any]) -> dict[str, Any]:
    """The same responses, several on each connection."""
    return {
        "name": single["name"],
        "kind": "request_response",
        "request": single["request"],
        "response": single["size"],
        "think": settings()["reused"]["think"],
        "count": settings()["reused"]["requests"],
    }


@cache
def _base() -> dict[str, Any]:
    with (HERE / "scenario.toml").open("rb") as file:
        return tomllib.load(file)


def cells() -> list[Cell]:
    """The grid. Cells of one population share their users' paths, so that initial windows pair up."""
    return [
        Cell({**place._asdict(), "iw": iw}, scenario(place, iw), replicates=1)
        for place in places()
        for iw in windows(place)
    ]
