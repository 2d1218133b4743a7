"""Why ten: gain and cost of IW 1 to 46 on populations of 2010 and of today."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

LOADS = {"search": "a search page", "one": "180 kB, one connection", "six": "180 kB, six connections"}
TIME = pl.col("completion_time_s").log().mean()
# A window is stable where it fills the link, and at most where it fills the queue as well.
STABLE = {"BDP": pl.col("rtt_s") * pl.col("down_bps") / 8}
STABLE["BDP and queue"] = STABLE["BDP"] + pl.col("buffer_bytes")
NEVER_REDUCED = (pl.col("fast_retransmits") == 0) & (pl.col("timeouts") == 0)


# Of UK homes the country's, as far as a content network's cache is.
_UK = {"row_sampling": "weighted", "extra_rtt": "30ms"}
POPULATIONS = {
    "AvgDC": {"name": "avgdc"},
    "SlowDC": {"name": "slowdc"},
    "UK 2015": {"name": "uk-2015"} | _UK,
    "UK 2023": {"name": "uk-2023"} | _UK,
}
BUFFERS = {"queue of 20 ms": {"buffer": "20ms"}, "queue of 1 s": {"buffer": "1s"}}


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The population, and where a factor says so its buffers."""
    assert scenario.population is not None
    users = scenario.population.users
    return scenario.with_population(
        users=users, **POPULATIONS[labels["population"]], **BUFFERS.get(labels.get("factor", ""), {})
    )


def of_load(
    name: str, title: str, unit: str, value: pl.Expr, where: pl.Expr | None, grid: str, digits: int
) -> k.Quantity:
    """A quantity of each load."""
    return k.Quantity(name, title, unit, value, where, by={"application": list(LOADS)}, grid=grid, digits=digits)


def of_grid(prefix: str, grid: str) -> tuple[k.Quantity, ...]:
    """Time and cost."""
    sent = k.RETRANSMITTED
    return (
        # The primary of the page is small and comes before the six.
        of_load(f"{prefix}time", "Mean logarithm of the time", "", TIME, k.DONE & (pl.col("bytes") > 2000), grid, 4),
        of_load(f"{prefix}retransmitted", "Retransmitted", "percent", sent, None, grid, 2),
    )


QUANTITIES = (
    *of_grid("", "windows"),
    of_load("slow_start", "End in slow start", "percent", 100 * NEVER_REDUCED.mean(), k.DONE, "windows", 1),
    *(
        k.Quantity(
            f"above_{name.replace(' ', '_').lower()}",
            f"{name} above 20 kB",
            "percent",
            100 * (held > 20_000).mean(),
            None,
            "users",
            grid="windows",
            at={"iw": [10]},
        )
        for name, held in STABLE.items()
    ),
    *of_grid("factor_", "factors"),
)
RFC, TALK = k.Source("RFC 6928, appendix A"), k.Source("Thalheim's talk")
OF_2010, BASE = ["AvgDC", "SlowDC"], 3


def gain(time: xr.DataArray, iw: int | None = None, base: int = BASE) -> xr.DataArray:
    """Time saved since `base`, in percent of its time: of the geometric mean over users."""
    log_time = time if iw is None else time.sel(iw=iw, drop=True)
    return 100 * (1 - math.e ** (log_time - time.sel(iw=base, drop=True)))


def share(q: k.Quantities, iw: int = 10) -> xr.DataArray:
    """Of the largest gain of any window."""
    of = gain(q.time)
    return 100 * of.sel(iw=iw, drop=True) / of.max("iw")


def cost(q: k.Quantities, iw: int, base: int = BASE) -> xr.DataArray:
    """More retransmissions than with `base`, in points."""
    return q.retransmitted.sel(iw=iw, drop=True) - q.retransmitted.sel(iw=base, drop=True)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The argument for ten, changes that reverse the sign above it, and today."""
    beyond = gain(q.factor_time, 46, 10)
    loads = "application"
    return (
        RFC.says(
            "ten-has-most-of-the-gain",
            "In 2010 IW 10 has most of the gain over IW 3 that any window up to 46 has (least share, mean over loads).",
            share(q).sel(population=OF_2010).mean(loads).min("population"),
            k.above(50, "percent"),
            "Most is more than half.",
        ),
        RFC.says(
            "ten-costs-little",
            "In 2010 IW 10 retransmits little more than IW 3 (largest rise, mean over loads).",
            cost(q, 10).sel(population=OF_2010).mean(loads).max("population"),
            k.at_most(0.5, "pp"),
            "RFC 6928 section 10: about half a point.",
        ),
        RFC.says(
            "above-ten-is-mixed",
            "In 2010 results above ten are mixed: IW 46 is slower than IW 10 for some load (least gain).",
            gain(q.time, 46, 10).sel(population=OF_2010).min(["population", loads]),
            k.below(0, "percent"),
        ),
        RFC.says(
            "many-connections-turn-the-sign",
            "Many connections turn the sign: the gain of IW 46 over 10 falls from one connection to six (least fall).",
            (beyond.sel(factor="as is", application="one") - beyond.sel(factor="as is", application="six"))
            .sel(population=OF_2010)
            .min("population"),
            k.above(0, "pp"),
        ),
        k.OURS.says(
            "the-queue-turns-the-sign",
            "The queue turns the sign: with 20 ms IW 46 is slower than 10 for six connections (largest gain in 2010).",
            beyond.sel(factor="queue of 20 ms", application="six", population=OF_2010).max("population"),
            k.below(0, "percent"),
        ),
        k.OURS.says(
            "without-sack-above-ten-is-worse",
            "Without SACK the gain of IW 46 over 10 is smaller for six connections (least difference).",
            (beyond.sel(factor="as is") - beyond.sel(factor="no SACK")).sel(application="six").min("population"),
            k.above(0, "pp"),
        ),
        k.OURS.says(
            "pacing-makes-above-ten-safe",
            "A paced start makes IW 46 no slower than IW 10 for six connections on any population (least gain).",
            beyond.sel(factor="paced start", application="six").min("population"),
            k.at_least(0, "percent"),
        ),
        k.OURS.says(
            "today-ten-is-less-than-most",
            "In UK homes of 2023 IW 10 has at most half of the largest gain for 180 kB over one connection.",
            share(q).sel(population="UK 2023", application="one"),
            k.at_most(50, "percent"),
            "125 segments: six round trips with IW 3, four with ten, two with 46, and the handshake.",
        ),
        k.OURS.says(
            "the-same-reasoning-today",
            "In UK homes of 2023 IW 32 costs at most ten's 0.5 points of retransmissions of 2010 (mean over loads).",
            cost(q, 32, 10).sel(population="UK 2023").mean(loads),
            k.at_most(0.5, "pp"),
            "The limit that RFC 6928 took.",
        ),
        TALK.says(
            "most-responses-end-in-slow-start",
            "Most responses end in slow start, without a loss (least share of search pages with IW 10).",
            q.slow_start.sel(iw=10, application="search").min("population"),
            k.above(50, "percent"),
            "Most is more than half.",
        ),
        TALK.says(
            "20-kb-are-below-a-stable-window",
            "20 kB are less than a stable window, that is, bandwidth-delay product and queue (least share of users).",
            q.above_bdp_and_queue.sel(iw=10).min("population"),
            k.above(50, "percent"),
            "Most users are more than half.",
        ),
        TALK.says(
            "20-kb-are-below-the-bdp",
            "20 kB are less than the bandwidth-delay product alone (least share of users).",
            q.above_bdp.sel(iw=10).min("population"),
            k.above(50, "percent"),
            "A window that keeps the link busy and the queue empty is stable, too.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Then, the sign, now."""
    of = share(q).isel(draw=0).mean("application")
    now = gain(q.time, 32, 10).isel(draw=0).sel(population="UK 2023")
    less = cost(q, 10, 3).isel(draw=0).mean("application")
    more = cost(q, 32, 10).isel(draw=0).sel(population="UK 2023")
    beyond = gain(q.factor_time, 46, 10).isel(draw=0).sel(population="AvgDC", application="six")
    by_factor = ", ".join(f"{name} {float(beyond.sel(factor=name)):+.1f}%" for name in beyond["factor"].values)
    return (
        f"IW 10 reaches {of.sel(population='AvgDC'):.0f}% of the largest gain over IW 3 on AvgDC, "
        f"{of.sel(population='SlowDC'):.0f}% on SlowDC and {of.sel(population='UK 2023'):.0f}% in UK homes of 2023, "
        f"for {less.sel(population='AvgDC'):+.2f} pp of retransmissions on AvgDC.",
        f"Gain of IW 46 over IW 10 for six connections on AvgDC: {by_factor}.",
        f"In UK homes of 2023 IW 32 saves another {now.sel(application='one'):.0f}% of the time of 180 kB over one "
        f"connection, for {more.sel(application='one'):+.2f} pp of retransmissions there and "
        f"{more.sel(application='six'):+.2f} pp over six connections.",
    )


def by_window(q: k.Quantities) -> xr.DataArray:
    """Times in percent of IW 3's."""
    relative = 100 * math.e ** (q.time - q.time.sel(iw=BASE, drop=True))
    relative["application"] = relative["application"].assign_attrs(long_name="load", titles=LOADS)
    return k.named(k.headed(relative, iw="IW", population="population"), "relative_time", "Time", "% of IW 3's", 0)


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("times", "Times", "Geometric means.", [by_window(q)], across="iw"),
        k.table("costs", "Retransmissions", "Of data segments.", [q.retransmitted], across="iw"),
        k.table(
            "factors",
            "Gain over IW 3 by factor",
            "",
            [k.named(gain(q.factor_time), "gain", "Gain", "percent")],
            across="iw",
        ),
        k.table("slow_start", "Responses without a loss", "", [q.slow_start], across="iw"),
        k.table(
            "stable", "Stable windows above 20 kB", "Share of users.", [q.above_bdp, q.above_bdp_and_queue], across="iw"
        ),
    ],
    lambda q: [
        k.panels(
            by_window(q),
            "Time by the initial window, then and now",
            "In percent of IW 3's; geometric means over users.",
            "iw",
            "application",
            "population",
            100,
        )
    ],
    answer,
    build,
)
