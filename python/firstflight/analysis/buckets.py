"""A population's transfers and pages by the user's path and by their size."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl

from firstflight.analysis.ab.buckets import bucketed
from firstflight.analysis.summary import Measure, estimates, in_bins, made_table
from firstflight.analysis.table import Metric, Table
from firstflight.records import Run
from firstflight.records.schema import COUNTED, DIMENSIONS

METRICS = (
    Metric("share", "Share", 2, least=0, most=100, unit="percent"),
    Metric("mean_completion_time", "Mean completion time", 3, least=0, unit="s"),
    Metric("median_completion_time", "Median completion time", 3, least=0, unit="s"),
    Metric("retransmissions", "Retransmitted", 3, least=0, unit="segments each"),
)
NO_FLOWS = " (no flows)"


def bucket_table(run: Run, edges: Mapping[str, Sequence[float]], payload_bytes: Mapping[str, int]) -> Table:
    """Table `buckets`: of each application the share of its transfers (of a page application: pages) in each bucket of
    each dimension, their times and retransmissions, over all replicates.

    `edges`: the upper edges of the buckets by dimension (`rtt_s`, `down_bps`, `bdp_bytes`, `segments`);
    `payload_bytes`: of a full segment, by application. The name of a bucket without users says so.
    """
    keys = list(run.cells[0]) if run.cells else []
    flows = pl.concat([_of_rows(run, keys, edges, payload_bytes), _of_aggregates(run, keys)])
    places = [
        (dimension, place, name)
        for dimension in DIMENSIONS[1:]
        for place, name in enumerate(labels(edges[dimension], _IN_WORDS[dimension]))
    ]
    named = pl.DataFrame(places, schema=["dimension", "place", "bucket"], orient="row").with_row_index("order")
    groups = [*keys, "application"]
    # Every bucket of every replicate, so that one without flows says so.
    of_dimension = [*groups, "replicate", "dimension"]
    everything = flows.group_by(of_dimension, maintain_order=True).agg(pl.col("count").sum().alias("everything"))
    grid = everything.join(named, on="dimension", maintain_order="left")
    empty = pl.col("count").sum().over([*groups, "order"]) == 0
    rows = (
        pl.concat([grid, flows.join(named, on=["dimension", "place"], maintain_order="left")], how="diagonal")
        .with_columns(pl.col("count", "flows").fill_null(0))
        .with_columns(pl.when(empty).then(pl.col("bucket") + NO_FLOWS).otherwise(pl.col("bucket")).alias("bucket"))
        .sort([*groups, "order", "replicate"], maintain_order=True)
    )
    measures: dict[str, Measure] = {
        "share": (100 * pl.col("count").sum(), pl.col("everything").sum()),
        "mean_completion_time": (_if_any(pl.col("done_s")), pl.col("done").sum()),
        "retransmissions": (_if_any(pl.col("again")), pl.col("count").sum()),
    }
    median = {"median_completion_time": (pl.col("value_s"), pl.col("flows"), 0.5, False)}
    estimated = estimates(rows.lazy(), [*groups, "dimension", "bucket"], measures, median)
    caption = (
        "By the path of the user (RTT, downlink rate, their product) and the full segments of the response; a value on "
        "an edge is in the bucket below."
    )
    return made_table("buckets", "Buckets", caption, [*groups, "dimension", "bucket"], estimated, METRICS)


def _if_any(value: pl.Expr) -> pl.Expr:
    """The sum, null in a replicate without flows."""
    return pl.when(pl.col("count").sum() > 0).then(value.sum())


# The quantity of a bucket, as a person writes it: a factor and a unit.
_IN_WORDS = {
    "rtt_s": (1e3, "ms"),
    "down_bps": (1e-3, "kbit/s"),
    "bdp_bytes": (1e-3, "kB"),
    "segments": (1.0, "segments"),
}


def labels(edges: Sequence[float], words: tuple[float, str]) -> list[str]:
    """Names of the buckets between `edges`, with `words` = (factor, unit): "to 20 ms", "20 to 50 ms", "above 50 ms"."""
    factor, unit = words
    ends = [f"{factor * edge:,.10g}" for edge in edges]
    if not ends:
        return ["all"]
    between = [f"{low} to {high} {unit}" for low, high in pairwise(ends)]
    return [f"to {ends[0]} {unit}", *between, f"above {ends[-1]} {unit}"]


def _of_rows(
    run: Run, keys: Sequence[str], edges: Mapping[str, Sequence[float]], payload_bytes: Mapping[str, int]
) -> pl.DataFrame:
    """A row of each transfer and page in each dimension."""
    columns = [
        *keys,
        "replicate",
        "application",
        "client",
        "bytes",
        "completion_time_s",
        "completed",
        "retransmissions",
    ]
    flows = pl.concat(
        [run.transfers.filter(pl.col("page").is_null()).select(columns), run.pages.select(columns)],
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
    parts = [
        bucketed(frame, dimension, edges[dimension], "place").with_columns(
            pl.lit(dimension).alias("dimension"),
            weight.alias("count"),
            pl.when(done).then(weight).otherwise(0).alias("done"),
            pl.when(done).then(weight * pl.col("completion_time_s")).otherwise(0).alias("done_s"),
            (weight * pl.col("retransmissions")).alias("again"),
            pl.when(done).then("completion_time_s").otherwise(math.inf).alias("value_s"),
            weight.alias("flows"),
        )
        for dimension in DIMENSIONS[1:]
    ]
    return pl.concat(part.select(_alike(keys)) for part in parts)


def _of_aggregates(run: Run, keys: Sequence[str]) -> pl.DataFrame:
    """The same from counts, sums and histograms, a row of each bin."""
    groups = [*keys, "application", "replicate", "dimension", "bucket"]
    names = [pl.col(name).cast(pl.String) for name in ("application", "unit", "dimension")]
    sums, bins = (frame.with_columns(names) for frame in (run.aggregates, run.histograms))
    # A page application counts by its pages.
    with_pages = sums.filter(pl.col("unit") == "page").select(*keys, "application").unique()

    def chosen(frame: pl.LazyFrame) -> pl.LazyFrame:
        parted = frame.filter(pl.col("dimension") != "all")
        pages, transfers = (parted.filter(pl.col("unit") == unit) for unit in COUNTED[::-1])
        return pl.concat([pages, transfers.join(with_pages, on=[*keys, "application"], how="anti")])

    counted = chosen(sums).filter(pl.col("count") > 0)
    return (
        in_bins(counted, chosen(bins), [name for name in groups if name != "replicate"])
        .with_columns(
            pl.col("bucket").alias("place"),
            pl.col("completed").alias("done"),
            (pl.col("completion_ns_sum") / 1e9).alias("done_s"),
            pl.col("retransmissions").alias("again"),
        )
        .select(_alike(keys))
        .collect()
    )


def _alike(keys: Sequence[str]) -> list[pl.Expr]:
    """The columns that both ways of counting end in, with the same types."""
    numbers = ("count", "done", "done_s", "again", "value_s", "flows")
    return [
        *map(pl.col, keys),
        pl.col("application", "dimension").cast(pl.String),
        pl.col("replicate"),
        pl.col("place").cast(pl.Int64),
        *(pl.col(name).cast(pl.Float64) for name in numbers),
    ]
