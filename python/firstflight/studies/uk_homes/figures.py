"""The study's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.populations import uk_homes
from firstflight.report.figure import Figure
from firstflight.report.size_map import size_map
from firstflight.studies.uk_homes import charts, overfill, ranking
from firstflight.studies.uk_homes.gain import (
    PERCENTILES,
    of_technology,
    of_time,
    saved_by_percentile,
    saved_ms,
    saved_percent,
)
from firstflight.studies.uk_homes.grid import HOMES, PAGE, responses, settings, typical_home
from firstflight.studies.uk_homes.measure import curves, part

if TYPE_CHECKING:
    from firstflight.records import Run

_DRAWN = 3
"""Of so many homes one is drawn as a dot."""
_FEWEST = 20
"""Homes of a technology that is drawn."""


def all_figures(run: Run) -> list[Figure]:
    """`size_map`, `sizes`, `percentiles`, `technologies`, `overfill`, `pages`; only those with data."""
    found = [
        _map(run),
        _sizes(run),
        _percentiles(run),
        _technologies(run),
        _overfill(run),
        _pages(run),
    ]
    return [figure for figure in found if figure is not None]


def _map(run: Run) -> Figure | None:
    lines = curves(run)
    if lines.is_empty():
        return None
    drawn, home = settings()["map"], typical_home()
    farther_s = drawn["farther_ms"] / 1e3
    homes = uk_homes.homes(drawn["year"]).with_columns(pl.col("rtt_s") + farther_s)
    rate, trip = home["down_bps"] / 1e6, 1e3 * (home["rtt_s"] + farther_s)
    return size_map(
        lines,
        homes,
        name="size_map",
        title="The map of response sizes",
        caption="Above: simulated time of a response of each size over the median path of the UK's homes of "
        f"{drawn['year']}, {drawn['farther_ms']} ms farther than the country's test server; from opening the "
        "connection to the last byte, without TLS. Dashed: where the first flight ends. Below: those homes, weighted "
        "as the panel weights them, at their own round trip and at what their line carries in it; dots at one place "
        "are one larger dot. The line of a home to the right of a window's is idle for a part of the first round trip.",
        headline="A larger initial window saves whole round trips; nearly every line has room",
        path=f"median UK home of {drawn['year']} ({rate:.0f} Mbit/s, {trip:.0f} ms away)",
        users=f"UK homes of {drawn['year']}",
    )


def _sizes(run: Run) -> Figure | None:
    year = max(settings()["years"])
    rows = [
        {
            "response": response,
            "iw": str(iw),
            "farther": _away(farther_ms),
            "saved": saved.value,
            "low": saved.low,
            "high": saved.high,
        }
        for farther_ms in settings()["farther_ms"]
        for response in responses()
        for iw in settings()["initial_windows"]
        if iw != settings()["today"] and (comparison := of_time(run, year, farther_ms, response, iw)) is not None
        for saved in [saved_ms(comparison)]
    ]
    if not rows:
        return None
    panels = [_away(farther_ms) for farther_ms in settings()["farther_ms"]]
    return Figure(
        "sizes",
        "What is saved grows with the distance, in whole round trips",
        f"Time saved against an initial window of {settings()['today']}: difference of the medians over the homes of "
        f"{year}, weighted, with 95 % intervals. The steps of slow start decide which size gains: 100 kB need three "
        "flights with 10 and with 16, and two with 32. The axes differ.",
        charts.by_size(rows, panels, charts.BESIDE),
        charts.by_size(rows, panels, 250),
    )


def _percentiles(run: Run) -> Figure | None:
    points = []
    for year in settings()["years"]:
        own = part(run, HOMES, year, settings()["shown_farther_ms"], PAGE)
        present = set(own["iw"].unique().to_list())
        for iw in settings()["initial_windows"]:
            if iw != settings()["today"] and {iw, settings()["today"]} <= present:
                saved = saved_by_percentile(own, iw)
                points += [
                    {"percentile": int(percentile), "saved": value, "iw": str(iw), "panel": f"homes of {year}"}
                    for percentile, value in zip(PERCENTILES, saved, strict=True)
                    if value == value
                ]
    if not points:
        return None
    panels = [f"homes of {year}" for year in settings()["years"]]
    return Figure(
        "percentiles",
        "The gain by percentile of the homes",
        f"Each percentile of the page's time with a window against the same percentile with {settings()['today']}, "
        f"weighted; {settings()['shown_farther_ms']} ms farther than measured. Left: the fastest homes. The last "
        "percentiles rest on few homes, and which of their packets are lost is chance.",
        charts.by_percentile(points, panels, 300),
        charts.by_percentile(points, panels, 250),
    )


def _technologies(run: Run) -> Figure | None:
    chosen = settings()
    points = []
    for year in chosen["years"]:
        own = part(run, HOMES, year, chosen["shown_farther_ms"], PAGE)
        homes = dict(own.group_by("technology").agg(pl.col("home").n_unique()).iter_rows())
        for technology, count in homes.items():
            for iw in chosen["asked"]:
                compared = of_technology(run, year, technology, iw, PAGE, chosen["shown_farther_ms"])
                if compared is not None and count >= _FEWEST:
                    saved = saved_percent(compared)
                    points.append(
                        {
                            "technology": technology,
                            "panel": f"homes of {year}",
                            "iw": str(iw),
                            "time": compared.baseline.value,
                            "saved": saved.value,
                            "low": saved.low,
                            "high": saved.high,
                            "overfilled": overfill.by_technology(run, year, iw).get(technology),
                        }
                    )
    if not points:
        return None
    panels = [f"homes of {year}" for year in chosen["years"]]
    return Figure(
        "technologies",
        "Whom a larger window serves, by the technology of the line",
        f"The page, {chosen['shown_farther_ms']} ms farther than measured: by how much the median home of a technology "
        f"is sooner than with {chosen['today']}, with 95 % intervals; technologies of {_FEWEST} homes or more, the "
        "slowest first. Right: homes whose queue the first flight overfills.",
        charts.by_technology(points, panels, 230),
        charts.by_technology(points, panels, 170, narrow=True),
    )


def _overfill(run: Run) -> Figure | None:
    names = {
        "simulated": "simulated",
        "queue": "rule: larger than the queue",
        "pipe": "rule: larger than bandwidth-delay product + queue",
    }
    points = [
        {"iw": row["iw"], "share": row[column], "rule": name, "panel": f"homes of {year}"}
        for year in settings()["years"]
        for row in overfill.shares(run, year).iter_rows(named=True)
        for column, name in names.items()
    ]
    if not points:
        return None
    panels = [f"homes of {year}" for year in settings()["years"]]
    return Figure(
        "overfill",
        "The queue decides whether a first flight fits, not the bandwidth-delay product",
        "Share of the country's homes whose path the first flight overfills, without random losses. A flight that "
        "leaves back to back meets the queue all at once; the pipe behind it does not help. The receiver's first "
        "window of 64 KiB bounds the largest flight. The buffers of 2015 are assumed.",
        charts.overfilled(points, panels, list(names.values()), 300),
        charts.overfilled(points, panels, list(names.values()), 250),
    )


def _pages(run: Run) -> Figure | None:
    points = []
    for year in settings()["years"]:
        own = ranking.pages(run, year)
        ranks = {rank.technology: rank.ours.value for rank in ranking.ranks(run, year)}
        points += [
            {
                "technology": _kind(technology),
                "measured": measured_ms,
                "ours": ours_ms,
                "panel": f"{year}: rank correlation {ranks[ranking.ALL]:.2f}",
            }
            for technology, measured_ms, ours_ms in own.gather_every(_DRAWN)
            .select("technology", "measured_ms", "ours_ms")
            .iter_rows()
        ]
    if not points:
        return None
    panels = list(dict.fromkeys(point["panel"] for point in points))
    return Figure(
        "pages",
        "Our page times beside the measured ones",
        f"A dot a home, every third one; IW {settings()['today']}, as near as the test server. The measured page is "
        "another one than ours, so that only the order can agree: it comes from other servers and many hosts, after "
        "names are looked up, and both ends work at it. Dots beyond an axis are at its end.",
        charts.against_measured(points, panels, 300),
        charts.against_measured(points, panels, 250),
    )


def _kind(technology: str) -> str:
    """One name for what is one technology in different years or packages."""
    for kind in ("ADSL", "FTTC"):
        if technology.startswith(kind):
            return kind
    return technology if technology in ("Cable", "FTTP") else "other"


def _away(farther_ms: int) -> str:
    return f"{farther_ms} ms farther" if farther_ms else "as near as measured"
