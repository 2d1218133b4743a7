"""What became of each loss, and completion times under random loss, from the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.loss_matrix import REPAIRS

from .grid import FLIGHT, RESPONSE, Point

if TYPE_CHECKING:
    from firstflight.records import Run

FAST, EARLY, PROBE, TIMEOUT = REPAIRS
KEYS = ("experiment", "stack", "iw")


def cases(run: Run) -> pl.DataFrame:
    """One row a loss: `experiment, stack, iw, position, repair, cost_ms, retransmissions`.

    The client's number is the position of the loss in the first flight; client 0 lost nothing, and the cost is the
    completion time above hers. The repair is named after the slowest means that the sender needed: a timeout, else a
    probe, else fast retransmit, early where fewer acknowledgements than usual began it.
    """
    repair = (
        pl.when(pl.col("timeouts") > 0)
        .then(pl.lit(TIMEOUT))
        .when(pl.col("tail_loss_probes") > 0)
        .then(pl.lit(PROBE))
        .when(pl.col("early_retransmits") > 0)
        .then(pl.lit(EARLY))
        .when(pl.col("fast_retransmits") > 0)
        .then(pl.lit(FAST))
    )
    # Nothing is drawn in these experiments: replicates are alike.
    rows = (
        run.transfers.filter(
            pl.col("experiment").is_in([FLIGHT, RESPONSE]) & (pl.col("replicate") == 0) & (pl.col("completed") == 1)
        )
        .select(
            *KEYS,
            pl.col("client").cast(pl.Int64).alias("position"),
            "completion_time_s",
            repair.alias("repair"),
            "retransmissions",
        )
        .collect()
    )
    without = rows.filter(pl.col("position") == 0).select(*KEYS, pl.col("completion_time_s").alias("without_s"))
    return (
        rows.filter(pl.col("position") > 0)
        .join(without, on=KEYS, maintain_order="left")
        .with_columns(((pl.col("completion_time_s") - pl.col("without_s")) * 1000).alias("cost_ms"))
        .select(*KEYS, "position", "repair", "cost_ms", "retransmissions")
        .sort(*KEYS, "position", maintain_order=True)
    )


def completion_times(run: Run) -> dict[Point, dict[int, float]]:
    """Mean completion time (s) of the responses of each replicate, in the cells of the comparison."""
    place = list(Point._fields)
    rows = (
        run.transfers.filter(~pl.col("experiment").is_in([FLIGHT, RESPONSE]) & (pl.col("completed") == 1))
        .group_by(*place, "replicate", maintain_order=True)
        .agg(pl.col("completion_time_s").mean())
        .sort(*place, "replicate")
        .collect()
    )
    found: dict[Point, dict[int, float]] = {}
    for *key, replicate, seconds in rows.iter_rows():
        found.setdefault(Point(*key), {})[replicate] = seconds
    return found


def share(cases: pl.DataFrame, experiment: str, stack: str, iw: int, repairs: tuple[str, ...]) -> float:
    """Percent of the positions whose loss was repaired in one of these ways. LookupError without such cases."""
    flight = _flight(cases, experiment, stack, iw)
    return float(100 * flight["repair"].is_in(list(repairs)).sum() / flight.height)


def mean_cost(cases: pl.DataFrame, experiment: str, stack: str, iw: int) -> float:
    """Mean cost (ms) over the positions of the loss. LookupError without such cases."""
    return float(_flight(cases, experiment, stack, iw)["cost_ms"].mean())  # type: ignore[arg-type]


def _flight(cases: pl.DataFrame, experiment: str, stack: str, iw: int) -> pl.DataFrame:
    """The cases of one first flight."""
    flight = cases.filter((pl.col("experiment") == experiment) & (pl.col("stack") == stack) & (pl.col("iw") == iw))
    if flight.height < iw:
        raise LookupError(f"This run lacks the experiment {experiment} of {stack} with IW {iw}.")
    return flight
