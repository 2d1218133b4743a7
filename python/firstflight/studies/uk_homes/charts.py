"""How the study's figures are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstflight.report.distribution import PALETTE
from firstflight.report.figure import inline
from firstflight.studies.uk_homes.grid import responses, settings

if TYPE_CHECKING:
    import altair

# As the map of sizes: an initial window has one colour in all figures of the study.
_WINDOWS = {"3": "#8a8a8a", "16": "#009E73", "20": "#56B4E9", "32": "#D99000", "64": "#B0307A"}
_KINDS = {
    "ADSL": PALETTE[5],
    "FTTC": PALETTE[0],
    "Cable": PALETTE[2],
    "FTTP": PALETTE[3],
    "other": PALETTE[6],
}


BESIDE = 240
"""Width of a panel of which three stand beside each other."""


def by_size(rows: list[dict[str, Any]], panels: list[str], width: int) -> altair.TopLevelMixin:
    """Milliseconds saved by response, a line a window, a panel a distance."""
    import altair as alt

    windows = [iw for iw in _WINDOWS if any(row["iw"] == iw for row in rows)]

    def one(panel: str) -> altair.TopLevelMixin:
        own = [row for row in rows if row["farther"] == panel]
        base = alt.Chart(inline(own)).encode(
            x=alt.X("response:N", sort=responses(), title=None, axis=alt.Axis(labelAngle=0, labelOverlap=False)),
            color=_window_colour(windows),
        )
        zero = alt.Chart().mark_rule(color="#777777").encode(y=alt.datum(0))
        # With room at both ends: a figure of the axis that stands out of the panel would move its heading.
        values = [0.0, *(row[name] for row in own for name in ("saved", "low", "high") if row[name] == row[name])]
        margin = 0.08 * (max(values) - min(values))
        ends = alt.Scale(domain=[min(values) - margin, max(values) + margin], nice=False)
        y = alt.Y("saved:Q", title="saved, ms", scale=ends)
        line = base.mark_line(strokeWidth=1.6, opacity=0.6).encode(y=y)
        dots = base.mark_point(size=32, filled=True, opacity=1).encode(y=y)
        spread = base.mark_rule(strokeWidth=3, opacity=0.35).encode(y=alt.Y("low:Q", scale=ends), y2="high:Q")
        return alt.layer(zero, line, spread, dots).properties(width=width, height=190, title=_heading(panel))

    return _together([one(panel) for panel in panels if any(row["farther"] == panel for row in rows)], width, BESIDE)


def by_percentile(rows: list[dict[str, Any]], panels: list[str], width: int) -> altair.TopLevelMixin:
    """Percent saved by percentile, a line a window, a panel a year."""
    import altair as alt

    windows = [iw for iw in _WINDOWS if any(row["iw"] == iw for row in rows)]

    def one(panel: str) -> altair.TopLevelMixin:
        zero = alt.Chart().mark_rule(color="#777777").encode(y=alt.datum(0))
        line = (
            alt.Chart(inline([row for row in rows if row["panel"] == panel]))
            .mark_line(strokeWidth=2)
            .encode(
                x=alt.X(
                    "percentile:Q",
                    title="percentile of the homes by their time",
                    scale=alt.Scale(domain=[0, 100]),
                    axis=alt.Axis(values=[1, 25, 50, 75, 99]),
                ),
                y=alt.Y("saved:Q", title="saved, %"),
                color=_window_colour(windows),
            )
        )
        return alt.layer(zero, line).properties(width=width, height=220, title=_heading(panel))

    return _together([one(panel) for panel in panels if any(row["panel"] == panel for row in rows)], width, 300, "y")


def by_technology(
    rows: list[dict[str, Any]], panels: list[str], width: int, narrow: bool = False
) -> altair.TopLevelMixin:
    """Percent saved, and homes overfilled, by technology; a panel a year."""
    import altair as alt

    windows = [iw for iw in _WINDOWS if any(row["iw"] == iw for row in rows)]
    offset = alt.YOffset("iw:N", sort=windows)
    # A technology without an interval has NaN for its ends.
    values = [row[name] for row in rows for name in ("saved", "low", "high") if row[name] == row[name]]
    ends = [min(0, *values), max(values)]
    most = max((row["overfilled"] for row in rows if row["overfilled"] is not None), default=0)

    def one(panel: str) -> altair.HConcatChart:
        own = [row for row in rows if row["panel"] == panel]
        order = list(dict.fromkeys(row["technology"] for row in sorted(own, key=lambda row: -row["time"])))
        y = alt.Y("technology:N", sort=order, title=None)
        base = alt.Chart(inline(own)).encode(y=y, yOffset=offset, color=_window_colour(windows))
        x = alt.X("saved:Q", title="saved, %", scale=alt.Scale(domain=ends))
        zero = alt.Chart().mark_rule(color="#777777").encode(x=alt.datum(0))
        dots = base.mark_point(size=50, filled=True, opacity=1).encode(x=x)
        spread = base.mark_rule(strokeWidth=4, opacity=0.35).encode(x="low:Q", x2="high:Q")
        left = alt.layer(zero, spread, dots).properties(
            width=width if narrow else 320, height=alt.Step(13), title=_heading(panel)
        )
        known = [row for row in own if row["overfilled"] is not None]
        right = (
            alt.Chart(inline(known))
            .mark_bar()
            .encode(
                y=alt.Y("technology:N", sort=order, title=None, axis=alt.Axis(labels=False)),
                yOffset=offset,
                x=alt.X("overfilled:Q", title="overfilled, %", scale=alt.Scale(domain=[0, most])),
                color=_window_colour(windows),
            )
            .properties(width=60 if narrow else 200, height=alt.Step(13))
        )
        return alt.hconcat(left, right, spacing=8) if known else alt.hconcat(left)

    charts = [one(panel) for panel in panels if any(row["panel"] == panel for row in rows)]
    picture: altair.TopLevelMixin = alt.vconcat(*charts, spacing=16)
    return picture


def overfilled(rows: list[dict[str, Any]], panels: list[str], rules: list[str], width: int) -> altair.TopLevelMixin:
    """Share of homes by window: simulated as dots, rules as lines; a panel a year."""
    import altair as alt

    simulated, *arithmetic = rules
    most = max(1.0, *(row["share"] for row in rows))
    shown = [rule for rule in rules if any(row["rule"] == rule for row in rows)]
    colours = dict(zip(rules, ("#222222", PALETTE[0], PALETTE[1]), strict=True))
    colour = alt.Color(
        "rule:N",
        sort=shown,
        title=None,
        scale=alt.Scale(domain=shown, range=[colours[rule] for rule in shown]),
        legend=alt.Legend(labelLimit=400, columns=3 if width > 260 else 1),
    )

    def one(panel: str) -> altair.TopLevelMixin:
        own = [row for row in rows if row["panel"] == panel]
        x = alt.X(
            "iw:Q",
            title="initial window, segments",
            scale=alt.Scale(type="log", nice=False, domain=[2.7, 72]),
            axis=alt.Axis(values=settings()["initial_windows"], format="d", labelOverlap=False),
        )
        # With room for the figure above the highest dot.
        y = alt.Y("share:Q", title="homes, %", scale=alt.Scale(domain=[0, 1.15 * most], nice=False))
        lines = (
            alt.Chart(inline([row for row in own if row["rule"] in arithmetic]))
            .mark_line(strokeWidth=2)
            .encode(x=x, y=y, color=colour)
        )
        dots = (
            alt.Chart(inline([row for row in own if row["rule"] == simulated]))
            .mark_point(size=60, filled=True, opacity=1)
            .encode(x=x, y=y, color=colour)
        )
        labels = (
            alt.Chart(inline([row | {"text": f"{row['share']:.1f}"} for row in own if row["rule"] == simulated]))
            .mark_text(dy=-11, fontSize=10.5)
            .encode(x=x, y=y, text="text:N")
        )
        return alt.layer(lines, dots, labels).properties(width=width, height=210, title=_heading(panel))

    return _together([one(panel) for panel in panels if any(row["panel"] == panel for row in rows)], width, 300, "y")


def against_measured(rows: list[dict[str, Any]], panels: list[str], width: int) -> altair.TopLevelMixin:
    """Our page's time against the measured one's, a dot a home, a panel a year."""
    import altair as alt

    kinds = [kind for kind in _KINDS if any(row["technology"] == kind for row in rows)]
    ticks = [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    scale = alt.Scale(type="log", domain=[15, 15000], nice=False, clamp=True)
    placed = [row | {"measured": round(row["measured"]), "ours": round(row["ours"])} for row in rows]

    def one(panel: str) -> alt.Chart:
        chart: alt.Chart = (
            alt.Chart(inline([row for row in placed if row["panel"] == panel]))
            .mark_circle(size=14, opacity=0.55, aria=False)
            .encode(
                x=alt.X(
                    "ours:Q",
                    title="our page, ms",
                    scale=scale,
                    axis=alt.Axis(values=ticks, format=",d", labelAngle=0),
                ),
                y=alt.Y(
                    "measured:Q",
                    title="measured page, ms",
                    scale=scale,
                    axis=alt.Axis(values=ticks, format=",d", labelAngle=0),
                ),
                color=alt.Color(
                    "technology:N",
                    sort=kinds,
                    title=None,
                    scale=alt.Scale(domain=kinds, range=[_KINDS[kind] for kind in kinds]),
                ),
            )
            .properties(width=width, height=260, title=_heading(panel))
        )
        return chart

    return _together([one(panel) for panel in panels], width, 300)


def _window_colour(windows: list[str]) -> altair.Color:
    import altair as alt

    return alt.Color(
        "iw:N",
        sort=windows,
        scale=alt.Scale(domain=windows, range=[_WINDOWS[iw] for iw in windows]),
        legend=alt.Legend(title=None, labelExpr="'IW ' + datum.label"),
    )


def _heading(text: str) -> altair.TitleParams:
    import altair as alt

    return alt.TitleParams(text, anchor="start", frame="group", fontSize=12, fontWeight="bold", offset=12)


def _together(charts: list[Any], width: int, wide: int, shared: str = "") -> altair.TopLevelMixin:
    """Beside each other where the page is wide (the charts are of the width `wide`), else below each other.

    `shared`: "y" for one scale of all.
    """
    import altair as alt

    joined = alt.hconcat(*charts) if width == wide else alt.vconcat(*charts)
    picture: altair.TopLevelMixin = joined.resolve_scale(y="shared") if shared == "y" else joined
    return picture
