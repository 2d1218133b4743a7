"""The cells: two populations, four services, and how round trip and bandwidth go together.

A cell's key is `population, service, dependence, connections, assumption, iw`. Dependence "fitted" is the built-in
population; the others, for web search with IW 3 and 10 only, differ in the correlation of round trip and bandwidth and
in nothing else. Connections are "new" for every response; "reused", likewise for web search only, asks three times on
each. Assumption "stated" is all of the above; the others (`assumptions.py`), with IW 3 and 10 and fewer users, have one
thing assumed otherwise.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from firstflight import populations
from firstflight.populations import applications, avgdc
from firstflight.scenario import Cell, Scenario
from firstflight.studies.rfc6928_cluster.assumptions import ASSUMPTIONS, STATED, Assumption

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
    assumption: str = STATED


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


def places() -> list[Place]:
    """Every population and service, then web search with the other dependences and with connections that are reused,
    then every service with each assumption that is not the stated one.
    """
    chosen = settings()
    fitted = [Place(population, service) for population in chosen["populations"] for service in chosen["users"]]
    others = [Place(population, SEARCH, name) for population in chosen["populations"] for name in chosen["dependence"]]
    reused = [Place(population, SEARCH, FITTED, REUSED) for population in chosen["populations"]]
    otherwise = [
        assumed(population, service, name)
        for name in ASSUMPTIONS
        for population in chosen["populations"]
        for service in chosen["users"]
    ]
    return list(dict.fromkeys(fitted + others + reused + otherwise))


def assumed(population: str, service: str, assumption: str) -> Place:
    """Where a service is simulated with this assumption: as stated if it does not concern the service."""
    only = None if assumption == STATED else ASSUMPTIONS[assumption].service
    return Place(population, service, assumption=assumption if only in (None, service) else STATED)


def windows(place: Place) -> list[int]:
    """The initial windows of a place."""
    every: list[int] = settings()["initial_windows"]
    return every if place == Place(place.population, place.service) else [FEW, MANY]


def scenario(place: Place, iw: int) -> Scenario:
    """What a user does: one page or response, in some cases beside a download whose window never changes.

    With connections kept open it is three responses, one after another, on each connection of web search; of a page,
    what one of its connections would fetch of three pages.
    """
    chosen = settings()
    stated = place.assumption == STATED
    changed = Assumption("") if stated else ASSUMPTIONS[place.assumption]
    users = chosen["users" if stated else "users_of_assumptions"][place.service]
    population = populations.find(place.population) | {"users": users}
    if place.dependence != FITTED:
        population["dependence"] = avgdc.dependence(chosen["dependence"][place.dependence])
    background = chosen["background"]
    keys: dict[str, Any] = chosen["changed"].get(place.service, {})
    fetched = [applications.preset(place.service, **keys)]
    server: dict[str, Any] = {"initial_window": iw}
    if place.connections == REUSED or changed.kept_open:
        fetched = _kept_open(fetched[0])
        # tcp_slow_start_after_idle = 0.
        server |= {
            "restart_window": "off",
            "window_validation": {"cwnd_limited": {"app_limited_decay": False}},
        }
    shared = {"service_time": chosen["service_time"], "start": background["head_start"], "server_tcp": server}
    found = Scenario.from_dict(
        _base()
        | {
            "population": population,
            "application": [
                *(one | shared for one in fetched),
                applications.preset(BACKGROUND, share=background["share"], server_tcp={"initial_window": FEW}),
            ],
        },
        source=str(HERE / "scenario.toml"),
    )
    for path, value in changed.values(place.population).items():
        found = found.replace(path.replace("{service}", place.service), value)
    return found


def _kept_open(fetched: dict[str, Any]) -> list[dict[str, Any]]:
    """The same responses, several on each connection: of a page, one application a connection."""
    requests = settings()["reused"]["requests"]
    if fetched["kind"] == "file_transfer":
        turns = {"response": fetched["size"], "think": settings()["reused"]["think"], "count": requests}
        return [{"name": fetched["name"], "kind": "request_response", "request": fetched["request"]} | turns]
    parallel = fetched["parallel"]
    turns = {"response": fetched["inline"], "count": requests * round(fetched["inline_count"] / parallel)}
    return [
        {"name": f"{fetched['name']}-{index}", "kind": "request_response", "request": fetched["request"]} | turns
        for index in range(parallel)
    ]


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
