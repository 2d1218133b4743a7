"""Tables, figures and the answer: this run next to the published values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.populations import dukkipati2010, slowdc
from firstflight.report.figure import Figure
from firstflight.studies.kernel import Quantities, lines, named, table, value
from firstflight.studies.kernel.bars import bars, forest
from firstflight.studies.kernel.figure import rows_of
from firstflight.studies.rfc6928_cluster.claims import few_pairs
from firstflight.studies.rfc6928_cluster.measure import (
    AVGDC,
    CORRELATIONS,
    DIMENSIONS,
    FEW,
    GAINS,
    MANY,
    MAPS,
    MAPS_RETRANSMITTED,
    NAMES,
    QUANTILES,
    REQUESTS,
    RETRANSMITTED,
    SEARCH,
    SEARCH_GAIN,
    SIGNS,
    SLOWDC,
    TITLES,
    UNITS,
    WITHOUT_RETRANSMISSION,
    along,
    figure5,
    gain,
    labels,
    laws,
    rate,
    rate_of_all,
    ratio_of_quantiles,
    rise,
    slow_gain,
)

if TYPE_CHECKING:
    import altair

ALL = "all"
NEAR: Mapping[str, tuple[Any, float]] = {
    "gain": ("relative", 0.35),
    "gain_percent": ("relative", 0.35),
    "slow_gain_percent": ("relative", 0.35),
    "latency_iw3": ("relative", 0.25),
    "rate": ("relative", 0.2),
    "rate_iw3": ("relative", 0.2),
    "rate_iw10": ("relative", 0.2),
    "rise": ("relative", 0.5),
    "change": ("relative", 0.5),
    "change_percent": ("relative", 0.5),
    "clean": ("absolute", 5),
}
_SHARE: Mapping[str, tuple[Any, float]] = {"share": ("absolute", 2)}
_FIGURE5 = {
    "share": "share_percent",
    "latency_iw3": "iw3_latency_ms",
    "gain": "gain_ms",
    "gain_percent": "gain_percent",
}


def tables(q: Quantities) -> Iterator[Table]:
    """Latency, its buckets, subnets, retransmissions, the tail, the populations."""
    yield _latency(q)
    yield from _buckets(q)
    yield _by_law(q)
    yield _by_connections(q)
    yield _subnets(q)
    yield _retransmissions(q)
    yield from _sensitivity(q)
    yield _tail(q)
    yield from _shares(q)
    yield _paths(q)


def _shown(of: xr.DataArray) -> xr.DataArray:
    """With the populations' names."""
    return of.assign_coords(population=[NAMES[name] for name in of["population"].values.tolist()])


def _compared(few: xr.DataArray, latency: xr.DataArray) -> list[xr.DataArray]:
    """Latency with IW 3 and the part of it that IW 10 saves."""
    few, latency = (_shown(of.sel(iw=MANY, drop=True)) for of in (few, latency))
    return [
        named(few, "latency_iw3", "Latency with IW 3", "ms", 0),
        named(few - latency, "gain", "Gain", "ms"),
        named(100 * (1 - latency / few), "gain_percent", "Gain", "percent"),
    ]


def _latency(q: Quantities) -> Table:
    mean = named(_shown(q.stated_latency), "mean", "Mean", "ms", 0)
    quantiles = [
        named(_shown(q.percentiles.sel(percentile=p)).reindex(iw=mean["iw"]), f"p{p}", title, "ms", 0)
        for p, title in ((50, "Median"), (90, "90th percentile"), (99, "99th percentile"))
    ]
    gains = [_shown(gain(q, "stated", unit)) for unit in GAINS]
    larger = [of.where(of["iw"] != FEW) for of in gains]
    published = {
        (name, NAMES[population], SEARCH, MANY): value
        for population, of in SEARCH_GAIN.items()
        for name, value in zip(("gain", "gain_percent"), of, strict=True)
    }
    return table(
        "latency",
        "Latency by initial window",
        "Of each response, from the end of the handshake to its last byte. Gain: of the mean over that with IW 3. A "
        "response that did not finish, or did not with IW 3, is not in the mean; in the quantiles one that did not "
        "finish is beyond every other.",
        [mean, *quantiles, *larger, _shown(q.unfinished.sel(draw=0, drop=True))],
        published=published,
        near=NEAR,
    )


def _buckets(q: Quantities) -> Iterator[Table]:
    """Web search by every dimension, the other services by bandwidth."""
    parts, notes = [], []
    for population, service in ((p, s) for p in NAMES for s in q.stated_latency["service"].values.tolist()):
        for by in DIMENSIONS if service == SEARCH else ("down",):
            name, told = f"stated_{by}", f"{TITLES[by]}, {UNITS[by]}"
            at = {"population": [population], "service": [service], "iw": [MANY]}
            few, latency, count = (getattr(q, f"{name}_{of}").sel(at) for of in ("few", "latency", "count"))
            whole = count.sum(by, skipna=False)
            own = [
                named(100 * count / whole, "share", "Share of responses", "percent"),
                named(count, "responses", "Responses", "count", 0),
            ]
            own = [_shown(of.sel(iw=MANY, draw=0)) for of in own] + _compared(few, latency)
            own = [of.rename({by: "bucket"}).expand_dims(by=[told], axis=2) for of in own]
            known = (population, service) == (AVGDC, SEARCH) and by != "segments"
            published = {
                (metric, NAMES[population], service, told, label): value
                for metric, column in (_FIGURE5.items() if known else ())
                for label, value in zip(labels(by), figure5(by, column), strict=True)
            }
            parts.append(
                table(
                    "buckets",
                    "Gain of IW 10 over IW 3 in the paper's buckets",
                    "Mean latency; each interval holds for its bucket alone. In brackets: Figure 5's value for AvgDC's "
                    "web search. A dash: no responses, or too few.",
                    own,
                    published=published,
                    near={**NEAR, **_SHARE},
                )
            )
            lacking = [
                (label, few_pairs(value)) for label, value in zip(labels(by), own[1].values.ravel(), strict=True)
            ]
            notes += [
                f"{NAMES[population]}, {service}, {TITLES[by]} {label} {UNITS[by]}: {why}"
                for label, why in lacking
                if why
            ]
    yield replace(parts[0], frame=pl.concat([part.frame for part in parts]), notes=tuple(notes))


def _by_figure5(key: str, by: str, variants: Sequence[str]) -> dict[tuple[Any, ...], float]:
    """The published bars, the same next to each variant."""
    return {
        (metric, NAMES[AVGDC], label, variant): value
        for metric, column in _FIGURE5.items()
        for label, value in zip(labels(by), figure5(by, column), strict=True)
        for variant in variants
    }


def _by_law(q: Quantities) -> Table:
    few, latency = (laws(q, f"down_{of}", "stated").rename(down="bandwidth_kbps") for of in ("few", "latency"))
    return table(
        "dependence",
        "Effect of the joint distribution: web search by bandwidth",
        f"Correlation of RTT and bandwidth: independent {CORRELATIONS['independent']:g}, fitted as the population "
        f"has it, stronger {CORRELATIONS['stronger']:g}. Published in brackets, the same for all three.",
        _compared(few, latency),
        "dependence",
        _by_figure5("bandwidth_kbps", "down", ["independent", "fitted", "stronger"]),
        near=NEAR,
        order=("population", "bandwidth_kbps", "dependence"),
    )


def connections_of(q: Quantities, of: str) -> xr.DataArray:
    """A quantity of web search by round trip, with new and with reused connections."""
    new = getattr(q, f"stated_rtt_{of}").expand_dims(connections=["new"])
    parts = [part.sel(service=SEARCH, drop=True) for part in (new, getattr(q, f"reused_rtt_{of}"))]
    return along("connections", parts)


def _by_connections(q: Quantities) -> Table:
    few, latency = (connections_of(q, of).rename(rtt="round_trip_ms") for of in ("few", "latency"))
    return table(
        "connections",
        "Effect of connections kept open: web search by RTT",
        f"New: one response per connection. Reused: {REQUESTS} responses per connection, with cwnd kept during think "
        "times. Added after the first run, to find the reason of a difference; no claim depends on it.",
        _compared(few, latency),
        "connections",
        _by_figure5("round_trip_ms", "rtt", ["new", "reused"]),
        near=NEAR,
        order=("population", "round_trip_ms", "connections"),
    )


def quantiles_of(of: xr.DataArray, service: str) -> xr.DataArray:
    """Quantiles of a service, as tables name them."""
    found = _shown(of.sel(service=service, drop=True)).rename(percentile="quantile")
    found["quantile"].attrs["long_name"] = "percentile"
    return found


def _subnets(q: Quantities) -> Table:
    own = quantiles_of(q.subnets, SEARCH)
    few = own.sel(iw=FEW, drop=True)
    return table(
        "subnets",
        "Subnets: web search by quantile of the subnets' mean latencies",
        "Twenty users share an access network. The quantiles are taken of each window's own means, so at a quantile it "
        "is not the same subnet. Published: 5 to 11% at all quantiles.",
        [
            named(few, "latency_iw3", "Latency with IW 3", "ms", 0),
            named(-ratio_of_quantiles(own, "ms"), "gain", "Gain", "ms"),
            named(-ratio_of_quantiles(own), "gain_percent", "Gain", "percent"),
        ],
    )


def _tail(q: Quantities) -> Table:
    own = quantiles_of(q.tail, MAPS)
    return table(
        "tail",
        "Maps: change of latency with IW 10, by quantile",
        f"Positive: slower than with IW 3. Published for {NAMES[SLOWDC]}: slower from the 96th percentile up; "
        f"nothing of the kind for {NAMES[AVGDC]}.",
        [
            named(own.sel(iw=FEW, drop=True), "latency_iw3", "Latency with IW 3", "ms", 0),
            named(ratio_of_quantiles(own, "ms"), "change", "Change", "ms", 0),
            named(ratio_of_quantiles(own), "change_percent", "Change", "percent"),
        ],
        published={("change", NAMES[SLOWDC], 99): 80.0, ("change_percent", NAMES[SLOWDC], 99): 2.3},
        near={name: NEAR[name] for name in ("change", "change_percent")},
    )


def _retransmissions(q: Quantities) -> Table:
    both = [
        of.transpose("population", "service", "iw", "draw")
        for of in (
            rate_of_all(q.stated_again, q.stated_sent).expand_dims(service=[ALL]),
            rate(q.stated_again, q.stated_sent),
        )
    ]
    rates = _shown(along("service", both))
    clean = named(_shown(q.stated_clean).reindex(service=rates["service"]), "clean", "Responses without", "percent")
    published: dict[tuple[Any, ...], float] = {}
    for place, (few, many) in (
        *(((NAMES[population], ALL), of) for population, of in RETRANSMITTED.items()),
        ((NAMES[SLOWDC], MAPS), MAPS_RETRANSMITTED),
    ):
        published |= {("rate", *place, FEW): few, ("rate", *place, MANY): many, ("rise", *place, MANY): many - few}
    for service in (SEARCH, MAPS):
        published |= {("clean", NAMES[SLOWDC], service, iw): WITHOUT_RETRANSMISSION for iw in (FEW, MANY)}
    return table(
        "retransmissions",
        "Retransmissions by service and initial window",
        "Retransmitted segments of segments sent; all: services have equal weights, each by its responses. Losses are "
        "fitted to the published rates of all services with IW 3; the rest is prediction.",
        [rates, rise(rates), clean],
        published=published,
        near=NEAR,
    )


def assumed(q: Quantities) -> dict[str, xr.DataArray]:
    """By population and assumption, the stated ones first: web search's gains, rates of all services."""
    order = ["stated", *q.assumed_again["assumption"].values.tolist()]
    order[order.index("window-6kB") : order.index("window-6kB")] = ["responses-5kB", "responses-18kB", "maps-over-4"]

    def merged(of: str, services: Sequence[str]) -> xr.DataArray:
        """Of these services; assumptions on another service are as stated."""
        stated = getattr(q, f"stated_{of}").sel(iw=[FEW, MANY])
        parts = [
            stated.sel(service=services).expand_dims(assumption=["stated"]),
            getattr(q, f"assumed_{of}").sel(service=services),
        ]
        for grid, own in (("search_assumed", SEARCH), ("maps_assumed", MAPS)):
            names = getattr(q, f"{grid}_again")["assumption"].values
            others = [service for service in services if service != own]
            both = [getattr(q, f"{grid}_{of}")] if own in services else []
            both += [stated.sel(service=[service]).expand_dims(assumption=names) for service in others]
            parts.append(along("service", both))
        same = [part.transpose("population", "service", "assumption", "iw", "draw") for part in parts]
        return along("assumption", [part.sel(service=services) for part in same]).sel(assumption=order)

    every = q.stated_again["service"].values.tolist()
    found = {}
    for name, of in (("gain_percent", ""), ("slow_gain_percent", "slow_")):
        few, latency = (merged(f"{of}{side}", [SEARCH]).sel(service=SEARCH, iw=MANY) for side in ("few", "latency"))
        found[name] = named(100 * (1 - latency / few), name, "Gain <= 256 kbit/s" if of else "Gain", "percent")
    rates = rate_of_all(merged("again", every), merged("sent", every))
    few, many = rates.sel(iw=FEW), rates.sel(iw=MANY)
    found["rate_iw3"] = named(few, "rate_iw3", f"Retransmitted, IW {FEW}", "percent", 2)
    found["rate_iw10"] = named(many, "rate_iw10", f"Retransmitted, IW {MANY}", "percent", 2)
    found["rise"] = named(many - few, "rise", "Rise", "points", 2)
    found["clean"] = named(merged("clean", [SEARCH]).sel(service=SEARCH, iw=MANY), "clean", "Without", "percent")
    titles = q.assumed_again["assumption"].attrs["titles"]
    return {name: _shown(of).assign_coords(assumption=[titles[one] for one in order]) for name, of in found.items()}


def _sensitivity(q: Quantities) -> Iterator[Table]:
    if q.assumed_again.isnull().all():
        return
    found = assumed(q)
    published: dict[tuple[Any, ...], float] = {}
    for told in found["rise"]["assumption"].values.tolist():
        for population, name in NAMES.items():
            few, many = RETRANSMITTED[population]
            known = {"gain_percent": SEARCH_GAIN[population][1], "rate_iw3": few, "rate_iw10": many}
            known["rise"] = round(many - few, 2)
            known |= {"clean": WITHOUT_RETRANSMISSION} if population == SLOWDC else {"slow_gain_percent": slow_gain()}
            published |= {(metric, name, told): value for metric, value in known.items()}
    yield table(
        "sensitivity",
        "Dependence of gain and cost on each assumption",
        "One assumption changed, all else as stated; nothing is refitted unless the row states it. Gain: web search, "
        "all users and those up to 256 kbit/s. Retransmitted: segments of all services, with equal weights. Without: "
        f"responses of web search with IW {MANY} that had no retransmission. Fewer users than in the other tables, "
        "but for the stated row. Added after the first run, to find the reasons of differences; no claim depends on "
        "it.",
        list(found.values()),
        published=published,
        near=NEAR,
    )


def drawn_share(q: Quantities, by: str) -> xr.DataArray:
    """Share of web search's users in each bucket."""
    users = laws(q, "users_bdp", "stated") if by == "bdp" else getattr(q, f"stated_users_{by}").sel(service=SEARCH)
    users = _shown(users.sel(iw=FEW, drop=True))
    whole = users.sum(by)
    return named(100 * users.fillna(0) / whole.where(whole > 0), "share", "Share of users", "percent", 2)


def _shares(q: Quantities) -> Iterator[Table]:
    parts = []
    for by in DIMENSIONS[:3]:
        told = f"{TITLES[by]}, {UNITS[by]}"
        own = drawn_share(q, by)
        own = own if by == "bdp" else own.expand_dims(dependence=["fitted"])
        own = own.rename({by: "bucket"}).expand_dims(by=[told])
        published = {
            ("share", NAMES[AVGDC], told, label, law): value
            for label, value in zip(labels(by), dukkipati2010.shares(by), strict=True)
            for law in own["dependence"].values.tolist()
        }
        parts.append(
            table(
                "shares",
                "Shares of the users by RTT, bandwidth and their product",
                "Marginals are built from the published shares. The dependence of both is fitted to the product's "
                "shares.",
                [own.transpose("population", "by", "bucket", "dependence", ...)],
                "dependence",
                published,
                near={"share": ("absolute", 1)},
            )
        )
    frame = pl.concat([part.frame for part in parts])
    yield replace(parts[0], frame=frame.sort("population", maintain_order=True))


def _paths(q: Quantities) -> Table:
    published: dict[tuple[Any, ...], float] = {}
    for name, down in ((NAMES[AVGDC], 1.7), (NAMES[SLOWDC], 0.5)):
        published[("value", name, QUANTILES["median_rtt"][0])] = 70.0
        published[("value", name, QUANTILES["median_down"][0])] = down
    published[("value", NAMES[AVGDC], QUANTILES["median_bdp"][0])] = 9.5
    for share, bps in slowdc.QUANTILES_BPS:
        published[("value", NAMES[SLOWDC], QUANTILES[f"below_{bps / 1000:.0f}"][0])] = 100 * share
    parts = []
    for name, (told, _) in QUANTILES.items():
        own = _shown(getattr(q, name).sel(service=SEARCH, iw=FEW, drop=True)).expand_dims(quantity=[told])
        # The shares are SlowDC's published ones.
        parts.append(own.where(own["population"] == NAMES[SLOWDC]) if name.startswith("below") else own)
    return table(
        "paths",
        "Users' paths, as drawn",
        "AvgDC's median bandwidth: RFC 6928 reports 1.7 Mbit/s and the 2012 reproduction 1.2; the shares of Figure 5, "
        "which this study follows, have 1.0. The product's median is that of the published shares, interpolated.",
        [named(along("quantity", parts).transpose("population", "quantity", ...), "value", "Value", "", 2)],
        published=published,
    )


_OURS, _THEIRS = "simulated", "published"
_SOURCES = (_OURS, f"{_OURS}, independent", _THEIRS)
_INTERVALS = "Bars: 95% CIs; a simulated point without one has too few users for it."


def figures(q: Quantities) -> Iterator[Figure | None]:
    """The paper's Figure 5 next to this run's, its explanation and the cost."""
    yield _by_bucket(
        q,
        "figure5",
        AVGDC,
        DIMENSIONS[:3],
        "AvgDC's web search in the buckets of the paper's Figure 5",
        "Mean gain of IW 10 over IW 3, above in ms, below in percent of the mean with IW 3; above the bars the "
        "share of responses. Whiskers: 95% CIs; a simulated bar without one has too few users for it. "
        "Published bars are read off the figure. The axis of ms is stretched towards zero.",
    )
    few, latency = (connections_of(q, of) for of in ("few", "latency"))
    yield _next_to_figure5(
        few,
        latency,
        "connections",
        "rtt",
        "With connections kept open the gain is the published one",
        "AvgDC's web search, gain in percent of the mean with IW 3. New: one response per connection. Reused: three "
        "per connection, as RFC 6928 reports for Chrome (35% of requests on new ones). Looked at after the first "
        f"run. {_INTERVALS}",
    )
    few, latency = (laws(q, f"down_{of}", "stated") for of in ("few", "latency"))
    yield _next_to_figure5(
        few,
        latency,
        "dependence",
        "down",
        "The joint distribution reverses the order of gains by bandwidth",
        "AvgDC's web search, gain in percent of the mean with IW 3. Independent: as in the reproduction of 2014, the "
        "faster the user, the more she gains. Fitted to the shares of the bandwidth-delay product, and stronger than "
        f"that: slow users have long RTTs. {_INTERVALS}",
    )
    change = named(-gain(q, "stated"), "sweep", "change of mean latency", "%")
    caption = "Change of the mean over that with IW 3; below zero is faster. Bands: 95% CIs."
    yield lines(change, "Mean latency by initial window", caption, "iw", "service", "population", base=0)
    rates = named(rate(q.stated_again, q.stated_sent), "retransmissions", "retransmitted", "%")
    caption = "Retransmitted segments of segments sent. Bands: 95% CIs."
    yield lines(rates, "Retransmissions by initial window", caption, "iw", "service", "population")
    yield lines(
        named(ratio_of_quantiles(quantiles_of(q.tail, MAPS)), "tail", "change", "%"),
        "Maps: who is slower with IW 10",
        "Change of the quantiles of latency; above zero is slower than with IW 3. RFC 6928 has SlowDC slower from the "
        "96th percentile up. Bands: 95% CIs.",
        "quantile",
        "population",
        base=0,
    )
    yield lines(
        named(-ratio_of_quantiles(quantiles_of(q.subnets, SEARCH)), "subnets", "gain", "%"),
        "Web search over subnets",
        "Gain of IW 10 at each quantile of the subnets' mean latencies. RFC 6928: 5 to 11% at all quantiles. Bands: "
        "95% CIs.",
        "quantile",
        "population",
        base=0,
    )
    yield _by_assumption(q)
    yield _by_bucket(
        q,
        "segments",
        AVGDC,
        DIMENSIONS[3:],
        "AvgDC's web search by size",
        "Mean gain of IW 10 over IW 3 by segments of the response: the buckets of the paper's Figure 7, whose bars are "
        "not available. Whiskers: 95% CIs.",
    )
    yield _by_bucket(
        q,
        "figure6",
        SLOWDC,
        DIMENSIONS[:3],
        "SlowDC's web search in the same buckets",
        "As above; the paper's Figure 6 has SlowDC by bandwidth, but its bars are not available. Whiskers: 95% "
        "intervals.",
    )
    yield _population(q)
    yield _slow_law()


def _with_published(own: xr.DataArray, key: str, by: str, values: Sequence[float]) -> xr.DataArray:
    """With the published bars as one more label of `key`; they have no interval."""
    published = xr.full_like(own.isel({key: [0]}), math.nan).assign_coords({key: [_THEIRS]})
    value = xr.DataArray(list(values), {by: own[by]}, [by])
    return along(key, [own, published.where(published["draw"] > 0, value).transpose(*own.dims)])


def _next_to_figure5(
    few: xr.DataArray, latency: xr.DataArray, key: str, by: str, title: str, caption: str
) -> Figure | None:
    own = (100 * (1 - latency / few)).sel(population=AVGDC, iw=MANY)
    if any(own.sel({key: label}).isnull().all() for label in own[key].values):
        return None
    shown = named(_with_published(own, key, by, figure5(by, "gain_percent")), key, "gain", "%")
    shown[by].attrs["long_name"] = f"{TITLES[by]}, {UNITS[by]}"
    return lines(shown, title, caption, by, key)


def _by_bucket(
    q: Quantities, name: str, population: str, dimensions: Sequence[str], title: str, caption: str
) -> Figure | None:
    """Gains in ms and percent by bucket."""
    at = {"population": population, "service": SEARCH, "iw": MANY}
    wide, narrow = [], []
    for by in dimensions:
        count = getattr(q, f"stated_{by}_count").sel(at).isel(draw=0)
        shares = [f"{share:.1f}%" if share else "none" for share in (100 * count / count.sum()).fillna(0).values]
        panels = []
        for unit, column in GAINS.items():
            own = gain(q, f"stated_{by}", unit).sel(at).expand_dims(source=[_OURS])
            if own.isnull().all():
                return None
            if population == AVGDC and by != "segments":
                own = _with_published(own, "source", by, figure5(by, column))
            panels.append((rows_of(own, [by, "source"]), unit))
        step = 34 if len(dimensions) > 1 else 60
        wide.append([_bars(rows, by, f"gain, {SIGNS[unit]}", step, shares) for rows, unit in panels])
        narrow += [_bars(rows, by, f"gain, {SIGNS[unit]}", 30, shares) for rows, unit in panels]
    import altair as alt

    columns = [alt.vconcat(*panels, spacing=6) for panels in wide]
    return Figure(name, title, caption, alt.hconcat(*columns), alt.vconcat(*narrow))


def _bars(
    rows: list[dict[str, Any]], by: str, axis: str, step: int, above: Sequence[str] | None = None, height: int = 150
) -> altair.LayerChart:
    return bars(rows, by, labels(by), _SOURCES, (f"{TITLES[by]}, {UNITS[by]}", axis), step, above, height)


def _population(q: Quantities) -> Figure | None:
    """AvgDC's users as drawn and as published."""
    charts: list[list[Any]] = [[], []]
    for by in DIMENSIONS[:3]:
        own = drawn_share(q, by).sel(population=NAMES[AVGDC])
        parts = [own.sel(dependence="fitted", drop=True) if by == "bdp" else own]
        if parts[0].isnull().all():
            return None
        if by == "bdp":
            parts.append(own.sel(dependence="independent", drop=True))
        shown = along("source", parts).assign_coords(source=list(_SOURCES[: len(parts)]))
        rows = rows_of(_with_published(shown, "source", by, dukkipati2010.shares(by)), [by, "source"])
        for chart, step in zip(charts, (26, 30), strict=True):
            chart.append(_bars(rows, by, "share, %", step, height=170))
    import altair as alt

    return Figure(
        "population",
        "AvgDC as drawn, next to the published shares",
        "Shares of users. RTT and bandwidth are built from the published shares; the product follows from their "
        "dependence. With RTTs that do not depend on bandwidth a fifth of the users would be in another bucket.",
        alt.hconcat(*charts[0]),
        alt.vconcat(*charts[1]),
    )


def _slow_law() -> Figure | None:
    """SlowDC's bandwidth law through the published quantiles."""
    laws_of = {NAMES[SLOWDC]: slowdc.down(), NAMES[AVGDC]: dukkipati2010.down()}
    published = {bps: share for share, bps in slowdc.QUANTILES_BPS}
    rates = sorted({*published, *(bps for law in laws_of.values() for _, bps in law)})
    shares = [[100 * dukkipati2010.share_below(law, bps) for bps in rates] for law in laws_of.values()]
    shares.append([100 * published.get(bps, math.nan) for bps in rates])
    names = [*laws_of, f"{_THEIRS} ({NAMES[SLOWDC]})"]
    own = xr.DataArray(shares, {"law": names, "rate": [bps / 1000 for bps in rates]}, ["law", "rate"])
    own["rate"].attrs["long_name"], own["law"].attrs["long_name"] = "bandwidth, kbit/s", ""
    return lines(
        named(own, "slowdc", "users below", "%"),
        "SlowDC's bandwidths through the published quantiles",
        "A fifth below 100 kbit/s, a third below 256 kbit/s (RFC 6928), median 500 kbit/s (CS244 2014). Above the "
        "median it has AvgDC's shares.",
        "rate",
        "law",
    )


_FOREST: Mapping[str, tuple[str, Sequence[float], Mapping[str, float]]] = {
    "gain_percent": (
        "mean latency of web search saved, %",
        (-10, 0, 10, 20, 30),
        {NAMES[of]: percent for of, (_, percent) in SEARCH_GAIN.items()},
    ),
    "rise": (
        "more retransmitted segments, points",
        (0.1, 0.3, 1, 3, 10),
        {NAMES[of]: many - few for of, (few, many) in RETRANSMITTED.items()},
    ),
}


def _by_assumption(q: Quantities) -> Figure | None:
    """The effect of each assumption on the gain and on the cost, as a forest of intervals."""
    if q.assumed_again.isnull().all():
        return None
    import altair as alt

    found = assumed(q)
    rows = {name: rows_of(found[name], ["population", "assumption"]) for name in _FOREST}
    if not rows["rise"]:
        return None

    def drawn(name: str, width: int, step: int, label: int) -> altair.LayerChart:
        return forest(rows[name], "assumption", "population", *_FOREST[name], width, step, label)

    return Figure(
        "sensitivity",
        "Dependence of gain and cost on each assumption",
        f"IW {MANY} instead of {FEW}, one assumption changed: mean gain of web search, and the additional "
        "retransmissions of all services (logarithmic). Dashed: published. Lines: 95% CIs. Numbers are in the table "
        "`sensitivity`. Added after the first run; no claim depends on it.",
        alt.hconcat(*(drawn(name, 165, 13, label) for name, label in zip(_FOREST, (52, 0), strict=True))),
        alt.vconcat(*(drawn(name, 130, 20, 30) for name in _FOREST)),
    )


def answer(q: Quantities) -> Iterator[str]:
    """The gain, its cost, and the effect of the joint law."""
    parts = []
    for population, (ms, percent) in SEARCH_GAIN.items():
        at = {"population": population, "service": SEARCH, "iw": MANY}
        found = [value(gain(q, "stated", unit).sel(at)) for unit in GAINS]
        of = f"in {NAMES[population]} (published {ms:.0f} ms, {percent}%)"
        parts.append(f"{found[0]:.0f} ms or {found[1]:.1f}% {of}")
    yield f"IW {MANY} instead of {FEW} makes web search faster by {' and '.join(parts)}."
    rates = rate_of_all(q.stated_again, q.stated_sent).isel(draw=0)
    parts = []
    for population, (few, many) in RETRANSMITTED.items():
        from_to = [float(rates.sel(population=population, iw=iw)) for iw in (FEW, MANY)]
        of = f"in {NAMES[population]} (published {few} to {many})"
        parts.append(f"from {from_to[0]:.2f} to {from_to[1]:.2f}% {of}")
    tail = value(ratio_of_quantiles(q.tail.sel(population=SLOWDC, service=MAPS, percentile=99), "ms"))
    yield (
        f"Retransmissions go {' and '.join(parts)}; the slowest hundredth of Maps in SlowDC gets {abs(tail):.0f} ms "
        f"{'slower' if tail > 0 else 'faster'}."
    )
    before, latency = (laws(q, f"down_{of}", "stated") for of in ("few", "latency"))
    gains = (100 * (1 - latency / before)).sel(population=AVGDC, iw=MANY, draw=0)

    def ends(dependence: str) -> str:
        found = [value for value in gains.sel(dependence=dependence).values.tolist() if value == value]
        return f"{found[0]:.0f}% at the lowest bandwidths and {found[-1]:.0f}% at the highest"

    yield (
        f"The dependence of RTT on bandwidth matters: fitted to the published product, users gain {ends('fitted')}; "
        f"independent of one another, {ends('independent')}."
    )
