"""What is said of the users themselves: bandwidths and round trips of the populations that were drawn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from firstflight.analysis.claim import near
from firstflight.analysis.intervals import Estimate
from firstflight.studies.rfc6928_cluster.claims.statement import SECTION, Found, Statement
from firstflight.studies.rfc6928_cluster.grid import AVGDC, SEARCH, SLOWDC, Place
from firstflight.studies.rfc6928_cluster.measure import Results

_BUILT = "The population is made so; the claim checks that it was drawn so."


def statements() -> Iterator[Statement]:
    """Medians and shares below 100 and 256 kbit/s."""
    yield Statement(
        "rfc6928-median-bandwidth-avgdc",
        SECTION,
        "The median bandwidth of AvgDC's users is 1.7 Mbit/s.",
        near(1.7),
        0.2,
        "Mbit/s",
        "0.2: the last digit printed, and drawing. Ours follows the shares of Figure 5, whose median is 1.0; the 2012 "
        "reproduction cites 1.2. The three cannot hold together.",
        partial(_median, AVGDC, "down_bps", 1e-6),
        needs="value",
    )
    for limit, share in ((100, 20.0), (256, 33.3)):
        yield Statement(
            f"rfc6928-below-{limit}-slowdc",
            SECTION,
            f"{'Nearly 20 %' if limit == 100 else 'A third'} of SlowDC's users have less than {limit} kbit/s.",
            near(share),
            2,
            "percent",
            f"2 points: drawing. {_BUILT}",
            partial(_below, 1000 * limit),
            needs="value",
        )
    for population in (AVGDC, SLOWDC):
        yield Statement(
            f"dukkipati-median-rtt-{population}",
            "Dukkipati et al. 2010, through the reproductions of 2012 and 2014",
            f"The median round trip of {'AvgDC' if population == AVGDC else 'SlowDC'} is 70 ms.",
            near(70),
            5,
            "ms",
            f"5 ms: the figure is rounded. {_BUILT}",
            partial(_median, population, "rtt_s", 1000),
            needs="value",
        )


def _median(population: str, column: str, scale: float, results: Results) -> Found:
    value: float = results.users(Place(population, SEARCH))[column].quantile(0.5, "linear") or 0.0
    return Found(Estimate(scale * value))


def _below(limit_bps: float, results: Results) -> Found:
    rates = results.users(Place(SLOWDC, SEARCH))["down_bps"]
    return Found(Estimate(100 * int((rates < limit_bps).sum()) / len(rates)))
