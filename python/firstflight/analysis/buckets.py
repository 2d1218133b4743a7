"""A population's transfers and pages by the user's path and by their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from firstflight.analysis.ab.buckets import bucketed
from firstflight.analysis.histograms import quantiles
from firstflight.analysis.intervals import summarise
from firstflight.analysis.table import Metric, Table
from firstflight.records.schema import COUNTED, DIMENSIONS

if TYPE_CHECKING:
    from firstflight.records import Run

METRICS = (
    Metric("share", "Share", 2),
    Metric("mean_completion_time", "Mean completion time", 3),
    Metric("median_completion_time", "Median completion time", 3),
    Metric("retransmissions", "Retransmitted", 3),
)
NO_FLOWS = " (no flows)"
_UNITS = {
    "share": "percent",
    "mean_completion_time": "s",
    "median_completion_time": "s",
    "retransmissions": "segments each",
}


def bucket_table(run: Run, edges: Mapping[str, Sequence[float]], payload_bytes: Mapping[str, int]) -> Table:
    """Table `buckets`: of each application the share of its transfers (of a page application: pages) in each bucket of
    each dimension, their times and retransmissions, means over replicates.

    `edges`: the upper edges of the buckets by dimension (`rtt_s`, `down_bps`, `bdp_bytes`, `segments`);
    `payload_bytes`: of a full segment, by application. The name of a bucket without users says so.
    """
    keys = list(run.cells[0]) if run.cells else []
    counted = pl.concat([_of_rows(run, keys, edges, payload_bytes), _of_aggregates(run, keys)])
    places = [
        (dimension, place, name)
        for dimension in DIMENSIONS[1:]
        for place, name in enumerate(labels(edges[dimension], _IN_WORDS[dimension]))
    ]
    named = pl.DataFrame(places, schema=["dimension", "place", "bucket"], orient="row").with_row_index("order")
    groups = [*keys, "application"]
    # Every bucket of every replicate, so that one without flows says so.
    grid = counted.select(*groups, "replicate").unique(maintain_order=True).join(named, how="cross")
    found = grid.join(counted, on=[*groups, "replicate", "dimension", "place"], how="left").with_columns(
        pl.col("count").fill_null(0)
    )
    everything = pl.col("count").sum().over([*groups, "replicate", "dimension"])
    empty = pl.col("count").sum().over([*groups, "order"]) == 0
    per_replicate = (
        found.with_columns(
            (100 * pl.col("count") / everything).alias("share"),
            pl.when(empty).then(pl.col("bucket") + NO_FLOWS).otherwise(pl.col("bucket")).alias("bucket"),
        )
        .sort([*groups, "order", "replicate"])
        .unpivot(
            on=list(_UNITS),
            index=[*groups, "dimension", "bucket", "replicate"],
            variable_name="metric",
            value_name="value",
        )
    )
    frame = summarise(per_replicate, [*groups, "dimension", "bucket", "metric"]).with_columns(
        pl.col("metric").replace_strict(_UNITS).alias("unit"), pl.lit(None, dtype=pl.Float64).alias("published")
    )
    caption = (
        "By the path of the user (RTT, downlink rate, their product) and the full segments of the response; a value on "
        "an edge is in the bucket below."
    )
    quiet = tuple(key for key in keys if frame[key].n_unique() == 1)
    return Table("buckets", "Buckets", caption, (*groups, "dimension", "bucket"), frame, metrics=METRICS, quiet=quiet)


# The quantity of a bucket, as a person writes it: a factor and a unit.
_IN_WORDS = {
    "rtt_s": (1e3, "ms"),
    "down_bps": (1e-3, "kbit/s"),
    "bdp_bytes": (1e-3, "kB"),
    "segments": (1.0, "segments"),
}


def labels(edges: Sequence[float], words: tuple[float, str]) -> list[str]:
    """Names of the buckets that `edges` part, in a unit `words` = (factor, unit): "to 20 ms", "20 to 50 ms", "above
    50 ms".
    """
    factor, unit = words
    ends = [f"{factor * edge:,.10g}" for edge in edges]
    if not ends:
        return ["all"]
    between = [f"{low} to {high} {unit}" for low, high in pairwise(ends)]
    return [f"to {ends[0]} {unit}", *between, f"above {ends[-1]} {unit}"]


def _of_rows(
    run: Run, keys: Sequence[str], edges: Mapping[str, Sequence[float]], payload_bytes: Mapping[str, int]
) -> pl.DataFrame:
    """One row per application, replicate, dimension and bucket with flows, from single transfers and pages."""
    wanted = [*keys, "replicate", "application", "client", "bytes", "completion_time_s", "completed", "retransmissions"]
    flows = pl.concat(
        [
            run.transfers.filter(pl.col("page").is_null()).select(wanted),
            run.pages.select(wanted),
        ],
        how="vertical_relaxed",
    ).with_columns(pl.col("application").cast(pl.String))
    payload = pl.col("application").replace_strict(dict(payload_bytes), default=1, return_dtype=pl.Int64)
    bdp = (pl.col("rtt_s") * pl.col("down_bps") / 8).alias("bdp_bytes")
    paths = run.users.select(*keys, "replicate", "client", "weight", "rtt_s", "down_bps", bdp)
    frame = (
        flows.join(paths, on=[*keys, "replicate", "client"], maintain_order="left")
        .with_columns((pl.col("bytes") / payload).ceil().alias("segments"))
        .collect()
    )
    done, weight = pl.col("completed") == 1, pl.col("weight")
    time = pl.col("completion_time_s").filter(done)
    by_weight = weight.filter(done).sort_by(time)
    found = [
        bucketed(frame, dimension, edges[dimension], "place")
        .group_by(*keys, "application", "replicate", "place", maintain_order=True)
        .agg(
            weight.sum().alias("count"),
            ((time * weight.filter(done)).sum() / weight.filter(done).sum()).alias("mean_completion_time"),
            time.sort().filter(by_weight.cum_sum() >= 0.5 * by_weight.sum()).first().alias("median_completion_time"),
            ((weight * pl.col("retransmissions")).sum() / weight.sum()).alias("retransmissions"),
        )
        .with_columns(pl.lit(dimension).alias("dimension"))
        .select(_alike(keys))
        for dimension in DIMENSIONS[1:]
    ]
    return pl.concat(found)


def _of_aggregates(run: Run, keys: Sequence[str]) -> pl.DataFrame:
    """The same from counts, sums and histograms."""
    groups = [*keys, "application", "replicate", "dimension", "bucket"]
    names = [pl.col(name).cast(pl.String) for name in ("application", "unit", "dimension")]
    sums, bins = (frame.with_columns(names) for frame in (run.aggregates, run.histograms))
    # A page application counts by its pages.
    with_pages = sums.filter(pl.col("unit") == "page").select(*keys, "application").unique()

    def chosen(frame: pl.LazyFrame) -> pl.LazyFrame:
        parted = frame.filter(pl.col("dimension") != "all")
        pages, transfers = (parted.filter(pl.col("unit") == unit) for unit in COUNTED[::-1])
        return pl.concat([pages, transfers.join(with_pages, on=[*keys, "application"], how="anti")])

    counted = (
        chosen(sums)
        .group_by(groups, maintain_order=True)
        .agg(pl.col("count", "completed", "completion_ns_sum", "retransmissions").sum())
    )
    found = counted.filter(pl.col("count") > 0).join(
        quantiles(chosen(bins), groups, {"median_completion_time": 0.5}), on=groups, how="left", maintain_order="left"
    )
    return (
        found.with_columns(
            pl.col("bucket").alias("place"),
            (pl.col("completion_ns_sum") / pl.col("completed") / 1e9).alias("mean_completion_time"),
            pl.col("retransmissions") / pl.col("count"),
        )
        .select(_alike(keys))
        .collect()
    )


def _alike(keys: Sequence[str]) -> list[pl.Expr]:
    """The columns that both ways of counting end in, with the same types."""
    numbers = ("count", "mean_completion_time", "median_completion_time", "retransmissions")
    return [
        *map(pl.col, keys),
        pl.col("application", "dimension").cast(pl.String),
        pl.col("replicate"),
        pl.col("place").cast(pl.Int64),
        *(pl.col(name).cast(pl.Float64) for name in numbers),
    ]
