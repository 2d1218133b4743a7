"""95% CIs over replicates.

The replicate is the unit: pages and transfers within one replicate share a queue and are not independent, replicates
are. A value is that of the rows of all replicates together.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from firstflight._native import student_quantile

Values = npt.NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% CI; `low` and `high` are NaN with fewer than two replicates."""

    value: float
    low: float = math.nan
    high: float = math.nan
    replicates: int = 0

    def times(self, factor: float) -> Estimate:
        """In another unit, such as a share in percent."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high, self.replicates)


def t_quantile(replicates: int) -> float:
    """Two-sided 95% quantile of Student's t with `replicates` - 1 degrees of freedom."""
    if replicates < 2:
        return math.nan
    return student_quantile(replicates - 1, (1 + CONFIDENCE) / 2)


def normal_quantile() -> float:
    """Two-sided 95% quantile of the normal law, in standard deviations."""
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def ratio(above: Values, below: Values) -> Estimate:
    """Sum of `above` over sum of `below`, one number of each per replicate, in the order of the replicates.

    A mean or a share over all replicates; with `below` all alike the mean over replicates. The interval is that of the
    delete-one jackknife (Tukey) with Student's t; for a mean over replicates this is Student's own.
    """
    n, whole = len(above), float(below.sum())
    value = float(above.sum()) / whole if whole else math.nan
    rest = whole - below
    if n < 2 or not rest.all():
        return Estimate(value, replicates=n)
    return jackknife(value, (above.sum() - above) / rest)


def jackknife(value: float, without: Values) -> Estimate:
    """`value`, and the interval of the delete-one jackknife from the values `without` each replicate in turn."""
    n = len(without)
    if n < 2:
        return Estimate(value, replicates=n)
    half = t_quantile(n) * math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    return Estimate(value, value - half, value + half, n)


def quantile(values: Values, weights: Values, replicates: Values, p: float, counted: bool) -> Estimate:
    """Quantile `p` of all `values` (rows,), which are infinite where something did not finish, over all `replicates`.

    `counted`: a weight is the number of rows of that value, and the quantile lies at place p (n - 1) of n in ascending
    order, interpolated; otherwise it is the least value with a share `p` of the weight at or below. The interval is
    Woodruff's (1952): that of the share of values up to the quantile, by replicate with Student's t, read back as
    quantiles. Its ends are NaN with one replicate, and where they lie beyond all values that are there.
    """
    order = np.argsort(values, kind="stable")
    values, weights, replicates = values[order], weights[order], replicates[order]
    cumulated = np.cumsum(weights)

    def at_weight(weight: float) -> float:
        # Rounding may leave the sum of weights below the whole.
        return float(values[min(int(np.searchsorted(cumulated, weight * (1 - 1e-12))), len(values) - 1)])

    value = at_weight(p * cumulated[-1])
    if counted:
        place = p * (cumulated[-1] - 1)
        below, above = (float(values[np.searchsorted(cumulated, end, "right")]) for end in (place // 1, -(-place // 1)))
        value = below + (above - below) * (place % 1) if below < above else below
    of, place_of = np.unique(replicates, return_inverse=True)
    if len(of) < 2 or math.isinf(value):
        return Estimate(value, replicates=len(of))
    totals = np.bincount(place_of, weights)
    passed = np.bincount(place_of, weights * (values <= value))
    off = passed - passed.sum() / totals.sum() * totals
    half = t_quantile(len(of)) * math.sqrt(len(of) / (len(of) - 1) * float((off**2).sum())) / float(totals.sum())
    ends = (at_weight((p - half) * cumulated[-1]), at_weight((p + half) * cumulated[-1]))
    if p - half < 0 or p + half > 1 or math.isinf(ends[1]):
        return Estimate(value, replicates=len(of))
    return Estimate(value, min(ends[0], value), max(ends[1], value), len(of))


def seed_of(study: str, quantity: str, cell: object = ()) -> int:
    """The seed of the resamples of a quantity in a cell: independent of other computations and of their order."""
    name = repr((study, quantity, cell)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())
