"""The study's figures: the RFC's four, page delay and drop rate beside the printed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.table import Table
from firstflight.report.figure import Figure, inline
from firstflight.studies.rfc2415 import published
from firstflight.studies.rfc2415.tables import FTP_WINDOWS

if TYPE_CHECKING:
    import altair

OURS, RFC, WIDE = "this run", "RFC 2415", "hypothesis: ftps with window 20"
# After Okabe and Ito: told apart with any common colour blindness, on white and on near-black.
WEB_COLOURS = {"8": "#2a7fbf", "16": "#E69F00", "32": "#CC3D6F"}
FTP_ORDER = ["no ftp", "1 ftp", "2 ftps", "3 ftps"]


def all_figures(tables: list[Table]) -> list[Figure]:
    """The figures for which the run has data; `tables` are those of `tables.all_tables`."""
    have = {table.name: table for table in tables}
    figures = []
    for name, table, metric, title, caption, axis in _FIGURES:
        if table in have:
            frame = have[table].frame.filter(pl.col("metric") == metric)
            if metric == "packet_drop_rate":
                frame = _printed_drops(frame)
            points = _points(frame)
            if metric == "median_page_delay" and "ftp_window" in have:
                points += _hypothesis(have["ftp_window"].frame, frame)
            figures.append(Figure(name, title, caption, _chart(points, axis, 4), _chart(points, axis, 2)))
    return figures


_BAND = "Band: 95 % interval over replicates. Dashed: printed in the RFC."
_WIDE = "Dotted: a hypothesis, ftps with ns-2's default window of 20 segments; the RFC says 11."
_TABLE_6 = "Dashed: derived from goodput and delay in the RFC's Table 6; its figures are not available as numbers."
_FIGURES = (
    (
        "page_delay_http10",
        "table1",
        "median_page_delay",
        "Median page delay, HTTP/1.0 (Table 1)",
        f"The RFC's delays for IW 2 to 4 follow from its percentages. {_BAND} {_WIDE}",
        "median page delay, s",
    ),
    (
        "page_delay_http11",
        "table4",
        "median_page_delay",
        "Median page delay, HTTP/1.1 (Table 4)",
        f"All four files of a page on one connection. {_BAND} {_WIDE}",
        "median page delay, s",
    ),
    (
        "drop_rate",
        "table2",
        "packet_drop_rate",
        "Packet drop rate at the bottleneck, HTTP/1.0 (Table 2)",
        f"32 webs: Table 2's rows for 0 to 2 ftps are misprinted and left out; for no ftp Table 6 is shown. {_BAND}",
        "packets dropped, %",
    ),
    (
        "figure1",
        "figure1",
        "network_power",
        "Figure 1. Network power of web traffic, HTTP/1.0",
        f"Goodput divided by median page delay. {_TABLE_6}",
        "network power, MB/s",
    ),
    (
        "figure2",
        "figure2",
        "normalized_network_power",
        "Figure 2. Normalised network power, HTTP/1.0",
        f"Against IW 1 of the same scenario. {_TABLE_6}",
        "network power, ratio to IW 1",
    ),
    (
        "figure3",
        "figure3",
        "network_power",
        "Figure 3. Network power of web traffic, HTTP/1.1",
        "Goodput divided by median page delay. Band: 95 % interval over replicates.",
        "network power, MB/s",
    ),
    (
        "figure4",
        "figure4",
        "normalized_network_power",
        "Figure 4. Normalised network power, HTTP/1.1",
        "Against IW 1 of the same scenario. Band: 95 % interval over replicates.",
        "network power, ratio to IW 1",
    ),
)


def _printed_drops(frame: pl.DataFrame) -> pl.DataFrame:
    """Table 2's misprinted rows removed from `published`; 32 webs without ftps from Table 6."""
    wrong = pl.any_horizontal(
        (pl.col("webs") == webs) & (pl.col("ftps") == ftps) for webs, ftps in published.KNOWN_WRONG_DROPS
    )
    table_6 = published.printed(6).filter(
        pl.col("split") == "none", pl.col("metric") == "packet_drop_rate", pl.col("webs") == 32
    )
    on = ["webs", "ftps", "http", "iw", "metric"]
    return frame.join(
        table_6.select(*on, pl.col("published").alias("table_6")).with_columns(pl.col("iw").cast(pl.Int64)),
        on=on,
        how="left",
        maintain_order="left",
    ).with_columns(pl.when(wrong).then(pl.col("table_6")).otherwise(pl.col("published")).alias("published"))


def _points(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One point a value, ours and the RFC's, in the order in which lines are drawn."""
    points = []
    for row in frame.iter_rows(named=True):
        place = {"webs": str(row["webs"]), "ftps": FTP_ORDER[row["ftps"]], "iw": row["iw"]}
        points.append(place | {"who": OURS, "value": row["ours"], "low": row["low"], "high": row["high"]})
        if row["published"] is not None:
            points.append(place | {"who": RFC, "value": row["published"], "low": None, "high": None})
    return points


def _hypothesis(frame: pl.DataFrame, shown: pl.DataFrame) -> list[dict[str, Any]]:
    """Points of the page delays with the wider window, for the version of HTTP that `shown` has."""
    wide = frame.filter(
        pl.col("ftp_window") == FTP_WINDOWS["ftp_window_20"],
        pl.col("metric") == "median_page_delay",
        pl.col("http").is_in(shown["http"].unique().implode()),
    )
    return [point | {"who": WIDE, "low": None} for point in _points(wide) if point["who"] == OURS]


def _chart(points: list[dict[str, Any]], axis: str, columns: int) -> altair.TopLevelMixin:
    import altair as alt

    webs = alt.Color(
        "webs:N",
        sort=list(WEB_COLOURS),
        scale=alt.Scale(domain=list(WEB_COLOURS), range=list(WEB_COLOURS.values())),
        legend=alt.Legend(title=None, symbolOpacity=1, symbolType="circle", labelExpr="datum.label + ' webs'"),
    )
    shown = [who for who in (OURS, WIDE, RFC) if any(point["who"] == who for point in points)]
    dashes = {OURS: [1, 0], WIDE: [1, 3], RFC: [5, 3]}
    who = alt.StrokeDash(
        "who:N",
        sort=shown,
        scale=alt.Scale(domain=shown, range=[dashes[who] for who in shown]),
        legend=alt.Legend(title=None, orient="top" if columns == 4 else "bottom") if len(shown) > 1 else None,
    )
    x = alt.X(
        "iw:Q",
        title="IW, segments",
        axis=alt.Axis(values=[1, 2, 3, 4], format="d"),
        scale=alt.Scale(domain=[0.8, 4.2]),
    )
    y = alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5))
    base = alt.Chart().encode(x=x, color=webs)
    band = base.mark_area(opacity=0.22, line=False).encode(y=alt.Y("low:Q", title=axis), y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=who)
    ours = base.mark_point(size=34, filled=True, opacity=1).encode(y=y)
    rfc = base.mark_point(size=34, filled=False, strokeWidth=1.5).encode(y=y).transform_filter(f"datum.who === '{RFC}'")
    layers = alt.layer(
        band.transform_filter(f"datum.who === '{OURS}' && datum.low != null"),
        lines,
        ours.transform_filter(f"datum.who === '{OURS}'"),
        rfc,
        data=inline(points),
    ).properties(width=212 if columns == 4 else 128, height=190 if columns == 4 else 130)
    return layers.facet(
        facet=alt.Facet("ftps:N", sort=FTP_ORDER, title=None),
        columns=columns,
        spacing={"row": 12, "column": 14},
    )
