"""How much is gained: means, quantiles over subnets, services with many connections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from firstflight.analysis.claim import NoDataError, above, between, near
from firstflight.studies.rfc6928_cluster.claims.statement import (
    ABSTRACT,
    FIGURES_OWN_SPREAD,
    SECTION,
    WHY_SPREAD,
    Found,
    Statement,
    gain,
    mean_of,
)
from firstflight.studies.rfc6928_cluster.grid import AVGDC, BLOG, MAPS, NAMES, PHOTOS, SEARCH, SLOWDC, Place
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import SEARCH_GAIN

SUBNET_QUANTILES = (10, 25, 50, 75, 90, 95)
"""The figure of the subnets is not available; "all quantiles" is taken as these."""


def statements() -> Iterator[Statement]:
    """Web search in both data centres, subnets, Maps and thumbnails, and the abstract's mean."""
    for population in (AVGDC, SLOWDC):
        yield from _search(population)
    for edge in ("least", "greatest"):
        yield _subnets(edge)
    for service in (MAPS, PHOTOS):
        yield Statement(
            f"rfc6928-{service}-gain-avgdc",
            SECTION,
            f"Services with several connections at once gain 2 to 20 % in AvgDC: {service}.",
            between(2, 20),
            1,
            "percent",
            "1 point: the sentence rounds to whole percent.",
            partial(_average_gain, Place(AVGDC, service), "percent"),
        )
    yield Statement(
        "dukkipati-mean-gain",
        ABSTRACT,
        "HTTP latency falls by about 10 % on average (mean of the services, both data centres).",
        near(10),
        round(FIGURES_OWN_SPREAD * 10, 1),
        "percent",
        f"{WHY_SPREAD} The abstract's mean is over all of a company's services; ours are four, each counted alike.",
        _mean,
    )
    yield Statement(
        "rfc6928-few-segments",
        f"{SECTION}; Dukkipati et al. 2010, Figure 7",
        "Responses of at most 3 segments gain a little, too (AvgDC, web search).",
        above(0),
        0,
        "ms",
        "The sentence gives a direction and no number.",
        _few_segments,
    )


def _search(population: str) -> Iterator[Statement]:
    place = Place(population, SEARCH)
    for quantity, unit, expected in zip(
        ("difference", "percent"), ("ms", "percent"), SEARCH_GAIN[population], strict=True
    ):
        yield Statement(
            f"rfc6928-search-gain-{population}" + ("-percent" if unit == "percent" else ""),
            SECTION,
            f"Web search in {NAMES[population]} gains {expected:g} {'%' if unit == 'percent' else unit} on average.",
            near(expected),
            round(FIGURES_OWN_SPREAD * expected, 1),
            unit,
            WHY_SPREAD,
            partial(_average_gain, place, quantity),
        )


def _average_gain(place: Place, quantity: str, results: Results) -> Found:
    found = results.latency(place)
    return Found(gain(getattr(found, quantity)), f"With IW 3 {found.baseline.value:.0f} ms.")


def _subnets(edge: str) -> Statement:
    def found(results: Results) -> Found:
        gains = {q: gain(results.subnets(Place(AVGDC, SEARCH), f"p{q}").percent) for q in SUBNET_QUANTILES}
        pick = min if edge == "least" else max
        chosen = pick(gains, key=lambda q: gains[q].value)
        each = ", ".join(f"p{q} {estimate.value:.1f}" for q, estimate in gains.items())
        return Found(gains[chosen], f"At p{chosen}; percent by quantile of the subnets' mean latencies: {each}.")

    return Statement(
        f"rfc6928-subnets-{edge}",
        SECTION,
        f"Over /24 subnets latency falls by 5 to 11 % at all quantiles (web search, AvgDC; the {edge} gain).",
        between(5, 11),
        1,
        "percent",
        "1 point: the sentence rounds to whole percent.",
        found,
    )


def _mean(results: Results) -> Found:
    gains = {
        (population, service): results.latency(Place(population, service)).percent
        for population in (AVGDC, SLOWDC)
        for service in (SEARCH, MAPS, PHOTOS, BLOG)
    }
    each = ", ".join(
        f"{NAMES[population]} {service} {-found.value:.1f}" for (population, service), found in gains.items()
    )
    return Found(gain(mean_of(gains.values())), f"Percent: {each}.")


def _few_segments(results: Results) -> Found:
    bucket = results.buckets(Place(AVGDC, SEARCH), "segments")[0]
    if bucket.comparison is None:
        raise NoDataError(f"This run has no response of at most 3 segments to judge by: {bucket.reason}")
    return Found(gain(bucket.comparison.difference), f"{bucket.units} responses.")
