"""RFC 6928's own experiment on two simulated data centers: IW 3 against 10 on millions of users' paths.

Values that no publication gives are our choice; each choice has a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight import populations
from firstflight.populations import applications, avgdc, slowdc
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy
from firstflight.studies.rfc6928_cluster.claims import claims
from firstflight.studies.rfc6928_cluster.measure import (
    AVGDC,
    BACKGROUND,
    BLOG,
    CORRELATIONS,
    FEW,
    HERE,
    MAPS,
    PHOTOS,
    QUANTITIES,
    REQUESTS,
    SEARCH,
    SLOWDC,
)
from firstflight.studies.rfc6928_cluster.report import answer, figures, tables

# Users of a cell, one replicate. So many that a bucket with one response in a thousand (beyond 3 s of round trip) has
# some, and so few that a cell's rows stay below 200 MB in memory and the study within three minutes on two cores.
USERS = {SEARCH: 40_000, MAPS: 6_000, PHOTOS: 6_000, BLOG: 4_000}
# The same of a cell in which something else is assumed: enough for an interval, of the users below 256 kbit/s, too.
USERS_OF_ASSUMPTIONS = {SEARCH: 14_000, MAPS: 1_500, PHOTOS: 1_000, BLOG: 1_000}
# The time that a server works at an answer, fitted to the latencies with IW 3 that Figure 5 implies
# (research/rfc6928_cluster_fit.py base).
SERVICE_TIME = "125ms"
# Some users have a concurrent download, from another operator's server, whose initial window is 3 in both arms. Share:
# ours; by the latencies with IW 3 it should rather be none, and a tenth, as in the preset, is out of the question. The
# download is in progress when the page is asked for.
BACKGROUND_SHARE, HEAD_START = 0.01, "3s"
# Where a service differs from its preset.
MAPS_PARALLEL = 9
THINK = "5s"
# Times as many users with losses, by whether connections are kept open: with queues of 100 packets, IW 3 then has the
# published rate of all services (research/rfc6928_cluster_fit.py losses).
REFITTED = {False: {AVGDC: 1.96, SLOWDC: 3.24}, True: {AVGDC: 1.11, SLOWDC: 3.21}}

Values = dict[str, Any]
"""Dotted path in the scenario to its value."""


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """One page or response of each user, in some cases with a concurrent download whose IW never changes. With
    connections kept open it is three responses, one after another, on each; for a page, the bytes that one of its
    connections would fetch for three pages.
    """
    service, assumption = labels["service"], labels.get("assumption", "")
    population = populations.find(labels["population"])
    population["users"] = (USERS_OF_ASSUMPTIONS if assumption else USERS)[service]
    if grid == "dependence":
        population["dependence"] = avgdc.dependence(CORRELATIONS[labels["dependence"]])
    fetched = [applications.preset(service, **({"parallel": MAPS_PARALLEL} if service == MAPS else {}))]
    server: Values = {"initial_window": labels["iw"]}
    if grid == "reused" or assumption.startswith("kept-open"):
        fetched = _kept_open(fetched[0])
        # tcp_slow_start_after_idle = 0, else the initial window would count every time again.
        server |= {"restart_window": "off", "window_validation": {"cwnd_limited": {"app_limited_decay": False}}}
    shared = {"service_time": SERVICE_TIME, "start": HEAD_START, "server_tcp": server}
    background = applications.preset(BACKGROUND, user_fraction=BACKGROUND_SHARE, server_tcp={"initial_window": FEW})
    tables = {"population": population, "application": [*(one | shared for one in fetched), background]}
    scenario = Scenario.from_dict(scenario.to_dict() | tables)
    for path, value in changes(assumption, labels["population"], service).items() if assumption else ():
        scenario = scenario.replace(path, value)
    return scenario


def _kept_open(fetched: dict[str, Any]) -> list[dict[str, Any]]:
    """The same responses, several on each connection: of a page, one application a connection."""
    if fetched["kind"] == "file_transfer":
        turns = {"response": fetched["size"], "think_time": THINK, "count": REQUESTS}
        return [{"name": fetched["name"], "kind": "request_response", "request": fetched["request"]} | turns]
    parallel = fetched["parallel"]
    turns = {"response": fetched["inline"], "count": REQUESTS * round(fetched["inline_count"] / parallel)}
    return [
        {"name": f"{fetched['name']}-{index}", "kind": "request_response", "request": fetched["request"]} | turns
        for index in range(parallel)
    ]


def changes(assumption: str, population: str, service: str) -> Values:
    """The effect of an assumption."""
    joint = {f"joint{value:+g}" if value else "joint-0": value for value in (-0.9, -0.3, 0.0, 0.3)}
    if assumption in joint:
        return {"population.dependence": avgdc.dependence(joint[assumption])}
    if assumption.endswith("-refitted"):
        times = REFITTED[assumption.startswith("kept-open")][population]
        return queues(100) | losses(population, times)
    longer = [[share, 4 * seconds] for share, seconds in avgdc.BUFFER_S]
    own = f"application.{service}"
    by_name: dict[str, Values] = {
        "queues-10p": queues(10),
        "queues-60p": queues(60),
        "queues-100p": queues(100),
        "queues-4x": {"population.buffer": {"distribution": "empirical", "points": longer}},
        "losses-none": losses(population, 0),
        "losses-2x": losses(population, 2),
        "kept-open": {},
        "kept-open-100p": queues(100),
        "responses-5kB": {f"{own}.size": {"distribution": "lognormal", "median": "5kB", "sigma": 0.56}},
        "responses-18kB": {f"{own}.size": {"distribution": "lognormal", "median": "18kB", "sigma": 0.56}},
        "maps-over-4": {f"{own}.parallel": 4},
        "window-6kB": {f"{own}.client_tcp": {"receive_window_growth": {"initial": "5840B"}}},
        "window-17kB": {f"{own}.client_tcp": {"receive_window": "17520B", "receive_window_growth": "none"}},
        "back-end-0": {f"{own}.service_time": "0ms"},
        "back-end-250ms": {f"{own}.service_time": "250ms"},
        "downloads-none": {f"application.{BACKGROUND}.user_fraction": 1e-9},
        "downloads-tenth": {f"application.{BACKGROUND}.user_fraction": 0.1},
        "timers-1s": {"tcp.rto.minimum": "1s"},
        "no-f-rto": {"tcp.recovery.scoreboard.f_rto": False},
        "lost-syn-2011": {"tcp.syn_loss_response": "rfc6928"},
    }
    return by_name[assumption]


def queues(packets: int) -> Values:
    """Queues of at least this number of packets."""
    return {"population.min_buffer": f"{packets}p"}


def losses(population: str, times: float) -> Values:
    """So many times as many users with losses."""
    of = slowdc if population == SLOWDC else avgdc
    return {"population.loss": avgdc.losses(times * of.LOSSY_SHARE, of.MOST_LOSS) if times else 0}


STUDY = DeclaredStudy(HERE, QUANTITIES, claims, tables, figures, answer, build)
