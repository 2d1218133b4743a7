"""The values that RFC 6928 section 5.1 prints, read from `reference/`, and the study's grid."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
EXAMPLE, LARGEST_SAVING = "example", "largest_saving"


@cache
def table() -> dict[tuple[int, int], int]:
    """(segments, initial window) -> round trips, the 26 values of the RFC's table."""
    rows = pl.read_csv((HERE / "reference" / "round_trips.csv").read_bytes())
    return {(segments, iw): trips for segments, iw, trips in rows.select("segments", "iw", "round_trips").iter_rows()}


@cache
def example() -> dict[tuple[int, int], int]:
    """The same for the transfer that the sentence after the table speaks of."""
    rows = _sentences().filter(pl.col("sentence") == EXAMPLE)
    return {(segments, iw): trips for segments, iw, trips in rows.select("segments", "iw", "round_trips").iter_rows()}


@cache
def largest_saving() -> int:
    """Round trips that IW 10 saves at the most, as the section's first sentence says."""
    return int(_sentences().filter(pl.col("sentence") == LARGEST_SAVING)["round_trips"].item())


@cache
def initial_windows() -> tuple[int, ...]:
    """Initial windows of the grid, segments."""
    with (HERE / "study.toml").open("rb") as file:
        return tuple(tomllib.load(file)["initial_windows"])


def sizes() -> list[int]:
    """Transfer sizes of the grid, segments: those of the table and of the example."""
    return sorted({segments for segments, _ in [*table(), *example()]})


def _sentences() -> pl.DataFrame:
    return pl.read_csv((HERE / "reference" / "sentences.csv").read_bytes())
