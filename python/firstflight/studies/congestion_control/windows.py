"""Each algorithm's cwnd, from the segments of a download: reductions, growth, curves, probes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from firstflight.analysis.link_share import PAYLOAD_BYTES
from firstflight.report.trace_plot.connection import DROPPED, RECEIVED, Connection

_FAST_RECOVERY = 3
# RFC 9438 sections 4.1 and 4.6.
C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)
# A stretch of congestion avoidance shorter than this number of round trips shows little of growth.
_FEWEST_ROUNDS = 5
PROBE_SEGMENTS = 4
"""BBR's window while it measures the round trip."""
MEASURES = {
    "kept_share": ("Ssthresh over cwnd at a reduction, median", "share"),
    "kept_segments": ("Ssthresh after a reduction, median", "segments"),
    "growth": ("Growth per RTT in congestion avoidance", "segments"),
    "cubic_deviation": ("Distance from RFC 9438's window, median", "percent"),
    "slow_start_drops": ("Packets dropped in slow start", "packets"),
    "smallest": ("Smallest cwnd after start-up", "segments"),
    "probe_interval": ("From one fall to four segments to the next", "s"),
}
"""Title and unit of each measure of a download's windows."""


@dataclass(frozen=True)
class Reduction:
    """A fast recovery: when it began, cwnd just before it and ssthresh just after its beginning, in segments."""

    time_s: float
    window: float
    ssthresh: float


@dataclass(frozen=True)
class Stretch:
    """Congestion avoidance between two reductions; `reduction` is the one before it.

    `rows`: `time_s`, `cwnd` and `rounds`, the windows acknowledged since its beginning, one row per ACK.
    """

    reduction: Reduction
    rows: pl.DataFrame


class Windows:
    """The windows of the connection that carries most data."""

    def __init__(self, segments: pl.DataFrame) -> None:
        """`segments`: the records' table of that name."""
        self._connection = Connection.busiest(segments)
        own = self._connection.own
        self._own = own.with_columns(
            (pl.col("recovery_state") >= _FAST_RECOVERY).alias("repairing"),
            pl.col("cwnd_segments").shift(1).alias("before"),
        )

    @property
    def reductions(self) -> list[Reduction]:
        """Every fast recovery."""
        begins = (pl.col("recovery_state") == _FAST_RECOVERY) & ~pl.col("repairing").shift(1).fill_null(False)
        rows = self._own.filter(begins).select("time_s", "before", "ssthresh_segments")
        return [Reduction(*row) for row in rows.iter_rows()]

    @property
    def stretches(self) -> list[Stretch]:
        """Congestion avoidance after each reduction, until the next or the end."""
        reductions = self.reductions
        ends = [*(reduction.time_s for reduction in reductions[1:]), math.inf]
        acked = (pl.col("ack").diff().fill_null(0).clip(0) / PAYLOAD_BYTES).alias("acked")
        acks = self._own.filter(~pl.col("is_data_way") & (pl.col("event") == RECEIVED)).with_columns(acked)
        found = []
        for reduction, end in zip(reductions, ends, strict=True):
            rows = acks.filter(
                (pl.col("time_s") > reduction.time_s)
                & (pl.col("time_s") < end)
                & ~pl.col("repairing")
                & (pl.col("cwnd_segments") >= pl.col("ssthresh_segments"))
            ).select(
                "time_s",
                pl.col("cwnd_segments").alias("cwnd"),
                (pl.col("acked") / pl.col("cwnd_segments")).cum_sum().alias("rounds"),
            )
            if not rows.is_empty() and rows["rounds"][-1] >= _FEWEST_ROUNDS:
                found.append(Stretch(reduction, rows))
        return found

    def growth_a_round(self) -> float:
        """Segments by which cwnd grows in a round trip of congestion avoidance: mean over stretches."""
        ends = [(of.rows.row(0, named=True), of.rows.row(-1, named=True)) for of in self.stretches]
        grown = [(last["cwnd"] - first["cwnd"]) / (last["rounds"] - first["rounds"]) for first, last in ends]
        return sum(grown) / len(grown) if grown else math.nan

    def cubic_deviation(self) -> float:
        """Median distance of cwnd from RFC 9438's window, as a share of RFC 9438's, over acknowledgments.

        The RFC's window is the larger of W_cubic(t) (figure 1) and W_est (figure 4), with the W_max that fast
        convergence leaves (section 4.7); t runs from the end of the recovery.
        """
        last_max, distances, maxima = 0.0, [], {}
        for reduction in self.reductions:
            shrinking = reduction.window < last_max
            last_max = reduction.window * (1 + BETA) / 2 if shrinking else reduction.window
            maxima[reduction.time_s] = last_max
        for stretch in self.stretches:
            maximum, first = maxima[stretch.reduction.time_s], stretch.rows["cwnd"][0]
            k = max(0.0, (maximum - first) / C) ** (1 / 3)
            t = pl.col("time_s") - stretch.rows["time_s"][0]
            # Above W_max the curve begins at its plateau.
            cubic = C * (t - k).pow(3) + max(maximum, first)
            estimate = first + ALPHA * (pl.col("rounds") - stretch.rows["rounds"][0])
            expected = pl.max_horizontal(cubic, estimate)
            distances.append(stretch.rows.select(((pl.col("cwnd") - expected).abs() / expected).alias("distance")))
        return _median(pl.concat(distances)["distance"].to_list()) if distances else math.nan

    def dropped_in_slow_start(self) -> int:
        """Data packets that the queue dropped until the first slow start ended."""
        left = pl.col("repairing") | (pl.col("cwnd_segments") >= pl.col("ssthresh_segments"))
        end_s = self._own.filter(left)["time_s"].min()
        dropped = (pl.col("event") == DROPPED) & pl.col("is_data_way")
        until = pl.lit(True) if end_s is None else pl.col("time_s") < end_s
        return self._connection.rows.filter(dropped & until).height

    def measures(self, started_s: float) -> dict[str, float]:
        """All of `MEASURES`; start-up ends at `started_s`."""
        reductions, after = self.reductions, pl.col("time_s") >= started_s
        low = pl.col("cwnd_segments") <= PROBE_SEGMENTS
        probes = self._own.filter(low & ~low.shift(1).fill_null(True) & after)["time_s"].to_list()
        return {
            "kept_share": _median([reduction.ssthresh / reduction.window for reduction in reductions]),
            "kept_segments": _median([reduction.ssthresh for reduction in reductions]),
            "growth": self.growth_a_round(),
            "cubic_deviation": 100 * self.cubic_deviation(),
            "slow_start_drops": float(self.dropped_in_slow_start()),
            "smallest": float(self._own.filter(after)["cwnd_segments"].to_numpy().min()),
            "probe_interval": (probes[-1] - probes[0]) / (len(probes) - 1) if len(probes) > 1 else math.nan,
        }


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan
