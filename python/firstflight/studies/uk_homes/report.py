"""Tables, figures and the answer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.counted import listed
from firstflight.populations import uk_homes
from firstflight.report.figure import Figure, Spec, layer, nominal, quantitative
from firstflight.report.size_map import size_map
from firstflight.report.style import scale
from firstflight.studies.kernel import Quantities, along, each, estimate, intervals, lines, named, table, value
from firstflight.studies.uk_homes import claims as c

LARGEST = 32
"""The larger of the windows that the question is about."""
_AGAINST = "95% CIs by bootstrap over homes, each with both windows."
FEWEST = 20
"""Homes of a technology that a rank correlation needs, to be worth a row."""
_DRAWN = 3
"""One of this number of homes is drawn as a dot."""


def tables(q: Quantities) -> Sequence[Table]:
    """Gains, cost, overfilled homes, assumptions, ranks."""
    times, here, page = c.of(q, "time"), q.at(extra_rtt_ms=c.FARTHER_MS), _by_technology(q)
    near = q.at(extra_rtt_ms=0, iw=c.TODAY)
    assumed = c.saved(_assumed(partial(c.of, here, "time"))).sel(iw=LARGEST, drop=True)
    hit = _assumed(partial(c.of, here, "hit")).sel(iw=LARGEST, drop=True)
    return [
        table(
            "gain",
            f"Time saved by each window for the median home, against {c.TODAY}",
            "Difference of the medians over homes, weighted; above 0 is faster. From the opening of the connection "
            f"to the last byte; the page is 30 kB and then six times 80 kB on one connection. {_AGAINST}",
            [named(c.saved(times), "saved", "Saved", "percent"), named(c.saved_ms(times), "saved_ms", "Saved", "ms")],
            "iw",
            order=("year", "extra_rtt_ms", "response", "iw"),
        ),
        table(
            "percentiles",
            "Time saved by each window for fast and slow homes",
            f"RTT + {c.FARTHER_MS} ms. A percentile is of the times in each arm, weighted; with {c.TODAY} it is the "
            f"time given. {_AGAINST}",
            [
                named(here.tail.sel(iw=[c.TODAY]), "time", "Time", "ms", 0),
                named(c.saved(here.tail), "saved", "Saved", "percent"),
            ],
            "iw",
            order=("year", "response", "percentile", "iw"),
        ),
        table(
            "technologies",
            "The page, by technology",
            f"RTT + {c.FARTHER_MS} ms. Medians over the homes of a technology, each counting once, because Ofcom gives "
            f"some technologies no weight. No interval: too few homes. {_AGAINST} They are not corrected for the "
            "number of technologies.",
            [
                _counted(q.at(extra_rtt_ms=0)).sel(technology=list(c.TECHNOLOGIES)),
                page.sel(iw=[c.TODAY]).rename("time"),
                named(c.saved(page), "saved", "Saved", "percent"),
                here.technology_overfilled.rename("overfilled"),
            ],
            "iw",
            order=("year", "technology", "iw"),
        ),
        table(
            "cost",
            f"Cost of each window ({c.RESPONSE})",
            "Over the country's homes, weighted. The first flight is bounded by the window that the receiver "
            "announces, 64 KiB at first. 95% CIs by bootstrap over homes.",
            [
                c.of(q, "flight").rename("flight"),
                named(100 * q.first_lost / q.first_sent, "first_lost", "Of the first flight lost", "percent", 2),
                c.retransmitted(q),
                c.of(q, "hit").rename("hit"),
                q.late,
            ],
            "iw",
        ),
        table(
            "overfill",
            "Homes whose queue a first flight overflows",
            f"Without random losses, RTT + {c.FARTHER_MS} ms, {c.RESPONSE}; over the country's homes, weighted. "
            "Simulated: the queue dropped of the first flight. By the queue: the flight is larger than the queue, "
            "while the ACK of the request is in service; with the wire: than the queue and one packet; with the "
            "pipe: than bandwidth-delay product and queue. Right: homes for which the rule agrees with the "
            "simulation.",
            [
                c.of(here, "flight", c.NO_LOSS).rename("flight"),
                named(c.overfilled(q), "simulated", "Simulated", "percent", 2),
                *(getattr(here, rule) for rule in c.RULES),
                *(getattr(here, f"{rule}_right") for rule in c.RULES),
            ],
        ),
        table(
            "connections",
            "Homes whose queue the first flights of several parallel connections overflow",
            "By the rule of the queue; without random losses, over the country's homes, weighted. The segments of all "
            "connections arrive together, faster than the link rate.",
            [getattr(here, f"together_{many}") for many in c.TOGETHER],
        ),
        table(
            "assumptions",
            f"Sensitivity to values that the panel lacks (IW {LARGEST} against {c.TODAY})",
            f"RTT + {c.FARTHER_MS} ms; the median home, weighted. Small and large buffers: where none was measured "
            "(15% of the homes of 2023, all of 2015), the lower or upper quartile of the technology in 2023. No "
            "loss: only the queue drops. 64 packets at least: a home where no queue was observed has room all the "
            "same.",
            [
                named(assumed.sel(response=c.RESPONSE, drop=True), "saved", f"Saved, {c.RESPONSE}", "percent"),
                named(assumed.sel(response=c.PAGE, drop=True), "saved_page", f"Saved, {c.PAGE}", "percent"),
                named(hit, "hit", "Homes that lose of the first flight", "percent"),
                _assumed(partial(c.retransmitted, here)).sel(iw=LARGEST, drop=True),
            ],
            order=("year", "assumption"),
        ),
        table(
            "ranking",
            "Our page times against the measured ones, by rank",
            f"Spearman's rank correlation over homes, each counting once, IW {c.TODAY}, with the RTT as measured; next "
            "to it that of the RTT alone and of the rate alone. The measured page is another one: from other servers "
            "and many hosts, with DNS lookups and processing at both endpoints.",
            [
                _ranked(near, _counted(near)),
                *(
                    named(_ranked(near, c.correlation(q, name)), f"{name}_rank", title, "correlation", 2)
                    for name, title in zip(c.GUESSES, ("Our page", "RTT alone", "Rate alone"), strict=True)
                ),
                _ranked(near, near.measured_ms.rename("measured")),
                _ranked(near, near.ours_ms.rename("ours")),
            ],
        ),
    ]


def _by_technology(q: Quantities) -> xr.DataArray:
    return q.technology_time.sel(extra_rtt_ms=c.FARTHER_MS, percentile=50, drop=True)


def _counted(q: Quantities) -> xr.DataArray:
    """The number of homes, which has no sampling error."""
    return q.homes.where(q.homes > 0).isel(draw=[0])


def _ranked(near: Quantities, values: xr.DataArray) -> xr.DataArray:
    """Of technologies with homes enough for a rank."""
    return values.where(near.homes.sel(draw=0).reset_coords(drop=True) >= FEWEST)


def _assumed(measure: Callable[[str], xr.DataArray]) -> xr.DataArray:
    """The measure of each grid along `assumption`, with both windows."""
    measures = {grid: measure(grid).sel(iw=[c.TODAY, LARGEST]) for grid in ("homes", *c.ASSUMPTIONS)}
    return along("assumption", {"as assumed": measures.pop("homes"), **measures}, "inner")


def figures(q: Quantities) -> Sequence[Figure | None]:
    """The map of sizes, gains by percentile and technology, overfilled homes, measured against simulated pages."""
    year, here = int(c.of(q, "time")["year"].values.max()), q.at(extra_rtt_ms=c.FARTHER_MS)
    sizes = c.saved_ms(c.of(q, "time").sel(year=year, drop=True))
    by_percentile = c.saved(here.percentile_time.sel(response=c.PAGE, drop=True))
    rules = {
        "simulated": c.overfilled(q),
        "rule: larger than the queue": here.queue,
        "rule: larger than bandwidth-delay product + queue": here.pipe,
    }
    overfill = along("rule", rules)
    return [
        _map(q),
        lines(
            named(sizes, "sizes", "saved", "ms"),
            "The time saved grows with the RTT, in whole round trips",
            f"Time saved against an initial window of {c.TODAY}: difference of the medians over the homes of {year}, "
            "weighted, with 95% CIs. The steps of slow start decide which size gains: 100 kB need three flights "
            "with 10 and with 16, and two with 32.",
            "response",
            "iw",
            "extra_rtt_ms",
        ),
        lines(
            named(by_percentile, "percentiles", "saved", "%"),
            "The gain by percentile of the homes",
            f"Each percentile of the page's time with a window against the same percentile with {c.TODAY}, weighted; "
            f"RTT + {c.FARTHER_MS} ms. Left: the fastest homes. The last percentiles depend on few homes and on chance "
            "losses.",
            "percentile",
            "iw",
            "year",
        ),
        intervals(
            named(c.saved(_by_technology(q)), "technologies", "saved", "%"),
            "Gain of a larger window, by access technology",
            f"The page, RTT + {c.FARTHER_MS} ms: gain of the median home of a technology over {c.TODAY}, with 95% CIs; "
            "technologies with enough homes for one. The table of technologies shows which first flights overflow "
            "the queue.",
            "technology",
            "iw",
            "year",
        ),
        lines(
            named(overfill, "overfill", "homes", "%"),
            "A first flight fits or not by the queue, not by the bandwidth-delay product",
            "Share of UK homes (weighted) where the first flight overflows the queue; no random loss. A back-to-back "
            "flight reaches the queue as one burst, so the BDP adds no room. The initial 64 KiB receive window caps "
            "the largest flight. The 2015 buffer sizes are assumed. The lines of the simulation and of the queue rule "
            "coincide.",
            "iw",
            "rule",
            "year",
        ),
        _pages(q),
    ]


def typical_home(year: uk_homes.Year) -> dict[str, float]:
    """The path of the map's curves: the weighted median of each quantity of a panel, without loss."""
    panel = uk_homes.homes(year)

    def median(name: str) -> float:
        order = panel.sort(name)
        return float(order[name][int((order["weight"].cum_sum() >= order["weight"].sum() / 2).arg_max() or 0)])

    return {name: median(name) for name in ("rtt_s", "down_bps", "up_bps", "buffer_s")}


def _map(q: Quantities) -> Figure | None:
    year: uk_homes.Year = 2023
    curves = (
        q.run.table("transfers", experiment="map")
        .filter(pl.col("completed") == 1)
        .select("bytes", "first_flight_segments", initial_window="iw", time_s="completion_time_s")
        .unique()
        .sort("initial_window", "bytes")
        .collect()
    )
    if curves.is_empty():
        return None
    home, farther_s = typical_home(year), c.FARTHER_MS / 1e3
    rate, trip = home["down_bps"] / 1e6, 1e3 * (home["rtt_s"] + farther_s)
    return size_map(
        curves,
        uk_homes.homes(year).with_columns(pl.col("rtt_s") + farther_s),
        name="size_map",
        title="The map of response sizes",
        caption=f"Above: simulated time of a response of each size over the median path of the UK's homes of {year}, "
        f"with RTT + {c.FARTHER_MS} ms to the country's test server; from opening the connection to the last byte, "
        "without TLS. Dashed: where the first flight ends. Below: those homes, weighted as the panel weights them, "
        "at their RTT and their access link's BDP; dots at one place are one larger dot. The access link of a home "
        "to the right of a window's line is idle for a part of the first RTT.",
        headline="A larger initial window saves whole round trips; nearly every access link has room",
        path=f"median UK home of {year} ({rate:.0f} Mbit/s, {trip:.0f} ms away)",
        users=f"UK homes of {year}",
    )


def _pages(q: Quantities) -> Figure | None:
    """Our page's time against the measured one's."""
    cells: dict[str, str | int | float] = {"experiment": "homes", "extra_rtt_ms": 0, "iw": c.TODAY}
    if not any(cells.items() <= key.items() for key in q.run.cells):
        return None
    pages = q.run.table("pages", **cells).filter((pl.col("replicate") == 0) & (pl.col("completed") == 1))
    homes = q.run.table("users", **cells).select("year", "replicate", "client", "row")
    home_pages = pages.join(homes, on=["year", "replicate", "client"]).sort("year", "row").collect()
    ranks = c.correlation(q, "ours").sel(technology=c.ALL, draw=0)
    correlated: dict[int, str] = {}
    rows: list[dict[str, Any]] = []
    # One name for one technology in different years or packages.
    kind = pl.col("technology").str.extract("^(ADSL|FTTC|Cable$|FTTP$)")
    for (year,), part in home_pages.partition_by("year", as_dict=True, maintain_order=True).items():
        panel = uk_homes.homes(uk_homes.YEARS[uk_homes.YEARS.index(year)]).select(kind.fill_null("other"), "web_page_s")
        measured = panel[part["row"].cast(pl.UInt32)].with_columns(part["completion_time_s"]).gather_every(_DRAWN)
        correlated[year] = f"{float(ranks.sel(year=year)):.2f}"
        heading = f"{year}: rank correlation {correlated[year]}"
        rows += [
            {"technology": name, "measured": round(1e3 * there), "ours": round(1e3 * here), "panel": heading}
            for name, there, here in measured.iter_rows()
        ]

    kinds = ["ADSL", "FTTC", "Cable", "FTTP", "other"]
    ticks = [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    axis = {
        "scale": {"type": "log", "domain": [15, 15000], "nice": False, "clamp": True},
        "axis": {"values": ticks, "format": ",d", "labelAngle": 0},
    }
    dots = layer(
        {"type": "circle", "size": 14, "opacity": 0.55, "aria": False},
        x=quantitative("ours", title="our page, ms", **axis),
        y=quantitative("measured", title="measured page, ms", **axis),
        color=nominal("technology", sort=kinds, title=None, scale=scale(kinds)),
    )

    def chart(width: int, columns: int) -> Spec:
        panel = dots | {"width": width, "height": 260}
        facet = nominal("panel", title=None)
        return {"data": {"values": rows}, "facet": facet, "columns": columns, "spec": panel}

    return Figure(
        "pages",
        "Page times of this run next to the measured ones",
        f"One dot per home, every third home; IW {c.TODAY}, RTT as measured. The measured page is another one, so only "
        "the order can agree: it is loaded from other servers and many hosts, after DNS lookups, with processing at "
        "both endpoints. Dots beyond an axis are at its end.",
        chart(290, 2),
        chart(240, 1),
        f"Rank correlation with the measured times: {listed(f'{of} ({year})' for year, of in correlated.items())}",
    )


def answer(q: Quantities) -> Sequence[str]:
    """The gain of 16 and 32 today, by group, and its cost."""
    times = c.of(q, "time").sel(year=2023, response=c.PAGE)
    gained, shown = [], times.sel(extra_rtt_ms=c.FARTHER_MS)
    for iw in (16, LARGEST):
        saving, ms = estimate(c.saved(shown).sel(iw=iw)), float(c.saved_ms(shown).sel(iw=iw, draw=0))
        gained.append(f"{saving.value:.1f}% ({saving.low:.1f} to {saving.high:.1f}; {ms:.0f} ms) with {iw}")
    by_distance = c.saved_ms(times).sel(iw=LARGEST, draw=0)
    distances = ", ".join(
        f"{by_distance.sel(extra_rtt_ms=far):.0f} ms {f'with RTT + {far} ms' if far else 'with the RTT as measured'}"
        for far in by_distance["extra_rtt_ms"].values
    )
    late = estimate(
        c.saved(q.tail).sel(year=2023, extra_rtt_ms=c.FARTHER_MS, response=c.PAGE, percentile=90, iw=LARGEST)
    )
    kinds = c.saved(_by_technology(q)).sel(year=2023, iw=LARGEST)
    # Those with homes enough for an interval.
    kinds = kinds.sel(draw=0)[kinds.notnull().all("draw").values].sortby(kinds.sel(draw=0), ascending=True)
    ends = each(kinds[[0, -1]], "{value:.1f}% ({label})").replace(", ", " to ") if kinds.size else ""
    again = c.retransmitted(q.at(year=2023, extra_rtt_ms=c.FARTHER_MS))
    lost = c.overfilled(q).sel(year=2023, iw=[16, LARGEST])
    of_sent = each(again.sel(iw=[16, LARGEST]), "{value:.2f}% with {label}")
    return [
        f"A larger IW than {c.TODAY} loads a page of 510 kB, from a server {c.FARTHER_MS} ms beyond the country's test "
        f"server, faster in the median UK home of 2023: by {' and '.join(gained)}.",
        f"IW {LARGEST} saves {distances}; at the 90th percentile of the homes {late.value:.1f}% "
        f"({late.low:.1f} to {late.high:.1f}), and by technology "
        f"{f'from {ends}' if ends else 'no technology with homes enough'}.",
        "Cost: the first flight, sent back to back, overflows the queue of "
        f"{each(lost, '{value:.1f}% of the homes with {label}').replace(',', ' and')}; of the segments of "
        f"{c.RESPONSE}, {value(again.sel(iw=c.TODAY)):.2f}% are retransmitted with {c.TODAY}, {of_sent}.",
    ]
