"""Retransmissions by service and initial window."""

from __future__ import annotations

from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.rfc6928_cluster.grid import FEW, MANY, MAPS, NAMES, SEARCH, SLOWDC, Place, settings
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import MAPS_RETRANSMITTED, RETRANSMITTED, WITHOUT_RETRANSMISSION
from firstflight.studies.rfc6928_cluster.tables.row import row

ALL = "all"


def percent(share: Estimate) -> Estimate:
    """A share of 1 in percent."""
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high, share.replicates)


def retransmissions(results: Results) -> Table:
    """Rates, their rise over IW 3, and responses without any."""
    keys = ("population", "service", "iw")
    rows = []
    for population in settings()["populations"]:
        services = results.services(population)
        if not services:
            continue
        shown: dict[str, tuple[str, ...]] = {service: (service,) for service in services}
        # The published rates are of all: a part of them has nothing to stand beside.
        if services == list(settings()["users"]):
            shown = {ALL: tuple(services)} | shown
        for service, members in shown.items():
            known = _published(population, service)
            common = set.intersection(*(set(results.windows(Place(population, member))) for member in members))
            for iw in sorted(common):
                at = {"population": NAMES[population], "service": service, "iw": iw}
                rates = results.retransmitted(population, members, MANY if iw == FEW else iw)
                side = rates.baseline if iw == FEW else rates.treatment
                rows.append(row(at, "rate", percent(side), known.get(iw)))
                if iw != FEW:
                    rise = known[MANY] - known[FEW] if known and iw == MANY else None
                    rows.append(row(at, "rise", percent(rates.difference), rise))
                if len(members) == 1:
                    clean = results.clean(Place(population, service), MANY if iw == FEW else iw)
                    theirs = service in (SEARCH, MAPS) and population == SLOWDC and iw in (FEW, MANY)
                    share = clean.baseline if iw == FEW else clean.treatment
                    rows.append(row(at, "clean", share, WITHOUT_RETRANSMISSION if theirs else None))
    return Table(
        "retransmissions",
        "Retransmissions by service and initial window",
        "Retransmitted segments of segments sent; all: services count alike, each by its responses. Losses are fitted "
        "to the published rates of all services with IW 3; the rest is prediction.",
        keys,
        rows_frame(keys, rows),
        metrics=(
            Metric("rate", "Retransmitted", 2, near=0.2),
            Metric("rise", "Rise over IW 3", 2, near=0.5),
            Metric("clean", "Responses without", 1, compare="absolute", near=5),
        ),
    )


def _published(population: str, service: str) -> dict[int, float]:
    if service == ALL:
        return dict(zip((FEW, MANY), RETRANSMITTED[population], strict=True))
    if (population, service) == (SLOWDC, MAPS):
        return dict(zip((FEW, MANY), MAPS_RETRANSMITTED, strict=True))
    return {}
