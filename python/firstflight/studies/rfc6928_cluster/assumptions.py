"""What is assumed because it is not published, changed one by one: what the gains and the cost owe to it.

Each name is a value of the cells' key `assumption`. Losses, back end and Maps were fitted to IW 3 with the stated
assumptions and are not fitted anew, but for the two whose names end in "refitted".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firstflight.populations import avgdc, slowdc

STATED = "stated"
"""As the study has it."""

Values = dict[str, Any]
"""Dotted path in the scenario to its value; `{service}` stands for the application's name."""


@dataclass(frozen=True)
class Assumption:
    """`told`: as a table names it; `values(population)`: what changes; `kept_open`: see `grid.scenario`; `service`: the
    only one that it concerns, or None.
    """

    told: str
    values: Callable[[str], Values] = lambda population: {}
    kept_open: bool = False
    service: str | None = None


def _constant(told: str, service: str | None = None, **values: Any) -> Assumption:
    paths = {name.replace("__", "."): value for name, value in values.items()}
    return Assumption(told, lambda population: dict(paths), service=service)


def _joint(correlation: float) -> Assumption:
    return Assumption(
        f"correlation of round trip and bandwidth {correlation:g}",
        lambda population: {"population.dependence": avgdc.dependence(correlation)},
    )


def _queues(packets: int) -> Values:
    return {"population.least_buffer": f"{packets}p"}


def losses(population: str, times: float) -> Values:
    """So many times as many users with losses."""
    share, most = (
        (slowdc.LOSSY_SHARE, slowdc.MOST_LOSS) if population == "slowdc" else (avgdc.LOSSY_SHARE, avgdc.MOST_LOSS)
    )
    return {"population.loss": avgdc.losses(times * share, most) if times else 0}


def _longer(times: float) -> Values:
    points = [[share, times * seconds] for share, seconds in avgdc.BUFFER_S]
    return {"population.buffer": {"law": "empirical", "points": points}}


def _announced(told: str, window: str, growing: bool) -> Assumption:
    receiver: Values = {"receive_window_growth": {"initial": window}}
    if not growing:
        receiver = {"receive_window": window, "receive_window_growth": "none"}
    return Assumption(told, lambda population: {"application.{service}.client_tcp": receiver})


def _sized(median: str) -> Assumption:
    law = {"law": "lognormal", "median": median, "sigma": 0.56}
    return Assumption(
        f"web search's responses of {median} in the median, not 9kB",
        lambda population: {"application.{service}.size": law},
        service="web-search",
    )


_REFITTED = {False: {"avgdc": 1.96, "slowdc": 3.24}, True: {"avgdc": 1.11, "slowdc": 3.21}}
"""Times as many users with losses, by whether connections are kept open: with queues of 100 packets, IW 3 then has the
published rate of all services.

    python -m firstflight.studies.rfc6928_cluster.fit losses
"""


def _refitted(told: str, kept_open: bool) -> Assumption:
    return Assumption(
        f"{told}; losses fitted anew",
        lambda population: _queues(100) | losses(population, _REFITTED[kept_open][population]),
        kept_open,
    )


_HUNDRED = "queues of at least 100 packets"
_KEPT = "three pages or responses on kept connections"

ASSUMPTIONS = {
    "joint-0.9": _joint(-0.9),
    "joint-0.3": _joint(-0.3),
    "joint-0": _joint(0.0),
    "joint+0.3": _joint(0.3),
    "queues-10p": Assumption("queues of at least 10 packets, not 40", lambda population: _queues(10)),
    "queues-60p": Assumption("queues of at least 60 packets", lambda population: _queues(60)),
    "queues-100p": Assumption(_HUNDRED, lambda population: _queues(100)),
    "queues-100p-refitted": _refitted(_HUNDRED, False),
    "queues-4x": Assumption("queues four times as long in time", lambda population: _longer(4)),
    "losses-none": Assumption("no losses but those of queues", lambda population: losses(population, 0)),
    "losses-2x": Assumption("twice as many users with losses", lambda population: losses(population, 2)),
    "kept-open": Assumption(_KEPT, kept_open=True),
    "kept-open-100p": Assumption(f"{_KEPT}; {_HUNDRED}", lambda population: _queues(100), kept_open=True),
    "kept-open-100p-refitted": _refitted(f"{_KEPT}; {_HUNDRED}", True),
    "responses-5kB": _sized("5kB"),
    "responses-18kB": _sized("18kB"),
    "maps-over-4": _constant("Maps over 4 connections, not 9", "maps", application__maps__parallel=4),
    "window-6kB": _announced("receive windows that begin with 5,840 B (Linux of 2010)", "5840B", True),
    "window-17kB": _announced("receive windows of 17,520 B at most", "17520B", False),
    "back-end-0": Assumption(
        "back end 0 ms, not 125", lambda population: {"application.{service}.service_time": "0ms"}
    ),
    "back-end-250ms": Assumption("back end 250 ms", lambda population: {"application.{service}.service_time": "250ms"}),
    "downloads-none": _constant("nobody downloads beside it", application__bulk__share=1e-9),
    "downloads-tenth": _constant("one user in ten downloads beside it", application__bulk__share=0.1),
    "timers-1s": _constant("no retransmission timer below 1 s (RFC 6298)", tcp__rto__minimum="1s"),
    "no-f-rto": _constant("servers without F-RTO", tcp__recovery__scoreboard__f_rto=False),
    "lost-syn-2011": _constant(
        "IW of one segment after two lost SYNs or SYN-ACKs (Linux since 3.1)", tcp__lost_syn="rfc6928"
    ),
}
