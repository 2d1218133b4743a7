"""Tables, figures and the answer: this run next to the published values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.populations import dukkipati2010, slowdc
from firstflight.report.figure import Figure
from firstflight.studies.kernel import Quantities, along, headed, lines, named, table, value
from firstflight.studies.kernel.figure import bars, extremes, forest
from firstflight.studies.rfc6928_cluster import measure as m
from firstflight.studies.rfc6928_cluster.claims import few_pairs, named_bucket

_RELATIVE = {
    0.2: ("rate", "rate_iw3", "rate_iw10"),
    0.25: ("latency_iw3",),
    0.35: ("gain", "gain_percent", "slow_gain_percent"),
    0.5: ("rise", "change", "change_percent"),
}
NEAR: dict[str, tuple[Any, float]] = {of: ("relative", share) for share, every in _RELATIVE.items() for of in every}
NEAR["clean"] = ("absolute", 5)
_FIGURE5 = {
    "share": "share_percent",
    "latency_iw3": "iw3_latency_ms",
    "gain": "gain_ms",
    "gain_percent": "gain_percent",
}
# Of what is compared with Figure 5 in several variants: its bars, their name in tables, web search's values.
_VARIED = {
    "dependence": ("down", "bandwidth_kbps", m.laws),
    "connections": ("rtt", "round_trip_ms", m.of_search(m.connections)),
}


def tables(q: Quantities) -> Iterator[Table]:
    """Latency, its buckets, subnets, retransmissions, the tail, the populations."""
    for made in (
        _latency(q),
        _buckets(q),
        _by_variant(
            q,
            "dependence",
            "Effect of the joint distribution: web search by bandwidth",
            f"Correlation of RTT and bandwidth: independent {m.CORRELATIONS['independent']:g}, fitted as the "
            f"population has it, stronger {m.CORRELATIONS['stronger']:g}. Published in brackets, the same for "
            "all three.",
        ),
        _by_variant(
            q,
            "connections",
            "Effect of connections kept open: web search by RTT",
            f"Mixed: {m.REQUESTS} responses per connection, with cwnd kept during think times. New: one response per "
            "connection.",
        ),
        _mix(q),
        _subnets(q),
        _retransmissions(q),
        *_sensitivity(q),
        _tail(q),
        _shares(q),
        _paths(q),
    ):
        yield replace(made, frame=made.frame.with_columns(pl.col("population").replace(m.NAMES)))


def _by_population(values: Mapping[str, Sequence[float]], key: str, labels: Sequence[Any]) -> xr.DataArray:
    """Published values by population and `key`."""
    return xr.DataArray(list(values.values()), {"population": list(values), key: list(labels)}, ["population", key])


_GAINED = _by_population(m.SEARCH_GAIN, "unit", list(m.GAINS))
_RATES, _MAPS_RATES = (
    _by_population(of, "iw", (m.FEW, m.MANY)) for of in (m.RETRANSMITTED, {m.SLOWDC: m.MAPS_RETRANSMITTED})
)


def _compared(few: xr.DataArray, latency: xr.DataArray) -> list[xr.DataArray]:
    """Latency with IW 3 and the part of it that another window saves."""
    return [named(few, "latency_iw3", "Latency with IW 3", "ms", 0), *(m.saved(few, latency, unit) for unit in m.GAINS)]


def _latency(q: Quantities) -> Table:
    mean = named(q.stated_latency, "mean", "Mean", "ms", 0)
    quantiles = [
        named(q.percentiles.sel(percentile=p).reindex(iw=mean["iw"]), f"p{p}", title, "ms", 0)
        for p, title in ((50, "Median"), (90, "90th percentile"), (99, "99th percentile"))
    ]
    gains = [m.gain(q, "stated", unit) for unit in m.GAINS]
    larger = [of.where(of["iw"] != m.FEW) for of in gains]
    of_search = _GAINED.expand_dims(service=[m.SEARCH], iw=[m.MANY])
    published = {str(of.name): of_search.sel(unit=unit) for unit, of in zip(m.GAINS, gains, strict=True)}
    return table(
        "latency",
        "Latency by initial window",
        "Of each response, from the end of the handshake to its last byte. Gain: of the mean over that with IW 3. A "
        "response that did not finish, or did not with IW 3, is not in the mean; in the quantiles one that did not "
        "finish is beyond every other.",
        [mean, *quantiles, *larger, q.unfinished.sel(draw=0, drop=True)],
        published=published,
        near=NEAR,
    )


def _mix(q: Quantities) -> Table:
    """Gain and cost of each service with a third of the requests on new connections, and with all."""
    rates = m.rates(m.connections(q, "again"), m.connections(q, "sent"))
    few, many = (rates.sel(iw=iw, drop=True) for iw in (m.FEW, m.MANY))
    gained = m.saved(m.connections(q, "few"), m.connections(q, "latency"))
    published = {"gain_percent": _GAINED.sel(unit="percent").expand_dims(service=[m.SEARCH])}
    published |= {f"rate_iw{iw}": _RATES.sel(iw=iw).expand_dims(service=[m.ALL]) for iw in (m.FEW, m.MANY)}
    return table(
        "mix",
        "Gain and cost by service, with a third of the requests on new connections and with all",
        "Mixed: as stated. New: each response on a new connection, with the losses that then give IW 3 the published "
        "rate. Gain: of the mean latency. Retransmitted: segments; all: services have equal weights.",
        [
            gained.sel(iw=m.MANY, drop=True).reindex(service=rates["service"]),
            named(few, "rate_iw3", f"Retransmitted, IW {m.FEW}", "percent", 2),
            named(many, "rate_iw10", f"Retransmitted, IW {m.MANY}", "percent", 2),
        ],
        "connections",
        published,
        near=NEAR,
        order=("population", "service", "connections"),
    )


def _joined(parts: Sequence[Table], notes: Sequence[str] = ()) -> Table:
    """The rows of several tables with the same keys."""
    return replace(parts[0], frame=pl.concat(part.frame for part in parts), notes=tuple(notes))


def _buckets(q: Quantities) -> Table:
    """Web search by every dimension, the other services by bandwidth."""
    parts, notes = [], []
    for population, service in ((p, s) for p in m.NAMES for s in q.stated_latency["service"].values.tolist()):
        for by in m.DIMENSIONS if service == m.SEARCH else ("down",):
            at = {"population": [population], "service": [service], "iw": m.MANY}
            few, latency, count = (getattr(q, f"stated_{by}_{of}").sel(at) for of in ("few", "latency", "count"))
            count = count.sel(draw=0)
            share = named(100 * count / count.sum(by, skipna=False), "share", "Share of responses", "percent")
            quantities = [share, named(count, "responses", "Responses", "count", 0), *_compared(few, latency)]
            known = (population, service) == (m.AVGDC, m.SEARCH) and by != "segments"
            parts.append(
                table(
                    "buckets",
                    "Gain of IW 10 over IW 3 in the paper's buckets",
                    "Mean latency; each interval holds for its bucket alone. In brackets: Figure 5's value for AvgDC's "
                    "web search. A dash: no responses, or too few.",
                    [of.rename({by: "bucket"}).expand_dims(by=[m.heading(by)]) for of in quantities],
                    published=_printed(by, "bucket") if known else None,
                    near={**NEAR, "share": ("absolute", 2)},
                    order=("population", "service", "by", "bucket"),
                )
            )
            for index, number in enumerate(count.values.ravel()):
                if why := few_pairs(number):
                    notes.append(f"{m.NAMES[population]}, {service}, {named_bucket(by, index)}: {why}")
    return _joined(parts, notes)


def _printed(by: str, key: str) -> dict[str, xr.DataArray]:
    """Figure 5's bars of AvgDC along `key`."""
    bars_of = {metric: m.figure5(by, column) for metric, column in _FIGURE5.items()}
    return {metric: _by_population({m.AVGDC: of}, key, m.labels(by)) for metric, of in bars_of.items()}


def _by_variant(q: Quantities, key: str, title: str, caption: str) -> Table:
    """Web search's gains in the buckets of Figure 5, whose bars are the same next to each variant."""
    by, name, of_search = _VARIED[key]
    few, latency = (of_search(q, f"{by}_{of}").sel(iw=m.MANY).rename({by: name}) for of in ("few", "latency"))
    published = _printed(by, name)
    order = ("population", name, key)
    return table(key, title, caption, _compared(few, latency), key, published, near=NEAR, order=order)


def quantiles_of(of: xr.DataArray, service: str) -> xr.DataArray:
    """Quantiles of a service, as tables name them."""
    return headed(of.sel(service=service, drop=True).rename(percentile="quantile"), quantile="percentile")


def _subnets(q: Quantities) -> Table:
    few, latency = (quantiles_of(q.subnets, m.SEARCH).sel(iw=iw, drop=True) for iw in (m.FEW, m.MANY))
    return table(
        "subnets",
        "Subnets: web search by quantile of the subnets' mean latencies",
        "Twenty users share an access network. The quantiles are taken of each window's own means, so at a quantile it "
        "is not the same subnet. Published: 5 to 11% at all quantiles.",
        _compared(few, latency),
    )


def _tail(q: Quantities) -> Table:
    quantiles = quantiles_of(q.tail, m.MAPS)
    return table(
        "tail",
        "Maps: change of latency with IW 10, by quantile",
        f"Positive: slower than with IW 3. Published for {m.NAMES[m.SLOWDC]}: slower from the 96th percentile up; "
        f"nothing of the kind for {m.NAMES[m.AVGDC]}.",
        [
            named(quantiles.sel(iw=m.FEW, drop=True), "latency_iw3", "Latency with IW 3", "ms", 0),
            named(m.ratio_of_quantiles(quantiles, "ms"), "change", "Change", "ms", 0),
            named(m.ratio_of_quantiles(quantiles), "change_percent", "Change", "percent"),
        ],
        published={
            name: _by_population({m.SLOWDC: [m.stated(id_)]}, "quantile", [99])
            for name, id_ in (("change", "maps-p99-slowdc"), ("change_percent", "maps-p99-percent-slowdc"))
        },
        near={name: NEAR[name] for name in ("change", "change_percent")},
    )


def _retransmissions(q: Quantities) -> Table:
    rates = m.rates(q.stated_again, q.stated_sent)
    few = rates.sel(iw=m.FEW, drop=True)
    rises = named((rates - few).where(rates["iw"] != m.FEW), "rise", f"Rise over IW {m.FEW}", "points", 2)
    clean = named(q.stated_clean.reindex(service=rates["service"]), "clean", "Responses without", "percent")
    printed = along("service", {m.ALL: _RATES, m.MAPS: _MAPS_RATES})
    rise = printed - printed.sel(iw=m.FEW)
    without = _by_population({m.SLOWDC: [m.WITHOUT_RETRANSMISSION] * 2}, "service", [m.SEARCH, m.MAPS])
    published = {"rate": printed, "rise": rise.sel(iw=[m.MANY])}
    published["clean"] = without.expand_dims(iw=[m.FEW, m.MANY])
    return table(
        "retransmissions",
        "Retransmissions by service and initial window",
        "Retransmitted segments of segments sent; all: services have equal weights, each by its responses. Losses are "
        "fitted to the published rates of all services with IW 3, and the shortest queue to those with both windows; "
        "the rest is prediction.",
        [rates, rises, clean],
        published=published,
        near=NEAR,
        order=("population", "service", "iw"),
    )


def assumed(q: Quantities) -> dict[str, xr.DataArray]:
    """By population and assumption, the stated ones first: web search's gains, rates of all services."""
    titles = q.assumed_again["assumption"].attrs["titles"]

    def merged(of: str) -> xr.DataArray:
        """Services that an assumption does not concern are as stated."""
        stated = getattr(q, f"stated_{of}").sel(iw=[m.FEW, m.MANY])
        parts = []
        names = (f"{grid}_{of}" for grid in ("assumed", "search_assumed", "maps_assumed"))
        for part in (getattr(q, name) for name in names if name in q):
            others = stated.drop_sel(service=part["service"].values).expand_dims(assumption=part["assumption"].values)
            whole = xr.concat([part, others], "service", coords="minimal", compat="override")
            parts.append(whole.sel(service=stated["service"]))
        changed = {name for part in parts for name in part["assumption"].values}
        parts.append(stated.expand_dims(assumption=[name for name in titles if name not in changed]))
        joined = xr.concat(parts, "assumption", join="inner", coords="minimal", compat="override")
        every: xr.DataArray = joined.sel(assumption=list(titles)).assign_coords(assumption=list(titles.values()))
        return every

    def gained(name: str, title: str, of: str) -> xr.DataArray:
        few, latency = (merged(f"{of}{side}").sel(service=m.SEARCH, iw=m.MANY) for side in ("few", "latency"))
        return named(m.saved(few, latency), name, title, "percent")

    rates = m.rate_of_all(merged("again"), merged("sent"))
    few, many = rates.sel(iw=m.FEW), rates.sel(iw=m.MANY)
    arrays = (
        gained("gain_percent", "Gain", ""),
        gained("slow_gain_percent", "Gain <= 256 kbit/s", "slow_"),
        named(few, "rate_iw3", f"Retransmitted, IW {m.FEW}", "percent", 2),
        named(many, "rate_iw10", f"Retransmitted, IW {m.MANY}", "percent", 2),
        named(many - few, "rise", "Rise", "points", 2),
        named(merged("clean").sel(service=m.SEARCH, iw=m.MANY), "clean", "Without", "percent"),
    )
    return {str(of.name): of for of in arrays}


def _sensitivity(q: Quantities) -> Iterator[Table]:
    if q.assumed_again.isnull().all():
        return
    arrays = assumed(q)
    few, many = (_RATES.sel(iw=iw) for iw in (m.FEW, m.MANY))
    published = {"gain_percent": _GAINED.sel(unit="percent"), "rate_iw3": few, "rate_iw10": many}
    published |= {
        "rise": (many - few).round(2),
        "slow_gain_percent": xr.DataArray([m.slow_gain()], {"population": [m.AVGDC]}, ["population"]),
        "clean": xr.DataArray([m.WITHOUT_RETRANSMISSION], {"population": [m.SLOWDC]}, ["population"]),
    }
    yield table(
        "sensitivity",
        "Dependence of gain and cost on each assumption",
        "One assumption changed, all else as stated; nothing is refitted unless the row states it. Gain: web search, "
        "all users and those up to 256 kbit/s. Retransmitted: segments of all services, with equal weights. Without: "
        f"responses of web search with IW {m.MANY} that had no retransmission. Fewer users than in the other tables, "
        "but for the stated row. No claim depends on it.",
        list(arrays.values()),
        published=published,
        near=NEAR,
        order=("population", "assumption"),
    )


def drawn_share(q: Quantities, by: str) -> xr.DataArray:
    """Share of web search's users in each bucket; only that of the product depends on the joint distribution."""
    if by == "bdp":
        users = m.laws(q, "users_bdp")
    else:
        users = getattr(q, f"stated_users_{by}").sel(service=m.SEARCH).expand_dims(dependence=["fitted"])
    users = users.sel(iw=m.FEW, drop=True)
    whole = users.sum(by)
    return named(100 * users.fillna(0) / whole.where(whole > 0), "share", "Share of users", "percent", 2)


def _shares(q: Quantities) -> Table:
    parts = []
    for population, by in product(m.NAMES, m.DIMENSIONS[:3]):
        shares = drawn_share(q, by).sel(population=[population]).rename({by: "bucket"})
        published = _by_population({m.AVGDC: dukkipati2010.shares(by)}, "bucket", m.labels(by))
        parts.append(
            table(
                "shares",
                "Shares of the users by RTT, bandwidth and their product",
                "Marginals are built from the published shares. The dependence of both is fitted to the product's "
                "shares.",
                [shares.expand_dims(by=[m.heading(by)])],
                "dependence",
                {"share": published},
                near={"share": ("absolute", 1)},
                order=("population", "by", "bucket", "dependence"),
            )
        )
    return _joined(parts)


def _paths(q: Quantities) -> Table:
    below = {f"below_{bps / 1000:.0f}": 100 * share for share, bps in slowdc.QUANTILES_BPS}
    values = {
        m.AVGDC: {"median_rtt": 70.0, "median_down": m.stated("median-bandwidth-avgdc"), "median_bdp": 9.5},
        m.SLOWDC: {"median_rtt": 70.0, "median_down": 0.5, **below},
    }
    printed = {
        population: xr.DataArray(list(of.values()), {"quantity": [m.QUANTILES[name][0] for name in of]}, ["quantity"])
        for population, of in values.items()
    }
    parts = {}
    for name, (title, _) in m.QUANTILES.items():
        quantity = getattr(q, name).sel(service=m.SEARCH, iw=m.FEW, drop=True)
        # The shares are SlowDC's published ones.
        parts[title] = quantity.where(quantity["population"] == m.SLOWDC) if name in below else quantity
    return table(
        "paths",
        "Users' paths, as drawn",
        "AvgDC's median bandwidth: RFC 6928 reports 1.7 Mbit/s and the 2012 reproduction 1.2; the shares of Figure 5, "
        "which this study follows, have 1.0. The product's median is that of the published shares, interpolated.",
        [named(along("quantity", parts), "value", "Value", "", 2)],
        published={"value": along("population", printed)},
        order=("population", "quantity"),
    )


_OURS, _THEIRS = "simulated", "published"
_SOURCES = (_OURS, f"{_OURS}, independent", _THEIRS)
_INTERVALS = "Bars: 95% CIs; a simulated point without one has too few users for it."


def figures(q: Quantities) -> Iterator[Figure | None]:
    """The paper's Figure 5 next to this run's, its explanation and the cost."""
    yield _by_bucket(
        q,
        "figure5",
        m.AVGDC,
        m.DIMENSIONS[:3],
        "AvgDC's web search in the buckets of the paper's Figure 5",
        "Mean gain of IW 10 over IW 3, above in ms, below in percent of the mean with IW 3; above the bars the "
        "share of responses. Whiskers: 95% CIs; a simulated bar without one has too few users for it. "
        "Published bars are read off the figure. The axis of ms is stretched towards zero.",
    )
    yield _next_to_figure5(
        q,
        "connections",
        "With connections kept open the gain is near the published one",
        "AvgDC's web search, gain in percent of the mean with IW 3. New: one response per connection. Mixed: three "
        f"per connection, as RFC 6928 reports for Chrome (35% of requests on new ones). {_INTERVALS}",
    )
    yield _next_to_figure5(
        q,
        "dependence",
        "The joint distribution reverses the order of gains by bandwidth",
        "AvgDC's web search, gain in percent of the mean with IW 3. Independent: as in the reproduction of 2014, the "
        "faster the user, the more she gains. Fitted to the shares of the bandwidth-delay product, and stronger than "
        f"that: slow users have long RTTs. {_INTERVALS}",
    )
    change = named(-m.gain(q, "stated"), "sweep", "change of mean latency", "%")
    caption = "Change of the mean over that with IW 3; below zero is faster. Bands: 95% CIs."
    yield lines(change, "Mean latency by initial window", caption, "iw", "service", "population", base=0)
    rates = named(m.rate(q.stated_again, q.stated_sent), "retransmissions", "retransmitted", "%")
    caption = "Retransmitted segments of segments sent. Bands: 95% CIs."
    yield lines(rates, "Retransmissions by initial window", caption, "iw", "service", "population")
    yield lines(
        named(m.ratio_of_quantiles(quantiles_of(q.tail, m.MAPS)), "tail", "change", "%"),
        "Maps: who is slower with IW 10",
        "Change of the quantiles of latency; above zero is slower than with IW 3. RFC 6928 has SlowDC slower from the "
        "96th percentile up. Bands: 95% CIs.",
        "quantile",
        "population",
        base=0,
    )
    yield lines(
        named(-m.ratio_of_quantiles(quantiles_of(q.subnets, m.SEARCH)), "subnets", "gain", "%"),
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
        m.AVGDC,
        m.DIMENSIONS[3:],
        "AvgDC's web search by size",
        "Mean gain of IW 10 over IW 3 by segments of the response: the buckets of the paper's Figure 7, whose bars are "
        "not available. Whiskers: 95% CIs.",
    )
    yield _by_bucket(
        q,
        "figure6",
        m.SLOWDC,
        m.DIMENSIONS[:3],
        "SlowDC's web search in the same buckets",
        "As above; the paper's Figure 6 has SlowDC by bandwidth, but its bars are not available. Whiskers: 95% "
        "intervals.",
    )
    yield _population(q)
    yield _slow_law()


def _with_published(ours: xr.DataArray, key: str, by: str, values: Sequence[float]) -> xr.DataArray:
    """With the published bars as one more label of `key`; they have no interval."""
    theirs = xr.DataArray(list(values), {by: ours[by]}, [by]).where(ours["draw"] == 0).expand_dims({key: [_THEIRS]})
    return xr.concat([ours, theirs], key, coords="minimal", compat="override")


def _next_to_figure5(q: Quantities, key: str, title: str, caption: str) -> Figure | None:
    by, _, of_search = _VARIED[key]
    gains = m.gain(q, by, of=of_search).sel(population=m.AVGDC, iw=m.MANY)
    if gains.isnull().all([by, "draw"]).any():
        return None
    shown = named(_with_published(gains, key, by, m.figure5(by, "gain_percent")), key, "gain", "%")
    return lines(headed(shown, **{by: m.heading(by)}), title, caption, by, key)


def _by_bucket(
    q: Quantities, name: str, population: str, dimensions: Sequence[str], title: str, caption: str
) -> Figure | None:
    """Gains in ms and percent by bucket."""
    at = {"population": population, "service": m.SEARCH, "iw": m.MANY}
    wide, narrow, finding = [], [], ""
    for by in dimensions:
        count = getattr(q, f"stated_{by}_count").sel(at).isel(draw=0)
        shares = [f"{share:.1f}%" if share else "none" for share in (100 * count / count.sum()).fillna(0).values]
        panels = []
        for unit, column in m.GAINS.items():
            gains = m.gain(q, f"stated_{by}", unit).sel(at).expand_dims(source=[_OURS])
            if gains.isnull().all():
                return None
            named_gains = headed(named(gains, "gain", "Gain of IW 10", m.SIGNS[unit]), **{by: m.heading(by)})
            finding = finding or extremes(named_gains.isel(source=0, drop=True), [by])
            if population == m.AVGDC and by != "segments":
                gains = _with_published(gains, "source", by, m.figure5(by, column))
            panels.append(headed(named(gains, "gain", "gain", m.SIGNS[unit]), **{by: m.heading(by)}))
        step = 34 if len(dimensions) > 1 else 60
        wide.append({"vconcat": [bars(panel, by, _SOURCES, step, shares) for panel in panels], "spacing": 6})
        narrow += [bars(panel, by, _SOURCES, 30, shares) for panel in panels]
    return Figure(name, title, caption, {"hconcat": wide}, {"vconcat": narrow}, finding)


def _population(q: Quantities) -> Figure | None:
    """AvgDC's users as drawn and as published."""
    shown = {}
    for by in m.DIMENSIONS[:3]:
        shares = drawn_share(q, by).sel(
            population=m.AVGDC, dependence=["fitted", "independent"] if by == "bdp" else ["fitted"]
        )
        if shares.sel(dependence="fitted").isnull().all():
            return None
        shares = shares.rename(dependence="source").assign_coords(source=list(_SOURCES[: shares.sizes["dependence"]]))
        shares = _with_published(shares, "source", by, dukkipati2010.shares(by))
        shown[by] = headed(named(shares, "share", "share", "%"), **{by: m.heading(by)})
    wide, narrow = ([bars(shares, by, _SOURCES, step, height=170) for by, shares in shown.items()] for step in (26, 30))
    return Figure(
        "population",
        "AvgDC as drawn, next to the published shares",
        "Shares of users. RTT and bandwidth are built from the published shares; the product follows from their "
        "dependence. With RTTs that do not depend on bandwidth a fifth of the users would be in another bucket.",
        {"hconcat": wide},
        {"vconcat": narrow},
    )


def _slow_law() -> Figure | None:
    """SlowDC's bandwidth law through the published quantiles."""
    laws_of = {m.NAMES[m.SLOWDC]: slowdc.down(), m.NAMES[m.AVGDC]: dukkipati2010.down()}
    published = {bps: share for share, bps in slowdc.QUANTILES_BPS}
    rates = sorted({*published, *(bps for law in laws_of.values() for _, bps in law)})
    shares = [[100 * dukkipati2010.share_below(law, bps) for bps in rates] for law in laws_of.values()]
    shares.append([100 * published.get(bps, math.nan) for bps in rates])
    names = [*laws_of, f"{_THEIRS} ({m.NAMES[m.SLOWDC]})"]
    curves = xr.DataArray(shares, {"law": names, "rate": [bps / 1000 for bps in rates]}, ["law", "rate"])
    return lines(
        headed(named(curves, "slowdc", "users below", "%"), rate="bandwidth, kbit/s", law=""),
        "SlowDC's bandwidths through the published quantiles",
        "A fifth below 100 kbit/s, a third below 256 kbit/s (RFC 6928), median 500 kbit/s (CS244 2014). Above the "
        "median it has AvgDC's shares.",
        "rate",
        "law",
    )


_FOREST: Mapping[str, tuple[str, Sequence[float], Mapping[str, float]]] = {
    "gain_percent": (
        "mean latency saved, %",
        (-10, 0, 10, 20, 30),
        {m.NAMES[of]: percent for of, (_, percent) in m.SEARCH_GAIN.items()},
    ),
    "rise": (
        "retransmissions added, pp",
        (0.1, 0.3, 1, 3, 10),
        {m.NAMES[of]: many - few for of, (few, many) in m.RETRANSMITTED.items()},
    ),
}


def _by_assumption(q: Quantities) -> Figure | None:
    """The effect of each assumption on the gain and on the cost, as a forest of intervals."""
    if q.assumed_again.isnull().all():
        return None
    arrays = assumed(q)
    if arrays["rise"].sel(draw=0).isnull().all():
        return None

    wide = [
        forest(arrays[of], "assumption", "population", *options, 165, 13, label)
        for (of, options), label in zip(_FOREST.items(), (44, 0), strict=True)
    ]
    narrow = [forest(arrays[of], "assumption", "population", *options, 130, 20, 30) for of, options in _FOREST.items()]
    return Figure(
        "sensitivity",
        "Dependence of gain and cost on each assumption",
        f"IW {m.MANY} instead of {m.FEW}, one assumption changed: mean gain of web search, and the additional "
        "retransmissions of all services (logarithmic). Dashed: published. Lines: 95% CIs. Numbers are in the table "
        "`sensitivity`. Added after the first run; no claim depends on it.",
        {"hconcat": wide},
        {"vconcat": narrow},
        extremes(arrays["gain_percent"], ["population", "assumption"]),
    )


def answer(q: Quantities) -> Iterator[str]:
    """The gain, its cost, and the effect of the joint law."""
    parts = []
    for population, (ms, percent) in m.SEARCH_GAIN.items():
        at = {"population": population, "service": m.SEARCH, "iw": m.MANY}
        savings = [value(m.gain(q, "stated", unit).sel(at)) for unit in m.GAINS]
        parts.append(
            f"{savings[0]:.0f} ms or {savings[1]:.1f}% in {m.NAMES[population]} (published {ms:.0f} ms, {percent}%)"
        )
    yield f"IW {m.MANY} instead of {m.FEW} makes web search faster by {' and '.join(parts)}."
    rates = m.rate_of_all(q.stated_again, q.stated_sent).isel(draw=0)
    parts = []
    for population, (few, many) in m.RETRANSMITTED.items():
        ours = [float(rates.sel(population=population, iw=iw)) for iw in (m.FEW, m.MANY)]
        parts.append(f"from {ours[0]:.2f} to {ours[1]:.2f}% in {m.NAMES[population]} (published {few} to {many})")
    tail = value(m.ratio_of_quantiles(q.tail.sel(population=m.SLOWDC, service=m.MAPS, percentile=99), "ms"))
    yield (
        f"Retransmissions go {' and '.join(parts)}; the slowest hundredth of Maps in SlowDC gets {abs(tail):.0f} ms "
        f"{'slower' if tail > 0 else 'faster'}."
    )
    gains = m.gain(q, "down", of=m.laws).sel(population=m.AVGDC, iw=m.MANY, draw=0)

    def ends(dependence: str) -> str:
        savings = [value for value in gains.sel(dependence=dependence).values.tolist() if value == value]
        return f"{savings[0]:.0f}% at the lowest bandwidths and {savings[-1]:.0f}% at the highest"

    yield (
        f"The dependence of RTT on bandwidth matters: fitted to the published product, users gain {ends('fitted')}; "
        f"independent of one another, {ends('independent')}."
    )
