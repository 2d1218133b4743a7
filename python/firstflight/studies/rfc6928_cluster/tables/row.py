"""One figure of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight.analysis.intervals import Estimate

UNITS = {
    "mean": "ms",
    "p50": "ms",
    "p90": "ms",
    "p99": "ms",
    "gain": "ms",
    "gain_percent": "percent",
    "slow_gain_percent": "percent",
    "rate_iw3": "percent",
    "rate_iw10": "percent",
    "latency_iw3": "ms",
    "responses": "count",
    "share": "percent",
    "rate": "percent",
    "rise": "points",
    "clean": "percent",
    "change": "ms",
    "change_percent": "percent",
    "unfinished": "count",
}


def row(
    place: Mapping[str, Any], metric: str, found: Estimate, published: float | None = None, unit: str | None = None
) -> dict[str, Any]:
    """The tidy row of a metric; its unit by the metric's name unless given."""
    figures = {"ours": found.value, "low": found.low, "high": found.high, "published": published}
    return {**place, "metric": metric, **figures, "unit": UNITS[metric] if unit is None else unit}
