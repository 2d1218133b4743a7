"""The restart window: kept connections with idle times of 0.1 to 60 s."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

# The first response of a connection does not follow an idle time.
AFTER_IDLE = k.DONE & k.of("kept") & (pl.col("object") > 0)
OTHERS = k.DONE & k.of("others")
QUANTITIES = (
    k.Quantity("time", "Completion time", "ms", k.MEAN_MS, AFTER_IDLE, digits=0),
    k.Quantity("retransmitted", "Retransmission rate", "percent", k.RETRANSMITTED, AFTER_IDLE, digits=2),
    k.Quantity("others", "Completion time of others", "ms", k.MEAN_MS, OTHERS, digits=0),
)
RFC = k.Source("RFC 5681 section 4.1")
BEFORE = "The limit is a sign; it was set before the first run with RFC 6928's window, which was added later."
FIRST_LOOK = "The limit is a sign; it was set after a first look at two replicates."
OPEN = k.Source("RFC 6928 section 2, left open", why=FIRST_LOOK)


def gain(q: k.Quantities) -> xr.DataArray:
    """The gain of a response without a restart window compared with RFC 5681's."""
    return k.named(-k.change(q.time, restart="rfc5681").sel(restart="off"), "gain", "Gain", "percent")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Statements of RFC 5681 and Linux, and questions that RFC 6928 leaves open."""
    long = slice(1, None)
    retransmitted = q.retransmitted.sel(restart="off") - q.retransmitted.sel(restart="rfc5681")
    halving = k.change(q.time, restart="rfc5681").sel(restart="halving")
    others = k.change(q.others, restart="rfc5681").sel(restart="off")
    saved = q.time.sel(iw=3, restart="rfc5681") - q.time.sel(iw=10, restart="rfc5681")
    lost = q.time.sel(iw=3, restart="rfc5681") - q.time.sel(iw=3, restart="off")
    cells = ["iw", "idle_s"]
    retransmitted_10, time_10 = (of.sel(iw=10, idle_s=long) for of in (q.retransmitted, q.time))
    return (
        RFC.says(
            "restart-only-after-rto",
            "An idle time shorter than the RTO changes nothing (gain without restart at 0.1 s).",
            gain(q).sel(idle_s=0.1).max("iw"),
            k.near(0, "percent"),
            "The rule has no exceptions, so the tolerance is 0.",
            needs="value",
        ),
        RFC.says(
            "restart-prevents-loss",
            "A cwnd-size burst after an idle time is lost more often (least difference from 1 s on).",
            retransmitted.sel(idle_s=long).min(cells),
            k.above(0, "pp"),
            FIRST_LOOK,
        ),
        OPEN.says(
            "restart-costs-time",
            "Without a restart window responses are faster all the same (least gain from 1 s on).",
            gain(q).sel(idle_s=long).min(cells),
            k.above(0, "percent"),
        ),
        k.Source("Linux, tcp_cwnd_restart").says(
            "halving-is-rfc5681-in-the-end",
            "After tens of RTOs halving has reduced cwnd to the initial window (mean difference from 10 s on).",
            halving.sel(idle_s=slice(10, None)).mean(cells),
            k.near(0, "percent", 5),
            "One segment more or less of a rounded cwnd.",
        ),
        OPEN.says(
            "iw10-regains-part",
            "A restart window of 10 instead of 3 segments regains part of the loss (mean share from 1 s on).",
            (saved / lost).sel(idle_s=long).mean("idle_s"),
            k.above(0, "share"),
        ),
        OPEN.says(
            "burst-costs-others",
            "The burst makes the other connections slower (mean from 1 s on).",
            others.sel(idle_s=long).mean(cells),
            k.above(0, "percent"),
        ),
        k.Source("RFC 6928 section 2").says(
            "fall-back-prevents-loss",
            "With IW 10 a fall back to RFC 3390's window after a loss lowers retransmissions (mean from 1 s on).",
            (retransmitted_10.sel(restart="rfc6928") - retransmitted_10.sel(restart="rfc5681")).mean("idle_s"),
            k.below(0, "pp"),
            BEFORE,
        ),
        OPEN.says(
            "fall-back-costs-time",
            "A fall back to RFC 3390's window after a loss makes responses slower (mean from 1 s on).",
            k.change(time_10, restart="rfc5681").sel(restart="rfc6928").mean("idle_s"),
            k.above(0, "percent"),
            BEFORE,
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Gain and cost, one sentence each."""
    gains = gain(q).isel(draw=0).sel(idle_s=slice(1, None))
    more = q.retransmitted.isel(draw=0).sel(idle_s=slice(1, None)).mean(["iw", "idle_s"])
    return (
        f"From idle times of 1 s on a response is {gains.min():.0f} to {gains.max():.0f}% faster without a restart "
        "window.",
        f"The sender then retransmits {more.sel(restart='off'):.1f}% of its segments; with RFC 5681's restart window, "
        f"{more.sel(restart='rfc5681'):.1f}%.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: (k.table("times", "By idle time", "Means.", [q.time, q.retransmitted, q.others], across="restart"),),
    lambda q: (
        k.lines(q.time, "Time of a response", "After an idle time.", "idle_s", "restart", columns="iw"),
        k.lines(q.retransmitted, "Retransmissions", "Of these.", "idle_s", "restart", columns="iw"),
    ),
    answer,
)
