"""Figures by initial window and by quantile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.studies.rfc6928_cluster.grid import FEW, MANY, MAPS, NAMES, SEARCH, SLOWDC, Place, settings
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.tables.latency import SUBNET_QUANTILES, TAIL_QUANTILES

if TYPE_CHECKING:
    import altair


def sweep(results: Results) -> Figure | None:
    """Change of the mean latency by initial window; None without two windows."""
    rows = []
    for population, service, place in _places(results):
        for iw in results.windows(place):
            found = None if iw == FEW else results.latency(place, iw=iw).percent
            rows.append(
                {
                    "population": population,
                    "service": service,
                    "iw": str(iw),
                    "value": 0.0 if found is None else found.value,
                    "low": 0.0 if found is None else found.low,
                    "high": 0.0 if found is None else found.high,
                }
            )
    return _by_window(
        rows,
        "sweep",
        "Mean latency by initial window",
        "Change of the mean over that with IW 3; below zero is faster. Bands: 95 % intervals.",
        "change of mean latency, %",
    )


def retransmissions(results: Results) -> Figure | None:
    """Retransmission rate by initial window and service; None without two windows."""
    rows = []
    for population, service, place in _places(results):
        for iw in results.windows(place):
            found = results.retransmitted(place.population, (service,), MANY if iw == FEW else iw)
            side = found.baseline if iw == FEW else found.treatment
            row = {"population": population, "service": service, "iw": str(iw)}
            rows.append({**row, "value": 100 * side.value, "low": 100 * side.low, "high": 100 * side.high})
    return _by_window(
        rows,
        "retransmissions",
        "Retransmissions by initial window",
        "Retransmitted segments of segments sent. Bands: 95 % intervals.",
        "retransmitted, %",
    )


def _places(results: Results) -> list[tuple[str, str, Place]]:
    return [
        (NAMES[population], service, Place(population, service))
        for population in settings()["populations"]
        for service in results.services(population)
    ]


def _by_window(rows: list[dict[str, Any]], name: str, title: str, caption: str, axis: str) -> Figure | None:
    if len({row["iw"] for row in rows}) < 2:
        return None
    import altair as alt

    populations = list(dict.fromkeys(row["population"] for row in rows))
    wide = [_windows(rows, population, axis, 270) for population in populations]
    narrow = [_windows(rows, population, axis, 250) for population in populations]
    return Figure(name, title, caption, alt.hconcat(*wide), alt.vconcat(*narrow))


def _windows(rows: list[dict[str, Any]], population: str, axis: str, width: int) -> altair.LayerChart:
    import altair as alt

    own = [{k: v for k, v in row.items() if v == v} for row in rows if row["population"] == population]
    windows = [str(iw) for iw in settings()["initial_windows"]]
    services = list(settings()["users"])
    x = alt.X("iw:N", sort=windows, title="initial window, segments", axis=alt.Axis(labelAngle=0))
    colour = alt.Color(
        "service:N", sort=services, title=None, scale=alt.Scale(domain=services, range=list(PALETTE[:4]))
    )
    base = alt.Chart(inline(own)).encode(x=x, color=colour)
    chart: altair.LayerChart = (
        base.mark_rule(strokeWidth=4, opacity=0.35).encode(y="low:Q", y2="high:Q")
        + base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=40)).encode(y=alt.Y("value:Q", title=axis))
    ).properties(width=width, height=220, title=population)
    return chart


def maps_tail(results: Results) -> Figure | None:
    """Change of Maps' latency by quantile; None without Maps."""
    rows = []
    for population in settings()["populations"]:
        place = Place(population, MAPS)
        if not results.has(place):
            continue
        for q in TAIL_QUANTILES:
            found = results.latency(place, f"p{q}").percent
            rows.append(
                {"group": NAMES[population], "q": q, "value": found.value, "low": found.low, "high": found.high}
            )
    return _by_quantile(
        rows,
        "tail",
        "Maps: who is slower with IW 10",
        "Change of the quantiles of latency; above zero is slower than with IW 3. RFC 6928 has SlowDC slower from the "
        "96th percentile (dotted) up. Bands: 95 % intervals.",
        "change, %",
        96,
    )


def over_subnets(results: Results) -> Figure | None:
    """Gain by quantile over subnets; None without web search."""
    rows = []
    for population in settings()["populations"]:
        place = Place(population, SEARCH)
        if not results.has(place):
            continue
        for q in SUBNET_QUANTILES:
            found = results.subnets(place, f"p{q}").percent
            row = {"group": NAMES[population], "q": q, "value": -found.value}
            rows.append({**row, "low": -found.high, "high": -found.low})
    return _by_quantile(
        rows,
        "subnets",
        "Web search over subnets",
        "Gain of IW 10 at each quantile of the subnets' mean latencies. RFC 6928: 5 to 11 % at all quantiles. Bands: "
        "95 % intervals.",
        "gain, %",
        None,
    )


def _by_quantile(
    rows: list[dict[str, Any]], name: str, title: str, caption: str, axis: str, mark: int | None
) -> Figure | None:
    if not rows:
        return None
    return Figure(name, title, caption, _quantiles(rows, axis, mark, 620), _quantiles(rows, axis, mark, 260))


def _quantiles(rows: list[dict[str, Any]], axis: str, mark: int | None, width: int) -> altair.TopLevelMixin:
    import altair as alt

    own = [{k: v for k, v in row.items() if v == v} for row in rows]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    colours = [PALETTE[2] if group == NAMES[SLOWDC] else PALETTE[0] for group in groups]
    quantiles = [row["q"] for row in rows]
    x = alt.X(
        "q:Q",
        title="percentile",
        scale=alt.Scale(domain=[min(quantiles), max(quantiles)], nice=False),
        axis=alt.Axis(values=sorted(set(quantiles)), format="d", labelOverlap="greedy"),
    )
    colour = alt.Color("group:N", sort=groups, title=None, scale=alt.Scale(domain=groups, range=colours))
    base = alt.Chart(inline(own)).encode(x=x, color=colour)
    layers: list[altair.Chart] = [
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30)).encode(y=alt.Y("value:Q", title=axis)),
        alt.Chart(inline([{"at": 0}])).mark_rule(color="#777777").encode(y="at:Q"),
    ]
    if mark is not None:
        layers.append(alt.Chart(inline([{"q": mark}])).mark_rule(strokeDash=[2, 3], color="#777777").encode(x=x))
    return alt.layer(*layers).properties(width=width, height=230)
