"""Latency by initial window; by quantile over subnets; the tail of Maps."""

from __future__ import annotations

from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.rfc6928_cluster.claims.statement import gain
from firstflight.studies.rfc6928_cluster.grid import AVGDC, FEW, MANY, MAPS, NAMES, SEARCH, SLOWDC, Place, settings
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import SEARCH_GAIN
from firstflight.studies.rfc6928_cluster.tables.row import row

_QUANTILES = ("p50", "p90", "p99")
SUBNET_QUANTILES = (5, 10, 25, 50, 75, 90, 95, 99)
TAIL_QUANTILES = (50, 75, 90, 95, 96, 97, 98, 99)


def latency(results: Results) -> Table:
    """Every population, service and window: mean and what is gained over IW 3; quantiles with IW 3 and 10."""
    keys = ("population", "service", "iw")
    rows = []
    for population in settings()["populations"]:
        for service in results.services(population):
            place = Place(population, service)
            for iw in results.windows(place):
                at = {"population": NAMES[population], "service": service, "iw": iw}
                other = MANY if iw == FEW else iw
                quantiles = _QUANTILES if iw in (FEW, MANY) else ()
                found = {name: results.latency(place, name, other) for name in ("mean", *quantiles)}
                side = "baseline" if iw == FEW else "treatment"
                rows += [row(at, name, getattr(one, side)) for name, one in found.items()]
                if iw != FEW:
                    known = SEARCH_GAIN[population] if (service, iw) == (SEARCH, MANY) else (None, None)
                    rows.append(row(at, "gain", gain(found["mean"].difference), known[0]))
                    rows.append(row(at, "gain_percent", gain(found["mean"].percent), known[1]))
                late = found["mean"].unfinished[0 if iw == FEW else 1]
                rows.append(row(at, "unfinished", Estimate(late)))
    return Table(
        "latency",
        "Latency by initial window",
        "Of each response, from the end of the handshake to its last byte. Gain: of the mean over that with IW 3. A "
        "response that did not finish is not in the mean, and beyond every other in the quantiles.",
        keys,
        rows_frame(keys, rows),
        metrics=(
            Metric("mean", "Mean", 0),
            Metric("p50", "Median", 0),
            Metric("p90", "90th percentile", 0),
            Metric("p99", "99th percentile", 0),
            Metric("gain", "Gain", 1, near=0.35),
            Metric("gain_percent", "Gain", 1, near=0.35),
            Metric("unfinished", "Not finished", 0),
        ),
    )


def subnets(results: Results) -> Table:
    """Quantiles over subnets of the mean latency of a subnet's responses."""
    keys = ("population", "quantile")
    rows = []
    for population in settings()["populations"]:
        place = Place(population, SEARCH)
        if not results.has(place):
            continue
        for q in SUBNET_QUANTILES:
            found = results.subnets(place, f"p{q}")
            at = {"population": NAMES[population], "quantile": q}
            rows.append(row(at, "latency_iw3", found.baseline))
            rows.append(row(at, "gain", gain(found.difference)))
            rows.append(row(at, "gain_percent", gain(found.percent)))
    return Table(
        "subnets",
        "Subnets: web search by quantile of the subnets' mean latencies",
        "Twenty users share an access network. The quantiles are taken of each window's own means, so at a quantile it "
        "is not the same subnet. Published: 5 to 11 % at all quantiles.",
        keys,
        rows_frame(keys, rows),
        metrics=(
            Metric("latency_iw3", "Latency with IW 3", 0),
            Metric("gain", "Gain", 1),
            Metric("gain_percent", "Gain", 1),
        ),
    )


def tail(results: Results) -> Table:
    """Quantiles of Maps' latency: how much it changes with IW 10."""
    keys = ("population", "quantile")
    rows = []
    for population in settings()["populations"]:
        place = Place(population, MAPS)
        if not results.has(place):
            continue
        for q in TAIL_QUANTILES:
            found = results.latency(place, f"p{q}")
            known = (80.0, 2.3) if (population, q) == (SLOWDC, 99) else (None, None)
            at = {"population": NAMES[population], "quantile": q}
            rows.append(row(at, "latency_iw3", found.baseline))
            rows.append(row(at, "change", found.difference, known[0]))
            rows.append(row(at, "change_percent", found.percent, known[1]))
    return Table(
        "tail",
        "Maps: change of latency with IW 10, by quantile",
        f"Positive: slower than with IW 3. Published for {NAMES[SLOWDC]}: slower from the 96th percentile up; "
        f"nothing of the kind for {NAMES[AVGDC]}.",
        keys,
        rows_frame(keys, rows),
        metrics=(
            Metric("latency_iw3", "Latency with IW 3", 0),
            Metric("change", "Change", 0, near=0.5),
            Metric("change_percent", "Change", 1, near=0.5),
        ),
    )
