"""A lost SYN: the rules of RFC 3390 and RFC 6928 for the initial window after a retransmitted SYN/ACK."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

RESPONSE = k.DONE & k.of("response")
QUANTITIES = (
    k.Quantity("time", "Completion time, 20 segments", "ms", k.MEAN_MS, RESPONSE, digits=0),
    k.Quantity("window", "Initial window", "segments", pl.col("initial_window_segments").mean(), RESPONSE, digits=2),
    k.Quantity("retransmitted", "Retransmission rate", "percent", k.RETRANSMITTED, RESPONSE, digits=2),
    k.Quantity("others", "Completion time of others", "ms", k.MEAN_MS, k.DONE & k.of("others"), digits=0),
)
LATER = "1 s (server 1.1 s)"
RFC = k.Source("RFC 6928 section 2", needs="value")


def saved(q: k.Quantities) -> xr.DataArray:
    """The time that RFC 6928's rule saves compared with RFC 3390's."""
    savings = (q.time.sel(rule="rfc3390") - q.time.sel(rule="rfc6928")) / q.time["rtt_ms"]
    return k.named(savings, "saved", "Saved by RFC 6928's rule", "RTT", 2)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Statements of RFC 6928, and hypotheses."""
    long = {"rto": "1 s", "rtt_ms": 1200, "lost": 0}
    others = 100 * (q.others.sel(rule="rfc6928") / q.others.sel(rule="rfc3390") - 1)
    lossy = q.retransmitted.sel(lost=5, rto="1 s", rtt_ms=slice(None, 500)).mean("rtt_ms")
    return (
        RFC.says(
            "rfc3390-punishes-long-rtts",
            "With an initial RTO of 1 s RFC 3390's rule leaves users with an RTT of 1.2 s one segment.",
            q.window.sel(long).sel(rule="rfc3390"),
            k.near(1, "segments"),
            "The rule has no exceptions, so the tolerance is 0.",
        ),
        RFC.says(
            "rfc6928-spares-them",
            "RFC 6928's rule leaves users with an RTT of 1.2 s the initial window.",
            q.window.sel(long).sel(rule="rfc6928"),
            k.near(10, "segments"),
            "The rule has no exceptions, so the tolerance is 0.",
            note="The client's second SYN, which is answered, arrives as the server's timer expires: a tie.",
        ),
        k.Source("Linux, tcp_try_undo_spurious_syn").says(
            "timestamps-spare-them",
            "With timestamps that show the SYN/ACK was not lost the initial window is left.",
            q.window.sel(long).sel(rule="timestamps"),
            k.near(10, "segments"),
            "The rule has no exceptions; the claim was added after the first run.",
            needs="value",
        ),
        RFC.says(
            "later-timer-spares-them",
            "If the server's timer is 0.1 s later, the answer to the second SYN restarts it, and IW remains.",
            q.window.sel(rto=LATER, rtt_ms=1200, lost=0, rule="rfc6928"),
            k.near(10, "segments"),
            "The rule has no exceptions; the claim was added after the first run.",
        ),
        k.OURS.says(
            "rule-saves-round-trips",
            "RFC 6928's rule saves users with an RTT of 1.2 s at least three round trips of 20 segments.",
            saved(q).sel(long),
            k.at_least(3, "RTT"),
            "IW 1 needs five flights and more with delayed ACKs, IW 10 two.",
        ),
        k.OURS.says(
            "rto-of-3-s-needs-no-rule",
            "With an initial RTO of 3 s the rule saves users below 3 s of RTT nothing without loss (largest saving).",
            saved(q).sel(rto="3 s", lost=0, rtt_ms=slice(None, 2500)).max("rtt_ms"),
            k.near(0, "RTT", 0.1),
            "The tolerance is a tenth of an RTT.",
        ),
        k.OURS.says(
            "two-retransmissions-punish-again",
            "With an RTT of 3.5 s and an RTO of 1 s a second SYN/ACK is sent, and RFC 6928's rule leaves one segment.",
            q.window.sel(rule="rfc6928", rto="1 s", rtt_ms=3500, lost=0),
            k.near(1, "segments"),
            "SYN/ACKs are sent at 0, 1 and 3 s.",
            needs="value",
        ),
        k.OURS.says(
            "rule-costs-no-retransmissions",
            "Where 5% are lost RFC 6928's rule has no higher retransmission rate than RFC 3390's (RTT up to 500 ms).",
            lossy.sel(rule="rfc6928") - lossy.sel(rule="rfc3390"),
            k.at_most(0.2, "pp"),
            "0.2 pp are 4% of the rate.",
        ),
        k.OURS.says(
            "loss-is-when-it-gains-too",
            "Where 5% are lost RFC 6928's rule makes responses faster on average (RTT 100 ms, RTO 1 s).",
            saved(q).sel(lost=5, rto="1 s", rtt_ms=100),
            k.above(0, "RTT"),
        ),
        k.OURS.says(
            "others-do-not-notice",
            "RFC 6928's rule makes others on the link no slower (mean change).",
            others.mean(["rto", "rtt_ms", "lost"]),
            k.near(0, "percent", 1),
            "The tolerance of 1% was fixed before the first run.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The initial window under each rule, and its cost."""
    window, gain = q.window.isel(draw=0).sel(rtt_ms=1200, lost=0), saved(q).isel(draw=0)
    tie, later = window.sel(rto="1 s"), window.sel(rto=LATER)
    others = 100 * (q.others.sel(rule="rfc6928") / q.others.sel(rule="rfc3390") - 1).isel(draw=0)
    return (
        "With an RTT of 1.2 s and an initial RTO of 1 s, RFC 3390's rule leaves an IW of "
        f"{tie.sel(rule='rfc3390'):.1f} segments and RFC 6928's one of {tie.sel(rule='rfc6928'):.1f}: the server's "
        "timer expires just as the client's second SYN arrives, and each makes it send a SYN/ACK.",
        f"If the timer is 0.1 s later, RFC 6928's rule leaves {later.sel(rule='rfc6928'):.1f} segments and saves 20 "
        f"segments {gain.sel(rto=LATER, rtt_ms=1200, lost=0):.1f} round trips; with timestamps it always leaves "
        f"{tie.sel(rule='timestamps'):.1f}.",
        f"Where 5% of packets are lost it saves {gain.sel(rto=LATER, rtt_ms=100, lost=5):.2f} round trips of 100 ms on "
        f"average; the times of others change by {others.mean():+.1f}%.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("times", "By rule", "Means.", [q.time, q.window, q.retransmitted, q.others], across="rule"),
        k.table("saved", "RFC 6928's rule against RFC 3390's", "Means.", [saved(q)], across="rtt_ms"),
    ],
    lambda q: [
        k.lines(
            k.named(q.time.sel(lost=0) / q.time["rtt_ms"], "rounds", "Completion time", "RTT"),
            "Time of 20 segments after a SYN/ACK that was retransmitted or not",
            "No loss: SYN/ACKs are retransmitted since the RTT exceeds the initial RTO.",
            "rtt_ms",
            "rule",
            columns="rto",
        )
    ],
    answer,
)
