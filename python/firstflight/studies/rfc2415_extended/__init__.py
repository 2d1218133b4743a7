"""RFC 2415 extended: initial windows of 1 to 11 segments by load, queue and distribution of file sizes."""

from collections.abc import Iterator, Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k
from firstflight.studies import rfc2415

DELAY = pl.col("completion_time_s") - pl.col("connect_time_s")
PAGES = rfc2415.DONE & rfc2415.of("web")


def of_grid(prefix: str, grid: str) -> Iterator[k.Quantity]:
    """Delays of pages, goodput of the ftp, the bottleneck."""
    yield k.Quantity(f"{prefix}median", "Median page delay", "s", DELAY.median(), PAGES, "pages", digits=2, grid=grid)
    yield k.Quantity(f"{prefix}mean", "Mean page delay", "s", DELAY.mean(), PAGES, "pages", digits=2, grid=grid)
    yield rfc2415.goodput(grid, f"{prefix}ftp", "ftp", {"ftps": [1]})
    yield from rfc2415.bottleneck(grid, prefix)


QUANTITIES = (*of_grid("", "load"), *of_grid("sizes_", "sizes"))
RFC = k.Source("RFC 2415 section 3")
QUIET = slice(None, 16)


def gain(delay: xr.DataArray, iw: int, base: int = 1) -> xr.DataArray:
    """The gain of pages compared with IW `base`, percent."""
    return 100 * (1 - delay.sel(iw=iw, drop=True) / delay.sel(iw=base, drop=True))


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Suppositions of the RFC about windows above four, and hypotheses about queues, sizes and load."""
    beyond, ftp = gain(q.mean, 11, 4), 100 * (q.ftp.sel(iw=11) / q.ftp.sel(iw=4) - 1)
    four, five = gain(q.mean, 4).sel(ftps=1), "A user may notice 5%."
    sizes = gain(q.sizes_mean, 11, 4).sel(ftps=0)
    return (
        RFC.says(
            "above-four-the-median-gains-little",
            "IW 11 cuts the median page delay by at most 5% against IW 4 (16 webs, no ftp, drop tail).",
            gain(q.median, 11, 4).sel(queue="drop tail", webs=16, ftps=0),
            k.at_most(5, "percent"),
            five,
        ),
        k.OURS.says(
            "above-four-the-mean-gains",
            "The mean page, of which large files are a part, gains more (8 webs, no ftp, drop tail).",
            beyond.sel(queue="drop tail", webs=8, ftps=0),
            k.above(5, "percent"),
            five,
        ),
        k.OURS.says(
            "a-win-up-to-16-webs",
            "IW 4 instead of 1 is a win up to 16 webs, in every queue, with an ftp and without (least gain, median).",
            gain(q.median, 4).sel(webs=QUIET).min(["queue", "webs", "ftps"]),
            k.above(0, "percent"),
        ),
        k.OURS.says(
            "no-win-in-overload",
            "In overload IW 11 instead of 4 is no win (48 webs, one ftp, drop tail; mean page).",
            beyond.sel(queue="drop tail", webs=48, ftps=1),
            k.at_most(0, "percent"),
        ),
        k.OURS.says(
            "aqm-keeps-the-gain",
            "Next to an ftp RED and CoDel leave IW 4 at least the gain over IW 1 that drop tail does (least difference "
            "of the means over loads).",
            (four.sel(queue=["RED", "CoDel"]) - four.sel(queue="drop tail", drop=True)).mean("webs").min("queue"),
            k.at_least(-5, "percent"),
            five,
        ),
        k.OURS.says(
            "codel-is-worth-a-larger-window",
            "Next to an ftp CoDel with IW 1 has faster pages than drop tail with IW 4 (mean over loads).",
            100 * (1 - q.mean.sel(queue="CoDel", iw=1) / q.mean.sel(queue="drop tail", iw=4)).sel(ftps=1).mean("webs"),
            k.above(0, "percent"),
        ),
        k.OURS.says(
            "the-ftp-keeps-its-goodput",
            "IW 11 instead of 4 costs the ftp at most 5% of its goodput up to 16 webs (largest cost, by queue).",
            ftp.sel(webs=QUIET).min(["queue", "webs", "ftps"]),
            k.at_least(-5, "percent"),
            five,
        ),
        k.OURS.says(
            "every-distribution-gains",
            "With 8 webs and no ftp IW 11 is faster than IW 4 for every distribution of sizes (least gain, mean page).",
            sizes.sel(webs=8).min("sizes"),
            k.above(0, "percent"),
        ),
        k.OURS.says(
            "today-gains-most",
            "Today's objects gain more from IW 11 than the fitted ones (8 webs, no ftp; difference).",
            (sizes.sel(sizes="today") - sizes.sel(sizes="fitted")).sel(webs=8),
            k.above(5, "percent"),
            five,
        ),
    )


def shown(q: k.Quantities, ftps: int) -> xr.DataArray:
    """The map of wins and losses."""
    gains = 100 * (1 - q.mean / q.mean.sel(iw=1)).sel(ftps=ftps, drop=True).sel(iw=slice(2, None))
    return k.named(gains, f"gain_{ftps}", "Cut of the mean page delay against IW 1", "percent", 0)


def maps(q: k.Quantities) -> Iterator[object]:
    """Where it is a win."""
    for ftps, beside in ((0, "without ftp"), (1, "next to one ftp")):
        yield k.heat_map(
            shown(q, ftps),
            f"When is it a win? Pages {beside}",
            "Mean page delay saved since IW 1, percent, by IW (rows) and number of webs; below 0 it is a loss.",
            "webs",
            "iw",
            "queue",
        )


def answer(q: k.Quantities) -> Sequence[str]:
    """Where it is a win, queues, sizes."""
    tail, best = (gain(q.mean, iw, base).sel(queue="drop tail", draw=0) for iw, base in ((11, 4), (4, 1)))
    sizes = gain(q.sizes_mean, 11, 4).sel(webs=8, ftps=0, draw=0)
    both = gain(q.mean, 11, 4).sel(ftps=1, draw=0).mean("webs")
    return (
        f"With drop tail, IW 4 instead of 1 cuts the mean page delay by {best.min():.0f} to {best.max():.0f}%, by "
        f"load; IW 11 instead of 4 by {tail.sel(ftps=0, webs=4):+.0f}% with 4 webs alone and "
        f"{tail.sel(ftps=1, webs=48):+.0f}% with 48 webs and an ftp.",
        f"Next to an ftp, IW 11 instead of 4 cuts it by {both.sel(queue='drop tail'):+.0f}% with drop tail (mean over "
        f"loads), {both.sel(queue='RED'):+.0f}% with RED and {both.sel(queue='CoDel'):+.0f}% with CoDel.",
        f"By distribution of sizes the cut is {sizes.min():+.0f} to {sizes.max():+.0f}% with 8 webs alone, "
        f"{sizes.sel(sizes='today'):+.0f}% with today's objects. A negative cut is a longer delay.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("delays", "Page delays", "Fitted sizes.", [q.median, q.mean], across="iw"),
        k.table("costs", "Costs", "Fitted sizes.", [q.ftp, q.drops, q.utilization], across="iw"),
        k.table("sizes", "By distribution of sizes", "Drop tail.", [q.sizes_median, q.sizes_mean], across="iw"),
        k.table("size_costs", "Costs, by distribution", "Drop tail.", [q.sizes_ftp, q.sizes_drops], across="iw"),
    ],
    lambda q: [
        *maps(q),
        k.lines(
            k.named(
                100 * (1 - q.sizes_mean / q.sizes_mean.sel(iw=1)).sel(ftps=0, drop=True),
                "sizes_gain",
                "Cut of the mean page delay against IW 1",
                "percent",
                0,
            ),
            "By distribution of sizes",
            "Mean page delay saved since IW 1; no ftp, drop tail. A panel per number of webs.",
            "iw",
            "sizes",
            columns="webs",
        ),
    ],
    answer,
    lambda grid, labels, scenario: rfc2415.build("base", labels, scenario),
)
