"""Our expectations, as claims. There is no publication to compare this study with.

The limits were written down when the panels' numbers had been looked at (round trips, rates, buffers, how these
correlate with the measured page times) and before the first simulation of these homes.

A first flight leaves the server back to back, so it reaches the home's line at once, and the queue has to take all of
it. The capacity of the rest of the path (the bandwidth-delay product) helps only a flight that is paced. So there are
rules, and they are not the same:

- *queue*: the first flight is larger than the queue, because the server's ACK of the request goes before it
  and is on the wire;
- *wire*: it is larger than the queue and a packet on the wire, as it would be without that ACK;
- *pipe*: it is larger than bandwidth-delay product and queue together, the rule of thumb for a steady flow.
"""

from collections.abc import Iterator
from itertools import product

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

TODAY = 10
PAGE = "page"
RESPONSE = "100kB"
"""The response that stands for all: its 70 segments hold the largest first flight of the grid, and little more."""
FARTHER_MS = 30
"""Where one distance has to stand for all: a server beyond a cache in the country."""
NO_LOSS = "no loss"
ASSUMPTIONS = (NO_LOSS, "small buffers", "large buffers", "64 packets at least")
_COPPER, _FIBER_AND_COPPER = ("ADSL1", "ADSL2", "ADSL2+"), ("FTTC", "FTTC Other", "FTTC 38", "FTTC 76")
TECHNOLOGIES = (*_COPPER, "Satellite", "Fixed Wireless", *_FIBER_AND_COPPER, "Cable", "G.Fast", "SOGFAST", "FTTP")
"""The slowest first, as far as the panels know."""
ALL = "all"
MANY = 100
"""Homes that a technology needs for the claim of ranks."""
RULES = {
    "queue": ("By the queue", "Right by the queue"),
    "wire": ("With the wire", "Right with the wire"),
    "pipe": ("With the pipe", "Right with the pipe"),
}
TOGETHER = (1, 2, 4, 6, 9)
"""Connections that a browser opens at once; their first flights meet the queue together."""
MEASURED = "measured"
GUESSES = {"ours": pl.col("time_ms"), "round_trip": pl.col("rtt_s"), "rate": 1 / pl.col("down_bps")}
"""The measures by which pages may be ranked."""
EXACT = k.Source(k.OURS.name, needs="value")


def of(q: k.Quantities, name: str, grid: str = "homes") -> xr.DataArray:
    """A quantity that each grid has; a percentile of one is no dimension."""
    array: xr.DataArray = getattr(q, f"{name}_{grid}")
    return array.squeeze("percentile", drop=True) if "percentile" in array.dims else array


def retransmitted(q: k.Quantities, grid: str = "homes") -> xr.DataArray:
    """Retransmitted segments of those sent, percent."""
    return k.named(
        100 * of(q, "again", grid) / of(q, "sent", grid), "retransmitted", "Retransmitted segments", "percent", 2
    )


def saved_ms(times: xr.DataArray) -> xr.DataArray:
    """By how much each is less than with today's window."""
    return times.sel(iw=TODAY, drop=True) - times.sel(iw=[iw for iw in times["iw"].values if iw != TODAY])


def saved(times: xr.DataArray) -> xr.DataArray:
    """The same in percent."""
    return 100 * saved_ms(times) / times.sel(iw=TODAY, drop=True)


def overfilled(q: k.Quantities) -> xr.DataArray:
    """Homes whose queue drops of the first flight, in percent, without random losses."""
    return of(q, "hit", NO_LOSS).sel(extra_rtt_ms=FARTHER_MS, drop=True)


def correlation(q: k.Quantities, name: str) -> xr.DataArray:
    """Spearman's, of the measured pages with the measure `name`."""
    q = q.at(extra_rtt_ms=0, iw=TODAY)
    mean, other = getattr(q, name), getattr(q, MEASURED)
    spread = (getattr(q, f"{name}_squared") - mean**2) * (getattr(q, f"{MEASURED}_squared") - other**2)
    coefficient: xr.DataArray = (getattr(q, f"{name}_with_measured") - mean * other) / spread**0.5
    return coefficient


def claims(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Overfilled homes, their predictors, gains, cost, ranks."""
    assumed = "; their buffers are assumed, and the table of assumptions shows what that does"
    for year, limit, more in ((2023, 10, ""), (2015, 20, assumed)):
        shares = overfilled(q).sel(year=year, draw=0)
        yield EXACT.says(
            f"overfill-{year}",
            f"An initial window of 32 overflows the queue of fewer than {limit}% of the homes of {year}.",
            shares.sel(iw=32),
            k.below(limit, "percent"),
            f"A share of homes, no tolerance{more}.",
            f"Otherwise {k.each(shares.drop_sel(iw=32), '{value:.1f}% with {label}')}.",
        )
    here = q.at(extra_rtt_ms=FARTHER_MS, draw=0)
    yield EXACT.says(
        "queue-rule",
        "The queue alone, with the packet in service, predicts an overflow by the first flight, for 99% of the homes "
        "at every window.",
        here.wire_right.min(),
        k.at_least(99, "percent"),
        "A share of homes, no tolerance.",
        f"{_least(here.wire_right)} Without the packet in service, which is the ACK of the request, the queue alone "
        f"predicts at least {here.queue_right.min():.2f}% right.",
    )
    yield EXACT.says(
        "pipe-rule",
        "Bandwidth-delay product and queue together predict an overflow as well, for 99% of the homes at every window.",
        here.pipe_right.min(),
        k.at_least(99, "percent"),
        "A share of homes, no tolerance.",
        _least(here.pipe_right),
    )
    # Written before these shares had been computed; the rule of the queue and the buffers were known.
    absorbed = k.Source("RFC 6928 section 1, on Dischinger et al. 2007", needs="value")
    assumed = "A queue has ten packets at least here, so that ten segments fit is assumed."
    for year, (many, of_many, note) in product(
        (2023, 2015), ((1, "one connection", assumed), (6, "6 connections at once", ""))
    ):
        yield absorbed.says(
            f"most-absorb-{many}-{year}",
            f"Most homes of {year} have a queue that absorbs 10 segments of {of_many}.",
            100 - getattr(here, f"together_{many}").sel(year=year, iw=10),
            k.above(50, "percent"),
            "Most is more than half.",
            note,
        )
    times = of(q, "time").sel(year=2023)
    yield k.OURS.says(
        "gain-32",
        "With RTT + 30 ms, IW 32 instead of 10 fetches 100 kB at least 20% faster for the median home of 2023.",
        saved(times).sel(extra_rtt_ms=30, response="100kB", iw=32),
        k.at_least(20, "percent"),
        "Arithmetic without a link rate: one RTT saved of four: 25%.",
        _become(times.sel(extra_rtt_ms=30, response="100kB"), 32),
    )
    yield k.OURS.says(
        "gain-16",
        "With RTT + 30 ms, IW 16 instead of 10 fetches the page at least 5% faster for the median home of 2023.",
        saved(times).sel(extra_rtt_ms=30, response=PAGE, iw=16),
        k.at_least(5, "percent"),
        "Half an RTT saved of about seven.",
        _become(times.sel(extra_rtt_ms=30, response=PAGE), 16),
    )
    yield k.OURS.says(
        "gain-near",
        "With the RTT as measured, IW 32 instead of 10 saves the median home of 2023 at most 25 ms of a page.",
        saved_ms(times).sel(extra_rtt_ms=0, response=PAGE, iw=32),
        k.at_most(25, "ms"),
        "Two round trips of the median home.",
        _become(times.sel(extra_rtt_ms=0, response=PAGE), 32),
    )
    gains = saved(q.percentile_time.sel(response=RESPONSE, draw=0)).sel(iw=32)
    gains = gains.transpose("percentile", "year", "extra_rtt_ms")
    least = "The value is least at percentile {percentile} of {year}, RTT + {extra_rtt_ms} ms."
    yield EXACT.says(
        "no-percentile-loses",
        "At no percentile from 1 to 99, in neither year and at no distance, are 100 kB slower with IW 32 than with 10.",
        gains.min(),
        k.at_least(0, "percent", 1),
        "Nobody notices one percent.",
        least.format(**k.extreme(gains, least=True)),
    )
    rates = retransmitted(q).sel(year=2023, extra_rtt_ms=FARTHER_MS)
    yield k.OURS.says(
        "cost-32",
        "With RTT + 30 ms, IW 32 instead of 10 raises the retransmission rate of 100 kB by less than one percentage "
        "point (homes of 2023).",
        -saved_ms(rates).sel(iw=32),
        k.below(1, "percentage points"),
        "RFC 6928 reports a rise of this size for IW 10 against 3.",
        f"{k.value(rates.sel(iw=TODAY)):.2f}% become {k.value(rates.sel(iw=32)):.2f}%.",
    )
    ours = correlation(q, "ours")
    round_trip = k.value(correlation(q, "round_trip").sel(year=2015, technology=ALL))
    yield k.OURS.says(
        "rank-2015",
        "This study's page times rank the homes of 2015 as the measured ones do: a rank correlation of 0.8 or more.",
        ours.sel(year=2015, technology=ALL),
        k.at_least(0.8, "correlation"),
        "RTT and rate alone reach 0.70 each.",
        f"The RTT alone: {round_trip:.2f}.",
    )
    counted = q.homes.sel(year=2023, extra_rtt_ms=0, iw=TODAY, draw=0, technology=list(TECHNOLOGIES))
    counted = counted.reset_coords(drop=True)
    within = ours.sel(year=2023, technology=list(TECHNOLOGIES)).where(counted >= MANY)
    kinds = counted.where(counted >= MANY, drop=True).sortby(-counted)["technology"].values
    yield k.OURS.says(
        "rank-2023",
        f"This study's page times rank homes as the measured ones do within each technology of 2023 with {MANY} "
        f"homes or more: 0.5 or more.",
        within.min("technology"),
        k.at_least(0.5, "correlation"),
        "Homes of one technology differ less.",
        k.each(within.sel(technology=kinds), "{label} {value:.2f}") + ".",
    )


def _least(rights: xr.DataArray) -> str:
    return "The value is least for {year} and IW {iw}.".format(**k.extreme(rights.transpose("year", "iw"), least=True))


def _become(times: xr.DataArray, iw: int) -> str:
    return f"{k.value(times.sel(iw=TODAY)):.0f} ms become {k.value(times.sel(iw=iw)):.0f}."
