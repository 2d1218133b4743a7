"""Values of logarithmic bins, as the histograms of a population that keeps aggregates have them."""

from __future__ import annotations

import math

import polars as pl

from firstflight.records.schema import GAMMA

RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)


def middle(place: pl.Expr) -> pl.Expr:
    """Of the bin of that number the time in seconds that is at most RELATIVE_ERROR (0.5%) away from everything in it:
    DDSketch's guarantee (Masson et al. 2019).
    """
    return place.cast(pl.Float64).mul(math.log(GAMMA)).exp() * (2 / (1 + GAMMA)) / 1e9
