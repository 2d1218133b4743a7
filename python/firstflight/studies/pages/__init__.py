"""Pages by connections, sharding, kept connections, HTTP version and weight, with IW 3 to 32; bulk and video."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

PAGE, SHORT = k.of("page"), k.of("short")
OPENED = 100 * pl.col("connection").n_unique() / pl.len()


def page_time(name: str, grid: str) -> k.Quantity:
    """Of complete pages."""
    return k.Quantity(name, "Page time", "ms", k.MEAN_MS, k.DONE, "pages", digits=0, grid=grid)


def flow_time(name: str, grid: str) -> k.Quantity:
    """Of those that compete with the pages."""
    return k.Quantity(name, "Time of a competing short flow", "ms", k.MEAN_MS, k.DONE & SHORT, digits=0, grid=grid)


QUANTITIES = (
    page_time("page", "connections"),
    flow_time("short", "connections"),
    k.Quantity("mos", "MOS of a call", "", pl.col("mos").mean(), k.DOWN, "streams", (), 2, "connections"),
    k.Quantity(
        "premature", "Drops in the first flight", "percent", k.FIRST_FLIGHT_LOST, PAGE, grid="connections", digits=2
    ),
    page_time("sharded_page", "sharding"),
    flow_time("sharded_short", "sharding"),
    page_time("kept_page", "reuse"),
    k.Quantity("opened", "Requests that open a connection", "percent", OPENED, PAGE & k.DONE, grid="reuse"),
    page_time("year_page", "weight"),
    k.Quantity("transfer", "Time of a transfer or chunk", "ms", k.MEAN_MS, k.DONE & ~SHORT, grid="bulk", digits=0),
    flow_time("bulk_short", "bulk"),
)
THREE, FOUR, APPENDIX = (k.Source(f"RFC 6928 {place}") for place in ("section 3", "section 4", "appendix A"))
TODAY = {"scheme": "6", "iw": 3}
RTT_GEO_MS = 600


def change(array: xr.DataArray) -> xr.DataArray:
    """With IW 10 against IW 3, percent."""
    return k.change(array, iw=3).sel(iw=10)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Expectations of RFC 6928, and hypotheses."""
    page, short, percent = k.relative(q.page, **TODAY), k.relative(q.short, **TODAY), "percent"
    fewer = k.change(q.short, scheme="6").sel(scheme="2", iw=10)
    shards = [k.change(of, hosts="1").sel(hosts="7", iw=10) for of in (q.sharded_page, q.sharded_short)]
    kept, year = -change(q.kept_page), -change(q.year_page.sel(http="2"))
    rounds = (q.page.sel(iw=3) - q.page.sel(iw=10)).sel(path="GEO", scheme="HTTP/2") / RTT_GEO_MS
    fastest = q.page.sel(scheme="6").idxmin("iw")
    slow = q.premature.sel(path="1 Mbit/s", iw=10)
    bulk = abs(change(q.transfer.sel(transfer=["10 MB", "20 MB"]))).max("transfer")
    video = abs(change(q.transfer.sel(transfer="video", path=["5 Mbit/s", "LTE", "GEO"]))).max("path")
    call = q.mos.sel(TODAY) - q.mos.sel(scheme="9", iw=32)
    of_three, five = "% of six with IW 3", "A user may notice 5%."
    return (
        THREE.says(
            "one-with-ten-is-as-fast-as-six-with-three",
            "One HTTP/2 connection with IW 10 loads the page as fast as six connections with IW 3 (slowest path).",
            page.sel(scheme="HTTP/2", iw=10).max("path"),
            k.at_most(100, of_three),
        ),
        THREE.says(
            "one-with-ten-spares-others",
            "One HTTP/2 connection with IW 10 slows a short flow no more than six with IW 3 (slowest path).",
            short.sel(scheme="HTTP/2", iw=10).max("path"),
            k.at_most(105, of_three),
            five,
        ),
        FOUR.says(
            "three-with-ten-are-as-fast-as-six-with-three",
            "A browser can open fewer connections: three with IW 10 are as fast as six with IW 3 (slowest path).",
            page.sel(scheme="3", iw=10).max("path"),
            k.at_most(105, of_three),
            five,
        ),
        FOUR.says(
            "fewer-connections-spare-others",
            "With IW 10 two connections instead of six make a competing short flow faster (mean of the paths).",
            fewer.mean("path"),
            k.below(0, percent),
        ),
        THREE.says(
            "sharding-harms-others",
            "With IW 10 six connections to each of seven hosts instead of one slow a competing short flow (mean of 1 "
            "and 5 Mbit/s).",
            shards[1].sel(path=["1 Mbit/s", "5 Mbit/s"]).mean("path"),
            k.above(5, percent),
            five,
        ),
        k.OURS.says(
            "sharding-does-not-pay-on-slow-paths",
            "At 1 Mbit/s with IW 10 connections to seven hosts load the page no faster than to one.",
            shards[0].sel(path="1 Mbit/s"),
            k.at_least(0, percent),
        ),
        FOUR.says(
            "a-third-of-requests-open-a-connection",
            "With two connections to each of seven hosts some 35% of requests open one (mean).",
            q.opened.sel(kept="within a page").mean(["path", "iw"]),
            k.near(35, percent, 5),
            "14 of 44 are 32%.",
        ),
        FOUR.says(
            "gain-survives-keep-alive",
            "With kept connections to seven hosts IW 10 still gains (least gain of the paths).",
            kept.sel(kept="within a page").min("path"),
            k.above(0, percent),
        ),
        FOUR.says(
            "gain-survives-kept-connections",
            "With connections kept from page to page at least half of the gain remains (mean of the paths).",
            kept.sel(kept="between pages").mean("path") / kept.sel(kept="never").mean("path"),
            k.at_least(0.5, "share"),
            "Half was chosen before the first run; Linux restarts an idle connection with IW.",
        ),
        FOUR.says(
            "gain-survives-pipelining",
            "With pipelining IW 10 still gains (least gain of the paths).",
            (-change(q.page)).sel(scheme="pipelined").min("path"),
            k.above(0, percent),
        ),
        k.Source("RFC 6928 section 5.2").says(
            "one-connection-saves-a-round-trip",
            "A page of 2010 on one HTTP/2 connection takes at least one round trip less with IW 10 (GEO).",
            rounds,
            k.at_least(1, "round trips"),
            "31 kB take two with IW 10 and three or four with IW 3.",
        ),
        k.OURS.says(
            "heavier-pages-gain-less",
            "IW 10 saves a smaller share of a page of 2025 than of one of 2010 (HTTP/2, mean of the paths).",
            (year.sel(year="2025") - year.sel(year="2010")).mean("path"),
            k.below(0, "pp"),
            "The same number of round trips, with a longer RTT.",
        ),
        k.Source("RFC 6928 section 11, on AERG11").says(
            "best-window-depends-on-the-path",
            "With six connections the fastest IW is larger on GEO than at 1 Mbit/s (difference).",
            fastest.sel(path="GEO") - fastest.sel(path="1 Mbit/s"),
            k.above(0, "segments"),
            needs="value",
        ),
        k.Source("RFC 6928 section 11, on AERG11").says(
            "ten-is-near-the-best",
            "With six connections IW 10 takes at most a tenth longer than the fastest IW (worst path).",
            (100 * q.page.sel(scheme="6", iw=10) / q.page.sel(scheme="6").min("iw")).max("path"),
            k.at_most(110, "% of the fastest"),
            "The limit of a tenth was chosen before the first run.",
        ),
        k.Source("RFC 6928 section 1, on DGHS07").says(
            "one-first-flight-fits",
            "130 ms of buffer at 1 Mbit/s hold the first flight of one connection with IW 10 (dropped).",
            slow.sel(scheme="HTTP/2"),
            k.at_most(1, percent),
            "The RFC gives no share; 1% was chosen before the first run.",
        ),
        k.Source("RFC 6928 section 6, on DGHS07").says(
            "six-first-flights-do-not-fit",
            "130 ms of buffer at 1 Mbit/s do not hold the first flights of six connections with IW 10.",
            slow.sel(scheme="6"),
            k.above(1, percent),
            "The RFC gives no share; 1% was chosen before the first run.",
        ),
        APPENDIX.says(
            "bulk-is-unaffected",
            "10 MB and more take the same time within 1% with IW 10 (largest change, paths without a satellite).",
            bulk.drop_sel(path="GEO").max("path"),
            k.at_most(1, percent),
            "Up to 1% counts as unaffected.",
        ),
        k.OURS.says(
            "bulk-over-geo-is-affected",
            "Over GEO the time of 10 MB and more changes by over 5% with IW 10 (largest change).",
            bulk.sel(path="GEO"),
            k.above(5, percent),
            "IW 10 saves two of about fifteen round trips.",
        ),
        APPENDIX.says(
            "video-is-unaffected",
            "Chunks of a video of 2 Mbit/s take the same time within 1% (largest change, 5 Mbit/s and more).",
            video,
            k.at_most(1, percent),
            "Up to 1% counts as unaffected.",
        ),
        k.Source("RFC 6928 section 12").says(
            "many-connections-cost-a-call",
            "At 5 Mbit/s nine connections with IW 32 cost a call 0.1 MOS, compared with six with IW 3.",
            call.sel(path="5 Mbit/s"),
            k.at_least(0.1, "MOS"),
            "0.1 MOS is the limit of `real-time`.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The best pairs and their cost, reuse and weight, bulk."""
    page, short = (k.relative(of, **TODAY).isel(draw=0) for of in (q.page, q.short))
    pairs = []
    for path in page["path"].values:
        times = page.sel(path=path).stack(pair=("scheme", "iw"))
        scheme, iw = times.idxmin("pair").item()
        cost = float(short.sel(path=path, scheme=scheme, iw=iw)) - 100
        pairs.append(f"over {path} {scheme} with IW {iw} ({float(times.min()):.0f}%, {cost:+.0f}%)")
    h2 = [of.sel(scheme="HTTP/2", iw=10) for of in (page, short)]
    call = q.mos.isel(draw=0).sel(path="5 Mbit/s", iw=10)
    kept, year = -change(q.kept_page).isel(draw=0), -change(q.year_page).isel(draw=0).sel(http="2").mean("path")
    return (
        f"Fastest for a page of 2010: {'; '.join(pairs)}. In brackets: its time in percent of that of six connections "
        "with IW 3, and the change of a competing short flow's time.",
        f"HTTP/2 with IW 10 takes {h2[0].min():.0f} to {h2[0].max():.0f}% of that time, and a competing short flow "
        f"{h2[1].min():.0f} to {h2[1].max():.0f}%; at 5 Mbit/s a call next to HTTP/2 has MOS "
        f"{call.sel(scheme='HTTP/2'):.1f}, next to six connections {call.sel(scheme='6'):.1f}.",
        f"IW 10 saves {kept.sel(kept='never').mean():.0f}% with a connection per request, "
        f"{kept.sel(kept='within a page').mean():.0f}% where a third of the requests open one, and "
        f"{kept.sel(kept='between pages').mean():.0f}% with connections kept between pages; with HTTP/2 "
        f"{year.sel(year='2010'):.0f}% of a page of 2010 and {year.sel(year='2025'):.0f}% of one of 2025 (means of the "
        "paths).",
    )


def compared(q: k.Quantities) -> xr.DataArray:
    """Pages and the competing short flow, against six connections with IW 3."""
    both = k.headed(k.along("who", {"page": q.page, "short flow": q.short}), who="time of")
    times = k.relative(both.sel(scheme=["3", "6", "9", "HTTP/2"]), **TODAY)
    return k.named(times, "page_and_others", "Time", "% of six with IW 3", 0)


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("connections", "By connections", "A page of 2010. Means.", [q.page, q.short, q.mos, q.premature], "iw"),
        k.table("sharding", "By hosts", "Six connections to each. Means.", [q.sharded_page, q.sharded_short], "iw"),
        k.table("reuse", "By the reuse of connections", "Means.", [q.kept_page, q.opened], "iw"),
        k.table("weight", "By the year of the page", "Means.", [q.year_page], "iw"),
        k.table("bulk", "Bulk and video", "Means; of a video, of a chunk.", [q.transfer, q.bulk_short], "iw"),
    ],
    lambda q: [
        k.panels(
            compared(q),
            "Connections or window: gains and costs",
            "A page of 2010 and a competing flow of 20 kB (IW 10), in % of their times with six connections and IW 3.",
            "iw",
            "who",
            "path",
            100,
            "scheme",
        )
    ],
    answer,
)
