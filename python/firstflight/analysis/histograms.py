"""Quantiles from histograms in logarithmic bins, as the records of a population that keeps aggregates have them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from firstflight.records.schema import GAMMA

# The value that is at most this share away from everything in its bin.
_MIDDLE = 2 / (1 + GAMMA)
RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)


def quantiles(histograms: pl.LazyFrame, keys: Sequence[str], wanted: Mapping[str, float]) -> pl.LazyFrame:
    """Quantiles of the completion time in seconds, one row per value of `keys` and one column per value of `wanted`
    ({"median": 0.5}), from the columns `bin` and `count`; rows of the same keys and bin are added up.

    Of n values it is the one at place q (n - 1), counted from 0 in ascending order and interpolated between two places,
    as Polars' "linear"; off by at most RELATIVE_ERROR (0.5%), which is DDSketch's guarantee (Masson et al. 2019).
    """
    places = pl.col("count").cast(pl.Float64)
    up_to, last = places.cum_sum(), places.sum() - 1
    value = pl.col("bin").cast(pl.Float64).mul(math.log(GAMMA)).exp() * _MIDDLE / 1e9

    def at(place: pl.Expr) -> pl.Expr:
        return value.filter(up_to > place).first()

    def quantile(q: float) -> pl.Expr:
        place = q * last
        below, above = at(place.floor()), at(place.ceil())
        return below + (above - below) * (place - place.floor())

    return (
        histograms.group_by([*keys, "bin"], maintain_order=True)
        .agg(pl.col("count").sum())
        .sort([*keys, "bin"])
        .group_by(keys, maintain_order=True)
        .agg(quantile(q).alias(name) for name, q in wanted.items())
    )
