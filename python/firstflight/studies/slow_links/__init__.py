"""Slow links: IW 3 and 10 at 64 kbit/s to 1 Mbit/s with an RTT of 300 ms."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k
from firstflight.studies.slow_links import remedies

PAGE, OTHERS = k.of("page"), k.of("others")
DURATION_S = 600


QUANTITIES = (
    k.Quantity("page", "Page time", "s", k.MEAN_S, k.DONE & PAGE, "pages", digits=2, grid="links"),
    k.Quantity("dropped", "Dropped", "percent", k.DROPPED, pl.col("link") == "spokes[0]", "links", grid="links"),
    k.Quantity("timeouts", "Timeouts per 100 objects", "", k.per_hundred("timeouts"), PAGE, digits=2, grid="links"),
    k.Quantity(
        "spurious",
        "Spurious recoveries undone per 100 objects",
        "",
        k.per_hundred("spurious_recoveries_undone"),
        PAGE,
        digits=2,
        grid="links",
    ),
    k.Quantity(
        "bulk",
        "Throughput of the bulk transfer",
        "kbit/s",
        8e-3 / DURATION_S * pl.col("delivered_bytes").sum(),
        k.of("bulk"),
        at={"beside": ["bulk"]},
        grid="links",
    ),
    k.Quantity(
        "others",
        "Page time of others (IW 3)",
        "s",
        k.MEAN_S,
        k.DONE & OTHERS,
        "pages",
        at={"beside": ["pages of IW 3"]},
        digits=2,
        grid="links",
    ),
    *remedies.QUANTITIES,
)
CW10 = k.Source("RFC 6928, on CW10")
SMALL, SEGMENTS = "IW 10 with rwnd 4 kB", "IW 10 with MSS 536"
OVER = ["rate_kbit", "queue", "connections"]


def change(array: xr.DataArray, sender: str = "IW 10") -> xr.DataArray:
    """Against IW 3, percent."""
    return k.change(array, sender="IW 3").sel(sender=sender)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Statements of RFC 6928 about CW10, and hypotheses."""
    page, five = change(q.page), {"connections": 5, "beside": "nothing", "rate_kbit": 64}
    drops = q.dropped.sel(sender="IW 10") - q.dropped.sel(sender="IW 3")
    spurious = q.spurious.sel(sender="IW 10") - q.spurious.sel(sender="IW 3")
    return (
        CW10.says(
            "faster-at-64-kbps",
            "At 64 kbit/s with five connections and a queue of 40 packets IW 10 lowers page times.",
            page.sel(five).sel(queue=40),
            k.below(0, "percent"),
        ),
        CW10.says(
            "more-drops-at-64-kbps",
            "At 64 kbit/s with five connections and a queue of 40 packets IW 10 drops more (difference).",
            drops.sel(five).sel(queue=40),
            k.above(0, "pp"),
        ),
        CW10.says(
            "bulk-gains",
            "A bulk transfer is not slower next to pages of IW 10 (mean change of its throughput, five connections).",
            change(q.bulk).sel(connections=5, beside="bulk").mean(["rate_kbit", "queue"]),
            k.at_least(0, "percent", 2),
            "CW10 reports a faster bulk transfer.",
        ),
        CW10.says(
            "users-of-iw3-suffer-slightly",
            "Pages of others with IW 3 suffer slightly from IW 10 (mean change of their time, 256 kbit/s and more).",
            change(q.others).sel(beside="pages of IW 3", rate_kbit=slice(256, None)).mean(OVER),
            k.at_most(5, "percent"),
            "The source gives no number; 5% was chosen before the first run.",
        ),
        k.Source("RFC 6928 section 9").says(
            "restarted-timer-prevents-spurious-timeouts",
            "With the timer restarted by each ACK a large first flight causes no spurious recoveries (mean rise, "
            "64 kbit/s, one connection).",
            spurious.sel(rate_kbit=64, connections=1, beside="nothing").mean("queue"),
            k.near(0, "per 100 objects", 1),
            "One in a hundred objects.",
        ),
        k.OURS.says(
            "fast-enough-links-gain",
            "At 1 Mbit/s with one connection pages are at least 10% faster with IW 10 (mean change).",
            page.sel(rate_kbit=1000, connections=1, beside="nothing").mean("queue"),
            k.at_most(-10, "percent"),
            "One or two of the round trips of each object.",
        ),
        k.Source("RFC 6928 section 8").says(
            "small-rwnd-takes-the-drops-back",
            "A receiver on a slow link that advertises 4 kB has no more drops than with IW 3 (largest difference, "
            "up to 128 kbit/s).",
            (q.dropped.sel(sender=SMALL) - q.dropped.sel(sender="IW 3"))
            .sel(beside="nothing", rate_kbit=slice(None, 128))
            .max(OVER),
            k.at_most(0.1, "pp"),
            "The limit is one packet in a thousand.",
        ),
        k.OURS.says(
            "small-rwnd-costs-above-its-rate",
            "At 1 Mbit/s a receiver that advertises 4 kB loads pages at least 20% slower, one connection (mean "
            "change).",
            change(q.page, SMALL).sel(rate_kbit=1000, connections=1, beside="nothing").mean("queue"),
            k.at_least(20, "percent"),
            "4 kB per 300 ms are 117 kbit/s.",
        ),
        k.OURS.says(
            "small-segments-do-not-pay",
            "Segments of 536 bytes make pages slower at 64 kbit/s than full ones of IW 3 (five connections).",
            change(q.page, SEGMENTS).sel(five).mean("queue"),
            k.above(0, "percent"),
            "40 bytes of headers for each 536.",
        ),
        *remedies.claims(q),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Gain, harm, remedy."""
    slow, fast = {"rate_kbit": 64, "connections": 5}, {"rate_kbit": 1000, "connections": 1}
    alone, small = (
        change(q.page, sender).isel(draw=0).sel(beside="nothing").mean("queue") for sender in ("IW 10", SMALL)
    )
    drops, spurious = (of.isel(draw=0).sel(beside="nothing").sel(slow).mean("queue") for of in (q.dropped, q.spurious))
    classified_slow = q.found_slow.isel(draw=0).sel(sender="IW 10", detector="fastest").mean(["queue", "connections"])
    missed = 100 - classified_slow.sel(rate_kbit=remedies.SLOW, beside="nothing").mean()
    wrong = classified_slow.sel(rate_kbit=slice(256, None), beside="bulk").mean()
    bulk, others = (change(of).isel(draw=0).mean(OVER) for of in (q.bulk, q.others))
    return (
        f"At 64 kbit/s with five connections IW 10 instead of 3 changes page times by {alone.sel(slow):+.1f}% and the "
        f"drop rate from {drops.sel(sender='IW 3'):.1f} to {drops.sel(sender='IW 10'):.1f}%; at 1 Mbit/s with one "
        f"connection page times change by {alone.sel(fast):+.1f}%.",
        f"The throughput of a bulk transfer changes by {bulk.squeeze():+.1f}%, the page times of others with IW 3 by "
        f"{others.squeeze():+.1f}%, on average; with five connections at 64 kbit/s spurious recoveries rise from "
        f"{spurious.sel(sender='IW 3'):.0f} to {spurious.sel(sender='IW 10'):.0f} per 100 objects.",
        f"If the receiver advertises 4 kB, page times change by {small.sel(slow):+.1f}% at 64 kbit/s with five "
        f"connections and by {small.sel(fast):+.1f}% at 1 Mbit/s with one. If it judges the link by the fastest object "
        f"of a page, it misses {missed:.0f}% of the links of 64 and 128 kbit/s and, next to a bulk transfer, "
        f"classifies {wrong:.0f}% of those of 256 kbit/s and more as slow.",
    )


def by_queue(q: k.Quantities) -> xr.DataArray:
    """Page times of each sender against IW 3, without other traffic."""
    kept = k.relative(q.page, sender="IW 3").sel(beside="nothing", sender=["IW 10", SMALL, SEGMENTS])
    kept["rate_kbit"] = kept["rate_kbit"].assign_attrs(
        long_name="rate, kbit/s", titles={str(rate): f"{rate} kbit/s" for rate in kept["rate_kbit"].values}
    )
    return k.named(kept, "relative_page", "Page time", "% of IW 3's", 0)


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("pages", "Pages", "Means.", [q.page, q.dropped, q.timeouts, q.spurious], across="sender"),
        k.table("bulk", "Cost to a bulk transfer", "Means.", [q.bulk], across="sender"),
        k.table("others", "Cost to pages of IW 3", "Means.", [q.others], across="sender"),
        *remedies.tables(q),
    ],
    lambda q: [
        k.panels(
            by_queue(q),
            "Page time against IW 3 on slow links",
            "By the length of the queue; in percent of IW 3's time, without concurrent traffic.",
            "queue",
            "rate_kbit",
            "connections",
            100,
            "sender",
        )
    ],
    answer,
)
