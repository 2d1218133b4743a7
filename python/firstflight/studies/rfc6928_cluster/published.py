"""What RFC 6928 section 10 and the paper's Figure 5 give, as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import polars as pl

from firstflight.populations import dukkipati2010
from firstflight.studies.rfc6928_cluster.grid import AVGDC, HERE, SEARCH, SLOWDC, Place

SEARCH_GAIN = {AVGDC: (68.0, 11.7), SLOWDC: (72.0, 8.7)}
"""Mean gain of web search: ms, percent."""
RETRANSMITTED = {AVGDC: (1.98, 2.29), SLOWDC: (3.54, 4.21)}
"""Overall retransmission rate with IW 3 and IW 10, percent."""
MAPS_RETRANSMITTED = (3.94, 5.79)
"""The same for Maps in SlowDC."""
WITHOUT_RETRANSMISSION = 90.0
"""Share of the traffic of web search and Maps in SlowDC that has none, percent."""
DIMENSIONS = ("rtt", "down", "bdp", "segments")
_SEGMENTS = (3, 4, 7, 10, 15, 30, 50)
"""Upper edges of the paper's Figure 7."""


@dataclass(frozen=True)
class Bar:
    """A bucket of Figure 5: gains of IW 10 over IW 3, and the latency with IW 3 that they imply (ms)."""

    share_percent: float
    gain_ms: float
    gain_percent: float
    latency_ms: float


@cache
def figure5(by: str) -> tuple[Bar, ...]:
    """The bars of a panel, "rtt", "down" or "bdp"; AvgDC, web search."""
    columns = ("share_percent", "gain_ms", "gain_percent", "iw3_latency_ms")
    bars = pl.read_csv(
        (HERE / "reference" / "figure5.csv").read_bytes(), schema_overrides=dict.fromkeys(columns, pl.Float64)
    )
    return tuple(Bar(*row) for row in bars.filter(pl.col("by") == by).select(columns).iter_rows())


def bar(place: Place, by: str, index: int) -> Bar | None:
    """The published bar of a bucket; None for all but AvgDC's web search as its users are, and for segments."""
    known = place == Place(AVGDC, SEARCH) and by in DIMENSIONS[:3]
    return figure5(by)[index] if known else None


@cache
def edges(by: str) -> tuple[float, ...]:
    """Upper edges of the buckets (s, bits/s, bytes, segments); the last is infinite."""
    if by == "segments":
        return (*map(float, _SEGMENTS), math.inf)
    return (*dukkipati2010.edges(by), math.inf)


_SHOWN = {"rtt": 1000.0, "down": 1e-3, "bdp": 1.0, "segments": 1.0}
UNITS = {"rtt": "ms", "down": "kbit/s", "bdp": "bytes", "segments": "segments"}
TITLES = {"rtt": "round trip", "down": "bandwidth", "bdp": "bandwidth-delay product", "segments": "size"}


@cache
def labels(by: str) -> tuple[str, ...]:
    """The buckets as the figure labels them, by their upper edges."""
    shown = [f"{_SHOWN[by] * edge:.0f}" for edge in edges(by)[:-1]]
    return (*(f"<= {edge}" for edge in shown), f"> {shown[-1]}")
