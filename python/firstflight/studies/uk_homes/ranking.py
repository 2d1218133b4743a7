"""Whether our page times rank the homes as the measured ones do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from firstflight.analysis.intervals import Estimate, normal_quantile
from firstflight.studies.kept import kept
from firstflight.studies.uk_homes.grid import HOMES, PAGE, settings
from firstflight.studies.uk_homes.measure import UNIT, homes, part

if TYPE_CHECKING:
    from firstflight.records import Run

ALL = "all"
LEAST = 20
"""Homes of a technology that a rank correlation needs at least, to be worth a row."""


class Rank(NamedTuple):
    """Rank correlations with the measured page times of one technology's homes."""

    technology: str
    homes: int
    ours: Estimate
    round_trip: Estimate
    """Of the round trip alone."""
    rate: Estimate
    """Of the time that a byte takes at the line's rate, alone."""
    measured_ms: float
    """Medians."""
    ours_ms: float


def pages(run: Run, year: int) -> pl.DataFrame:
    """One row a home of the panel whatever its weight: `technology`, `measured_ms`, `ours_ms` with today's window and
    as near as the test server, `rtt_s`, `down_bps`.
    """
    paths = homes(run, HOMES, year, 0).select(*UNIT, "rtt_s", "down_bps", "web_page_s")
    return (
        part(run, HOMES, year, 0, PAGE)
        .filter((pl.col("iw") == settings()["today"]) & (pl.col("replicate") == 0))
        .filter(pl.col("time_ms").is_not_nan())
        .join(paths, on=UNIT, how="left", maintain_order="left")
        .select(
            "home",
            "technology",
            (1e3 * pl.col("web_page_s")).alias("measured_ms"),
            pl.col("time_ms").alias("ours_ms"),
            "rtt_s",
            "down_bps",
        )
    )


@kept
def ranks(run: Run, year: int) -> list[Rank]:
    """All homes, then each technology of at least `LEAST`, the commonest first; none without pages."""
    whole = pages(run, year)
    if whole.is_empty():
        return []
    counts = whole["technology"].value_counts().sort("count", "technology", descending=[True, False])
    kinds = [name for name, count in counts.iter_rows() if count >= LEAST]
    return [_rank(ALL, whole), *(_rank(name, whole.filter(pl.col("technology") == name)) for name in kinds)]


def _rank(technology: str, own: pl.DataFrame) -> Rank:
    return Rank(
        technology,
        own.height,
        _spearman(own, pl.col("ours_ms")),
        _spearman(own, pl.col("rtt_s")),
        _spearman(own, 1 / pl.col("down_bps")),
        float(own["measured_ms"].median() or math.nan),  # type: ignore[arg-type]
        float(own["ours_ms"].median() or math.nan),  # type: ignore[arg-type]
    )


def _spearman(own: pl.DataFrame, quantity: pl.Expr) -> Estimate:
    """With its 95 % interval by Fisher's transformation, whose standard error for ranks is 1.03 / sqrt(n - 3)."""
    found = float(own.select(pl.corr(quantity, "measured_ms", method="spearman")).item())
    if own.height < 4 or abs(found) >= 1:
        return Estimate(found)
    half = normal_quantile() * 1.03 / math.sqrt(own.height - 3)
    middle = math.atanh(found)
    return Estimate(found, math.tanh(middle - half), math.tanh(middle + half), own.height)
