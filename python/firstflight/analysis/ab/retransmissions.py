"""The cost of a larger initial window: what had to be retransmitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from firstflight.analysis.ab.compare import compare, compare_rate
from firstflight.analysis.ab.comparison import Comparison


@dataclass(frozen=True)
class Retransmissions:
    """`rate`: retransmitted segments of segments sent. `flows`: share of transfers that had any. `timeouts`: of a
    transfer, on average. `first_flight`: share of the first flight's segments that were lost.
    """

    rate: Comparison
    flows: Comparison
    timeouts: Comparison
    first_flight: Comparison


def retransmissions(frame: pl.DataFrame | pl.LazyFrame, **request: Any) -> Retransmissions:
    """Of transfers in both arms. `request`: what `compare` takes besides the value. Those of which an engine cannot
    know a count (null) are left out of it, and counted as unknown.
    """
    rows = frame.lazy().with_columns(any_retransmission=(pl.col("retransmissions") > 0).cast(pl.Float64))
    return Retransmissions(
        compare_rate(rows, "retransmissions", "segments_sent", **request),
        compare(rows, "any_retransmission", **request),
        compare(rows, "timeouts", **request),
        compare_rate(rows, "first_flight_lost", "first_flight_segments", **request),
    )
