"""Early exit from slow start: losses in the first flight of IW 10 against IW 3 without any."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

QUANTITIES = (
    k.Quantity("time", "Completion time", "ms", k.MEAN_MS, digits=0),
    k.Quantity("timeouts", "Timeouts", "", pl.col("timeouts").sum(), digits=0),
)
RFC, OURS = (k.Source(name, needs="value", why=k.FIXED) for name in ("RFC 6928 section 6", k.OURS.name))
SMALL, LARGE = "16 kB", "3 MiB"
LOSSES = ["5", "10", "6 to 10"]


def relative(q: k.Quantities) -> xr.DataArray:
    """IW 10 with losses, in percent of the time of IW 3 without any."""
    percent = 100 * q.time.sel(iw=10, drop=True) / q.time.sel(iw=3, lost="none", drop=True)
    return k.named(percent, "relative", "Time with IW 10", "% of IW 3's without loss", 0)


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """RFC 6928's two conditions, each toggled, and hypotheses."""
    times, cost = relative(q), q.time.sel(iw=10) - q.time.sel(iw=10, lost="none", drop=True)
    long = [100, 300, 1000]
    return (
        RFC.says(
            "pays-if-both-hold",
            "Without a timeout and with a small window IW 10 with a drop is faster than IW 3 without (largest time, "
            "100 kB to 1 MB, segment 5 lost).",
            times.sel(window=SMALL, size_kb=long, lost="5").max(["stack", "size_kb"]),
            k.below(100, "% of IW 3's"),
        ),
        RFC.says(
            "not-with-a-timeout",
            "After a timeout IW 10 with a drop is slower than IW 3 without (14 kB, the last segment lost, NewReno).",
            times.sel(stack="rfc", window=SMALL, size_kb=14, lost="10"),
            k.above(100, "% of IW 3's"),
        ),
        RFC.says(
            "not-with-a-large-window",
            "With a window of 3 MiB IW 10 with a drop is slower than IW 3 without (1 MB, segment 5 lost; least time).",
            times.sel(window=LARGE, size_kb=1000, lost="5").min("stack"),
            k.above(100, "% of IW 3's"),
        ),
        OURS.says(
            "tail-probe-spares-the-timeout",
            "Linux needs no timeout where segments 5, 10 or 6 to 10 are lost (most of a transfer).",
            q.timeouts.sel(stack="linux", iw=10, lost=LOSSES).max(["window", "size_kb", "lost"]),
            k.near(0, "timeouts"),
        ),
        OURS.says(
            "cost-lasts",
            "An early exit costs 1 MB at least two round trips (least cost, one segment lost, large window).",
            cost.sel(window=LARGE, size_kb=1000, lost="5").min("stack"),
            k.at_least(200, "ms"),
        ),
        OURS.says(
            "cost-fades",
            "An early exit costs 10 MB less than 10% with CUBIC (segment 5 lost).",
            100 * (cost / q.time.sel(iw=10)).sel(stack="linux", window=LARGE, size_kb=10000, lost="5"),
            k.at_most(10, "percent"),
        ),
        OURS.says(
            "five-cost-as-one",
            "With SACK five lost segments cost at most a round trip more than one (1 MB, large window).",
            (cost.sel(lost="6 to 10") - cost.sel(lost="5")).sel(stack="linux", window=LARGE, size_kb=1000),
            k.at_most(100, "ms"),
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The conditions, and the cost."""
    times = relative(q).isel(draw=0).sel(lost="5")
    small, large = times.sel(window=SMALL, size_kb=slice(100, 1000)).max("size_kb"), times.sel(window=LARGE)
    tail = relative(q).isel(draw=0).sel(stack="rfc", window=SMALL, size_kb=14, lost="10")

    def both(of: xr.DataArray) -> str:
        return f"{float(of.sel(stack='linux')):.0f}% (Linux) and {float(of.sel(stack='rfc')):.0f}% (NewReno)"

    return (
        "With a drop of segment 5, no timeout and a receive window of 16 kB, IW 10 takes at most "
        f"{both(small)} of IW 3's time without a drop, for 100 kB to 1 MB: eleven segments are not a small window.",
        f"With a timeout after a drop of the last segment of 14 kB it takes {tail:.0f}% (NewReno).",
        f"With a large receive window it takes {both(large.sel(size_kb=1000))} for 1 MB, and "
        f"{both(large.sel(size_kb=10000))} for 10 MB: an early exit from slow start delays long transfers, too.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [k.table("times", "By size, window and loss", "One transfer each.", [q.time, q.timeouts], across="lost")],
    lambda q: [
        k.panels(
            relative(q),
            "IW 10 with losses against IW 3 without",
            "Completion time in percent of that of IW 3 without loss; which segments of the transfer are lost.",
            "size_kb",
            "stack",
            "window",
            100,
            "lost",
            log=True,
        )
    ],
    answer,
)
