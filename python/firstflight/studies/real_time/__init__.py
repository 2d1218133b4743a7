"""Calls, a game and look-ups of names next to pages with initial windows of 3 to 64."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

APPLICATION = pl.col("application").cast(pl.String)
LATE = 100 * (pl.col("packets_late") + pl.col("packets_lost")).sum() / pl.col("packets_sent").sum()
JITTER = 1e3 * (pl.col("delay_p99_s") - pl.col("delay_min_s")).mean()
TIME = 1e3 * pl.col("completion_time_s")


def stream(name: str, title: str, unit: str, value: pl.Expr, application: str, digits: int) -> k.Quantity:
    """Of the datagrams that the server sends."""
    return k.Quantity(name, title, unit, value, k.DOWN & (application == APPLICATION), "streams", digits=digits)


QUANTITIES = (
    stream("mos", "MOS, G.711", "", pl.col("mos").mean(), "g711", 2),
    stream("late", "Late or lost, G.711", "percent", LATE, "g711", 2),
    stream("opus_late", "Late or lost, Opus", "percent", LATE, "opus", 2),
    stream("jitter", "Delay variation, G.711, 99th percentile", "ms", JITTER, "g711", 0),
    stream("game_late", "Late or lost, game", "percent", LATE, "game", 2),
    k.Quantity("lookup", "Look-up, mean", "ms", TIME.mean(), k.DONE & k.of("names")),
    k.Quantity("lookup_p99", "Look-up, 99th percentile", "ms", TIME.quantile(0.99), k.DONE & k.of("names")),
    k.Quantity("page", "Page time", "ms", TIME.mean(), k.DONE, "pages", digits=0),
)
LIMIT = "0.1 MOS is the limit of the question."
RFC7, RFC3 = k.Source("RFC 6928 section 7", why=LIMIT), k.Source("RFC 6928 section 3")
TAIL = ["drop tail 100 ms", "drop tail 1 s"]
SLOW, FAST = ["1 Mbit/s", "2 Mbit/s"], ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"]
USABLE = 2.58
"""R 50, below which nearly all users are dissatisfied (ITU-T G.107 annex B)."""
PLACES = ["rate", "connections"]


def cost(q: k.Quantities) -> xr.DataArray:
    """The effect of pages with this IW on a call, compared with IW 3."""
    return k.named(q.mos.sel(iw=3, drop=True) - q.mos, "cost", "Cost of a call against IW 3", "MOS", 2)


def largest(q: k.Quantities) -> xr.DataArray:
    """The largest IW up to which every one costs less than 0.1 MOS, where a call is fit for use at all."""
    fits = (cost(q).isel(draw=0) < 0.1).astype(float).cumprod("iw")
    windows = (fits * q.mos["iw"]).max("iw").where(q.mos.sel(iw=3, draw=0, drop=True) >= USABLE)
    return k.named(windows, "largest", "Largest IW within 0.1 MOS of IW 3's", "segments", 0)


def undisturbed(q: k.Quantities) -> xr.DataArray:
    """The same, of a call that nothing disturbs; 0 if IW 3 costs more."""
    alone = q.mos.sel(iw=3, queue="priority", draw=0, drop=True)
    fits = (alone - q.mos.isel(draw=0) < 0.1).astype(float).cumprod("iw")
    windows = (fits * q.mos["iw"]).max("iw")
    return k.named(windows, "undisturbed", "Largest IW within 0.1 MOS of an undisturbed call's", "segments", 0)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Concerns of RFC 6928, and hypotheses."""
    costs, slow = cost(q), {"rate": "1 Mbit/s", "connections": "six"}
    already = q.mos.sel(iw=3, queue="drop tail 1 s").isel(draw=0)
    lookup = 100 * (q.lookup.sel(iw=64) / q.lookup.sel(iw=3) - 1)
    game = q.game_late.sel(iw=32) - q.game_late.sel(iw=3)
    fewer = q.mos.sel(iw=10, connections="one") - q.mos.sel(iw=3, connections="six")
    return (
        RFC7.says(
            "slow-line-call-suffers",
            "Larger windows hurt VoIP: with 1 Mbit/s, six connections and drop tail of 1 s IW 10 costs 0.1 MOS.",
            costs.sel(iw=10, queue="drop tail 1 s").sel(slow),
            k.at_least(0.1, "MOS"),
            note=f"With IW 3 the call has MOS {float(already.sel(slow)):.2f}.",
        ),
        k.OURS.says(
            "fast-line-call-is-spared",
            "At 20 Mbit/s IW 10 costs a call less than 0.1 MOS in every queue (largest cost).",
            costs.sel(rate="20 Mbit/s", iw=10).max(["queue", "connections"]),
            k.below(0.1, "MOS"),
            LIMIT,
        ),
        RFC7.says(
            "codel-does-not-spare-a-call",
            "CoDel lets bursts pass: at 5 Mbit/s with six connections IW 64 costs a call 0.1 MOS.",
            costs.sel(rate="5 Mbit/s", connections="six", iw=64, queue="CoDel"),
            k.at_least(0.1, "MOS"),
        ),
        RFC7.says(
            "fq-codel-spares-a-call",
            "With FQ-CoDel IW 64 costs a call less than 0.1 MOS at every rate (largest cost).",
            costs.sel(queue="FQ-CoDel", iw=64).max(PLACES),
            k.below(0.1, "MOS"),
        ),
        RFC7.says(
            "priority-spares-a-call",
            "With priority IW 64 costs a call less than 0.1 MOS at every rate (largest cost).",
            costs.sel(queue="priority", iw=64).max(PLACES),
            k.below(0.1, "MOS"),
        ),
        RFC3.says(
            "fewer-connections-spare-calls",
            "One connection with IW 10 leaves a call no worse than six with IW 3 (least gain, drop tail).",
            fewer.sel(queue=TAIL).min(["queue", "rate"]),
            k.at_least(-0.05, "MOS"),
            "Half of the limit of the question counts as no worse.",
        ),
        RFC7.says(
            "look-ups-suffer",
            "Larger windows hurt DNS: at 1 Mbit/s, six connections and drop tail of 1 s IW 64 slows look-ups by 10%.",
            lookup.sel(queue="drop tail 1 s").sel(slow),
            k.at_least(10, "percent"),
            "The limit of 10% was chosen before the first run.",
        ),
        RFC7.says(
            "games-suffer",
            "Larger windows hurt games: at 5 Mbit/s with six connections and drop tail of 100 ms IW 32 delays more "
            "than another 1% of a game's packets beyond 100 ms.",
            game.sel(rate="5 Mbit/s", connections="six", queue="drop tail 100 ms"),
            k.above(1, "pp"),
            "The limit of 1% was chosen before the first run.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The settings that an operator may use, and their effect."""
    mos, fits = q.mos.isel(draw=0), largest(q)
    tail = {"queue": "drop tail 100 ms", "connections": "six"}
    windows = ", ".join(f"{float(fits.sel(tail).sel(rate=rate)):.0f} at {rate}" for rate in FAST)
    slow, codel = mos.sel(rate=SLOW, iw=3, queue=[*TAIL, "CoDel"]), mos.sel(rate="5 Mbit/s", queue="CoDel")
    fair = mos.sel(queue=["FQ-CoDel", "priority"], iw=64)
    return (
        "Next to pages over six connections with drop tail of 100 ms the largest IW that costs a call less than 0.1 "
        f"MOS, compared with IW 3, is {windows}.",
        f"At 1 and 2 Mbit/s pages ruin a call with every IW (at most MOS {slow.max():.1f} with IW 3) unless the queue "
        "separates them.",
        f"Next to IW 64 at 5 Mbit/s a call has MOS {fair.sel(rate='5 Mbit/s').min():.1f} with FQ-CoDel or priority; "
        f"with CoDel alone {codel.sel(iw=64).max():.1f} at most, and {codel.sel(iw=3).max():.1f} next to IW 3.",
    )


def by_number(array: xr.DataArray) -> xr.DataArray:
    """With the unit of the rate in its title, for narrow cells."""
    rates = [str(rate).removesuffix(" Mbit/s") for rate in array["rate"].values]
    return array.assign_coords(rate=xr.DataArray(rates, dims="rate", attrs={"long_name": "rate, Mbit/s"}))


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table(
            "largest",
            "The largest IW that costs a call less than 0.1 MOS",
            "By means; 0: IW 3 costs more. None compared with IW 3 where that leaves a call below MOS 2.58 (R 50).",
            [q.mos.sel(iw=3, drop=True), largest(q), undisturbed(q)],
            "connections",
        ),
        k.table("calls", "Calls", "Means.", [q.mos, cost(q), q.late, q.opus_late, q.jitter], across="iw"),
        k.table(
            "others", "Game, look-ups, pages", "Means.", [q.game_late, q.lookup, q.lookup_p99, q.page], across="iw"
        ),
    ],
    lambda q: [
        k.heat_map(
            by_number(largest(q)),
            "The largest IW that costs a call less than 0.1 MOS",
            "Compared with IW 3 of the pages on the same link; empty where a call has less than MOS 2.58 then. G.711, "
            "playout of 60 ms, RTT 40 ms.",
            "rate",
            "queue",
            "connections",
        ),
        k.lines(
            q.mos.sel(connections="six", rate=["2 Mbit/s", *FAST]),
            "Rating of a call",
            "Next to pages with six connections; bands are 95% CIs.",
            "iw",
            "queue",
            columns="rate",
        ),
    ],
    answer,
)
