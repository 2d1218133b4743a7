"""Slices of five simulated studies over the running kernel, next to the simulator."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k
from firstflight.studies import kernel_check

LATE = 100 * (pl.col("packets_late") + pl.col("packets_lost")).sum() / pl.col("packets_sent").sum()
APPLICATION, LINK = pl.col("application").cast(pl.String), pl.col("link").cast(pl.String)
FAST = pl.col("client") == 0
# A window is learned of some connections first.
LATER = pl.col("start_s") > 10
QUANTITIES = (
    k.Quantity("page", "Page time", "ms", k.MEAN_MS, k.DONE, "pages", digits=0, grid="home"),
    k.Quantity("premature", "Drops in the first flight", "percent", k.FIRST_FLIGHT_LOST, k.of("page"), grid="home"),
    k.Quantity("dropped", "Dropped", "percent", k.DROPPED, LINK == "access[0]", "links", digits=2, grid="home"),
    k.Quantity(
        "adopters", "Adopters", "ms", k.MEAN_MS, k.DONE & (APPLICATION != "page"), "pages", digits=0, grid="crowd"
    ),
    k.Quantity("others", "Others", "ms", k.MEAN_MS, k.DONE & k.of("page"), "pages", digits=0, grid="crowd"),
    k.Quantity("mos", "MOS", "", pl.col("mos").mean(), k.DOWN & k.of("g711"), "streams", digits=2, grid="call"),
    k.Quantity("late", "Late or lost, call", "percent", LATE, k.DOWN & k.of("g711"), "streams", grid="call"),
    k.Quantity("game", "Late or lost, game", "percent", LATE, k.DOWN & k.of("game"), "streams", grid="call"),
    k.Quantity("fast", "Time on the fast host", "ms", k.MEAN_MS, k.DONE & FAST & LATER, grid="learned"),
    k.Quantity("slow", "Time on the slow host", "ms", k.MEAN_MS, k.DONE & ~FAST & LATER, digits=0, grid="learned"),
    k.Quantity(
        "lossy",
        "First flights with a loss on the slow host",
        "percent",
        100 * (pl.col("first_flight_lost_segments") > 0).mean(),
        ~FAST & LATER,
        grid="learned",
        digits=0,
    ),
    k.Quantity("time", "Time of 300 kB", "ms", k.MEAN_MS, k.DONE, digits=0, grid="startup"),
    k.Quantity("again", "Retransmitted segments", "segments", pl.col("retransmissions").mean(), k.DONE, grid="startup"),
)
AGREE = k.Source("this study, before its first run over the kernel")
QUEUES, SHARED, CALLS, LEARNED, STARTUP = map(
    k.Source, ("queues", "shared-queue", "real-time", "learned-window", "startup-schemes")
)


def apart(of: xr.DataArray) -> xr.DataArray:
    """The kernel's additional time compared with the simulator, percent."""
    return k.change(of, engine="simulate").sel(engine="emulate", drop=True)


def agreement(name: str, of: xr.DataArray, what: str, tolerance: float, why: str) -> k.ClaimSpec:
    """That both engines have the same mean over the cells of a slice."""
    over = [str(dimension) for dimension in of.dims if dimension not in ("engine", "draw")]
    return AGREE.says(
        f"same-{name}",
        f"Kernel and simulator agree on {what} (mean difference over the cells).",
        apart(of).mean(over),
        k.near(0, "percent", tolerance),
        why,
    )


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Each slice's agreement, then the claims of its study over the kernel, with their limits."""
    closed = "Ten percent: which packet is dropped depends on microseconds, and users wait for pages."
    alone = "Five percent, as kernel-check has it for single transfers with losses."
    kernel = {"engine": "emulate"}
    page, premature = k.change(q.page.sel(kernel), iw=3), q.premature.sel(kernel)
    adopters, others = (k.change(of.sel(kernel), iw=3) for of in (q.adopters, q.others))
    cost = (q.mos.sel(iw=3, drop=True) - q.mos).sel(kernel)
    fast, lossy, time = q.fast.sel(kernel), q.lossy.sel(kernel), q.time.sel(kernel)
    return (
        agreement("pages", q.page, "page times at home", 10, closed),
        agreement("adopters", q.adopters, "page times of adopters", 10, closed),
        agreement("others", q.others, "page times of the others", 10, closed),
        agreement("fast", q.fast, "times of the fast host of a server that learns", 5, alone),
        agreement("startup", q.time, "times of start-up schemes", 5, alone),
        AGREE.says(
            "same-calls",
            "Kernel and simulator agree on the MOS of a call (mean difference over the cells).",
            (q.mos.sel(engine="emulate") - q.mos.sel(engine="simulate")).mean(["queue", "iw"]),
            k.near(0, "MOS", 0.1),
            "0.1 MOS is the limit of that study.",
        ),
        QUEUES.says(
            "page-gains-in-every-queue",
            "IW 10 instead of 3 makes pages faster in every queue (largest change).",
            page.sel(iw=10).max("queue"),
            k.at_most(-5, "percent"),
            "A gain of 5% is worthwhile.",
        ),
        QUEUES.says(
            "aqm-fewer-premature-drops",
            "Next to a download AQM drops less of the first flight than drop tail of 50 ms (largest difference).",
            (premature.sel(queue=["CoDel", "FQ-CoDel"]) - premature.sel(queue="drop tail 50 ms", drop=True)).max(
                ["queue", "iw"]
            ),
            k.below(0, "pp"),
        ),
        SHARED.says(
            "adopters-gain-in-a-long-queue",
            "In a queue of 1 s adopters of IW 10 gain 5% (change of page times).",
            adopters.sel(queue="1s", iw=10),
            k.at_most(-5, "percent"),
            "A gain of 5% is worthwhile.",
        ),
        SHARED.says(
            "others-pay-for-32",
            "In a queue of 1 s IW 32 of half of the users makes the others 5% slower.",
            others.sel(queue="1s", iw=32),
            k.above(5, "percent"),
            "A user may notice 5%.",
        ),
        CALLS.says(
            "codel-does-not-spare-a-call",
            "With CoDel IW 64 costs a call 0.1 MOS.",
            cost.sel(queue="CoDel", iw=64),
            k.at_least(0.1, "MOS"),
            "0.1 MOS is the limit of that study.",
        ),
        CALLS.says(
            "fq-codel-spares-a-call",
            "With FQ-CoDel IW 64 costs a call less than 0.1 MOS.",
            cost.sel(queue="FQ-CoDel", iw=64),
            k.below(0.1, "MOS"),
            "0.1 MOS is the limit of that study.",
        ),
        LEARNED.says(
            "learning-gains-on-fast-hosts",
            "Each learning rule saves at least 10% of the time on the fast host (worst rule).",
            k.change(fast, policy="static 10").sel(policy=["ewma", "loss-aware"]).max("policy"),
            k.at_most(-10, "percent"),
            "One round trip of three or four.",
        ),
        LEARNED.says(
            "ewma-harms-slow-hosts",
            "The average of the largest cwnd loses in at least 5 pp more first flights on the slow host than IW 10.",
            lossy.sel(policy="ewma") - lossy.sel(policy="static 10"),
            k.at_least(5, "pp"),
            "cwnd overshoots a queue of 15 packets before it is reduced.",
        ),
        LEARNED.says(
            "a-loss-rule-halves-the-harm",
            "The loss-aware rule has at most half of ewma's first-flight losses on the slow host.",
            lossy.sel(policy="loss-aware") / lossy.sel(policy="ewma"),
            k.at_most(0.5),
            "The limit is that of `learned-window`.",
        ),
        STARTUP.says(
            "larger-windows-are-faster",
            "With a queue of one BDP IW 32 is faster than IW 10, and IW 10 than IW 3 (least gain).",
            -xr.concat(
                [
                    k.change(time.sel(queue="133p"), scheme=slower).sel(scheme=faster, drop=True)
                    for slower, faster in (("IW 3", "IW 10"), ("IW 10", "IW 32"))
                ],
                "pair",
            ).max("pair"),
            k.above(0, "percent"),
        ),
        STARTUP.says(
            "pacing-spares-a-short-queue",
            "With a queue of 30 packets IW 32 paced retransmits less than IW 32 back to back (difference).",
            (q.again.sel(scheme="IW 32, paced") - q.again.sel(scheme="IW 32")).sel(kernel).sel(queue="30p"),
            k.below(0, "segments"),
            "A direction only: 32 segments back to back do not fit.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The difference of the engines."""
    means = [float(apart(of).isel(draw=0).mean()) for of in (q.page, q.adopters, q.others, q.fast, q.time)]
    mos = q.mos.isel(draw=0).mean(["queue", "iw"])
    return (
        "Mean times over the kernel against the simulator: pages {:+.1f}%, pages of twelve users {:+.1f}% (adopters) "
        "and {:+.1f}% (others), downloads from a server that learns {:+.1f}%, start-up schemes {:+.1f}%.".format(
            *means
        ),
        f"Calls next to pages have a mean MOS of {mos.sel(engine='emulate'):.2f} over the kernel and of "
        f"{mos.sel(engine='simulate'):.2f} in the simulator.",
    )


def difference(of: xr.DataArray) -> xr.DataArray:
    """The kernel's additional time, as a quantity."""
    return k.named(apart(of), f"{of.name}_difference", f"{of.attrs['long_name']}: kernel against simulator", "percent")


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("home", "Pages next to a download", "Means.", [q.page, q.premature, q.dropped], across="iw"),
        k.table("crowd", "Twelve users", "Means of page times.", [q.adopters, q.others], across="iw"),
        k.table("call", "Calls and games next to pages", "Means.", [q.mos, q.late, q.game], across="iw"),
        k.table("learned", "A server that learns", "After ten seconds.", [q.fast, q.slow, q.lossy], across="policy"),
        k.table("startup", "Start-up schemes", "Means.", [q.time, q.again], across="scheme"),
        *(
            k.table(f"{name}_difference", "Kernel against simulator", "Of each cell.", [difference(of)], across=across)
            for name, of, across in (("home", q.page, "iw"), ("crowd", q.adopters, "iw"), ("startup", q.time, "scheme"))
        ),
    ],
    lambda q: [
        k.intervals(
            q.time,
            "Start-up schemes over the kernel and in the simulator",
            "300 kB over 20 Mbit/s, 80 ms away; the server has firstflight's TCP, the client the kernel's.",
            "scheme",
            "engine",
            "queue",
        ),
        k.intervals(
            q.page,
            "Pages next to a download, over the kernel and in the simulator",
            "10 Mbit/s, 40 ms away, six connections.",
            "iw",
            "engine",
            "queue",
        ),
        k.intervals(
            q.mos,
            "Calls next to pages, over the kernel and in the simulator",
            "G.711 over 5 Mbit/s, 40 ms away, next to two people who load pages over six connections.",
            "iw",
            "engine",
            "queue",
        ),
    ],
    answer,
    kernel_check.build,
)
