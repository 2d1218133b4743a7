"""Gains by round trip, bandwidth, bandwidth-delay product and size: the paper's buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firstflight.analysis import ab
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.rfc6928_cluster.claims.statement import gain
from firstflight.studies.rfc6928_cluster.grid import (
    AVGDC,
    FITTED,
    INDEPENDENT,
    NAMES,
    NEW,
    REUSED,
    SEARCH,
    STRONGER,
    Place,
    settings,
)
from firstflight.studies.rfc6928_cluster.measure import DIMENSIONS, Results
from firstflight.studies.rfc6928_cluster.published import TITLES, UNITS, Bar, bar, figure5
from firstflight.studies.rfc6928_cluster.tables.row import row

DEPENDENCES = (INDEPENDENT, FITTED, STRONGER)
_METRICS = (
    Metric("share", "Share of responses", 1, compare="absolute", near=2),
    Metric("responses", "Responses", 0),
    Metric("latency_iw3", "Latency with IW 3", 0, near=0.25),
    Metric("gain", "Gain", 1, near=0.35),
    Metric("gain_percent", "Gain", 1, near=0.35),
)


def buckets(results: Results) -> Table:
    """Web search by every dimension, the other services by bandwidth."""
    keys = ("population", "service", "by", "bucket")
    rows: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for population in settings()["populations"]:
        for service in results.services(population):
            place = Place(population, service)
            # The paper's buckets are of web search; the others show theirs by bandwidth: a report would take minutes.
            for by in DIMENSIONS if service == SEARCH else ("down",):
                at = {"population": NAMES[population], "service": service, "by": f"{TITLES[by]}, {UNITS[by]}"}
                for index, bucket in enumerate(results.buckets(place, by)):
                    rows += _rows({**at, "bucket": bucket.bucket}, bucket, bar(place, by, index))
                    if bucket.reason:
                        told = (
                            f"{NAMES[population]}, {service}, {TITLES[by]} {bucket.bucket} {UNITS[by]}: {bucket.reason}"
                        )
                        notes[told] = None
    return Table(
        "buckets",
        "Gain of IW 10 over IW 3 in the paper's buckets",
        "Means of latency; intervals hold for all buckets of a dimension together (Holm). In brackets what Figure 5 "
        "has for AvgDC's web search. A dash: no responses, or too few for a figure.",
        keys,
        rows_frame(keys, rows),
        metrics=_METRICS,
        notes=tuple(notes),
    )


def _rows(at: dict[str, Any], bucket: ab.Bucket, known: Bar | None) -> Iterator[dict[str, Any]]:
    found = bucket.comparison
    yield row(at, "share", Estimate(bucket.share_percent), known.share_percent if known else None)
    yield row(at, "responses", Estimate(bucket.units))
    if found is None:
        return
    yield row(at, "latency_iw3", found.baseline, known.latency_ms if known else None)
    # The interval that holds for all buckets at once is of the difference; that of the percentage is the bucket's own.
    yield row(
        at,
        "gain",
        Estimate(0 - found.difference.value, 0 - bucket.high, 0 - bucket.low),
        known.gain_ms if known else None,
    )
    yield row(at, "gain_percent", gain(found.percent), known.gain_percent if known else None)


def dependence(results: Results) -> Table:
    """Web search by bandwidth, with round trips that depend on it more or less."""
    keys = ("population", "bandwidth_kbps", "dependence")
    rows = []
    for population in settings()["populations"]:
        for name in DEPENDENCES:
            place = Place(population, SEARCH, name)
            if not results.has(place):
                continue
            for index, bucket in enumerate(results.buckets(place, "down")):
                known = figure5("down")[index] if population == AVGDC else None
                at = {"population": NAMES[population], "bandwidth_kbps": bucket.bucket, "dependence": name}
                if bucket.comparison is None:
                    continue
                found = bucket.comparison
                rows.append(row(at, "latency_iw3", found.baseline, known.latency_ms if known else None))
                rows.append(row(at, "gain", gain(found.difference), known.gain_ms if known else None))
                rows.append(row(at, "gain_percent", gain(found.percent), known.gain_percent if known else None))
    correlations = settings()["dependence"]
    return Table(
        "dependence",
        "What the joint law does: web search by bandwidth",
        f"Correlation of round trip and bandwidth: independent {correlations[INDEPENDENT]:g}, fitted as the population "
        f"has it, stronger {correlations[STRONGER]:g}. Published in brackets, the same for all three.",
        keys,
        rows_frame(keys, rows),
        across="dependence",
        metrics=_METRICS,
    )


def connections(results: Results) -> Table:
    """Web search by round trip, a new connection for each response or three on each."""
    keys = ("population", "round_trip_ms", "connections")
    rows = []
    for population in settings()["populations"]:
        for name in (NEW, REUSED):
            place = Place(population, SEARCH, FITTED, name)
            if not results.has(place):
                continue
            for index, bucket in enumerate(results.buckets(place, "rtt")):
                known = figure5("rtt")[index] if population == AVGDC else None
                at = {"population": NAMES[population], "round_trip_ms": bucket.bucket, "connections": name}
                if bucket.comparison is None:
                    continue
                found = bucket.comparison
                rows.append(row(at, "latency_iw3", found.baseline, known.latency_ms if known else None))
                rows.append(row(at, "gain", gain(found.difference), known.gain_ms if known else None))
                rows.append(row(at, "gain_percent", gain(found.percent), known.gain_percent if known else None))
    asked = settings()["reused"]["requests"]
    return Table(
        "connections",
        "What connections kept open do: web search by round trip",
        f"New: each response on a connection of its own. Reused: {asked} responses on each, the window kept while the "
        "user thinks. Added after the first run, to look for the reason of a difference; no claim rests on it.",
        keys,
        rows_frame(keys, rows),
        across="connections",
        metrics=_METRICS,
    )
