"""95% CIs over replicates.

The replicate is the unit of every interval: pages and transfers within one replicate share a
queue and are not independent, replicates are. A statistic (a median page delay, say) is taken
within each replicate; its mean over replicates carries Student's t interval. Cells simulated with
the same seed share their random numbers, so differences between cells are taken replicate by
replicate before they are averaged.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

Values = npt.NDArray[np.float64]
CONFIDENCE = 0.95
_RESAMPLES = 500
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% CI; `low` and `high` are NaN with fewer than two replicates."""

    value: float
    low: float = math.nan
    high: float = math.nan
    replicates: int = 0


@lru_cache
def t_quantile(replicates: int) -> float:
    """Two-sided 95% quantile of Student's t with `replicates` - 1 degrees of freedom."""
    if replicates < 2:
        return math.nan
    from scipy.special import stdtrit  # late: half of the start-up time of a short command

    return float(stdtrit(replicates - 1, (1 + CONFIDENCE) / 2))


@lru_cache
def normal_quantile() -> float:
    """Two-sided 95% quantile of the normal law, in standard deviations."""
    from scipy.special import ndtri

    return float(ndtri((1 + CONFIDENCE) / 2))


def student(values: Sequence[float] | Values) -> Estimate:
    """Mean over replicates with Student's t interval. NaN (not measured) values are left out."""
    kept = np.asarray(values, dtype=np.float64)
    kept = kept[~np.isnan(kept)]
    n = len(kept)
    if n == 0:
        return Estimate(math.nan)
    mean = float(kept.mean())
    if n == 1:
        return Estimate(mean, replicates=1)
    half = t_quantile(n) * float(kept.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def summarise(per_replicate: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Mean and interval of column `value` over rows that differ only in `replicate`.

    Returns `keys` + `ours, low, high, replicates`, in the order of first appearance.
    """
    # Sums of floats depend on the order of the rows in the last digit.
    value = pl.col("value").sort_by("replicate")
    summary = (
        per_replicate.filter(pl.col("value").is_not_nan() & pl.col("value").is_not_null())
        .group_by(keys, maintain_order=True)
        .agg(
            value.mean().alias("ours"),
            value.std(ddof=1).alias("deviation"),
            pl.len().alias("replicates"),
        )
    )
    half = [
        None if deviation is None else t_quantile(n) * deviation / math.sqrt(n)
        for deviation, n in summary.select("deviation", "replicates").iter_rows()
    ]
    return summary.with_columns(pl.Series("half", half, dtype=pl.Float64)).select(
        *keys,
        "ours",
        (pl.col("ours") - pl.col("half")).alias("low"),
        (pl.col("ours") + pl.col("half")).alias("high"),
        "replicates",
    )


class Means(Generic[Key]):
    """Means over replicates of one quantity a key, as a statistic sees them; remembers what it read.

    `only`: the replicates to use, some perhaps repeatedly (for resampling); by default all.
    """

    def __init__(self, values: Mapping[Key, Mapping[int, float]], only: Sequence[int] | None = None):
        self._values = values
        self._only = only
        self.read: set[Key] = set()

    def __call__(self, key: Key) -> float:
        """Mean over the replicates of `key`. KeyError if nothing was measured there."""
        kept = self._kept(key)
        return sum(kept) / len(kept)

    def variation(self, key: Key) -> float:
        """Coefficient of variation between the replicates of `key`; NaN with fewer than two."""
        kept = np.array(self._kept(key))
        return float(kept.std(ddof=1) / kept.mean()) if len(kept) > 1 else math.nan

    def _kept(self, key: Key) -> list[float]:
        self.read.add(key)
        values = self._values[key]
        return list(values.values()) if self._only is None else [values[r] for r in self._only if r in values]

    def __contains__(self, key: object) -> bool:
        return key in self._values


def jackknife(values: Mapping[Key, Mapping[int, float]], statistic: Callable[[Means[Key]], float]) -> Estimate:
    """A statistic of many cells' means with a 95% CI.

    `values` maps a key (cell and metric) to its value in each replicate. The value is that of all
    replicates. The interval rests on those that every cell read has in common: the statistic is computed
    from them without each in turn; the spread of these gives the standard error (Tukey's delete-one
    jackknife) and Student's t the interval. For a plain mean this equals `student`. Where a cell has more
    replicates than others, the additional ones count for the value and not for the interval, which is then
    wider than necessary. With fewer than two common replicates the interval is NaN.
    """
    value, common = _value(values, statistic)
    n = len(common)
    if n < 2:
        return Estimate(value, replicates=n)
    without = _without_one(values, statistic, common)
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    half = t_quantile(n) * error
    return Estimate(value, value - half, value + half, n)


def bootstrap(
    values: Mapping[Key, Mapping[int, float]], statistic: Callable[[Means[Key]], float], seed: int
) -> Estimate:
    """A statistic of many cells' means with the 95% CI of resampled replicates (percentile bootstrap).

    For statistics that jump, such as counts, where the jackknife fails. As there, the interval rests on the replicates
    that every cell read has in common, and is NaN with fewer than two.
    """
    value, common = _value(values, statistic)
    if len(common) < 2:
        return Estimate(value, replicates=len(common))
    drawn = np.random.default_rng(seed).choice(sorted(common), (_RESAMPLES, len(common)))
    found = [statistic(Means(values, picked.tolist())) for picked in drawn]
    low, high = np.quantile(found, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), method="inverted_cdf")
    return Estimate(value, float(low), float(high), len(common))


def seed_of(study: str, quantity: str, cell: object = ()) -> int:
    """The seed of the resamples of a quantity in a cell: independent of other computations and of their order."""
    name = repr((study, quantity, cell)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())


def _value(
    values: Mapping[Key, Mapping[int, float]], statistic: Callable[[Means[Key]], float]
) -> tuple[float, set[int]]:
    """The statistic of all replicates, and the replicates that all cells it reads have."""
    means = Means(values)
    value = float(statistic(means))
    common = set.intersection(*(set(values[key]) for key in means.read)) if means.read else set()
    return value, common


def _without_one(
    values: Mapping[Key, Mapping[int, float]], statistic: Callable[[Means[Key]], float], common: set[int]
) -> Values:
    # Deleted from the common ones only: in a cell with ten replicates one of two would hardly show.
    return np.array([statistic(Means(values, sorted(common - {left_out}))) for left_out in sorted(common)])
