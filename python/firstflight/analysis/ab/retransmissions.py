"""The cost of a larger initial window: retransmissions."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from firstflight.analysis.ab.compare import compare, compare_rate
from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.design import Design


@dataclass(frozen=True)
class Retransmissions:
    """`rate`: retransmitted segments of segments sent. `flows`: share of transfers that had any. `timeouts`: of a
    transfer, on average. `first_flight`: share of the first flight's segments that were lost.
    """

    rate: Comparison
    flows: Comparison
    timeouts: Comparison
    first_flight: Comparison


def retransmissions(frame: pl.DataFrame | pl.LazyFrame, design: Design) -> Retransmissions:
    """Of transfers in both arms. Those of which an engine cannot know a count (null) are left out of it, and counted
    as unknown.
    """
    rows = frame.lazy().with_columns(any_retransmission=(pl.col("retransmissions") > 0).cast(pl.Float64))
    return Retransmissions(
        compare_rate(rows, "retransmissions", "segments_sent", design),
        compare(rows, "any_retransmission", design),
        compare(rows, "timeouts", design),
        compare_rate(rows, "first_flight_lost_segments", "first_flight_segments", design),
    )
