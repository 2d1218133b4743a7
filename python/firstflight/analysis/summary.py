"""What any run has to show, study or not: transfers, pages and links, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from firstflight.analysis.intervals import summarise
from firstflight.analysis.table import Metric, Table

if TYPE_CHECKING:
    from firstflight.records import Run

METRICS = (
    Metric("completed", "Completed", 0),
    Metric("disturbed", "Disturbed", 1),
    Metric("median_completion_time", "Median completion time", 3),
    Metric("p95_completion_time", "95th percentile", 3),
    Metric("goodput", "Goodput", 2),
    Metric("retransmitted", "Segments sent again", 2),
    Metric("link_utilization", "Utilisation", 1),
    Metric("packet_drop_rate", "Packet drop rate", 2),
    Metric("mean_queue", "Mean queue", 1),
)
_UNITS = {
    "completed": "count",
    "disturbed": "percent",
    "median_completion_time": "s",
    "p95_completion_time": "s",
    "goodput": "MB",
    "retransmitted": "percent",
    "link_utilization": "percent",
    "packet_drop_rate": "percent",
    "mean_queue": "packets",
}


def summary_tables(run: Run) -> list[Table]:
    """Tables `transfers`, `pages` and `links` of a run, means over replicates; only those with rows.

    Completion times are those of finished transfers and pages, seconds from their start; goodput is in 10⁶
    bytes delivered within the run. In real time `disturbed` says how many transfers met a stall of the machine; they
    are part of the other figures.
    """
    keys = list(run.cells[0]) if run.cells else []
    return of_records(run.transfers, run.pages, run.links, keys, in_real_time=bool(run.provenance["environments"]))


def of_records(
    transfers: pl.LazyFrame,
    pages: pl.LazyFrame,
    links: pl.LazyFrame,
    keys: Sequence[str],
    in_real_time: bool = False,
) -> list[Table]:
    """The same from the three record tables; `keys` are the cells' key columns."""
    tables = [_transfers(transfers, keys, in_real_time), _pages(pages, keys), _links(links, keys)]
    return [table for table in tables if not table.frame.is_empty()]


def _table(
    name: str, title: str, caption: str, rows: pl.LazyFrame, keys: Sequence[str], values: dict[str, pl.Expr]
) -> Table:
    per_replicate = (
        rows.group_by([*keys, "replicate"], maintain_order=True)
        .agg(value.cast(pl.Float64).alias(metric) for metric, value in values.items())
        .unpivot(on=list(values), index=[*keys, "replicate"], variable_name="metric", value_name="value")
        .collect()
    )
    frame = summarise(per_replicate, [*keys, "metric"]).with_columns(
        pl.col("metric").replace_strict(_UNITS).alias("unit"),
        pl.lit(None, dtype=pl.Float64).alias("published"),
    )
    alike = tuple(key for key in keys[:-1] if frame[key].n_unique() == 1)
    return Table(name, title, caption, tuple(keys), frame, metrics=METRICS, quiet=alike)


def _by(frame: pl.LazyFrame, column: str) -> pl.LazyFrame:
    return frame.with_columns(pl.col(column).cast(pl.String))


def _times() -> dict[str, pl.Expr]:
    done = pl.col("completion_time_s").filter(pl.col("completed") == 1)
    return {
        "completed": pl.col("completed").sum(),
        "median_completion_time": done.median(),
        "p95_completion_time": done.quantile(0.95, "linear"),
    }


def _transfers(transfers: pl.LazyFrame, keys: Sequence[str], in_real_time: bool) -> Table:
    disturbed = {"disturbed": 100 * pl.col("disturbed").mean()} if in_real_time else {}
    told = " Disturbed: by a stall of the machine of more than a millisecond, and counted all the same."
    values = (
        _times()
        | disturbed
        | {
            "goodput": pl.col("delivered_bytes").sum() / 1e6,
            "retransmitted": 100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum(),
        }
    )
    return _table(
        "transfers",
        "Transfers",
        f"Files, objects and responses, by application.{told if in_real_time else ''}",
        _by(transfers, "application"),
        [*keys, "application"],
        values,
    )


def _pages(pages: pl.LazyFrame, keys: Sequence[str]) -> Table:
    return _table(
        "pages",
        "Pages",
        "From the opening of the primary's connection to the last object.",
        _by(pages, "application"),
        [*keys, "application"],
        _times(),
    )


def _links(links: pl.LazyFrame, keys: Sequence[str]) -> Table:
    values = {
        "link_utilization": 100 * pl.col("busy_s").sum() / pl.col("interval_s").sum(),
        "packet_drop_rate": 100 * pl.col("dropped_packets").sum() / pl.col("offered_packets").sum(),
        "mean_queue": (pl.col("queue_mean_packets") * pl.col("interval_s")).sum() / pl.col("interval_s").sum(),
    }
    used = _by(links, "link").filter(pl.col("offered_packets").sum().over([*keys, "replicate", "link"]) > 0)
    return _table(
        "links",
        "Links",
        "Share of time in use, packets dropped of packets offered, packets waiting on average.",
        used,
        [*keys, "link"],
        values,
    )
