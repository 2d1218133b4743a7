"""The paper's Figure 5 next to this run's, what stands behind it and what it costs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from firstflight.populations import dukkipati2010, slowdc
from firstflight.report.figure import Figure, inline
from firstflight.report.style import BASE, ORDERED
from firstflight.studies.kernel import Quantities, lines, named
from firstflight.studies.kernel.figure import rows_of
from firstflight.studies.rfc6928_cluster.measure import (
    AVGDC,
    DIMENSIONS,
    FEW,
    GAINS,
    MANY,
    MAPS,
    NAMES,
    RETRANSMITTED,
    SEARCH,
    SEARCH_GAIN,
    SLOWDC,
    TITLES,
    UNITS,
    along,
    figure5,
    gain,
    labels,
    laws,
    rate,
    ratio_of_quantiles,
)
from firstflight.studies.rfc6928_cluster.report import assumed, connections_of, drawn_share, quantiles_of

if TYPE_CHECKING:
    import altair

_OURS, _THEIRS = "simulated", "published"
_SOURCES = (_OURS, f"{_OURS}, independent", _THEIRS)
_MS_AXIS = [0, 10, 30, 100, 300, 1000, 3000]
_INTERVALS = "Bars: 95 % intervals; a simulated point without one has too few users for it."
_LABEL = "replace(datum.label, '<= ', '\u2264 ')"
"""The name of a bucket as an axis shows it."""


def figures(q: Quantities) -> Iterator[Figure | None]:
    """The paper's Figure 5 next to this run's, what stands behind it and what it costs."""
    yield _by_bucket(
        q,
        "figure5",
        AVGDC,
        DIMENSIONS[:3],
        "AvgDC's web search in the buckets of the paper's Figure 5",
        "Mean gain of IW 10 over IW 3, above in ms, below in percent of the mean with IW 3; above the bars the "
        "share of responses. Whiskers: 95 % intervals; a simulated bar without one has too few users for it. "
        "Published bars are read off the figure. The axis of ms is stretched towards zero.",
    )
    few, latency = (connections_of(q, of) for of in ("few", "latency"))
    yield _next_to_figure5(
        few,
        latency,
        "connections",
        "rtt",
        "With connections kept open the gain is the published one",
        "AvgDC's web search, gain in percent of the mean with IW 3. New: each response on a connection of its own. "
        "Reused: three on each, as RFC 6928 says of Chrome (35 % of requests on new ones). Looked at after the first "
        f"run. {_INTERVALS}",
    )
    few, latency = (laws(q, f"down_{of}", "stated") for of in ("few", "latency"))
    yield _next_to_figure5(
        few,
        latency,
        "dependence",
        "down",
        "The gain by bandwidth turns round with the joint law",
        "AvgDC's web search, gain in percent of the mean with IW 3. Independent: as in the reproduction of 2014, the "
        "faster the user, the more she gains. Fitted to the shares of the bandwidth-delay product, and stronger than "
        f"that: slow users have long round trips. {_INTERVALS}",
    )
    change = named(-gain(q, "stated"), "sweep", "change of mean latency", "%")
    caption = "Change of the mean over that with IW 3; below zero is faster. Bands: 95 % intervals."
    yield lines(change, "Mean latency by initial window", caption, "iw", "service", "population", base=0)
    rates = named(rate(q.stated_again, q.stated_sent), "retransmissions", "retransmitted", "%")
    caption = "Retransmitted segments of segments sent. Bands: 95 % intervals."
    yield lines(rates, "Retransmissions by initial window", caption, "iw", "service", "population")
    yield lines(
        named(ratio_of_quantiles(quantiles_of(q.tail, MAPS)), "tail", "change", "%"),
        "Maps: who is slower with IW 10",
        "Change of the quantiles of latency; above zero is slower than with IW 3. RFC 6928 has SlowDC slower from the "
        "96th percentile up. Bands: 95 % intervals.",
        "quantile",
        "population",
        base=0,
    )
    yield lines(
        named(-ratio_of_quantiles(quantiles_of(q.subnets, SEARCH)), "subnets", "gain", "%"),
        "Web search over subnets",
        "Gain of IW 10 at each quantile of the subnets' mean latencies. RFC 6928: 5 to 11 % at all quantiles. Bands: "
        "95 % intervals.",
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
        "not available. Whiskers: 95 % intervals.",
    )
    yield _by_bucket(
        q,
        "figure6",
        SLOWDC,
        DIMENSIONS[:3],
        "SlowDC's web search in the same buckets",
        "As above; the paper's Figure 6 has SlowDC by bandwidth, but its bars are not available. Whiskers: 95 % "
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
        shares = [f"{share:.1f} %" if share else "none" for share in (100 * count / count.sum()).fillna(0).values]
        panels = []
        for unit, column in GAINS.items():
            own = gain(q, f"stated_{by}", unit).sel(at).expand_dims(source=[_OURS])
            if own.isnull().all():
                return None
            if population == AVGDC and by != "segments":
                own = _with_published(own, "source", by, figure5(by, column))
            panels.append((rows_of(own, [by, "source"]), unit))
        step = 34 if len(dimensions) > 1 else 60
        wide.append([_bars(rows, by, f"gain, {'ms' if unit == 'ms' else '%'}", step, shares) for rows, unit in panels])
        narrow += [_bars(rows, by, f"gain, {'ms' if unit == 'ms' else '%'}", 30, shares) for rows, unit in panels]
    import altair as alt

    columns = [alt.vconcat(*panels, spacing=6) for panels in wide]
    return Figure(name, title, caption, alt.hconcat(*columns), alt.vconcat(*narrow))


def _bars(
    rows: list[dict[str, Any]], by: str, axis: str, step: int, above: Sequence[str] | None = None, height: int = 150
) -> altair.LayerChart:
    """A bar per bucket and source; `above` is written over the buckets of a chart of ms."""
    import altair as alt

    sources = [source for source in _SOURCES if any(row["source"] == source for row in rows)]
    order, in_ms = list(labels(by)), axis.endswith("ms")
    title = None if in_ms else f"{TITLES[by]}, {UNITS[by]}"
    ticks = alt.Axis(labelAngle=-45, labels=not in_ms, labelExpr=_LABEL)
    x = alt.X(f"{by}:N", sort=order, scale=alt.Scale(domain=order), title=title, axis=ticks)
    scale, values = alt.Scale(nice=True), alt.Axis(format="d")
    if in_ms and max(row["value"] for row in rows) > 200:
        scale, values = alt.Scale(type="symlog", constant=10), alt.Axis(values=_MS_AXIS, format="d")
    offset = alt.XOffset("source:N", sort=sources)
    scale_of = alt.Scale(domain=list(_SOURCES), range=[ORDERED[0], ORDERED[1], BASE])
    # The third source is in charts of shares only.
    legend = alt.Legend(values=list(_SOURCES if above is None else sources)) if len(sources) > 1 else None
    color = alt.Color("source:N", title=None, scale=scale_of, legend=legend)
    base = alt.Chart(inline(rows)).encode(x=x, xOffset=offset)
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(color="#333333")
    layers = [
        base.mark_bar().encode(y=alt.Y("value:Q", title=axis, scale=scale, axis=values), color=color),
        whiskers.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
    ]
    if in_ms and above is not None:
        written = [{by: label, "share": share} for label, share in zip(order, above, strict=True)]
        text = alt.Chart(inline(written)).mark_text(fontSize=8.5, color="#555555", baseline="bottom")
        layers.append(text.encode(x=x, y=alt.value(-3), text="share:N"))
    return alt.LayerChart(layer=layers).properties(width=step * len(order), height=height)


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
        "AvgDC as drawn, beside the published shares",
        "Shares of users. Round trip and bandwidth are built from the published shares; the product follows from how "
        "they go together. With round trips that do not depend on bandwidth a fifth of the users would be in another "
        "bucket.",
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


# From end to end of the axes; intervals that go on beyond are cut.
_FOREST: Mapping[str, tuple[str, list[float]]] = {
    "gain_percent": ("mean latency of web search saved, %", [-10, 0, 10, 20, 30]),
    "rise": ("more retransmitted segments, points", [0.1, 0.3, 1, 3, 10]),
}


def _by_assumption(q: Quantities) -> Figure | None:
    """What each assumption does to the gain and to the cost, as a forest of intervals."""
    if q.assumed_again.isnull().all():
        return None
    import altair as alt

    found = assumed(q)
    rows = {name: rows_of(found[name], ["population", "assumption"]) for name in _FOREST}
    if not rows["rise"]:
        return None
    return Figure(
        "sensitivity",
        "What the gain and the cost owe to each assumption",
        f"IW {MANY} instead of {FEW}, one thing assumed otherwise: mean gain of web search, and how much more all "
        "services send again (logarithmic). Dashed: published. Lines: 95 % intervals. Numbers are in the table "
        "`sensitivity`. Looked at after the first run; no claim rests on it.",
        alt.hconcat(*(_forest(rows[name], name, 165, 13, label) for name, label in zip(_FOREST, (52, 0), strict=True))),
        alt.vconcat(*(_forest(rows[name], name, 130, 20, 30) for name in _FOREST)),
    )


def _forest(rows: list[dict[str, Any]], name: str, width: int, step: int, label: int) -> altair.LayerChart:
    """`step`: height of a line; `label`: letters beside it before its text goes on below, 0 for none."""
    import altair as alt

    title, ticks = _FOREST[name]
    own = [
        row
        | {"told": "|".join(textwrap.wrap(row["assumption"], label or 200))}
        | ({"low": max(row["low"], ticks[0]), "high": min(row["high"], ticks[-1])} if "low" in row else {})
        for row in rows
    ]
    told, names = (list(dict.fromkeys(row[key] for row in own)) for key in ("told", "population"))
    published = {
        NAMES[population]: SEARCH_GAIN[population][1] if name == "gain_percent" else many - few
        for population, (few, many) in RETRANSMITTED.items()
    }
    theirs = [{"population": of, "value": published[of]} for of in names]
    scale = alt.Scale(domain=[ticks[0], ticks[-1]], type="log" if name == "rise" else "linear", nice=False)
    x = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(values=ticks, format=".2~f"))
    axis = alt.Axis(labelExpr="split(datum.label, '|')", labelLimit=320, labelLineHeight=12) if label else None
    y = alt.Y("told:N", sort=told, title=None, axis=axis)
    color = alt.Color("population:N", title=None, scale=alt.Scale(domain=names, range=list(ORDERED[: len(names)])))
    base = alt.Chart(inline(own)).encode(y=y, yOffset=alt.YOffset("population:N", sort=names), color=color)
    chart: altair.LayerChart = (
        alt.Chart(inline(theirs)).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x=x, color=color)
        + base.mark_rule(strokeWidth=2, opacity=0.5, clip=True).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        + base.mark_point(filled=True, size=38, opacity=1, clip=True).encode(x=x)
    ).properties(width=width, height=alt.Step(step))
    return chart
