"""What it costs: retransmissions, who has them, and the worst tail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import polars as pl

from firstflight.analysis.claim import Expectation, NoDataError, at_least, below, near
from firstflight.analysis.intervals import Estimate
from firstflight.studies.rfc6928_cluster.claims.statement import ABSTRACT, SECTION, Found, Statement, mean_of
from firstflight.studies.rfc6928_cluster.grid import (
    AVGDC,
    BLOG,
    FEW,
    MANY,
    MAPS,
    NAMES,
    PHOTOS,
    SEARCH,
    SLOWDC,
    Place,
    settings,
)
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import MAPS_RETRANSMITTED, RETRANSMITTED, WITHOUT_RETRANSMISSION

_POINTS = "percentage points"
_HALF = "Half of the rise: nearer to it than to none or to twice as much; buffers and cross traffic are not published."
TAIL = (*range(50, 100),)
"""Percentiles looked at for "worse from the 96th up"."""


def statements() -> Iterator[Statement]:
    """Rises of the retransmission rate, traffic without any, and Maps' tail in SlowDC."""
    for population, (few, many) in RETRANSMITTED.items():
        yield _rise(
            f"rfc6928-retransmissions-{population}",
            f"The retransmission rate rises from {few} to {many} % in {NAMES[population]}, all services.",
            population,
            None,
            near(round(many - few, 2)),
            round((many - few) / 2, 2),
            _HALF,
        )
    few, many = MAPS_RETRANSMITTED
    yield _rise(
        "rfc6928-retransmissions-maps-avgdc",
        "Maps' retransmission rate rises by 0.9 points in AvgDC.",
        AVGDC,
        MAPS,
        near(0.9),
        0.45,
        _HALF,
    )
    yield _rise(
        "rfc6928-retransmissions-maps-slowdc",
        f"Maps' retransmission rate rises from {few} to {many} % in SlowDC.",
        SLOWDC,
        MAPS,
        near(round(many - few, 2)),
        round((many - few) / 2, 2),
        _HALF,
    )
    for service in (SEARCH, PHOTOS, BLOG):
        yield _rise(
            f"rfc6928-retransmissions-{service}-avgdc",
            f"Other services' rates rise by less than 0.5 points in AvgDC: {service}.",
            AVGDC,
            service,
            below(0.5),
            0,
            "The sentence gives a limit.",
        )
    yield Statement(
        "dukkipati-mean-retransmissions",
        ABSTRACT,
        "The retransmission rate rises by 0.5 points on average (mean of both data centres).",
        near(0.5),
        0.25,
        _POINTS,
        _HALF,
        _mean_rise,
    )
    for service in (SEARCH, MAPS):
        for iw in (FEW, MANY):
            yield _clean(service, iw)
    yield Statement(
        "rfc6928-already-lossy",
        SECTION,
        "What is retransmitted more falls on traffic that already retransmitted (web search, SlowDC: responses that "
        "retransmit with IW 10, of them those that did with IW 3).",
        at_least(50),
        0,
        "percent",
        "The sentence gives no number; half of them is the least that it can mean.",
        _already_lossy,
        needs="value",
    )
    yield from _tail()


def _rise(
    id_: str, text: str, population: str, service: str | None, expectation: Expectation, tolerance: float, why: str
) -> Statement:
    def found(results: Results) -> Found:
        services = tuple(settings()["users"]) if service is None else (service,)
        rates = results.retransmitted(population, services)
        return Found(
            _percent(rates.difference), f"{100 * rates.baseline.value:.2f} to {100 * rates.treatment.value:.2f} %."
        )

    return Statement(id_, SECTION, text, expectation, tolerance, _POINTS, why, found)


def _percent(share: Estimate) -> Estimate:
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high, share.replicates)


def _mean_rise(results: Results) -> Found:
    rises = {
        population: _percent(results.retransmitted(population, tuple(settings()["users"])).difference)
        for population in (AVGDC, SLOWDC)
    }
    each = ", ".join(f"{NAMES[population]} {rise.value:.2f}" for population, rise in rises.items())
    return Found(mean_of(rises.values()), f"{each}.")


def _clean(service: str, iw: int) -> Statement:
    fitted = " The population's losses are fitted to this." if (service, iw) == (SEARCH, FEW) else ""

    def found(results: Results) -> Found:
        shares = results.clean(Place(SLOWDC, service))
        return Found(shares.baseline if iw == FEW else shares.treatment)

    return Statement(
        f"rfc6928-clean-{service}-slowdc-iw{iw}",
        SECTION,
        f"About 90 % of the traffic of {service} in SlowDC has no retransmission (responses; IW {iw}).",
        near(WITHOUT_RETRANSMISSION),
        5,
        "percent",
        f'"About": nearer to 90 than to 80 or 100 is within 5 points.{fitted}',
        found,
    )


def _already_lossy(results: Results) -> Found:
    rows = results.responses(Place(SLOWDC, SEARCH))
    few, many = (rows.filter(pl.col("iw") == iw).select("response", "retransmissions") for iw in (FEW, MANY))
    paired = few.join(many, on="response", suffix="_many").filter(pl.col("retransmissions_many") > 0)
    if paired.is_empty():
        raise NoDataError(f"No response retransmits with IW {MANY} in this run.")
    before = paired.filter(pl.col("retransmissions") > 0)
    more = int(paired["retransmissions_many"].sum()) - int(paired["retransmissions"].sum())
    return Found(
        Estimate(100 * before.height / paired.height),
        f"{before.height} of {paired.height}; these send {more} segments more again than with IW {FEW}.",
    )


def _tail() -> Iterator[Statement]:
    place = Place(SLOWDC, MAPS)
    for unit, quantity, expected, tolerance in (("ms", "difference", 80, 40), ("percent", "percent", 2.3, 1.2)):
        yield Statement(
            f"rfc6928-maps-p99-slowdc{'' if unit == 'ms' else '-percent'}",
            SECTION,
            f"The 99th percentile of Maps' latency in SlowDC grows by {expected} {'%' if unit == 'percent' else unit}.",
            near(expected),
            tolerance,
            unit,
            _HALF,
            partial(_last_hundredth, place, quantity),
        )
    yield Statement(
        "rfc6928-maps-worse-from-slowdc",
        SECTION,
        "In SlowDC Maps is slower with IW 10 from the 96th percentile up.",
        near(96),
        3,
        "percentile",
        "3: from the 93rd to the 99th.",
        _worse_from,
        needs="value",
    )


def _last_hundredth(place: Place, quantity: str, results: Results) -> Found:
    found = results.latency(place, "p99")
    return Found(getattr(found, quantity), f"With IW 3 {found.baseline.value:.0f} ms.")


def worse_from(rows: pl.DataFrame) -> int:
    """The lowest percentile from which on, up to the 99th, latency is greater with IW 10; 100 without one."""
    few, many = (
        rows.filter(pl.col("iw") == iw).select(pl.col("latency_ms").fill_nan(math.inf).sort().alias("latency_ms"))[
            "latency_ms"
        ]
        for iw in (FEW, MANY)
    )
    found = 100
    for q in reversed(TAIL):
        if not (many.quantile(q / 100, "lower") or 0) > (few.quantile(q / 100, "lower") or 0):
            break
        found = q
    return found


def _worse_from(results: Results) -> Found:
    found = worse_from(results.responses(Place(SLOWDC, MAPS)))
    note = (
        "No percentile up to the 99th is greater with IW 10 than with IW 3; 100 stands for that."
        if found == 100
        else ""
    )
    return Found(Estimate(found), note)
