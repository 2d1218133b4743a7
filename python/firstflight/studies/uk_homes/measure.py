"""What the run measured, home by home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.populations import uk_homes
from firstflight.studies.kept import kept
from firstflight.studies.uk_homes.grid import HOMES, MAP, PAGE, settings

if TYPE_CHECKING:
    from firstflight.records import Run

UNIT = ["replicate", "home"]
_COUNTS = ("segments_sent", "retransmissions", "timeouts", "first_flight_segments", "first_flight_lost")


@kept
def part(run: Run, experiment: str, year: int, farther_ms: int, response: str) -> pl.DataFrame:
    """One row a home and response of one experiment, year, distance and response, with every window there is.

    `iw`, `replicate`, `home` (row of the panel), `time_ms` (from opening the connection to the last byte; NaN if it did
    not finish), the sender's counts (of a page: of its connection), and the home's `technology` and `weight`.
    """
    place = ["iw", "replicate", "client"]
    cells: dict[str, str | int | float] = {"experiment": experiment, "year": year, "farther_ms": farther_ms}
    transfers = run.table("transfers", **cells).filter(pl.col("application").cast(pl.String) == response)
    if response != PAGE:
        measured = transfers.select(*place, _time_ms(), *_COUNTS)
    else:
        first = pl.col("object") == 0
        connection = transfers.group_by(place, maintain_order=True).agg(
            *(pl.col(name).sum() for name in _COUNTS[:3]),
            *(pl.col(name).filter(first).first() for name in _COUNTS[3:]),
        )
        pages = run.table("pages", **cells).select(*place, _time_ms())
        measured = pages.join(connection, on=place).select(*place, "time_ms", *_COUNTS)
    users = homes(run, experiment, year, farther_ms).lazy().select(*place[1:], "home", "technology", "weight")
    return (
        measured.join(users, on=place[1:])
        .sort(*place)
        .drop("client")
        .with_columns(pl.col("iw").cast(pl.Int16))
        .collect()
    )


@kept
def homes(run: Run, experiment: str, year: int, farther_ms: int) -> pl.DataFrame:
    """One row a home and replicate: `replicate`, `client`, `home` (row of the panel), its path in this experiment
    (`rtt_s` with what was added, `down_bps`, `buffer_bytes`), and the panel's `weight`, `technology` and `web_page_s`.
    """
    cells: dict[str, str | int | float] = {"experiment": experiment, "year": year, "farther_ms": farther_ms}
    windows = [int(key["iw"]) for key in run.cells if cells.items() <= key.items()]
    # The homes are the same with every window.
    users = run.table("users", **cells, iw=min(windows, default=0)).select(
        "replicate", "client", pl.col("row").alias("home"), "weight", "rtt_s", "down_bps", "buffer_bytes"
    )
    panel = uk_homes.homes(uk_homes.YEARS[uk_homes.YEARS.index(year)])
    kinds = pl.Enum(panel["technology"].unique().sort())
    own = panel.lazy().select("home", pl.col("technology").cast(kinds), "web_page_s")
    return users.join(own, on="home", how="left", maintain_order="left").collect()


def curves(run: Run) -> pl.DataFrame:
    """The map's curves: `initial_window`, `bytes`, `time_s` and `first_flight_segments`, one row a size and window."""
    return (
        run.table("transfers", experiment=MAP)
        .filter(pl.col("completed") == 1)
        .select(
            pl.col("iw").alias("initial_window"),
            "bytes",
            pl.col("completion_time_s").alias("time_s"),
            "first_flight_segments",
        )
        .unique()
        .sort("initial_window", "bytes")
        .collect()
    )


def shown(run: Run, year: int, experiment: str = HOMES) -> pl.DataFrame:
    """The response and the distance that stand for all."""
    return part(run, experiment, year, settings()["shown_farther_ms"], settings()["shown_response"])


def national(rows: pl.DataFrame) -> pl.DataFrame:
    """Those that count for the country: homes with a weight."""
    return rows.filter(pl.col("weight") > 0)


def quantiles(
    values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The least value that so large a share of the weight does not exceed; NaN counts as beyond all others."""
    order = np.argsort(values, kind="stable")
    so_far = np.cumsum(weights[order])
    # A share that is a whole number of weights must not slip to the next value by rounding.
    places = np.searchsorted(so_far, shares * so_far[-1] * (1 - 1e-12), side="left")
    found: npt.NDArray[np.float64] = values[order][np.minimum(places, len(values) - 1)]
    return found


def _time_ms() -> pl.Expr:
    finished = pl.when(pl.col("completed") == 1).then(1e3 * pl.col("completion_time_s"))
    return finished.otherwise(float("nan")).alias("time_ms")
