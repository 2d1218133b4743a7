"""RFC 6928 section 10, sentence by sentence, and statements of the 2014 reproduction about it.

Limits and tolerances were fixed before the first run.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from firstflight.analysis.ab import least_units
from firstflight.analysis.claim import Expectation
from firstflight.counted import with_unit
from firstflight.studies import kernel as k
from firstflight.studies.rfc6928_cluster import measure as m

WHOLE = "1 point: the sentence rounds to whole percent."
SECTION = k.Source("RFC 6928 section 10", why=WHOLE)
COUNTED = k.Source(SECTION.name, needs="value")
FIGURE = k.Source("Dukkipati et al. 2010, Figure 5")
ABSTRACT = k.Source("Dukkipati et al. 2010, abstract")
CRITIQUE = k.Source("CS244 2014, results; RFC 6928 section 10")
SPREAD = 0.35
"""Figure 5's three panels give the same mean gain as 44, 48 and 70 ms where the RFC says 68: 35% apart."""
WHY_SPREAD = "35%: so far apart are the RFC and the panels of Figure 5 (68 ms; 44, 48 and 70) about the same mean."
POINTS = "percentage points"
HALF = "Half of the rise: nearer to it than to none or to twice as much; buffers and cross traffic are not published."
BUILT = "The population is made so; the claim checks that it was drawn so."
QUEUE = " The shortest queue was chosen when this was known."
SUBNETS = [10, 25, 50, 75, 90, 95]
"""The figure of the subnets is not available; "all quantiles" is taken as these."""
_AVERAGE = {"population": m.AVGDC, "service": m.SEARCH, "iw": m.MANY}


def claims(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Latency, its buckets, the joint law, cost, and the populations themselves."""
    yield from _latency(q)
    yield from _buckets(q)
    yield from _critique(q)
    yield from _cost(q)
    yield from _tail(q)
    yield from _paths(q)


def _average(q: k.Quantities, population: str, service: str, unit: str) -> tuple[xr.DataArray, str]:
    at = {"population": population, "service": service, "iw": m.MANY}
    alone = k.value(m.saved(q.new_few, q.new_latency, unit).sel({**at, "connections": "new"}))
    note = (
        f"With IW 3 {k.value(q.stated_few.sel(at)):.0f} ms. "
        f"With new connections alone {with_unit(f'{alone:.1f}', m.SIGNS[unit])}."
    )
    return m.gain(q, "stated", unit).sel(at), note


def _latency(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    for population, published in m.SEARCH_GAIN.items():
        for unit, expected in zip(("ms", "percent"), published, strict=True):
            average, note = _average(q, population, m.SEARCH, unit)
            yield SECTION.says(
                f"rfc6928-search-gain-{population}" + ("-percent" if unit == "percent" else ""),
                f"Web search in {m.NAMES[population]} gains {with_unit(f'{expected:g}', m.SIGNS[unit])} on average.",
                average,
                k.near(expected, unit, round(SPREAD * expected, 1)),
                WHY_SPREAD,
                note,
            )
    subnets = -m.ratio_of_quantiles(q.subnets.sel(population=m.AVGDC, service=m.SEARCH, percentile=SUBNETS))
    percents = k.each(subnets, "p{label} {value:.1f}")
    for edge in ("least", "greatest"):
        at = k.extreme(subnets, least=edge == "least")
        yield SECTION.says(
            f"rfc6928-subnets-{edge}",
            f"Over /24 subnets latency falls by 5 to 11% at all quantiles (web search, AvgDC; the {edge} gain).",
            subnets.sel(at),
            k.between(5, 11, "percent", 1),
            note=f"At p{at['percentile']}; percent by quantile of the subnets' mean latencies: {percents}.",
        )
    for service in (m.MAPS, m.PHOTOS):
        average, note = _average(q, m.AVGDC, service, "percent")
        yield SECTION.says(
            f"rfc6928-{service}-gain-avgdc",
            f"Services with several parallel connections gain 2 to 20% in AvgDC: {service}.",
            average,
            k.between(2, 20, "percent", 1),
            note=note,
        )
    gains = m.gain(q, "stated").sel(iw=m.MANY)
    by_service = (k.each(gains.sel(population=of), f"{name} {{label}} {{value:.1f}}") for of, name in m.NAMES.items())
    yield ABSTRACT.says(
        "dukkipati-mean-gain",
        "HTTP latency falls by about 10% on average (mean of the services, both data centers).",
        gains.mean(["population", "service"], skipna=False),
        k.near(10, "percent", round(SPREAD * 10, 1)),
        f"{WHY_SPREAD} The abstract's mean is over all of a company's services; this study has four, with equal "
        "weights.",
        f"Percent: {', '.join(by_service)}.",
    )
    first: dict[str, Any] = {**_AVERAGE, "segments": m.labels("segments")[0]}
    yield k.Source(f"{SECTION.name}; Dukkipati et al. 2010, Figure 7").says(
        "rfc6928-few-segments",
        "Responses of at most 3 segments gain a little, too (AvgDC, web search).",
        m.gain(q, "stated_segments", "ms").sel(first),
        k.above(0, "ms"),
        note=f"{k.value(q.stated_segments_count.sel(first)):.0f} responses.",
    )


def named_bucket(by: str, index: int) -> str:
    """A bucket in words."""
    return f"{m.TITLES[by]} {m.labels(by)[index]} {m.UNITS[by]}"


def few_pairs(count: float) -> str:
    """Why a mean of this number of responses has no interval; empty if it has."""
    least = least_units("mean")
    return f"{count:.0f} pairs are too few: mean needs {least}" if 0 < count < least else ""


def _bucket(
    q: k.Quantities, id_: str, text: str, by: str, index: int, expected: Expectation, why: str = "", **where: Any
) -> k.ClaimSpec:
    """The gain in a bucket of AvgDC's web search; with `where`, of another dependence."""
    name, at = f"{'dependence' if where else 'stated'}_{by}", {**_AVERAGE, **where, by: m.labels(by)[index]}
    count, few = (k.value(getattr(q, f"{name}_{of}").sel(at)) for of in ("count", "few"))
    lacking = few_pairs(count)
    return (CRITIQUE if where else SECTION).says(
        id_,
        f"{text} ({named_bucket(by, index)}).{'' if where else ' AvgDC, web search.'}",
        m.gain(q, name).sel(at),
        expected,
        why,
        f"{count:.0f} responses, {k.value(m.gain(q, name, 'ms').sel(at)):.0f} ms of {few:.0f} ms with IW 3."
        + (f" No interval: {lacking}." if lacking else ""),
    )


def _buckets(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    for by, index in (("rtt", 7), ("bdp", 5)):
        text = "On paths of high RTT or high bandwidth-delay product latency falls by more than 20%"
        yield _bucket(q, f"rfc6928-high-{by}", text, by, index, k.above(20, "percent", 1))
    low = {**_AVERAGE, "rtt": list(m.labels("rtt")[:3])}
    latency, few, count = (getattr(q, f"stated_rtt_{of}").sel(low) for of in ("latency", "few", "count"))
    together = [(of * count).sum("rtt", skipna=False) for of in (latency, few)]
    yield SECTION.says(
        "rfc6928-low-rtt",
        "On paths of low RTT latency falls by about 5% (RTT up to 100 ms).",
        100 * (1 - together[0] / together[1]),
        k.near(5, "percent", 2),
        "2 points: Figure 5 has 3.3, 4.2 and 5.3% in the three buckets that this sums up.",
        f"Percent in the buckets up to 20, 50 and 100 ms: {k.each(m.gain(q, 'stated_rtt').sel(low), '{value:.1f}')}.",
    )
    for index in (0, 1):
        text = "At 0-56 and 56-256 kbit/s latency falls by 10 to 20%"
        yield _bucket(q, f"rfc6928-low-bandwidth-{index + 1}", text, "down", index, k.between(10, 20, "percent", 1))
    for by in ("rtt", "down", "bdp"):
        for unit, column in m.GAINS.items():
            ours = m.gain(q, f"stated_{by}", unit).sel(_AVERAGE)
            theirs = m.figure5(by, column)
            compared = ", ".join(
                f"{_or_none(our)} [{their:g}]"
                for our, their in zip(ours.isel(draw=0).values.tolist(), theirs, strict=True)
            )
            yield FIGURE.says(
                f"dukkipati-order-{by}-{unit}",
                f"Gains in {m.SIGNS[unit]} by {m.TITLES[by]} have the order of the published bars "
                "(rank correlation; AvgDC, web search).",
                _ranked(ours, by, theirs),
                k.at_least(0.8, "correlation"),
                "0.8 allows neighbors to swap; their bars often differ by less than the reading error of the figure.",
                f"Bucket by bucket, published in brackets: {compared}.",
            )


def _or_none(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.1f}"


def _ranked(gains: xr.DataArray, by: str, order: Sequence[float]) -> xr.DataArray:
    """The rank correlation of the gains in the buckets that the run has with `order`; NaN with fewer than three."""
    there = gains.isel(draw=0).notnull().values
    pair = gains.isel({by: there}), np.array(order)[there]
    correlation: xr.DataArray = xr.apply_ufunc(k.rank_correlation, *pair, input_core_dims=[[by]] * 2)
    return correlation.where(there.sum() > 2)


def _critique(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    gains = m.gain(q, "down", of=m.laws).sel(population=m.AVGDC, iw=m.MANY)
    independent = "Where RTTs do not depend on bandwidth"
    fitted = "Where slow users have long RTTs, as Figure 5's product implies,"
    for dependence, premise, expected, direction in (
        ("independent", independent, k.above(0, "correlation"), "rises"),
        ("fitted", fitted, k.below(0, "correlation"), "falls"),
    ):
        bucket_gains = gains.sel(dependence=dependence)
        yield CRITIQUE.says(
            f"cs244-percent-by-bandwidth-{dependence}",
            f"{premise} the gain in percent {direction} with bandwidth (rank correlation over the buckets; AvgDC, web "
            "search).",
            _ranked(bucket_gains, "down", range(bucket_gains["down"].size)),
            expected,
            note=f"Percent by bandwidth bucket: {', '.join(map(_or_none, bucket_gains.isel(draw=0).values.tolist()))}.",
        )
    for index in (0, 1):
        id_, text = f"cs244-low-bandwidth-{index + 1}-independent", "the slowest gain less than the published 10%"
        why, where = "The published range begins at 10%.", {"dependence": "independent"}
        yield _bucket(q, id_, f"{independent} {text}", "down", index, k.below(10, "percent"), why, **where)


def _cost(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    rates = m.rates(q.stated_again, q.stated_sent)
    of_new = m.rates(q.new_again, q.new_sent).sel(connections="new")

    def rising(id_: str, text: str, population: str, of: str, expected: Expectation, why: str = HALF) -> k.ClaimSpec:
        few, many, new_few, new_many = (
            rate.sel(population=population, service=of, iw=iw) for rate in (rates, of_new) for iw in (m.FEW, m.MANY)
        )
        note = (
            f"{k.value(few):.2f} to {k.value(many):.2f}%. With new connections alone {k.value(new_few):.2f} to "
            f"{k.value(new_many):.2f}%."
        )
        if fitted := of == m.ALL:
            note += QUEUE
        return SECTION.says(f"rfc6928-retransmissions-{id_}", text, many - few, expected, why, note, given=fitted)

    def half_near(rise: float) -> Expectation:
        return k.near(round(rise, 2), POINTS, round(rise / 2, 2))

    for population, (few, many) in m.RETRANSMITTED.items():
        text = f"The retransmission rate rises from {few} to {many}% in {m.NAMES[population]}, all services."
        yield rising(population, text, population, m.ALL, half_near(many - few))
    text = "Maps' retransmission rate rises by 0.9 points in AvgDC."
    yield rising("maps-avgdc", text, m.AVGDC, m.MAPS, half_near(m.stated("maps-retransmissions-avgdc")))
    few, many = m.MAPS_RETRANSMITTED
    text = f"Maps' retransmission rate rises from {few} to {many}% in SlowDC."
    yield rising("maps-slowdc", text, m.SLOWDC, m.MAPS, half_near(many - few))
    for service in (m.SEARCH, m.PHOTOS, m.BLOG):
        text = f"Other services' rates rise by less than 0.5 points in AvgDC: {service}."
        yield rising(f"{service}-avgdc", text, m.AVGDC, service, k.below(0.5, POINTS), "The sentence gives a limit.")
    rises = rates.sel(service=m.ALL, iw=m.MANY) - rates.sel(service=m.ALL, iw=m.FEW)
    by_population = rises.assign_coords(population=[m.NAMES[of] for of in rises["population"].values])
    yield ABSTRACT.says(
        "dukkipati-mean-retransmissions",
        "The retransmission rate rises by 0.5 points on average (mean of both data centers).",
        rises.mean("population", skipna=False),
        k.near(0.5, POINTS, 0.25),
        HALF,
        k.each(by_population, "{label} {value:.2f}") + "." + QUEUE,
        given=True,
    )
    for service in (m.SEARCH, m.MAPS):
        for iw in (m.FEW, m.MANY):
            fitted = (service, iw) == (m.SEARCH, m.FEW)
            because = " The population's losses are fitted to this." if fitted else ""
            yield SECTION.says(
                f"rfc6928-clean-{service}-slowdc-iw{iw}",
                f"About 90% of the traffic of {service} in SlowDC has no retransmission (responses; IW {iw}).",
                q.stated_clean.sel(population=m.SLOWDC, service=service, iw=iw),
                k.near(m.WITHOUT_RETRANSMISSION, "percent", 5),
                f'"About": nearer to 90 than to 80 or 100 is within 5 points.{because}',
                given=fitted,
            )


def _tail(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    at = {"population": m.SLOWDC, "service": m.SEARCH, "iw": m.MANY}
    before, lossy, more = (of.sel(at) for of in (q.lossy_before, q.lossy, q.lossy_more))
    yield COUNTED.says(
        "rfc6928-already-lossy",
        "Additional retransmissions occur in traffic that already retransmitted (web search, SlowDC: responses that "
        "retransmit with IW 10, of them those that did with IW 3).",
        (100 * before / lossy).isel(draw=0),
        k.at_least(50, "percent"),
        "The sentence gives no number; half of them is the least that it can mean.",
        f"{k.value(before):.0f} of {k.value(lossy):.0f}; these retransmit {k.value(more):.0f} segments more than with "
        f"IW {m.FEW}. It follows from the simulation: both windows meet the same users and the same random losses.",
        given=True,
    )
    last = q.tail.sel(population=m.SLOWDC, service=m.MAPS, percentile=99)
    for unit, expected, tolerance in (("ms", 80, 40), ("percent", 2.3, 1.2)):
        yield SECTION.says(
            f"rfc6928-maps-p99-slowdc{'' if unit == 'ms' else '-percent'}",
            f"The 99th percentile of Maps' latency in SlowDC grows by {with_unit(str(expected), m.SIGNS[unit])}.",
            m.ratio_of_quantiles(last, unit),
            k.near(expected, unit, tolerance),
            HALF,
            f"With IW 3 {k.value(last.sel(iw=m.FEW)):.0f} ms.",
        )
    none = "No percentile up to the 99th is greater with IW 10 than with IW 3; 100 stands for that."
    percentile = worse_from(q.ranks.sel(population=m.SLOWDC, service=m.MAPS).isel(draw=0))
    yield COUNTED.says(
        "rfc6928-maps-worse-from-slowdc",
        "In SlowDC Maps is slower with IW 10 from the 96th percentile up.",
        percentile,
        k.near(96, "percentile", 3),
        "3: from the 93rd to the 99th.",
        none if percentile == 100 else "",
    )


def worse_from(latency: xr.DataArray) -> xr.DataArray:
    """The lowest percentile from which on, up to the 99th, latency is greater with IW 10; 100 without one."""
    worse = (latency.sel(iw=m.MANY) > latency.sel(iw=m.FEW)).values[::-1]
    from_here = len(worse) if worse.all() else int(worse.argmin())
    return xr.DataArray(float(m.RANKS[-1] + 1 - from_here))


def _paths(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    users: dict[str, Any] = {"service": m.SEARCH, "iw": m.FEW}
    yield COUNTED.says(
        "rfc6928-median-bandwidth-avgdc",
        "The median bandwidth of AvgDC's users is 1.7 Mbit/s.",
        q.median_down.sel(**users, population=m.AVGDC),
        k.near(m.stated("median-bandwidth-avgdc"), "Mbit/s", 0.2),
        "0.2: the last digit printed, and drawing. This study follows the shares of Figure 5, whose median is 1.0; the "
        "2012 reproduction cites 1.2. The three cannot hold together.",
    )
    for limit, quantity, share in ((100, q.below_100, 20.0), (256, q.below_256, 33.3)):
        yield COUNTED.says(
            f"rfc6928-below-{limit}-slowdc",
            f"{'Nearly 20%' if limit == 100 else 'A third'} of SlowDC's users have less than {limit} kbit/s.",
            quantity.sel(**users, population=m.SLOWDC),
            k.near(share, "percent", 2),
            f"2 points: drawing. {BUILT}",
            given=True,
        )
    for population, name in m.NAMES.items():
        yield k.Source("Dukkipati et al. 2010, through the reproductions of 2012 and 2014", needs="value").says(
            f"dukkipati-median-rtt-{population}",
            f"The median RTT of {name} is 70 ms.",
            q.median_rtt.sel(**users, population=population),
            k.near(70, "ms", 5),
            f"5 ms: the figure is rounded. {BUILT}",
            given=True,
        )
