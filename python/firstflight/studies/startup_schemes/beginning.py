"""The first delivery of each scheme, the shares of four that begin together, and the effect on a concurrent call."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

FAST = ["Jump-Start", "Quick-Start", "Rapid Start", "SUSS", "Careful Resume"]
KNOWING = ["Quick-Start", "Careful Resume"]
RTTS = range(1, 7)
BEGIN = "begin"
LINE = pl.col("link").cast(pl.String) == "spokes[0]"


def alone(scenario: Scenario) -> Scenario:
    """One download of 5 MB, with a meter that reads the line each half of an RTT."""
    delay_ns = scenario.to_plan()["network"]["spokes"][0]["forward"]["delay_ns"]
    settings = {"application.own.clients": 1, "application.own.start": "0s", "application.own.size": "5MB"}
    return scenario.replace_all(
        (settings | {"application.other.start": "10000s", "stats_interval": f"{delay_ns}ns"}).items()
    )


def flights(run: "Run") -> pl.LazyFrame:
    """The line's bytes by RTT of data, from 1: intervals are half an RTT long, and data comes after the first three."""
    rtt = ((pl.col("interval_start_s") / pl.col("interval_s")).round() - 1) // 2
    return run.table("links", experiment=BEGIN).filter(LINE).with_columns(rtt=rtt.cast(pl.Int64))


# Jain's index of the throughputs.
RATE = pl.col("delivered_bytes") / pl.col("completion_time_s")
QUANTITIES = (
    k.Quantity("sent", "Bytes", "kB", 1e-3 * pl.col("sent_bytes").sum(), None, flights, {"rtt": RTTS}, 0, BEGIN),
    k.Quantity("jain", "Jain's index", "", k.jain(RATE), k.DONE, digits=3, grid="together"),
    k.Quantity("mos", "MOS", "", pl.col("mos").mean(), k.DOWN, "streams", digits=2, grid="call"),
)


def delivered(q: k.Quantities) -> xr.DataArray:
    """Bytes that the line has sent, headers included, this number of RTTs after data began."""
    totals = q.sent.cumsum("rtt")
    totals["rtt"] = totals["rtt"].assign_attrs(long_name="RTTs after data began")
    return k.named(totals, "delivered", "Delivered", "kB", 0)


def figure(q: k.Quantities) -> Figure | None:
    """First deliveries."""
    shown = delivered(q).sel(scheme=["IW 10", "Jump-Start", "Rapid Start", "SUSS", "Careful Resume"])
    caption = "Of 5 MB without concurrent traffic on the link, headers included."
    return k.lines(shown, "Delivered by time", caption, "rtt", "scheme", "network", log=True)


def call_cost(q: k.Quantities) -> xr.DataArray:
    """Of a scheme to a call, against IW 10."""
    return k.named(q.mos.sel(scheme="IW 10", drop=True) - q.mos, "call_cost", "Cost of a call against IW 10", "MOS", 2)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """First deliveries, shares, a call."""
    first, fallen = delivered(q), q.jain.sel(scheme="IW 10", drop=True) - q.jain
    share = "Four parallel downloads of 2 MB, two of them with IW 10; 0.05 was chosen before the first run."
    return (
        k.OURS.says(
            "jump-start-delivers-most-at-first",
            "One RTT after data began Jump-Start has delivered at least five times as much as IW 10 (least, 5 MB).",
            (first.sel(scheme="Jump-Start", rtt=1) / first.sel(scheme="IW 10", rtt=1)).min("network"),
            k.at_least(5, "times"),
            "The link transmits 7 to 250 times ten segments per RTT.",
            needs="value",
        ),
        k.OURS.says(
            "memory-leads-after-two-rtts",
            "After two RTTs Careful Resume has delivered more than SUSS (least ratio, LTE and GEO).",
            (first.sel(scheme="Careful Resume", rtt=2) / first.sel(scheme="SUSS", rtt=2))
            .sel(network=["LTE", "GEO"])
            .min("network"),
            k.above(1, "times"),
            "Half of the bandwidth-delay product is 75 segments and more; SUSS has at most 40 in the second RTT.",
            needs="value",
        ),
        k.OURS.says(
            "new-schemes-share-as-fairly",
            "Next to IW 10 no scheme but Jump-Start shares less fairly than IW 10 (largest fall of Jain's index).",
            fallen.sel(scheme=[name for name in FAST if name != "Jump-Start"]).max(["scheme", "network"]),
            k.at_most(0.05),
            share,
        ),
        k.OURS.says(
            "jump-start-shares-less-fairly",
            "Next to IW 10 Jump-Start shares less fairly than IW 10 on some network (largest fall of Jain's index).",
            fallen.sel(scheme="Jump-Start").max("network"),
            k.above(0.05),
            share,
        ),
        k.OURS.says(
            "jump-start-costs-a-call",
            "Next to responses of 2 MB by Jump-Start a call on DSL loses 0.1 MOS against IW 10.",
            call_cost(q).sel(scheme="Jump-Start", network="DSL"),
            k.at_least(0.1, "MOS"),
            "0.1 MOS is the limit of real-time.",
        ),
        k.OURS.says(
            "knowing-schemes-spare-a-call",
            "Next to Quick-Start and Careful Resume a call loses less than 0.1 MOS on every network (largest).",
            call_cost(q).sel(scheme=KNOWING).max(["scheme", "network"]),
            k.below(0.1, "MOS"),
            "Both schemes send at the link rate.",
        ),
    )


def tables(q: k.Quantities) -> list[Table]:
    """First deliveries, shares, a call."""
    return [
        k.table("delivered", "Delivered at first", "Of 5 MB, by RTT after data began.", [delivered(q)], across="rtt"),
        k.table("fairness", "Four parallel downloads", "1: all have the same rate.", [q.jain], across="network"),
        k.table("call", "A call", "Next to responses of 2 MB.", [q.mos, call_cost(q)], across="network"),
    ]
