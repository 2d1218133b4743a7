"""What the algorithms did, from the records: downloads, parallel connections, short flows beside a long one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from firstflight.analysis.link_share import others_share

from .grid import DOWNLOAD, LINK, MICE, PARALLEL, Point, drawn, titles

if TYPE_CHECKING:
    from firstflight.records import Run

KEYS = list(Point._fields)


class Place(NamedTuple):
    """A quantity of a cell."""

    metric: str
    point: Point


Values = Mapping[Place, Mapping[int, float]]


def values(run: Run) -> dict[Place, dict[int, float]]:
    """Every quantity of every cell, by replicate.

    Downloads: `completion_time` (s), `goodput` (Mbit/s), `retransmissions`, `timeouts`, `mean_queue` and `max_queue`
    (packets; the mean until the download was complete). Parallel connections: `completion_time` (mean over them),
    `first_flights` (segments of all of them), `retransmitted` (percent). Short flows: `completion_time` and
    `elephant_share` (percent of the link), both medians over the flows.
    """
    found: dict[Place, dict[int, float]] = {}
    for frame in (_downloads(run), _parallel(run), _mice(run)):
        metrics = [name for name in frame.columns if name not in (*KEYS, "replicate")]
        for row in frame.iter_rows(named=True):
            point = Point(*(row[key] for key in KEYS))
            for metric in metrics:
                if row[metric] is not None and not math.isnan(row[metric]):
                    found.setdefault(Place(metric, point), {})[row["replicate"]] = float(row[metric])
    return found


def traces(run: Run) -> dict[str, pl.DataFrame]:
    """The segments of the downloads that are drawn, by algorithm; those that the run has."""
    segments = run.segments.filter(pl.col("replicate") == 0).collect()
    found = {}
    for control in titles():
        own = segments.filter(pl.col("control") == control)
        if not own.is_empty():
            found[control] = own.drop(KEYS)
    return found


def queues(run: Run) -> pl.DataFrame:
    """`control`, `time_s` and `packets`: the bottleneck's queue during the downloads that are drawn, by interval."""
    base = drawn("")
    ends = (
        run.transfers.filter(pl.col("experiment") == DOWNLOAD)
        .group_by(*KEYS, "replicate")
        .agg(pl.col("completion_time_s").max().alias("end_s"))
    )
    return (
        run.links.filter(
            (pl.col("experiment") == DOWNLOAD)
            & (pl.col("rtt_ms") == base.rtt_ms)
            & (pl.col("buffer_bdp") == base.buffer_bdp)
            & (pl.col("link").cast(pl.String) == LINK)
            & (pl.col("replicate") == 0)
        )
        .join(ends, on=[*KEYS, "replicate"], maintain_order="left")
        .filter(pl.col("interval_start_s") < pl.col("end_s"))
        .select(
            "control",
            pl.col("interval_start_s").alias("time_s"),
            pl.col("queue_mean_packets").alias("packets"),
        )
        .collect()
    )


def _downloads(run: Run) -> pl.DataFrame:
    done = (
        run.transfers.filter((pl.col("experiment") == DOWNLOAD) & (pl.col("completed") == 1))
        .select(
            *KEYS,
            "replicate",
            pl.col("completion_time_s").alias("completion_time"),
            (8 * pl.col("bytes") / pl.col("completion_time_s") / 1e6).alias("goodput"),
            "retransmissions",
            "timeouts",
        )
        .collect()
    )
    # Nothing waits after the download, so its own time is what the queue is averaged over.
    waiting = (
        run.links.filter((pl.col("experiment") == DOWNLOAD) & (pl.col("link").cast(pl.String) == LINK))
        .group_by(*KEYS, "replicate", maintain_order=True)
        .agg(
            (pl.col("queue_mean_packets") * pl.col("interval_s")).sum().alias("waited"),
            pl.col("queue_max_packets").max().alias("max_queue"),
        )
        .collect()
    )
    return (
        done.join(waiting, on=[*KEYS, "replicate"], how="left", maintain_order="left")
        .with_columns((pl.col("waited") / pl.col("completion_time")).alias("mean_queue"))
        .drop("waited")
    )


def _parallel(run: Run) -> pl.DataFrame:
    return (
        run.transfers.filter((pl.col("experiment") == PARALLEL) & (pl.col("completed") == 1))
        .group_by(*KEYS, "replicate", maintain_order=True)
        .agg(
            pl.col("completion_time_s").mean().alias("completion_time"),
            pl.col("first_flight_segments").sum().alias("first_flights"),
            (100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("retransmitted"),
        )
        .collect()
    )


def _mice(run: Run) -> pl.DataFrame:
    place = [*KEYS, "replicate"]
    mice = (
        run.transfers.filter(
            (pl.col("experiment") == MICE)
            & (pl.col("application").cast(pl.String) == "mouse")
            & (pl.col("completed") == 1)
        )
        .select(*place, "start_s", "handshake_time_s", "completion_time_s", "bytes", "retransmissions")
        .collect()
    )
    # The same for all algorithms: what the link carried until the end of each interval.
    carried = (
        run.links.filter(
            (pl.col("experiment") == MICE) & (pl.col("flows") > 0) & (pl.col("link").cast(pl.String) == LINK)
        )
        .select(*place, "interval_start_s", "interval_s", "sent_bytes", "dropped_packets")
        .collect()
    )
    by_cell = dict(carried.group_by(place))
    rows = []
    for key, own in mice.group_by(place, maintain_order=True):
        row = dict(zip(place, key, strict=True))
        row["completion_time"] = own["completion_time_s"].median()
        if key in by_cell:
            row["elephant_share"] = float(np.median(others_share(own, by_cell[key], row["rtt_ms"] / 2000)))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame()
