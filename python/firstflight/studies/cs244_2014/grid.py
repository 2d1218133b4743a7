"""The users, their bandwidths, and the cells of the study.

A cell's key is `path` and `iw`: what bounds a user's rate, and the server's initial window in segments.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).parent
NAME = "cs244-2014"
ROUND_TRIP_S = 0.070
PACKET_BYTES = 1500
TEN = 10
LINE = "line"
"""The path that transmits packet after packet; the only one that is emulated."""


@cache
def settings() -> dict[str, Any]:
    """The content of `study.toml`."""
    with (HERE / "study.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def rates_kbps(users: int) -> tuple[float, ...]:
    """Bandwidths of so many users, slowest first: user i at the quantile (i + 1/2) / users of SlowDC.

    Between the points of `reference/slowdc_bandwidth.csv` the logarithm of the rate goes in a straight line.
    """
    points = pl.read_csv(
        (HERE / "reference" / "slowdc_bandwidth.csv").read_bytes(), schema_overrides={"rate_kbps": pl.Float64}
    )
    places = list(points.select("cumulative_probability", "rate_kbps").iter_rows())
    return tuple(_at((user + 0.5) / users, places) for user in range(users))


def _at(probability: float, places: list[tuple[float, float]]) -> float:
    after = next(index for index, (share, _) in enumerate(places) if share >= probability)
    (low, slow), (high, fast) = places[after - 1], places[after]
    rate: float = slow * (fast / slow) ** ((probability - low) / (high - low))
    # Whole bits a second, as a scenario writes them.
    return round(1000 * rate) / 1000


@cache
def edges_kbps() -> tuple[float, ...]:
    """Upper edges of the source's bandwidth buckets; the last is infinite."""
    return tuple(
        pl.read_csv((HERE / "reference" / "bandwidth_buckets.csv").read_bytes())["upper_edge_kbps"].cast(pl.Float64)
    )


def bucket(rate_kbps: float) -> int:
    """Index of the bucket that a rate falls into; an edge belongs to the bucket below it."""
    return next(index for index, edge in enumerate(edges_kbps()) if rate_kbps <= edge)


def bucket_name(index: int) -> str:
    """How the source's figure labels the bucket: by its upper edge, kbit/s."""
    edges = edges_kbps()
    return f"> {edges[index - 1]:g}" if math.isinf(edges[index]) else f"<= {edges[index]:g}"


def ten_segments_fit_kbps() -> float:
    """The rate at which ten full segments take one round trip to transmit; below it they do not fit one."""
    return _fill_round_trip_kbps(TEN)


def always_busy_kbps(initial_window: int) -> float:
    """The rate up to which a first flight keeps the link busy until its first acknowledgement has let out more: what
    follows the first segment takes a round trip. Below it a larger window gains nothing.
    """
    return _fill_round_trip_kbps(initial_window - 1)


def _fill_round_trip_kbps(segments: int) -> float:
    return segments * PACKET_BYTES * 8 / ROUND_TRIP_S / 1000


def paths() -> list[str]:
    """What bounds a user's rate, by name; the line comes first."""
    return list(settings()["paths"])


def scenario(users: int, iw: int, path: str = LINE) -> Scenario:
    """So many users and the server's initial window."""
    base = _base()
    spoke = base.to_dict()["network"]["spokes"][0] | settings()["paths"][path]
    spokes = [spoke | {"rate": f"{round(1000 * rate)}bit"} for rate in rates_kbps(users)]
    found = base.replace("network.spokes", spokes).replace("application.response.clients", users)
    return found.replace("application.response.server_tcp", {"initial_window": iw})


def cells(engine: str) -> list[Cell]:
    """One cell per path and initial window; in all every user asks for the same sizes, so that responses pair up."""
    chosen = settings()
    replicates = chosen["replicates_emulated"] if engine == "emulate" else chosen["replicates_simulated"]
    return [
        Cell({"path": path, "iw": iw}, scenario(chosen["users"], iw, path), replicates, capture=True)
        for path in ([LINE] if engine == "emulate" else paths())
        for iw in chosen["initial_windows"]
    ]


@cache
def _base() -> Scenario:
    return Scenario.load(HERE / "scenario.toml")
