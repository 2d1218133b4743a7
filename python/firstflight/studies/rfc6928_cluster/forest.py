"""What each assumption does to the gain and to the cost, as a forest of intervals."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import Figure, inline
from firstflight.studies.rfc6928_cluster.claims.statement import gain
from firstflight.studies.rfc6928_cluster.grid import FEW, MANY, NAMES, SEARCH, assumed
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import RETRANSMITTED, SEARCH_GAIN
from firstflight.studies.rfc6928_cluster.tables.cost import percent
from firstflight.studies.rfc6928_cluster.tables.sensitivity import compared

if TYPE_CHECKING:
    import altair

    from firstflight.analysis.intervals import Estimate

_GAIN, _RISE = "gain", "rise"
_TITLES = {_GAIN: "mean latency of web search saved, %", _RISE: "more retransmitted segments, points"}
_TICKS: dict[str, list[float]] = {_GAIN: [-10, 0, 10, 20, 30], _RISE: [0.1, 0.3, 1, 3, 10]}
"""From end to end of the axes; intervals that go on beyond are cut."""


def by_assumption(results: Results) -> Figure | None:
    """Gain of IW 10 and rise of the retransmission rate with each thing assumed otherwise; None without any."""
    rows: list[dict[str, Any]] = []
    for population, name, told in compared(results):
        at = {"population": NAMES[population], "told": told}
        again = results.retransmitted(population, tuple(results.services(population, name)), assumption=name)
        saved = gain(results.latency(assumed(population, SEARCH, name)).percent)
        rows += [_row(at, _GAIN, saved), _row(at, _RISE, percent(again.difference))]
    if not rows:
        return None
    import altair as alt

    return Figure(
        "sensitivity",
        "What the gain and the cost owe to each assumption",
        f"IW {MANY} instead of {FEW}, one thing assumed otherwise: mean gain of web search, and how much more all "
        "services send again (logarithmic). Dashed: published. Lines: 95 % intervals. Numbers are in the table "
        "`sensitivity`. Looked at after the first run; no claim rests on it.",
        alt.hconcat(*(_panel(rows, quantity, 165, 13, label) for quantity, label in ((_GAIN, 52), (_RISE, 0)))),
        alt.vconcat(*(_panel(rows, quantity, 130, 20, 30) for quantity in _TITLES)),
    )


def _row(at: dict[str, Any], quantity: str, found: Estimate) -> dict[str, Any]:
    least, *_, most = _TICKS[quantity]
    row = {**at, "quantity": quantity, "value": found.value}
    return row | ({"low": max(found.low, least), "high": min(found.high, most)} if found.low == found.low else {})


def _panel(rows: list[dict[str, Any]], quantity: str, width: int, step: int, label: int) -> altair.LayerChart:
    """`step`: height of a line; `label`: letters beside it before its text goes on below, 0 for none."""
    import altair as alt

    own = [
        {**row, "told": "|".join(textwrap.wrap(row["told"], label or 200))}
        for row in rows
        if row["quantity"] == quantity
    ]
    told = list(dict.fromkeys(row["told"] for row in own))
    names = list(dict.fromkeys(row["population"] for row in own))
    published = {
        _GAIN: {NAMES[population]: percents for population, (_, percents) in SEARCH_GAIN.items()},
        _RISE: {NAMES[population]: many - few for population, (few, many) in RETRANSMITTED.items()},
    }[quantity]
    theirs = [{"population": name, "value": published[name]} for name in names]
    scale = alt.Scale(
        domain=[_TICKS[quantity][0], _TICKS[quantity][-1]], type="log" if quantity == _RISE else "linear", nice=False
    )
    x = alt.X("value:Q", title=_TITLES[quantity], scale=scale, axis=alt.Axis(values=_TICKS[quantity], format=".2~f"))
    axis = alt.Axis(labelExpr="split(datum.label, '|')", labelLimit=320, labelLineHeight=12) if label else None
    y = alt.Y("told:N", sort=told, title=None, axis=axis)
    beside = alt.YOffset("population:N", sort=names)
    colour = alt.Color("population:N", title=None, scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])))
    base = alt.Chart(inline(own)).encode(y=y, yOffset=beside, color=colour)
    chart: altair.LayerChart = (
        alt.Chart(inline(theirs)).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x=x, color=colour)
        + base.mark_rule(strokeWidth=2, opacity=0.5, clip=True).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        + base.mark_point(filled=True, size=38, opacity=1, clip=True).encode(x=x)
    ).properties(width=width, height=alt.Step(step))
    return chart
