"""What the run measured, place by place: transfers, parallel connections, short requests beside a long download."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from firstflight.analysis.link_share import others_share
from firstflight.analysis.medians import Sample

from .grid import LINK, MICE, PARALLEL, SHALLOW, TRANSFER, Point, points

if TYPE_CHECKING:
    from firstflight.records import Run

KEYS = list(Point._fields)
TIME, REQUEST_TIME, AGAIN, FLIGHTS, SHARE = "time", "request_time", "again", "flights", "share"


class Place(NamedTuple):
    """A quantity of a cell."""

    metric: str
    point: Point


Values = Mapping[Place, Sample]
_COLUMNS = (
    "replicate",
    "application",
    "start_s",
    "handshake_time_s",
    "completion_time_s",
    "bytes",
    "retransmissions",
    "first_flight_segments",
    "disturbed",
)


def values(run: Run) -> dict[Place, Sample]:
    """Every quantity of every cell.

    All: `time` (s, from opening the connection to the last byte; in `parallel` until the last of them is complete).
    Transfers: `request_time` (s, the same from the end of the handshake), `again` (retransmitted segments), `flights`
    (segments of the first flight). Parallel connections: `object_time` (s, mean over them), `flights` (of all of them),
    `again`. Short requests: `share` (percent, what the long flow had of the link meanwhile), one value a replicate, the
    median over its requests.

    Only what came through undisturbed counts: a transfer, or all transfers that ran together.
    """
    return _values(run, len(run.cells))


# A report asks four times, and a run has hundreds of files. What has finished does not change.
@lru_cache(maxsize=1)
def _values(run: Run, finished: int) -> dict[Place, Sample]:
    done = run.transfers.filter(pl.col("completed") == 1).select(*KEYS, *_COLUMNS).collect()
    found: dict[Place, Sample] = {}
    for frame in (_transfers(done), _parallel(done), _mice(run, done)):
        for row in frame.iter_rows(named=True):
            point = Point(*(row[key] for key in KEYS))
            for metric, measured in row.items():
                if metric not in (*KEYS, "left_out"):
                    kept = tuple(float(value) for value in measured if value is not None)
                    found[Place(metric, point)] = Sample(kept, row["left_out"])
    order = {point: place for place, point in enumerate(points())}
    return dict(sorted(found.items(), key=lambda item: order[item[0].point]))


def _transfers(done: pl.DataFrame) -> pl.DataFrame:
    own = done.filter(pl.col("experiment").is_in([TRANSFER, SHALLOW])).with_columns(
        (pl.col("completion_time_s") - pl.col("handshake_time_s")).alias("request_time_s")
    )
    return _sampled(
        own,
        {
            TIME: "completion_time_s",
            REQUEST_TIME: "request_time_s",
            AGAIN: "retransmissions",
            FLIGHTS: "first_flight_segments",
        },
    )


def _sampled(rows: pl.DataFrame, metrics: Mapping[str, str]) -> pl.DataFrame:
    """One row a cell: each metric's values in the rows that were not disturbed, and how many were."""
    calm = pl.col("disturbed") == 0
    return (
        rows.sort("replicate")
        .group_by(KEYS, maintain_order=True)
        .agg(
            *(pl.col(column).filter(calm).alias(metric) for metric, column in metrics.items()),
            (~calm).sum().alias("left_out"),
        )
    )


def _parallel(done: pl.DataFrame) -> pl.DataFrame:
    ends = pl.col("start_s") + pl.col("completion_time_s")
    together = (
        done.filter(pl.col("experiment") == PARALLEL)
        .group_by(*KEYS, "replicate", maintain_order=True)
        .agg(
            (ends.max() - pl.col("start_s").min()).alias("page_s"),
            pl.col("completion_time_s").mean().alias("object_s"),
            pl.col("first_flight_segments").sum(),
            pl.col("retransmissions").sum(),
            pl.col("disturbed").max(),
            pl.len().alias("complete"),
        )
        .filter(pl.col("complete") == pl.col("flows"))
    )
    return _sampled(
        together,
        {TIME: "page_s", "object_time": "object_s", FLIGHTS: "first_flight_segments", AGAIN: "retransmissions"},
    )


def _mice(run: Run, done: pl.DataFrame) -> pl.DataFrame:
    mice = done.filter((pl.col("experiment") == MICE) & (pl.col("application").cast(pl.String) == "mouse"))
    carried = (
        run.links.filter(
            (pl.col("experiment") == MICE) & (pl.col("flows") > 0) & (pl.col("link").cast(pl.String) == LINK)
        )
        .select(*KEYS, "replicate", "interval_start_s", "interval_s", "sent_bytes", "dropped_packets")
        .collect()
    )
    by_replicate = dict(carried.group_by(*KEYS, "replicate"))
    rows: list[dict[str, Any]] = []
    for key, own in mice.group_by(KEYS, maintain_order=True):
        calm = own.filter(pl.col("disturbed") == 0)
        row = dict(zip(KEYS, key, strict=True)) | {"left_out": own.height - calm.height, TIME: [], SHARE: []}
        for (replicate,), part in calm.sort("replicate", "start_s").group_by("replicate", maintain_order=True):
            row[TIME].append(part["completion_time_s"].median())
            if (*key, replicate) in by_replicate:
                one_way_s = row["delay_ms"] / 1000
                share = others_share(part, by_replicate[(*key, replicate)], one_way_s)
                row[SHARE].append(float(np.median(share)))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame()
