"""Queues: drop tail, AQM, ECN and priority under initial windows of 3 to 64."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

DURATION_S = 60
HOME = pl.col("link") == "spokes[0]"
SHORT, PAGE = k.of("short"), k.of("page")
MARKED = 100 * pl.col("marked_packets").sum() / pl.col("offered_packets").sum()
# Full packets at 10 Mbit/s take 1.2 ms each.
WAIT = 1.2 * k.MEAN_QUEUE
QUANTITIES = (
    k.Quantity("page", "Page time", "ms", k.MEAN_MS, k.DONE, "pages", digits=0),
    k.Quantity("premature", "Drops in the first flight", "percent", k.FIRST_FLIGHT_LOST, PAGE, digits=2),
    k.Quantity("short", "Time of a competing short flow", "ms", k.MEAN_MS, k.DONE & SHORT, digits=0),
    k.Quantity(
        "download",
        "Throughput of the download",
        "Mbit/s",
        8e-6 / DURATION_S * pl.col("delivered_bytes").sum(),
        k.of("download"),
        at={"beside": ["download"]},
        digits=2,
    ),
    k.Quantity("dropped", "Dropped", "percent", k.DROPPED, HOME, "links", digits=2),
    k.Quantity("marked", "Marked", "percent", MARKED, HOME, "links", digits=2),
    k.Quantity("waiting", "Mean queue", "ms", WAIT, HOME, "links"),
)
RFC6, RFC7 = k.Source("RFC 6928 section 6"), k.Source("RFC 6928 section 7")
AQM = ["RED", "CoDel", "PIE", "FQ-CoDel"]
ECN = [f"{queue} with ECN" for queue in AQM]
OVER = ["queue", "connections", "beside"]


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Expectations of RFC 6928, and hypotheses."""
    page, short = (k.relative(of, iw=3) for of in (q.page, q.short))
    ten, busy = q.premature.sel(iw=10), q.premature.sel(iw=10, beside="download")
    shallow = q.short.sel(queue="drop tail 50 ms", connections="six")
    deep = q.short.sel(queue="drop tail 500 ms", beside="download", iw=3)
    isolated = short.sel(queue="FQ-CoDel", iw=64).max(["connections", "beside"])
    waiting = (q.waiting.sel(iw=64) - q.waiting.sel(iw=3)).sel(queue=AQM, beside="download")
    return (
        RFC6.says(
            "aqm-moderate-congestion",
            "Premature drops are unlikely in moderately congested networks with AQM (largest share of first-flight "
            "segments, IW 10, half load).",
            ten.sel(queue=AQM, beside="half load").max(["queue", "connections"]),
            k.at_most(1, "percent"),
            "The RFC gives no number; 1% was chosen before the first run.",
        ),
        RFC6.says(
            "aqm-fewer-premature-drops",
            "Next to a download AQM drops less of the first flight than drop tail of 50 ms (largest difference).",
            (busy.sel(queue=AQM) - busy.sel(queue="drop tail 50 ms", drop=True)).max(["queue", "connections"]),
            k.below(0, "pp"),
        ),
        RFC7.says(
            "ecn-no-premature-drops",
            "With AQM and ECN the first flight of IW 32 is not dropped (largest share).",
            q.premature.sel(queue=ECN, iw=32).max(OVER),
            k.at_most(0.1, "percent"),
            "One segment in a thousand.",
        ),
        k.OURS.says(
            "page-gains-in-every-queue",
            "IW 10 instead of 3 makes pages faster in every queue (largest time).",
            page.sel(iw=10).max(OVER),
            k.at_most(95, "% of IW 3's"),
            "A gain of 5% is worthwhile.",
        ),
        k.OURS.says(
            "six-times-64-does-not-pay",
            "With six connections and drop tail of 50 ms IW 64 makes pages no faster than IW 10 (difference).",
            (page.sel(iw=64) - page.sel(iw=10)).sel(queue="drop tail 50 ms", connections="six").mean("beside"),
            k.at_least(0, "pp of IW 3's"),
        ),
        RFC7.says(
            "drop-tail-harms-short-flows",
            "With drop tail of 50 ms and six connections IW 64 makes a competing short flow slower (mean).",
            100 * (shallow.sel(iw=64) / shallow.sel(iw=3) - 1).mean("beside"),
            k.above(5, "percent"),
            "A user may notice 5%.",
        ),
        RFC7.says(
            "fair-queueing-isolates",
            "With FQ-CoDel IW 64 leaves a competing short flow its time (largest).",
            isolated,
            k.at_most(105, "% of IW 3's"),
            "A user may notice 5%.",
        ),
        k.OURS.says(
            "queue-matters-more-than-iw",
            "A short flow is faster next to IW 64 with AQM than next to IW 3 with drop tail of 500 ms (largest ratio).",
            (q.short.sel(queue=AQM, beside="download", iw=64) / deep).max(["queue", "connections"]),
            k.below(1, "ratio"),
        ),
        k.OURS.says(
            "aqm-holds-the-queue",
            "Next to a download the mean queue of an AQM does not depend on the window (mean change, IW 64 for 3).",
            waiting.mean(["queue", "connections"]),
            k.near(0, "ms", 2),
            "2 ms are less than two packets.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Gain, harm, and premature drops."""
    page, short = (k.relative(of, iw=3).isel(draw=0) - 100 for of in (q.page, q.short))
    gain, harm = -page.sel(iw=10), short.sel(iw=64)
    tail = harm.sel(queue="drop tail 50 ms")
    first = q.premature.isel(draw=0).sel(iw=10, beside="half load")
    return (
        f"IW 10 instead of 3 makes pages {gain.min():.0f} to {gain.max():.0f}% faster, by queue, connections and "
        "competing load.",
        f"IW 64 changes the time of a competing short flow by {tail.min():+.0f} to {tail.max():+.0f}% with drop tail "
        f"of 50 ms, by up to {harm.sel(queue='RED').max():+.0f}% with RED, {harm.sel(queue='CoDel').max():+.0f}% with "
        f"CoDel and {harm.sel(queue='FQ-CoDel').max():+.0f}% with FQ-CoDel.",
        f"At half load up to {first.sel(queue=AQM).max():.1f}% of the segments of the first flight are dropped with "
        f"AQM and IW 10, {first.sel(queue='CoDel with ECN').max():.1f}% with CoDel and ECN, and "
        f"{first.sel(queue='drop tail 500 ms').max():.1f}% with drop tail of 500 ms.",
    )


def compared(q: k.Quantities) -> xr.DataArray:
    """Pages and the competing short flow, mean of both loads, without ECN."""
    both = k.headed(k.along("who", {"pages": q.page, "short flow": q.short}), who="time of")
    times = k.relative(both.drop_sel(queue=ECN).mean("beside"), iw=3)
    return k.named(times, "relative_time", "Time", "% of IW 3's", 0)


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("times", "Gain and harm", "Mean times.", [q.page, q.short], across="iw"),
        k.table("download", "Cost to a download", "Means.", [q.download], across="iw"),
        k.table("queue", "At the queue", "Means.", [q.premature, q.dropped, q.marked, q.waiting], across="iw"),
    ],
    lambda q: [
        k.panels(
            compared(q),
            "Gains and costs, by queue",
            "Page time and time of a competing short flow of IW 10, in percent of IW 3's; mean of both loads, no ECN.",
            "iw",
            "queue",
            "connections",
            100,
            "who",
        )
    ],
    answer,
)
