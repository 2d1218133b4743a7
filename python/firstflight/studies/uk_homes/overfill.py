"""Which homes a first flight overfills: by the simulation and by two rules of arithmetic.

A first flight leaves the server back to back, so it reaches the home's line at once, and the queue has to take all of
it. What the rest of the path could hold (the bandwidth-delay product) helps only a flight that is paced. So there are
rules, and they are not the same:

- *queue*: the first flight is larger than the queue, because the server's acknowledgement of the request goes before it
  and is on the wire;
- *wire*: it is larger than the queue and a packet on the wire, as it would be without that acknowledgement;
- *pipe*: it is larger than bandwidth-delay product and queue together, the rule of thumb for a steady flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.studies.kept import kept
from firstflight.studies.uk_homes.grid import NO_LOSS, PACKET_BYTES, settings
from firstflight.studies.uk_homes.measure import UNIT, homes, national, shown

if TYPE_CHECKING:
    from firstflight.records import Run

RULES = ("queue", "wire", "pipe")


def overfilled(run: Run, year: int) -> pl.DataFrame:
    """One row a home and window, without random losses: `iw`, `flight` (segments of the first flight), `weight`,
    `technology`, and whether it is overfilled: `simulated`, `queue`, `wire`, `pipe`.
    """
    flight_bytes = pl.col("first_flight_segments") * PACKET_BYTES
    pipe_bytes = pl.col("rtt_s") * pl.col("down_bps") / 8
    path = homes(run, NO_LOSS, year, settings()["shown_farther_ms"]).select(*UNIT, "rtt_s", "down_bps", "buffer_bytes")
    rows = shown(run, year, NO_LOSS).join(path, on=UNIT, how="left", maintain_order="left")
    return rows.select(
        "iw",
        "home",
        "technology",
        "weight",
        pl.col("first_flight_segments").alias("flight"),
        (pl.col("first_flight_lost") > 0).alias("simulated"),
        (flight_bytes > pl.col("buffer_bytes")).alias("queue"),
        (flight_bytes > pl.col("buffer_bytes") + PACKET_BYTES).alias("wire"),
        (flight_bytes > pl.col("buffer_bytes") + pipe_bytes).alias("pipe"),
    )


@kept
def shares(run: Run, year: int) -> pl.DataFrame:
    """By `iw`, of the country's homes in percent: overfilled in simulation and by each rule, and how many homes a rule
    tells right (`queue_right`, ...); `flight`, segments of the median first flight.
    """
    return (
        national(overfilled(run, year))
        .group_by("iw", maintain_order=True)
        .agg(
            pl.col("flight").median(),
            *(_percent(pl.col(name)).alias(name) for name in ("simulated", *RULES)),
            *(_percent(pl.col(name) == pl.col("simulated")).alias(f"{name}_right") for name in RULES),
        )
        .sort("iw")
    )


def by_technology(run: Run, year: int, iw: int) -> dict[str, float]:
    """Overfilled homes in simulation, percent of a technology's homes, each home counting once."""
    own = overfilled(run, year).filter(pl.col("iw") == iw)
    return dict(
        own.group_by("technology", maintain_order=True)
        .agg(100 * pl.col("simulated").mean())
        .sort("technology")
        .iter_rows()
    )


def _percent(condition: pl.Expr) -> pl.Expr:
    return 100 * (condition * pl.col("weight")).sum() / pl.col("weight").sum()
