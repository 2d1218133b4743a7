"""The advice of RFC 6928 for slow links: the timer's restart, a receiver that finds out, and the advice of RFC 3150."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.records import Run
from firstflight.studies import kernel as k

PAGE = k.of("page")
SEGMENT_BYTES, LIMIT_BPS = 1448, 181_000
"""4 kB per RTT of 300 ms suit 64 and 128 kbit/s; the limit is halfway, as a ratio, from 128 to 256 kbit/s."""
SLOW = [64, 128]
DETECTORS = {"first": "first object", "fastest": "fastest of a page"}
KEYS = ("rate_kbit", "queue", "connections", "sender", "beside")
RFC9, RFC3150 = k.Source("RFC 6928 section 9"), k.Source("RFC 6928 section 8 (RFC 3150)")


def estimates(run: "Run") -> pl.LazyFrame:
    """One row per page and detector: `slow` is 1 if bytes after the first segment arrived slower than the limit, in
    the page's first object or in its fastest; objects of one or two segments show nothing.
    """
    spread = pl.col("completion_time_s") - pl.col("first_byte_time_s")
    rate = 8 * (pl.col("bytes") - SEGMENT_BYTES) / spread
    objects = run.table("transfers", experiment="links").filter(PAGE, k.DONE, pl.col("bytes") > 2 * SEGMENT_BYTES)
    rates = objects.group_by(*KEYS, "replicate", "client", "page").agg(
        first=rate.sort_by("object").first(), fastest=rate.max()
    )
    judged = rates.unpivot(list(DETECTORS), index=[*KEYS, "replicate"], variable_name="detector", value_name="bps")
    return judged.with_columns(slow=pl.col("bps") < LIMIT_BPS)


QUANTITIES = (
    k.Quantity(
        "found_slow",
        "Taken for a slow link",
        "percent",
        100 * pl.col("slow").mean(),
        None,
        estimates,
        {"detector": list(DETECTORS)},
        grid="links",
        at={"sender": ["IW 3", "IW 10"]},
    ),
    k.Quantity(
        "timer_timeouts", "Timeouts per 100 objects", "", k.per_hundred("timeouts"), PAGE, digits=1, grid="timer"
    ),
    k.Quantity("timer_page", "Page time", "s", k.MEAN_S, k.DONE & PAGE, "pages", digits=2, grid="timer"),
    k.Quantity("advice_page", "Page time", "s", k.MEAN_S, k.DONE & PAGE, "pages", digits=2, grid="advice"),
)


def with_detector(q: k.Quantities) -> xr.DataArray:
    """Page time of IW 10 if the receiver advertises 4 kB where it takes the link for slow, against IW 10 alone,
    percent: the mean of both times by the share of pages.
    """
    share = q.found_slow.sel(sender="IW 10", drop=True) / 100
    large, small = (q.page.sel(sender=label, drop=True) for label in ("IW 10", "IW 10 with rwnd 4 kB"))
    return k.named(100 * share * (small / large - 1), "with_detector", "Page time with a detector", "percent", 1)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Timer, detector, advice."""
    risen = (q.timer_timeouts.sel(timer="not restarted") - q.timer_timeouts.sel(timer="restarted")).sel(probes="off")
    alone = q.found_slow.sel(beside="nothing", sender="IW 10")
    missed = 100 - alone.sel(rate_kbit=SLOW)
    fooled = q.found_slow.sel(beside="bulk", sender="IW 10", rate_kbit=256).mean(["queue", "connections"])
    advice = k.change(q.advice_page, advice="none")
    narrow: dict[str, Any] = {"path": "64 kbit/s", "iw": 10, "connections": 5}
    return (
        RFC9.says(
            "without-restart-one-connection-times-out",
            "Without the restart IW 10 over one connection has more spurious timeouts (64 kbit/s, no probes).",
            risen.sel(rate_kbit=64, iw=10, connections=1),
            k.above(0, "per 100 objects"),
            "The claim is a direction only. Nothing is dropped in this queue, so that every timeout is spurious.",
        ),
        RFC9.says(
            "iw3-needs-the-restart-less",
            "Without the restart IW 10 has more additional timeouts than IW 3 (64 kbit/s, one connection, no probes).",
            (risen.sel(iw=10) - risen.sel(iw=3)).sel(rate_kbit=64, connections=1),
            k.above(0, "per 100 objects"),
        ),
        k.OURS.says(
            "restart-is-no-remedy-for-five",
            "With the restart five connections of IW 10 time out at 64 kbit/s all the same (with probes).",
            q.timer_timeouts.sel(timer="restarted", probes="on", rate_kbit=64, iw=10, connections=5),
            k.at_least(10, "per 100 objects"),
            "Each waits for the first flights of the others before its first ACK.",
        ),
        k.OURS.says(
            "no-matter-at-1-mbps",
            "At 1 Mbit/s the restart makes no difference (largest rise, no probes).",
            risen.sel(rate_kbit=1000).max(["iw", "connections"]),
            k.near(0, "per 100 objects", 1),
            "One in a hundred objects.",
        ),
        k.OURS.says(
            "detector-misses-few-slow-links",
            "A receiver that goes by the fastest object of a page misses at most 5% of slow links (most, alone).",
            missed.sel(detector="fastest").max(["rate_kbit", "queue", "connections"]),
            k.at_most(5, "percent"),
            "Five in a hundred was chosen before the first run.",
        ),
        k.OURS.says(
            "detector-spares-1-mbps",
            "By the fastest object at most 1% of links of 1 Mbit/s are taken for slow (most, any concurrent traffic).",
            q.found_slow.sel(sender="IW 10", rate_kbit=1000, detector="fastest").max(
                ["queue", "connections", "beside"]
            ),
            k.at_most(1, "percent"),
            "The limit is one in a hundred.",
        ),
        k.OURS.says(
            "a-bulk-transfer-fools-the-first-object",
            "Next to a bulk transfer the first object takes 256 kbit/s for slow in at least half of the pages (mean).",
            fooled.sel(detector="first"),
            k.at_least(50, "percent"),
            "A fair share is 128 kbit/s.",
        ),
        k.OURS.says(
            "a-whole-page-is-fooled-less",
            "Next to a bulk transfer the fastest object takes 256 kbit/s for slow less often (difference).",
            fooled.sel(detector="fastest") - fooled.sel(detector="first"),
            k.below(0, "pp"),
        ),
        k.OURS.says(
            "small-first-flights-hide-the-rate",
            "Servers with IW 3 have more links of 1 Mbit/s taken for slow than those with IW 10 (first object, mean).",
            (q.found_slow.sel(sender="IW 3") - q.found_slow.sel(sender="IW 10"))
            .sel(rate_kbit=1000, detector="first", beside="nothing")
            .mean(["queue", "connections"]),
            k.above(0, "pp"),
            "After three segments the link waits for an ACK.",
        ),
        RFC3150.says(
            "compressed-headers-save-little",
            "Headers of 5 bytes in place of 40 make pages of full segments at most 5% faster (64 kbit/s, IW 10, five "
            "connections).",
            advice.sel(**narrow, advice="headers of 5 bytes"),
            k.at_least(-5, "percent"),
            "35 of 1500 bytes are 2.3%.",
        ),
        RFC3150.says(
            "compressed-headers-let-small-segments-pay",
            "With headers of 5 bytes segments of 536 bytes make pages no slower than full ones with 40 (64 kbit/s, "
            "five connections).",
            advice.sel(**narrow, advice="MSS 536, headers of 5 bytes"),
            k.at_most(0, "percent"),
            "Ten of them are 5 kB in place of 15.",
        ),
        RFC3150.says(
            "thin-acks-pay-on-a-narrow-uplink",
            "An ACK for four segments makes pages faster with 9.6 kbit/s of uplink (1 Mbit/s, IW 10, five "
            "connections).",
            advice.sel(path="1 Mbit/s, uplink 9.6 kbit/s", iw=10, connections=5, advice="an ACK for four"),
            k.below(0, "percent"),
            "An ACK of 40 bytes takes 33 ms there, in which three segments arrive on the downlink.",
        ),
    )


def tables(q: k.Quantities) -> list[Table]:
    """Timer, detector, advice."""
    return [
        k.table("timer", "Timer", "Means; nothing is dropped.", [q.timer_timeouts, q.timer_page], across="timer"),
        k.table(
            "detector",
            "Taken for slow",
            "Share of pages, mean over queues; false above 128 kbit/s.",
            [q.found_slow.mean("queue")],
            across="beside",
        ),
        k.table(
            "detected",
            "Cost of a detector",
            "Against IW 10 alone, mean over queues.",
            [with_detector(q).mean("queue")],
            across="beside",
        ),
        k.table("advice", "RFC 3150", "Means.", [q.advice_page], across="advice"),
    ]
