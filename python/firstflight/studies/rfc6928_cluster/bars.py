"""Figures by bucket: gains and shares, ours beside the published."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from firstflight.populations import dukkipati2010, slowdc
from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.studies.rfc6928_cluster.grid import (
    AVGDC,
    FITTED,
    INDEPENDENT,
    NAMES,
    NEW,
    REUSED,
    SEARCH,
    SLOWDC,
    STRONGER,
    Place,
)
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import TITLES, UNITS, bar, figure5, labels

if TYPE_CHECKING:
    import altair

    from firstflight.analysis.intervals import Estimate

_OURS, _THEIRS = "simulated", "published"
_GREY = "#9a9a9a"
_LABEL = "replace(datum.label, '<= ', '\u2264 ')"
"""The name of a bucket as an axis shows it."""
_COLOURS = {_OURS: PALETTE[0], _THEIRS: _GREY}
_MS_AXIS = [0, 10, 30, 100, 300, 1000, 3000]
_INTERVALS = "Bands: 95 % intervals; hollow: too few users for one."
_PANELS = {
    "figure5": (AVGDC, ("rtt", "down", "bdp"), "AvgDC's web search in the buckets of the paper's Figure 5"),
    "segments": (AVGDC, ("segments",), "AvgDC's web search by size"),
    "figure6": (SLOWDC, ("rtt", "down", "bdp"), "SlowDC's web search in the same buckets"),
}
_CAPTIONS = {
    "figure5": "Mean gain of IW 10 over IW 3, above in ms, below in percent of the mean with IW 3; above the bars "
    "the share of responses. Whiskers: 95 % intervals; a simulated bar without one has too few users for it. "
    "Published bars are read off the figure. The axis of ms is stretched towards zero.",
    "segments": "Mean gain of IW 10 over IW 3 by segments of the response: the buckets of the paper's Figure 7, whose "
    "bars are not available. Whiskers: 95 % intervals.",
    "figure6": "As above; the paper's Figure 6 has SlowDC by bandwidth, but its bars are not available. Whiskers: 95 % "
    "intervals.",
}


def by_bucket(results: Results, name: str) -> Figure | None:
    """Gains in ms and percent by bucket: "figure5", "segments" or "figure6"; None without data."""
    population, dimensions, title = _PANELS[name]
    place = Place(population, SEARCH)
    if not results.has(place):
        return None
    wide, narrow = [], []
    for by in dimensions:
        rows = _gains(results, place, by)
        if not rows:
            return None
        panels = [_panel(rows, by, quantity, 34 if len(dimensions) > 1 else 60) for quantity in ("ms", "percent")]
        wide.append(panels)
        narrow += [_panel(rows, by, quantity, 30) for quantity in ("ms", "percent")]
    import altair as alt

    columns = [alt.vconcat(*panels, spacing=6) for panels in wide]
    return Figure(name, title, _CAPTIONS[name], alt.hconcat(*columns), alt.vconcat(*narrow))


def _gains(results: Results, place: Place, by: str) -> list[dict[str, Any]]:
    rows = []
    for index, bucket in enumerate(results.buckets(place, by)):
        known = bar(place, by, index)
        share = f"{bucket.share_percent:.1f}" if bucket.share_percent else "none"
        for quantity in ("ms", "percent"):
            head = {"bucket": bucket.bucket, "quantity": quantity, "share": share}
            found = bucket.comparison
            if found is not None:
                value = found.difference if quantity == "ms" else found.percent
                rows.append({**head, "source": _OURS, "gain": -value.value, "low": -value.high, "high": -value.low})
            if known is not None:
                gain = known.gain_ms if quantity == "ms" else known.gain_percent
                rows.append({**head, "source": _THEIRS, "gain": gain, "low": None, "high": None})
    return [{key: value for key, value in row.items() if value is not None and value == value} for row in rows]


def _panel(rows: list[dict[str, Any]], by: str, quantity: str, step: int) -> altair.LayerChart:
    import altair as alt

    own = [row for row in rows if row["quantity"] == quantity]
    sources = [source for source in (_OURS, _THEIRS) if any(row["source"] == source for row in own)]
    order = list(labels(by))
    width = step * len(order)
    x = alt.X(
        "bucket:N",
        sort=order,
        scale=alt.Scale(domain=order),
        title=f"{TITLES[by]}, {UNITS[by]}" if quantity == "percent" else None,
        axis=alt.Axis(labelAngle=-45, labels=quantity == "percent", labelExpr=_LABEL),
    )
    if quantity == "ms" and max(row["gain"] for row in own) > 200:
        scale, axis = alt.Scale(type="symlog", constant=10), alt.Axis(values=_MS_AXIS, format="d")
    else:
        scale, axis = alt.Scale(nice=True), alt.Axis(format="d")
    y = alt.Y("gain:Q", title="gain, ms" if quantity == "ms" else "gain, %", scale=scale, axis=axis)
    offset = alt.XOffset("source:N", sort=sources)
    colour = alt.Color(
        "source:N",
        sort=sources,
        title=None,
        scale=alt.Scale(domain=sources, range=[_COLOURS[source] for source in sources]),
        legend=alt.Legend() if len(sources) > 1 else None,
    )
    data = inline(own)
    layers: list[altair.Chart] = [
        alt.Chart(data).mark_bar().encode(x=x, xOffset=offset, y=y, color=colour),
        alt.Chart(inline([row for row in own if "low" in row]))
        .mark_rule(color="#333333")
        .encode(x=x, xOffset=offset, y=alt.Y("low:Q", scale=scale), y2="high:Q"),
    ]
    if quantity == "ms":
        shares = list({row["bucket"]: {"bucket": row["bucket"], "share": f"{row['share']} %"} for row in own}.values())
        layers.append(
            alt.Chart(inline(shares))
            .mark_text(fontSize=8.5, color="#555555", baseline="bottom")
            .encode(x=x, y=alt.value(-3), text="share:N")
        )
    return alt.LayerChart(layer=layers).properties(width=width, height=150)


def by_dependence(results: Results) -> Figure | None:
    """Gain in percent by bandwidth with every joint law, and the published bars; None without the other laws."""
    rows = []
    for name in (INDEPENDENT, FITTED, STRONGER):
        place = Place(AVGDC, SEARCH, name)
        if not results.has(place):
            return None
        for bucket in results.buckets(place, "down"):
            if bucket.comparison is not None:
                rows.append(_point(str(bucket.bucket), name, bucket.comparison.percent))
    rows += [
        {"bucket": label, "law": _THEIRS, "gain": known.gain_percent}
        for label, known in zip(labels("down"), figure5("down"), strict=True)
    ]
    return Figure(
        "dependence",
        "The gain by bandwidth turns round with the joint law",
        "AvgDC's web search, gain in percent of the mean with IW 3. Independent: as in the reproduction of 2014, the "
        "faster the user, the more she gains. Fitted to the shares of the bandwidth-delay product, and stronger than "
        f"that: slow users have long round trips. {_INTERVALS}",
        _lines(rows, "down", [INDEPENDENT, FITTED, STRONGER, _THEIRS], 620),
        _lines(rows, "down", [INDEPENDENT, FITTED, STRONGER, _THEIRS], 260),
    )


def by_connections(results: Results) -> Figure | None:
    """Gain in percent by round trip with new and with reused connections, and the published bars; None without both."""
    rows = []
    for name in (NEW, REUSED):
        place = Place(AVGDC, SEARCH, FITTED, name)
        if not results.has(place):
            return None
        for bucket in results.buckets(place, "rtt"):
            if bucket.comparison is not None:
                rows.append(_point(str(bucket.bucket), name, bucket.comparison.percent))
    rows += [
        {"bucket": label, "law": _THEIRS, "gain": known.gain_percent}
        for label, known in zip(labels("rtt"), figure5("rtt"), strict=True)
    ]
    return Figure(
        "connections",
        "With connections kept open the gain is the published one",
        "AvgDC's web search, gain in percent of the mean with IW 3. New: each response on a connection of its own. "
        "Reused: three on each, as RFC 6928 says of Chrome (35 % of requests on new ones). Looked at after the first "
        f"run. {_INTERVALS}",
        _lines(rows, "rtt", [NEW, REUSED, _THEIRS], 620),
        _lines(rows, "rtt", [NEW, REUSED, _THEIRS], 260),
    )


def _point(bucket: str, law: str, percent: Estimate) -> dict[str, Any]:
    """A gain with its interval; `few`, without one, where there are too few users for it."""
    head = {"bucket": bucket, "law": law, "gain": 0 - percent.value}
    if not math.isfinite(percent.low):
        return head | {"few": True}
    return head | {"low": -percent.high, "high": -percent.low}


_LINES = {
    INDEPENDENT: PALETTE[1],
    FITTED: PALETTE[0],
    STRONGER: PALETTE[3],
    NEW: PALETTE[0],
    REUSED: PALETTE[3],
    _THEIRS: _GREY,
}


def _lines(rows: list[dict[str, Any]], by: str, names: list[str], width: int) -> altair.TopLevelMixin:
    import altair as alt

    scale = alt.Scale(domain=names, range=[_LINES[name] for name in names])
    colour = alt.Color("law:N", sort=names, title=None, scale=scale)
    title = f"{TITLES[by]}, {UNITS[by]}"
    axis = alt.Axis(labelAngle=0 if width > 400 else -45, labelExpr=_LABEL)
    x = alt.X("bucket:N", sort=list(labels(by)), title=title, axis=axis)
    y = alt.Y("gain:Q", title="gain, %", scale=alt.Scale(zero=True))

    def of(own: list[dict[str, Any]]) -> altair.Chart:
        return alt.Chart(inline(own)).encode(x=x, y=y, color=colour)

    known = [row for row in rows if "low" in row]
    layers = [
        alt.Chart(inline(known))
        .mark_rule(strokeWidth=4, opacity=0.3)
        .encode(x=x, y="low:Q", y2="high:Q", color=colour),
        of(rows).mark_line(strokeWidth=2),
        of([row for row in rows if "few" not in row]).mark_point(size=45, filled=True, opacity=1),
        of([row for row in rows if "few" in row]).mark_point(size=45, fill="white", opacity=1),
    ]
    chart: altair.TopLevelMixin = alt.layer(*layers).properties(width=width, height=240)
    return chart


def drawn(results: Results) -> Figure | None:
    """Shares of AvgDC's users by round trip, bandwidth and product, as drawn and as published; None without AvgDC."""
    from firstflight.studies.rfc6928_cluster.tables.population import drawn_shares

    rows = []
    for by in ("rtt", "down", "bdp"):
        for name in (FITTED, INDEPENDENT) if by == "bdp" else (FITTED,):
            place = Place(AVGDC, SEARCH, name)
            if not results.windows(place):
                if name == FITTED:
                    return None
                continue
            source = f"{_OURS}, independent" if name == INDEPENDENT else _OURS
            found = drawn_shares(results.users(place), by)
            rows += [
                {"by": by, "bucket": label, "source": source, "share": share}
                for label, share in zip(labels(by), found, strict=True)
            ]
        rows += [
            {"by": by, "bucket": label, "source": _THEIRS, "share": share}
            for label, share in zip(labels(by), dukkipati2010.shares(by), strict=True)
        ]
    import altair as alt

    return Figure(
        "population",
        "AvgDC as drawn, beside the published shares",
        "Shares of users. Round trip and bandwidth are built from the published shares; the product follows from how "
        "they go together. With round trips that do not depend on bandwidth a fifth of the users would be in another "
        "bucket.",
        alt.hconcat(*(_shares(rows, by, 26) for by in ("rtt", "down", "bdp"))),
        alt.vconcat(*(_shares(rows, by, 30) for by in ("rtt", "down", "bdp"))),
    )


def _shares(rows: list[dict[str, Any]], by: str, step: int) -> altair.Chart:
    import altair as alt

    own = [row for row in rows if row["by"] == by]
    sources = [_OURS, f"{_OURS}, independent", _THEIRS]
    there = [source for source in sources if any(row["source"] == source for row in own)]
    order = list(labels(by))
    chart: altair.Chart = (
        alt.Chart(inline(own))
        .mark_bar()
        .encode(
            x=alt.X(
                "bucket:N",
                sort=order,
                title=f"{TITLES[by]}, {UNITS[by]}",
                axis=alt.Axis(labelAngle=-45, labelExpr=_LABEL),
            ),
            xOffset=alt.XOffset("source:N", sort=there),
            y=alt.Y("share:Q", title="share, %"),
            color=alt.Color(
                "source:N",
                sort=sources,
                title=None,
                scale=alt.Scale(domain=sources, range=[PALETTE[0], PALETTE[1], _GREY]),
            ),
        )
        .properties(width=step * len(order), height=170)
    )
    return chart


def slow_quantiles() -> Figure:
    """SlowDC's bandwidth law through the published quantiles."""
    return Figure(
        "slowdc",
        "SlowDC's bandwidths through the published quantiles",
        "Line: the population's law; dots: a fifth below 100 kbit/s, a third below 256 kbit/s (RFC 6928), median 500 "
        "kbit/s (CS244 2014). Above the median it has AvgDC's shares. Dashed: AvgDC.",
        _law(620),
        _law(260),
    )


def _law(width: int) -> altair.TopLevelMixin:
    import altair as alt

    x = alt.X(
        "rate:Q",
        title="bandwidth, kbit/s",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=[30, 56, 100, 256, 512, 1000, 2000, 5000, 10000], format="d"),
    )
    y = alt.Y("share:Q", title="users below, %", scale=alt.Scale(domain=[0, 100]))
    laws = {SLOWDC: slowdc.down(), AVGDC: dukkipati2010.down()}
    names = [NAMES[name] for name in laws]
    rows = [
        {"population": NAMES[name], "rate": value / 1000, "share": 100 * p}
        for name, law in laws.items()
        for p, value in law
    ]
    dots = [{"rate": rate / 1000, "share": 100 * p, "population": NAMES[SLOWDC]} for p, rate in slowdc.QUANTILES_BPS]
    colour = alt.Color("population:N", sort=names, title=None, scale=alt.Scale(domain=names, range=[PALETTE[2], _GREY]))
    dash = alt.StrokeDash("population:N", sort=names, scale=alt.Scale(domain=names, range=[[1, 0], [5, 4]]))
    lines = alt.Chart(inline(rows)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
    points = alt.Chart(inline(dots)).mark_point(size=70, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    chart: altair.TopLevelMixin = (lines + points).properties(width=width, height=230)
    return chart
