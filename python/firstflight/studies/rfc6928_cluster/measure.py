"""The measurements of the run, responses with their users' paths, and the published values in the same terms.

Latency is counted as a server sees it: from the end of the handshake, when the request leaves, to the last byte of the
response at the user; half a round trip later than a server sees each, so as long. The handshake is not in it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl
import xarray as xr

from firstflight.populations import dukkipati2010, slowdc
from firstflight.records import Run
from firstflight.studies.kernel import Quantities, Quantity, Sample, Sampled, along, named

FEW, MANY = 3, 10
AVGDC, SLOWDC = "avgdc", "slowdc"
NAMES = {AVGDC: "AvgDC", SLOWDC: "SlowDC"}
SEARCH, MAPS, PHOTOS, BLOG = "web-search", "maps", "photos", "blog"
BACKGROUND, ALL = "bulk", "all"
CORRELATIONS = {"independent": 0.0, "stronger": -0.8}
# Web search's on each connection: 35% of requests were on new ones (RFC 6928, Chrome).
REQUESTS = 3
HERE = Path(__file__).parent
PAYLOAD_BYTES = 1460
"""Of a full segment."""
SLOW_LINES = 2
"""So many of the paper's buckets of bandwidth, from the lowest, are slow lines: up to 256 kbit/s."""
SUBNET_PERCENTILES = (5, 10, 25, 50, 75, 90, 95, 99)
RANKS = tuple(range(50, 100))
"""Percentiles looked at for "worse from the 96th up"."""
DIMENSIONS = ("rtt", "down", "bdp", "segments")
UNITS = {"rtt": "ms", "down": "kbit/s", "bdp": "bytes", "segments": "segments"}
TITLES = {"rtt": "RTT", "down": "bandwidth", "bdp": "bandwidth-delay product", "segments": "size"}
_SHOWN = {"rtt": 1000.0, "down": 1e-3, "bdp": 1.0, "segments": 1.0}
_SEGMENTS = (3, 4, 7, 10, 15, 30, 50)
"""Upper edges of the paper's Figure 7."""


@cache
def edges(by: str) -> tuple[float, ...]:
    """Upper edges of the buckets (s, bits/s, bytes, segments); the last is infinite."""
    return (*(map(float, _SEGMENTS) if by == "segments" else dukkipati2010.edges(by)), math.inf)


def heading(by: str) -> str:
    """The buckets' title with their unit."""
    return f"{TITLES[by]}, {UNITS[by]}"


@cache
def labels(by: str) -> tuple[str, ...]:
    """The buckets as the figure labels them, by their upper edges."""
    shown = [f"{_SHOWN[by] * edge:.0f}" for edge in edges(by)[:-1]]
    return (*(f"<= {edge}" for edge in shown), f"> {shown[-1]}")


def bucket(value: pl.Expr, by: str) -> pl.Expr:
    """The bucket's label; an edge belongs to the bucket below it."""
    first, *others = ((value > edge).cast(pl.UInt8) for edge in edges(by)[:-1])
    return sum(others, first).cat.to(pl.Enum(labels(by))).alias(by)


_BDP = pl.col("rtt_s") * pl.col("down_bps") / 8
# Made once: a run has hundreds of parts.
_BUCKETS = (bucket(pl.col("rtt_s"), "rtt"), bucket(pl.col("down_bps"), "down"), bucket(_BDP, "bdp"))
_SIZE = bucket((pl.col("bytes") / PAYLOAD_BYTES).ceil(), "segments")


def paths(run: Run, **cells: Any) -> pl.LazyFrame:
    """One row per user of each cell, with the buckets of the user's path."""
    return run.table("users", **cells).with_columns(_BDP.alias("bdp_bytes"), *_BUCKETS)


def _places(numbers: pl.Series, of: pl.Series) -> pl.Series:
    """`of`, one for each of the numbers, by number; without one for others up to the largest number."""
    by_number = pl.repeat(None, int(1 + numbers.to_numpy().max(initial=0)), dtype=of.dtype, eager=True)
    return by_number.scatter(numbers, of)


def _of_few(columns: Sequence[pl.Series]) -> pl.Series:
    """Of windows, numbers and a value: the value of the same response with IW 3."""
    iw, number, of = (column.rechunk() for column in columns)
    few = iw == FEW
    # To look up numbers in a table of all is many times faster than a join.
    return _places(number.filter(few), of.filter(few)).gather(number, null_on_oob=True)


def responses(run: Run, cells: Mapping[str, Any]) -> pl.LazyFrame:
    """One row per response and window: `latency_ms` and, of the same response with IW 3, `few_ms` (NaN: not finished)
    and `few_retransmissions`; the buckets of path and size.
    """
    users = paths(run, **cells).select("replicate", "client", "subnet", *DIMENSIONS[:3]).collect(engine="in-memory")
    clients = pl.lit(users["client"]).max() + 1
    user = response = pl.col("replicate").cast(pl.Int64) * clients + pl.col("client")
    for part in (pl.col(name).to_physical().fill_null(0) for name in ("application", "page", "object")):
        response = response * (1 + part.max()) + part
    numbers = users.select(user).to_series()
    return (
        run.table("transfers", **cells)
        .filter(pl.col("application") != BACKGROUND)
        .select(
            "iw",
            "replicate",
            (1000 * (pl.col("completion_time_s") - pl.col("handshake_time_s").fill_nan(0))).alias("latency_ms"),
            "segments_sent",
            pl.col("retransmissions").cast(pl.Int32),
            _SIZE,
            response.alias("response"),
            # With each window a user is the same.
            *(pl.lit(_places(numbers, users[name])).gather(user).alias(name) for name in ("subnet", *DIMENSIONS[:3])),
        )
        .with_columns(
            pl.map_batches(["iw", "response", "latency_ms"], _of_few, pl.Float64).alias("few_ms"),
            pl.map_batches(["iw", "response", "retransmissions"], _of_few, pl.Int32).alias("few_retransmissions"),
        )
    )


def _subnets(run: Run, cells: Mapping[str, Any]) -> pl.LazyFrame:
    """One row a subnet and window, with the mean latency of its responses."""
    return (
        responses(run, cells)
        .group_by("iw", "replicate", "subnet", maintain_order=True)
        .agg(pl.col("latency_ms").fill_nan(None).mean())
    )


def _ranks(run: Run) -> pl.LazyFrame:
    """The latency of Maps at each of `RANKS`, of those that one response has; not finished is beyond every other."""
    keys = ("population", "service", "iw", "replicate")
    latency = pl.col("completion_time_s") - pl.col("handshake_time_s").fill_nan(0)
    quantiles = (
        run.table("transfers", experiment="stated", service=MAPS)
        .filter(pl.col("application") != BACKGROUND, pl.col("iw").is_in([FEW, MANY]))
        .select(*keys, (1000 * latency).fill_nan(math.inf).alias("latency_ms"))
        .collect()
        .group_by(keys, maintain_order=True)
        .agg(pl.col("latency_ms").quantile(rank / 100, "lower").alias(str(rank)) for rank in RANKS)
    )
    return quantiles.unpivot(index=keys, variable_name="rank", value_name="latency_ms").lazy()


RESPONSES = Sample(responses, ("replicate", "subnet"), ("iw",))
SUBNETS = Sample(_subnets, ("replicate", "subnet"), ("iw",))
# A response counts for a mean if it finished with both windows that are compared.
BOTH = pl.col("latency_ms").is_not_nan() & pl.col("few_ms").is_not_nan()
# Of each response, to be counted.
EACH = pl.col("segments_sent").is_not_null()
SLOW = pl.col("down").is_in(labels("down")[:SLOW_LINES])
At = Mapping[str, Sequence[Any]]
COMPARED: At = {"iw": [FEW, MANY]}


def means(
    grid: str, prefix: str = "", where: pl.Expr = BOTH, at: At | None = None, by: Sequence[str] = ()
) -> Iterator[Quantity]:
    """Mean latency, of the same responses with IW 3, and how many they are."""
    name = f"{grid}_{prefix}" if prefix else grid
    latency, few, buckets = pl.col("latency_ms"), pl.col("few_ms"), {key: labels(key) for key in by}
    yield Sampled(f"{name}_latency", "Mean", "ms", latency, where, RESPONSES, buckets, 0, grid, at)
    yield Sampled(f"{name}_few", "Latency with IW 3", "ms", few, where, RESPONSES, buckets, 0, grid, at)
    yield Sampled(f"{name}_count", "Responses", "count", EACH, where, RESPONSES, buckets, 0, grid, at, summary="sum")


def costs(grid: str) -> Iterator[Quantity]:
    """Segments sent and retransmitted of a response, and responses that had none of these."""
    clean = 100 * (pl.col("retransmissions") == 0).cast(pl.Int32)
    for name, title, unit, value in (
        ("sent", "Segments sent", "segments", pl.col("segments_sent")),
        ("again", "Segments retransmitted", "segments", pl.col("retransmissions")),
        ("clean", "Responses without", "percent", clean),
    ):
        yield Sampled(f"{grid}_{name}", title, unit, value, None, RESPONSES, grid=grid)


# Web search's users: with each window they are the same.
_FIRST = {of: partial(paths, experiment=of, service=SEARCH, iw=FEW) for of in ("stated", "dependence")}


def drawn(grid: str, at: At, dimensions: Sequence[str] = DIMENSIONS[:3]) -> Iterator[Quantity]:
    """Users by bucket."""
    for by in dimensions:
        rows = _FIRST[grid]
        yield Quantity(f"{grid}_users_{by}", "Users", "count", pl.len(), None, rows, {by: labels(by)}, 1, grid, at)


SEARCHED: At = {"service": [SEARCH]}
USERS: At = {**SEARCHED, "iw": [FEW]}
SEARCHES: At = {**COMPARED, **SEARCHED}
OF_MAPS: At = {**COMPARED, "service": [MAPS]}
QUANTILES = {
    "median_rtt": ("median RTT, ms", 1e3 * pl.col("rtt_s").quantile(0.5, "linear")),
    "median_down": ("median bandwidth, Mbit/s", 1e-6 * pl.col("down_bps").quantile(0.5, "linear")),
    "median_bdp": ("median bandwidth-delay product, kB", 1e-3 * pl.col("bdp_bytes").quantile(0.5, "linear")),
    "slowest_rtt": ("99th percentile of the RTT, ms", 1e3 * pl.col("rtt_s").quantile(0.99, "linear")),
    "slowest_down": ("1st percentile of the bandwidth, Mbit/s", 1e-6 * pl.col("down_bps").quantile(0.01, "linear")),
    **{
        f"below_{kbps:.0f}": (f"share below {kbps:.0f} kbit/s, %", 100 * (pl.col("down_bps") < 1000 * kbps).mean())
        for kbps in (rate / 1000 for _, rate in slowdc.QUANTILES_BPS)
    },
}
LATENCY = pl.col("latency_ms")
OWN_MS = LATENCY.fill_nan(math.inf)
WITH_MANY = (pl.col("iw") == MANY) & (pl.col("retransmissions") > 0)
BEFORE = pl.col("few_retransmissions")


_stated = partial(Sampled, records=RESPONSES, digits=0, grid="stated")
QUANTITIES = (
    *means("stated"),
    *costs("stated"),
    _stated("unfinished", "Not finished", "count", pl.col("latency_ms").is_nan(), summary="sum"),
    _stated("percentiles", "Percentile", "ms", OWN_MS, at=COMPARED, summary=(50, 90, 99)),
    _stated("tail", "Latency", "ms", OWN_MS, at=OF_MAPS, summary=(50, 75, 90, 95, 96, 97, 98, 99)),
    _stated("subnets", "Mean latency", "ms", LATENCY, records=SUBNETS, at=SEARCHES, summary=SUBNET_PERCENTILES),
    Quantity(
        "ranks", "Latency", "ms", LATENCY.first(), None, _ranks, {"rank": list(map(str, RANKS))}, 0, "stated", OF_MAPS
    ),
    *(
        _stated(f"lossy{name}", "Responses", "count", value, WITH_MANY, at={"iw": [MANY], **SEARCHED}, summary="sum")
        for name, value in (("", EACH), ("_before", BEFORE > 0), ("_more", pl.col("retransmissions") - BEFORE))
    ),
    *(
        quantity
        for by in DIMENSIONS
        for quantity in means("stated", by, at=COMPARED if by == "down" else SEARCHES, by=[by])
    ),
    *means("dependence", "down", by=["down"]),
    *means("new"),
    *means("new", "rtt", by=["rtt"], at=SEARCHED),
    *costs("new"),
    *means("stated", "slow", BOTH & SLOW, SEARCHES),
    *(quantity for grid in ("assumed", "search_assumed") for quantity in means(grid, "", at=SEARCHED)),
    *(quantity for grid in ("assumed", "search_assumed") for quantity in means(grid, "slow", BOTH & SLOW, SEARCHED)),
    *(quantity for grid in ("assumed", "search_assumed", "maps_assumed") for quantity in costs(grid)),
    *drawn("stated", USERS),
    *drawn("dependence", {"iw": [FEW]}, ("bdp",)),
    *(
        Quantity(name, title, "", value, records=_FIRST["stated"], grid="stated", at=USERS, digits=2)
        for name, (title, value) in QUANTILES.items()
    ),
)


_TYPES = {"value": pl.String}
_STATEMENTS = pl.read_csv((HERE / "reference" / "statements.csv").read_bytes(), schema_overrides=_TYPES)


def stated(id_: str, column: str = "value") -> float:
    """A number of a statement of the RFC: its `value`, or that with `iw3` or `iw10`."""
    return float(_STATEMENTS.filter(pl.col("id") == id_)[column].item())


SEARCH_GAIN = {of: (stated(f"search-gain-{of}"), stated(f"search-gain-percent-{of}")) for of in NAMES}
"""Mean gain of web search: ms, percent."""
RETRANSMITTED = {of: (stated(f"retransmissions-{of}", "iw3"), stated(f"retransmissions-{of}", "iw10")) for of in NAMES}
"""Overall retransmission rate with IW 3 and IW 10, percent."""
MAPS_RETRANSMITTED = stated("maps-retransmissions-slowdc", "iw3"), stated("maps-retransmissions-slowdc", "iw10")
"""The same for Maps in SlowDC."""
WITHOUT_RETRANSMISSION = stated("no-retransmission-slowdc")
"""Share of the traffic of web search and Maps in SlowDC that has none, percent."""
GAINS = {"ms": "gain_ms", "percent": "gain_percent"}
SIGNS = {"ms": "ms", "percent": "%"}


@cache
def figure5(by: str, column: str) -> tuple[float, ...]:
    """A column of the bars of a panel, "rtt", "down" or "bdp", of AvgDC's web search: `share_percent`, gains of IW 10
    over IW 3 (`gain_ms`, `gain_percent`), and the latency with IW 3 that they imply (`iw3_latency_ms`).
    """
    bars = pl.read_csv((HERE / "reference" / "figure5.csv").read_bytes(), schema_overrides={column: pl.Float64})
    return tuple(bars.filter(pl.col("by") == by)[column].to_list())


def slow_gain() -> float:
    """Figure 5's gain in its lowest buckets of bandwidth together, percent."""
    shares, gains, latencies = (
        figure5("down", column)[:SLOW_LINES] for column in ("share_percent", "gain_ms", "iw3_latency_ms")
    )
    saved, spent = (sum(map(float.__mul__, shares, of)) for of in (gains, latencies))
    return round(100 * saved / spent, 1)


def saved(few: xr.DataArray, latency: xr.DataArray, unit: str = "percent") -> xr.DataArray:
    """The part of the mean latency with IW 3 that a window saves."""
    savings = few - latency if unit == "ms" else 100 * (1 - latency / few)
    return named(savings, GAINS[unit].removesuffix("_ms"), "Gain", unit)


def gain(
    q: Quantities, name: str, unit: str = "percent", of: Callable[[Quantities, str], xr.DataArray] = getattr
) -> xr.DataArray:
    """The same of the quantities whose names begin with `name`, which `of` finds."""
    return saved(of(q, f"{name}_few"), of(q, f"{name}_latency"), unit)


def rate(again: xr.DataArray, sent: xr.DataArray) -> xr.DataArray:
    """Retransmitted segments of segments sent."""
    return named(100 * again / sent, "rate", "Retransmitted", "percent", 2)


def rate_of_all(again: xr.DataArray, sent: xr.DataArray) -> xr.DataArray:
    """The same over all services, which count alike, each by its responses."""
    return rate(again.sum("service", skipna=False), sent.sum("service", skipna=False))


def rates(again: xr.DataArray, sent: xr.DataArray) -> xr.DataArray:
    """Rates of all services together, `ALL`, then of each."""
    return xr.concat([rate_of_all(again, sent).expand_dims(service=[ALL]), rate(again, sent)], "service")


def ratio_of_quantiles(quantiles: xr.DataArray, unit: str = "percent") -> xr.DataArray:
    """By how much a quantile is larger with IW 10."""
    few, many = (quantiles.sel(iw=iw, drop=True) for iw in (FEW, MANY))
    return many - few if unit == "ms" else 100 * (many / few - 1)


def laws(q: Quantities, name: str) -> xr.DataArray:
    """A quantity of web search along `dependence`, the fitted one between the others."""
    other = getattr(q, f"dependence_{name}")
    parts = {law: other.sel(dependence=law, drop=True) for law in ("independent", "stronger")}
    parts = {"independent": parts["independent"], "fitted": getattr(q, f"stated_{name}"), "stronger": parts["stronger"]}
    return along("dependence", {law: of.sel(service=SEARCH, drop=True) for law, of in parts.items()}, "inner")


def connections(q: Quantities, name: str) -> xr.DataArray:
    """A quantity along `connections`: of those as stated, and with new ones alone."""
    parts = {"mixed": getattr(q, f"stated_{name}"), "new": getattr(q, f"new_{name}").sel(connections="new", drop=True)}
    return along("connections", parts, "inner")


def of_search(of: Callable[[Quantities, str], xr.DataArray]) -> Callable[[Quantities, str], xr.DataArray]:
    """The same of web search."""
    return lambda q, name: of(q, name).sel(service=SEARCH, drop=True)
