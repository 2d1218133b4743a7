"""Cellular networks: IW 3 to 32 over traces of EDGE, HSPA, LTE and 5G."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.records import Run
from firstflight.studies import kernel as k

# The primary is fetched alone.
INLINE = pl.col("object") > 0
KEYS = ("network", "buffer_bdp", "radio", "size", "connections", "iw")
MOST_AT_ONCE = 4


def pages(run: Run) -> pl.LazyFrame:
    """One row per page with four objects at once: Jain's index of the throughputs of their connections."""
    rows = run.table("transfers").filter(INLINE, k.DONE, pl.col("connections") == MOST_AT_ONCE)
    rate = pl.col("bytes") / pl.col("completion_time_s")
    return (
        rows.group_by(*KEYS, "replicate", "client", "page")
        .agg(jain=k.jain(rate), objects=pl.len())
        .filter(pl.col("objects") == MOST_AT_ONCE)
    )


QUANTITIES = (
    k.Quantity("time", "Completion time", "ms", k.MEAN_MS, INLINE & k.DONE),
    k.Quantity("retransmitted", "Retransmitted", "percent", k.RETRANSMITTED, INLINE, digits=2),
    k.Quantity("timeouts", "Timeouts per 100 objects", "", k.per_hundred("timeouts"), INLINE, digits=2),
    k.Quantity(
        "spurious",
        "Recoveries undone per 100 objects",
        "",
        k.per_hundred("spurious_recoveries_undone"),
        INLINE,
        digits=2,
    ),
    k.Quantity("jain", "Fairness index", "", pl.col("jain").mean(), None, pages, at={"connections": [4]}, digits=3),
    k.Quantity("queue", "Mean queue", "packets", k.MEAN_QUEUE, pl.col("link") == "spokes[0]", "links"),
)
JNDK10 = k.Source("RFC 6928 section 11, on JNDK10")
NO, YES = "no retransmissions", "retransmissions of 16 ms"


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Statements of RFC 6928 about JNDK10, and hypotheses."""
    time, fair = k.change(q.time, iw=3).sel(iw=10, drop=True), q.jain.sel(connections=4, drop=True)
    less_fair, beyond = fair.sel(iw=3) - fair.sel(iw=10), k.change(q.time, iw=10).sel(iw=32)
    cells = ["buffer_bdp", "radio", "size", "connections"]
    jittered = q.spurious.sel(radio=YES) - q.spurious.sel(radio=NO)
    return (
        JNDK10.says(
            "some-networks-gain",
            "Results are mixed: on some network IW 10 lowers completion times by at least 10% (largest mean gain).",
            (-time).mean(cells).max("network"),
            k.at_least(10, "percent"),
            "RFC 6928 gives no number; 10% was chosen before the first run.",
        ),
        JNDK10.says(
            "some-networks-lose",
            "Results are mixed: on some network with some buffer IW 10 raises completion times (largest mean rise).",
            time.mean(["radio", "size", "connections"]).max(["network", "buffer_bdp"]),
            k.above(0, "percent"),
        ),
        JNDK10.says(
            "fairness-is-mixed",
            "IW 10 is less fair between four parallel connections on some network (largest mean fall of the index).",
            less_fair.mean(["buffer_bdp", "radio", "size"]).max("network"),
            k.above(0.01),
            "A hundredth of the index can be seen.",
        ),
        k.OURS.says(
            "todays-networks-gain",
            "On LTE and 5G responses of 20 kB, one at a time, are at least 25% faster with IW 10 (least gain).",
            (-time).sel(network=["LTE", "5G"], size="20 kB", connections=1).min(["network", "buffer_bdp", "radio"]),
            k.at_least(25, "percent"),
            "14 segments take two round trips instead of three, with the handshake three instead of four.",
        ),
        k.OURS.says(
            "a-deep-buffer-takes-iw-10",
            "With a buffer of 16 BDP IW 10 retransmits no more than IW 3, four in parallel (largest difference).",
            (q.retransmitted.sel(iw=10) - q.retransmitted.sel(iw=3))
            .sel(buffer_bdp=16, connections=4, size="20 kB")
            .max(["network", "radio"]),
            k.at_most(0.1, "pp"),
            "Four times ten segments fit: 80 packets on EDGE.",
        ),
        k.OURS.says(
            "edge-with-a-short-buffer-loses",
            "On EDGE with a buffer of 1 BDP four parallel responses of 20 kB are slower with IW 10.",
            time.sel(network="EDGE", buffer_bdp=1, size="20 kB", connections=4, radio=NO),
            k.above(0, "percent"),
            "Forty segments arrive at a queue of five.",
        ),
        k.OURS.says(
            "jitter-is-not-taken-for-loss",
            "The link layer's jitter causes no more spurious recoveries with IW 10 than with 3 (largest difference of "
            "those that come with the jitter).",
            (jittered.sel(iw=10) - jittered.sel(iw=3)).max(["network", "buffer_bdp", "size", "connections"]),
            k.near(0, "per 100 objects", 1),
            "One in a hundred objects. Less the spurious recoveries of the same cell without jitter.",
        ),
        k.OURS.says(
            "above-ten-pays-on-5g",
            "On 5G IW 32 saves another 20% of the time of 200 kB, one at a time (least).",
            -beyond.sel(network="5G", size="200 kB", connections=1).max(["buffer_bdp", "radio"]),
            k.at_least(20, "percent"),
            "138 segments take three round trips after the handshake instead of four.",
        ),
        k.OURS.says(
            "above-ten-harms-on-edge",
            "On EDGE IW 32 is slower than IW 10, four parallel responses of 20 kB (mean over buffers and link layers).",
            beyond.sel(network="EDGE", size="20 kB", connections=4).mean(["buffer_bdp", "radio"]),
            k.above(0, "percent"),
            "A response has 14 segments.",
        ),
        k.OURS.says(
            "jitter-costs-no-gain",
            "Link-layer retransmissions change the gain of IW 10 by less than five points (largest mean difference).",
            abs(time.sel(radio=YES) - time.sel(radio=NO)).mean(["buffer_bdp", "size", "connections"]).max("network"),
            k.below(5, "pp"),
            k.FIXED,
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Who gains, who loses, fairness."""
    time = k.change(q.time, iw=3).sel(iw=10, draw=0)
    small = time.sel(size="20 kB", connections=1).mean(["buffer_bdp", "radio"])
    crowd = time.sel(network="EDGE", buffer_bdp=1, size="20 kB", connections=4, radio=NO)
    fair = q.jain.isel(draw=0).sel(connections=4).mean(["buffer_bdp", "radio", "size"])
    worst = str((fair.sel(iw=10) - fair.sel(iw=3)).idxmin("network").item())
    by_network = ", ".join(f"{name} {float(small.sel(network=name)):+.0f}%" for name in small["network"].values)
    return (
        f"IW 10 instead of 3 changes the time of 20 kB, one response at a time, on {by_network}; four at a time on "
        f"EDGE with a buffer of 1 BDP {crowd:+.0f}%.",
        f"The fairness index changes most on {worst}: from {fair.sel(network=worst, iw=3):.3f} to "
        f"{fair.sel(network=worst, iw=10):.3f}.",
    )


def by_window(q: k.Quantities) -> xr.DataArray:
    """Times against IW 3."""
    return k.named(
        k.relative(q.time, iw=3).sel(radio=NO, size="20 kB", drop=True), "relative_time", "Time", "% of IW 3's", 0
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("times", "Times", "Means over all objects except the primary.", [q.time, q.retransmitted], across="iw"),
        k.table("recoveries", "Timeouts and spurious recoveries", "Means.", [q.timeouts, q.spurious], across="iw"),
        k.table(
            "fairness", "Fairness of four in parallel", "Jain's index of a page's objects, mean.", [q.jain], across="iw"
        ),
        k.table("queue", "Queue", "Mean of the radio link's.", [q.queue], across="iw"),
    ],
    lambda q: [
        k.panels(
            by_window(q),
            "Time of 20 kB on mobile networks, against IW 3",
            "By the initial window; in percent of IW 3's time.",
            "iw",
            "network",
            "connections",
            100,
            "buffer_bdp",
        )
    ],
    answer,
)
