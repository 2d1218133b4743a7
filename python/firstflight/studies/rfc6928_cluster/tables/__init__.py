"""The study's tables."""

from __future__ import annotations

from firstflight.studies.offered import Offered
from firstflight.studies.rfc6928_cluster.grid import FITTED, MAPS, NEW, REUSED, SEARCH, Place, settings
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.tables import buckets, cost, latency, population, sensitivity

__all__ = ["TABLES"]


def _any_service(results: Results) -> bool:
    return any(results.services(name) for name in settings()["populations"])


def _compared(results: Results, *places: tuple[str, str, str]) -> bool:
    return any(results.has(Place(name, *place)) for name in settings()["populations"] for place in places)


def _by_dependence(results: Results) -> bool:
    return _compared(results, *((SEARCH, dependence, NEW) for dependence in buckets.DEPENDENCES))


def _by_connections(results: Results) -> bool:
    return _compared(results, *((SEARCH, FITTED, connections) for connections in (NEW, REUSED)))


def _search(results: Results) -> bool:
    return _compared(results, (SEARCH, FITTED, NEW))


def _maps(results: Results) -> bool:
    return _compared(results, (MAPS, FITTED, NEW))


def _assumed(results: Results) -> bool:
    return bool(sensitivity.compared(results))


def _drawn(results: Results) -> bool:
    return any(results.windows(Place(name, SEARCH)) for name in settings()["populations"])


def _drawn_by_dependence(results: Results) -> bool:
    return any(
        results.windows(Place(name, SEARCH, dependence))
        for name in settings()["populations"]
        for dependence in buckets.DEPENDENCES
    )


TABLES = (
    Offered("latency", _any_service, latency.latency),
    Offered("buckets", _any_service, buckets.buckets),
    Offered("dependence", _by_dependence, buckets.dependence),
    Offered("connections", _by_connections, buckets.connections),
    Offered("subnets", _search, latency.subnets),
    Offered("retransmissions", _any_service, cost.retransmissions),
    Offered("sensitivity", _assumed, sensitivity.sensitivity),
    Offered("tail", _maps, latency.tail),
    Offered("shares", _drawn_by_dependence, population.shares),
    Offered("paths", _drawn, population.paths),
)
