"""Round trips, counted from records as the RFC counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from firstflight.records import Run

KEYS = ("segments", "iw")


def round_trips(run: Run) -> dict[tuple[int, int], float]:
    """(segments, initial window) -> round trips of the finished transfers, mean over replicates (all are
    alike).

    On a path of infinite bandwidth a round trip is the handshake's time. The RFC counts from the request on,
    so that the first flight arrives after 1 round trip: (completion time - handshake time) / handshake time.
    """
    rows = (
        run.transfers.filter(pl.col("completed") == 1)
        .with_columns((pl.col("completion_time_s") / pl.col("handshake_time_s") - 1).alias("round_trips"))
        .group_by(KEYS, maintain_order=True)
        .agg(pl.col("round_trips").mean())
        .collect()
    )
    # Times are whole nanoseconds, which seconds in binary floating point do not hold exactly.
    return {(segments, iw): round(trips, 6) for segments, iw, trips in rows.iter_rows()}
