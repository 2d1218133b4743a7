"""Many users at one bottleneck: load, adoption, equal shares, and harm to others as a sender's TCP_INFO shows it."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import xarray as xr

from firstflight.records import Run
from firstflight.studies import kernel as k
from firstflight.studies.kernel.ensemble import ranks

ADOPTERS, OTHERS = k.of("page.adopters"), k.of("page")
SHARED = pl.col("link") == "shared[0]"
DURATION_S, RATE_MBIT = 40, 10
# 40 of 1500 bytes are headers.
CAPACITY_BYTES = 1e6 / 8 * RATE_MBIT * DURATION_S * 1460 / 1500
ROUNDS = [1, 2, 5, 10, 20, 40, 80, 160, 320]
WINDOWS = {"three": 3, "ten": 10, "many": 32}


def shares(run: Run) -> pl.LazyFrame:
    """Bytes that downloads of each window received by the RTT since the start, and those of all."""
    window = pl.col("link").cast(pl.String).str.extract(r"^(three|ten|many)\[\d+\]$")
    end = (10 * pl.col("interval_start_s")).round() + 1
    rows = run.table("links", experiment="long").with_columns(
        window=window.replace_strict(WINDOWS, return_dtype=pl.Int64),
        rtt=pl.coalesce(*(pl.when(end <= last).then(last) for last in ROUNDS)),
    )
    keys = [key for key in run.cells[0] if key in ("queue", "flows")]
    together = [*keys, "replicate", "rtt"]
    sums = rows.filter(pl.col("window").is_not_null()).group_by(*together, "window").agg(pl.col("sent_bytes").sum())
    return sums.with_columns(all_bytes=pl.col("sent_bytes").sum().over(together))


def at_sender(name: str, title: str, unit: str, value: pl.Expr, digits: int = 2) -> k.Quantity:
    """The adopters' view of their own connections."""
    return k.Quantity(name, title, unit, value, ADOPTERS, digits=digits, grid="adoption")


QUANTITIES = (
    k.Quantity("page", "Page time", "ms", k.MEAN_MS, k.DONE, "pages", digits=0, grid="load"),
    k.Quantity(
        "goodput", "Goodput", "% of capacity", 100 * pl.col("delivered_bytes").sum() / CAPACITY_BYTES, grid="load"
    ),
    k.Quantity("dropped", "Dropped", "percent", k.DROPPED, SHARED, "links", grid="load"),
    k.Quantity("carried", "Carried", "bytes", pl.col("sent_bytes").sum(), SHARED, "links", grid="load"),
    k.Quantity("delivered", "Delivered", "bytes", pl.col("delivered_bytes").sum(), grid="load"),
    k.Quantity("retransmitted", "Retransmitted", "percent", k.RETRANSMITTED, grid="load"),
    k.Quantity(
        "adopters", "Page time of adopters", "ms", k.MEAN_MS, k.DONE & ADOPTERS, "pages", digits=0, grid="adoption"
    ),
    k.Quantity("others", "Page time of others", "ms", k.MEAN_MS, k.DONE & OTHERS, "pages", digits=0, grid="adoption"),
    at_sender("retransmissions", "Retransmission rate", "percent", k.RETRANSMITTED),
    at_sender("first_lost", "Drops in the first flight", "percent", k.FIRST_FLIGHT_LOST),
    at_sender("timeouts", "Timeouts per 100 responses", "", 100 * pl.col("timeouts").mean()),
    at_sender("handshake", "RTT of the handshake", "ms", 1e3 * pl.col("handshake_time_s").drop_nans().mean(), 0),
    k.Quantity(
        "share",
        "Share of the link",
        "percent",
        100 * pl.col("sent_bytes").sum() / pl.col("all_bytes").first(),
        records=shares,
        by={"window": list(WINDOWS.values()), "rtt": ROUNDS},
        grid="long",
    ),
)
SEVEN, TWELVE, APPENDIX = (k.Source(f"RFC 6928 {place}") for place in ("section 7", "section 12", "appendix A"))
SCENE = ["queue", "load", "adopters", "iw"]
HARM_PERCENT = 5
SIGNALS = {
    "retransmissions": "retransmission rate",
    "first_lost": "drops in the first flight",
    "timeouts": "timeouts",
    "handshake": "RTT of the handshake",
}
COMPARED = "retransmission rate against IW 3"


def scenes(q: k.Quantities) -> tuple[xr.DataArray, xr.DataArray]:
    """Whether IW 10 or 32 of adopters makes others 5% slower, in each scene, and each signal of the senders."""
    drawn = {name: k.resampled(k.by_replicate(getattr(q, name))) for name in ("others", *SIGNALS)}
    signals = [drawn[name] for name in SIGNALS] + [drawn["retransmissions"] - drawn["retransmissions"].sel(iw=3)]
    names = xr.DataArray([*SIGNALS.values(), COMPARED], dims="signal", attrs={"long_name": "signal"})
    shown = xr.concat(signals, names, coords="minimal", compat="override", combine_attrs="drop")
    harmed = (k.change(drawn["others"], iw=3) > HARM_PERCENT).astype(float)
    few = {"iw": [10, 32]}
    return tuple(of.sel(few).stack(scene=SCENE).reset_index("scene", drop=True) for of in (harmed, shown))  # type: ignore[return-value]


def area(q: k.Quantities) -> xr.DataArray:
    """Under the ROC curve, of each signal."""
    return k.named(larger(*scenes(q)), "area", "Area under the ROC curve", "", 2)


def larger(harmed: xr.DataArray, shown: xr.DataArray) -> xr.DataArray:
    """The frequency with which a scene with harm has a larger signal than one without; equal ones count half."""
    # Mann and Whitney: the ranks of scenes with harm, less those that they have among themselves; ties have their mean.
    last = [["scene"]]
    places = xr.apply_ufunc(ranks, shown, input_core_dims=last, output_core_dims=last)
    count = harmed.sum("scene")
    u_statistic = (places * harmed).sum("scene") - count * (count + 1) / 2
    share: xr.DataArray = u_statistic / (count * (harmed.sizes["scene"] - count))
    return share


def detected(q: k.Quantities) -> xr.DataArray:
    """Share of the scenes with harm that a threshold finds, by its share of false alarms."""
    harmed, shown = scenes(q)
    alarms = xr.DataArray(np.arange(0, 101, 10), dims="alarms", attrs={"long_name": "false alarms, %"})
    limits = shown.where(harmed == 0).quantile(1 - alarms.values / 100, "scene").rename(quantile="alarms")
    limits = limits.assign_coords(alarms=alarms)
    percent = 100 * ((shown > limits) * harmed).sum("scene") / harmed.sum("scene")
    return k.named(
        percent.assign_coords(interval=shown["interval"]), "detected", "Scenes with harm that are found", "%", 0
    )


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Expectations of RFC 6928, and hypotheses."""
    goodput, page = k.relative(q.goodput, iw=3), k.change(q.page, iw=3)
    drops, far = q.dropped.sel(iw=10) - q.dropped.sel(iw=3), {"load": 2.0, "iw": 10}
    gain, harm = k.change(q.adopters, iw=3), k.change(q.others, iw=3)
    ratio = q.share.sel(window=32) / q.share.sel(window=3)
    return (
        SEVEN.says(
            "no-collapse",
            "At twice the capacity goodput with IW 10 and one connection is that of IW 3 (least ratio).",
            goodput.sel(far).sel(connections="one").min(["queue", "users"]),
            k.at_least(95, "% of IW 3's"),
            "The limit of 5% was chosen before the first run.",
        ),
        k.Source("RFC 6928 sections 7 and 14").says(
            "many-connections-collapse",
            "With six connections, 500 users and a queue of 20 ms IW 10 lowers goodput at twice the capacity.",
            goodput.sel(far).sel(connections="six", users=500, queue="20 ms"),
            k.at_most(95, "% of IW 3's"),
            "The limit of 5% was chosen before the first run.",
        ),
        APPENDIX.says(
            "drops-rise-modestly",
            "Up to a load of 0.8 IW 10 raises drops modestly (largest difference).",
            drops.sel(load=[0.5, 0.8]).max(["queue", "users", "connections", "load"]),
            k.at_most(2, "pp"),
            "The appendix gives no number; 2 pp were chosen before the first run.",
        ),
        APPENDIX.says(
            "extreme-load-hurts-all",
            "At twice the capacity IW 10 gains nothing (mean change of page times).",
            page.sel(far).mean(["queue", "users", "connections"]),
            k.at_least(0, "percent"),
        ),
        APPENDIX.says(
            "high-load-helps-others",
            "At a load of 1 IW 10 of half of the users makes the others no slower (mean change of their page times).",
            harm.sel(load=1.0, adopters=50, iw=10).mean("queue"),
            k.at_most(0, "percent"),
            "Our reading of: high load helps both.",
        ),
        TWELVE.says(
            "adopters-gain",
            "One adopter of IW 10 in ten users gains 5% at a load of 0.8 (largest change of page times).",
            gain.sel(load=0.8, adopters=10, iw=10).max("queue"),
            k.at_most(-5, "percent"),
            "A gain of 5% is worthwhile.",
        ),
        SEVEN.says(
            "others-pay-little-for-10",
            "Up to a load of 0.8 IW 10 of nine users in ten makes the tenth at most 5% slower (largest change).",
            harm.sel(load=[0.5, 0.8], adopters=90, iw=10).max(["queue", "load"]),
            k.at_most(5, "percent"),
            "A user may notice 5%.",
        ),
        k.OURS.says(
            "others-pay-for-32",
            "At a load of 0.8 and a queue of 20 ms IW 32 of nine users in ten makes the tenth 5% slower.",
            harm.sel(load=0.8, adopters=90, iw=32, queue="20 ms"),
            k.above(5, "percent"),
            "A user may notice 5%.",
        ),
        k.OURS.says(
            "early-adopters-gain-most",
            "An adopter of IW 10 gains more while few adopt (mean change at 90% less that at 10%).",
            (gain.sel(adopters=90, iw=10) - gain.sel(adopters=10, iw=10)).mean(["queue", "load"]),
            k.above(0, "pp"),
        ),
        SEVEN.says(
            "capture-at-first",
            "Downloads of IW 32 take twice the share of those of IW 3 until the fifth RTT (least ratio, RTTs 3 to 5).",
            ratio.sel(rtt=5).min(["queue", "flows"]),
            k.at_least(2, "ratio"),
            "32 are eleven times 3; the queue reduces it.",
        ),
        SEVEN.says(
            "equal-after-twenty-rtts",
            "From the 21st to the 40th RTT downloads of IW 32 and 3 have equal shares (largest ratio).",
            ratio.sel(rtt=40).max(["queue", "flows"]),
            k.at_most(1.25, "ratio"),
            "A quarter more counts as equal.",
        ),
        TWELVE.says(
            "harm-is-not-seen",
            "The sender's retransmission rate does not show whether others are harmed (area under the ROC curve).",
            area(q).sel(signal="retransmission rate"),
            k.between(0.2, 0.8),
            "0.5 is a coin; 1, and 0 read the other way round, are perfect signals. Below 0.5 the rate is lower where "
            "others are harmed.",
        ),
        k.OURS.says(
            "comparison-shows-harm",
            "The rise of its retransmission rate since IW 3 shows the sender the harm (area under the ROC curve).",
            area(q).sel(signal=COMPARED),
            k.at_least(0.8),
            "The same limit from the other side.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Collapse, adoption, a sender's view."""
    worst = q.goodput.isel(draw=0).sel(load=2.0, queue="20 ms", users=500, connections="six")
    gain, harm = (k.change(of, iw=3).sel(load=0.8, adopters=50, draw=0) for of in (q.adopters, q.others))
    seen = area(q).isel(draw=0)

    def span(of: xr.DataArray, iw: int) -> str:
        return f"{float(of.sel(iw=iw).min()):+.0f} to {float(of.sel(iw=iw).max()):+.0f}%"

    return (
        "At twice the capacity, with 500 users of six connections and a queue of 20 ms, goodput is "
        f"{worst.sel(iw=3):.0f}% of capacity with IW 3, {worst.sel(iw=10):.0f}% with IW 10 and {worst.sel(iw=32):.0f}% "
        "with IW 32.",
        f"At a load of 0.8 the half of the users that adopts IW 10 changes its page times by {span(gain, 10)}, by "
        f"queue, and those of the other half by {span(harm, 10)}; with IW 32 by {span(gain, 32)} and {span(harm, 32)}.",
        "The sender's retransmission rate detects that others are 5% slower with an area under the ROC curve of "
        f"{seen.sel(signal='retransmission rate'):.2f}, and its rise since IW 3 with {seen.sel(signal=COMPARED):.2f}.",
    )


def who_pays(q: k.Quantities) -> xr.DataArray:
    """Adopters and others against the same users with IW 3, half of the users, by load."""
    both = k.along("who", {"half with the larger IW": q.adopters, "half with IW 3": q.others})
    changes = k.headed(k.change(both.sel(adopters=50), iw=3).sel(iw=[10, 32]), who="users")
    changes["iw"] = changes["iw"].assign_attrs(titles={"10": "IW 10", "32": "IW 32"})
    return k.named(changes.mean("queue"), "who_pays", "Change of page times", "%", 0)


def wasted(q: k.Quantities) -> xr.DataArray:
    """The part of the bottleneck's payload that was not delivered: duplicates, and data that waits for a hole."""
    return k.named(
        100 * (1 - q.delivered / (q.carried * 1460 / 1500)), "wasted", "Transmitted but not delivered", "percent"
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("load", "By load", "Means.", [q.page, q.goodput, q.dropped, q.retransmitted, wasted(q)], across="iw"),
        k.table("adoption", "By adoption", "Mean page times of both.", [q.adopters, q.others], across="iw"),
        k.table(
            "sender", "Signals that senders see", "Of adopters.", [getattr(q, name) for name in SIGNALS], across="iw"
        ),
        k.table("shares", "Shares of downloads", "Up to each RTT, from the one before.", [q.share], across="window"),
        k.table("area", "Detection of harm by each signal", "0.5: nothing, 1: all.", [area(q)]),
    ],
    lambda q: [
        k.lines(
            who_pays(q),
            "Gains and costs when half of the users get a larger IW",
            "200 users with six connections; mean of queues of 20 ms, 100 ms and 1 s; against the same users with IW "
            "3. Bands are 95% CIs.",
            "load",
            "who",
            columns="iw",
            base=0,
        ),
        k.lines(
            q.goodput.sel(connections="six", users=500),
            "Goodput above capacity",
            "500 users with six connections, by the length of the queue.",
            "load",
            "iw",
            columns="queue",
        ),
        k.lines(
            detected(q),
            "Detection of harm to others by the sender",
            "ROC of limits on values of TCP_INFO: harm is 5% on the page times of others.",
            "alarms",
            "signal",
        ),
    ],
    answer,
)
