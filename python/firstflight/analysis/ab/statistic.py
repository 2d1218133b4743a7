"""The statistics of one arm as functions of weighted sums over its blocks: a mean, a ratio, Jain's index, a quantile.

A plain quantile is a step function of the sample. Where two arms are paired and much alike, the contribution of the
steps to the difference is as large as the difference's own error, and the bootstrap overstates it: a 95% CI covers
99.9%. So a quantile here is where a smoothed share of the weight crosses `p`: a value does not count as passed at one
point but over two standard errors of the quantile to either side (in the logarithm where all values are above 0), by a
kernel of fourth order, whose bias is of the fourth power of that width. The more flows, the nearer to the plain
quantile, from which it stays within a fraction of a standard error. Behind a gap in the values such a kernel would be
off by more; it is made narrower there. The quantile is the plain one, the least value that at least a share `p` of the
weight does not exceed, where that does not help, where so many values are the same that the standard error is 0, and
where those that did not finish are so near that the kernel would reach among them.

The share passed at the quantile is resampled. Its deviation is read back along the curve of the shares
(Woodruff 1952): of one arm whose quantile is the plain one this is the interval between two order statistics.
"""

from __future__ import annotations

import math
import re
from typing import Protocol

import numpy as np
import numpy.typing as npt

from firstflight._native import normal_cdf
from firstflight.analysis.ab.resampling import Blocks
from firstflight.analysis.ab.sample import ArmRows

Values = npt.NDArray[np.float64]


class Statistic(Protocol):
    """A statistic of an arm. `columns` (sums, blocks): the contribution of a block to each sum, its weight to the
    first.
    `bounds`: the least and the greatest that it can be.
    """

    columns: Values
    bounds: tuple[float, float]

    def of(self, sums: Values) -> Values:
        """Its value by the sums of each resample: (sums, resamples) to (resamples,)."""
        ...

    def line(self, sums: Values) -> tuple[Values, Values]:
        """To the first order: its value (resamples,), and its derivative with respect to each sum."""
        ...


class Ratio:
    """The ratio of two weighted sums: a mean where the second is the weight alone."""

    def __init__(self, arm: ArmRows, blocks: Blocks, weight: Values) -> None:
        """`arm.values` (rows, 1) or (rows, 2): numerator and, if it is no mean, denominator. `weight` (rows,)."""
        self.columns = blocks.sums(arm, weight, weight * arm.values[:, 0], *(weight * x for x in arm.values.T[1:]))
        self._below = len(self.columns) - 1 if arm.values.shape[1] == 2 else 0
        above, below = arm.values[:, 0], arm.values[:, 1] if self._below else np.ones(len(arm.values))
        # Part of a whole in every row, or a flag.
        share = (above <= below).all() if self._below else np.isin(above, (0, 1)).all()
        self.bounds = (0.0 if min(above.min(), below.min()) >= 0 else -math.inf, 1.0 if share else math.inf)

    def of(self, sums: Values) -> Values:
        """See `Statistic`. NaN in a resample whose denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            below = np.where(sums[self._below] == 0, np.nan, sums[self._below])
            return np.asarray(sums[1] / below, dtype=np.float64)

    def line(self, sums: Values) -> tuple[Values, Values]:
        """See `Statistic`."""
        value, slope = self.of(sums), np.zeros(sums.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope[1] = 1 / sums[self._below]
            slope[self._below] = -value / sums[self._below]
        return value, slope


class Jain:
    """Jain's index (Σ w x)² / (Σ w · Σ w x²)."""

    bounds = (0.0, 1.0)

    def __init__(self, arm: ArmRows, blocks: Blocks, weight: Values) -> None:
        """`arm.values` (rows, 1), `weight` (rows,)."""
        self.columns = blocks.sums(arm, *(weight * arm.values[:, 0] ** power for power in (0, 1, 2)))

    def of(self, sums: Values) -> Values:
        """See `Statistic`. NaN where all get nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums[1] ** 2 / (sums[0] * sums[2]), dtype=np.float64)

    def line(self, sums: Values) -> tuple[Values, Values]:
        """See `Statistic`."""
        value = self.of(sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            return value, value * np.array([[-1.0], [2.0], [-1.0]]) / sums


def share_of(statistic: str) -> float | None:
    """0.99 of `p99`, 0.999 of `p99.9`, 0.5 of `median`; None of `mean`. ValueError for anything else."""
    if statistic == "mean":
        return None
    if statistic == "median":
        return 0.5
    match = re.fullmatch(r"p(\d+(?:\.\d+)?)", statistic)
    if match is None or not 0 < float(match[1]) < 100:
        raise ValueError(f"statistic: {statistic!r} is not mean, median or p with a percentage between 0 and 100")
    return float(match[1]) / 100


Places = npt.NDArray[np.int64]

_SLACK = 1e-9
"""The share of all weight by which rounding may move a cumulated weight."""
_WIDTHS = (2.0, 1.0, 0.5)
"""Of the kernel, in standard errors of the quantile: the first that leaves the quantile within one of the plain one."""
_REACH = 6.0
"""Search range for the quantiles of resamples around the sample's, in standard errors of the share."""
_KERNEL_END = 6.0
"""Widths beyond which a value is all passed, or not at all."""
_POINTS = 81
_MANY, _BINS = 2_000, 50
"""More values than that are put into this number of bins per width before they are smoothed: the quantile is 1e-9
off.
"""


class Quantile:
    """See `statistic.Statistic`; infinite where too few have finished."""

    def __init__(self, arm: ArmRows, blocks: Blocks, weight: Values, p: float) -> None:
        """`arm.values` (rows, 1), infinite where a transfer did not finish; `weight` (rows,)."""
        values = arm.values[:, 0]
        self.bounds = (0.0 if values.min() >= 0 else -math.inf, math.inf)
        steps = _Steps(values, weight, p)
        self.columns = blocks.sums(arm, weight, weight * steps.passed)
        error = _error(self.columns)
        smooth = _smoothed(steps, values, weight, p, error)
        if smooth:
            self.columns[1:] = blocks.sums(arm, weight * smooth.passed)
        self._p, self._curve = p, smooth or steps
        self.smooth = smooth is not None
        """Whether it is the smoothed one."""
        self._share = float(self.columns[1].sum() / self.columns[0].sum())
        low, self._value, high = (float(end) for end in self._curve.at(np.array([p - error, p, p + error])))
        self._slope = (high - low) / (2 * error) if error and math.isfinite(high) else math.nan
        self.freedom = math.inf if p == 0.5 else 2 * blocks.count * p * (1 - p) / (1 - 2 * p) ** 2
        """Degrees of freedom of the error of a share: how well p(1 - p) is known, by the delta method."""

    def of(self, sums: Values) -> Values:
        """See `Statistic`."""
        return self._curve.at(self._p + sums[1] / sums[0] - self._share)

    def line(self, sums: Values) -> tuple[Values, Values]:
        """See `Statistic`. Where a larger share is passed, the quantile is smaller. One smoothed in the logarithm
        moves in proportion to itself, so that a resample with a larger quantile has a larger error.
        """
        share = sums[1] / sums[0]
        moved = -self._slope * (share - self._share)
        slope = np.full(len(share), self._slope)
        value = self._value + moved
        if isinstance(self._curve, _Smooth) and self._curve.in_logarithm:
            # A line through a gap in the values would lead far beyond those on its other side.
            value = self._value * np.exp(np.clip(moved / self._value, *self._curve.ends - math.log(self._value)))
            slope *= value / self._value
        return value, np.stack([share, np.full(len(share), -1.0)]) * (slope / sums[0])


def _error(columns: Values) -> float:
    """Standard error of the ratio of the second column's sum to the first's."""
    weight, passed = columns.sum(axis=1)
    return math.sqrt(float(((columns[1] - passed / weight * columns[0]) ** 2).sum())) / float(weight)


class _Steps:
    """The plain quantile. `passed` (rows,): whether a value is at most the quantile."""

    def __init__(self, values: Values, weight: Values, p: float) -> None:
        order = np.argsort(values, kind="stable")
        self.values = values[order]
        self.cumulated = np.cumsum(weight[order])
        self.cumulated /= self.cumulated[-1]
        self.passed = (values <= self.at(np.array([p]))[0]).astype(np.float64)

    def at(self, shares: Values) -> Values:
        """The least value that a share does not exceed; the first or last beyond the ends."""
        places = np.searchsorted(self.cumulated, shares - _SLACK)
        return np.asarray(self.values[np.minimum(places, len(self.values) - 1)], dtype=np.float64)


class _Smooth:
    """The smoothed one. `passed` (rows,): how much of a value counts as at most the quantile."""

    def __init__(self, points: Values, shares: Values, in_logarithm: bool) -> None:
        """The share passed at each of the points, which are logarithms or not."""
        self._points, self._shares, self.in_logarithm = points, np.maximum.accumulate(shares), in_logarithm
        self.ends = points[[0, -1]]
        self.passed = np.zeros(0)

    def at(self, shares: Values) -> Values:
        """The value up to which a share passes; the first or last point beyond the ends."""
        points = self.point(shares)
        return np.asarray(np.exp(points) if self.in_logarithm else points, dtype=np.float64)

    def point(self, shares: Values) -> Values:
        """The same as a point."""
        return np.asarray(np.interp(shares, self._shares, self._points), dtype=np.float64)


def _smoothed(steps: _Steps, values: Values, weight: Values, p: float, error: float) -> _Smooth | None:
    """None where so many values are the same that there is nothing to smooth over, where so few finished that the
    kernel or a resample would reach among the others, and where every width leaves the quantile farther than a standard
    error from the plain one: the kernel counts up to 1.04 of a mass of values that lies before a gap.
    """
    finite = int(np.searchsorted(steps.values, math.inf))
    if finite == 0 or (finite < len(values) and p + _REACH * error > steps.cumulated[finite - 1]):
        return None
    in_logarithm = bool(steps.values[0] > 0)
    ordered = np.log(steps.values[:finite]) if in_logarithm else steps.values[:finite]

    def at(share: float) -> float:
        return float(ordered[min(int(np.searchsorted(steps.cumulated, share - _SLACK)), finite - 1)])

    standard_error = (at(p + error) - at(p - error)) / 2
    if standard_error <= 0:
        return None
    cumulated = np.concatenate([[0.0], steps.cumulated])
    for widths in _WIDTHS:
        width = widths * standard_error
        start, end = at(p - _REACH * error) - width, at(p + _REACH * error) + width
        points = np.linspace(start, end, _POINTS)
        first, last = np.searchsorted(ordered, [start - _KERNEL_END * width, end + _KERNEL_END * width])
        near, masses = _binned(ordered[first:last], np.diff(cumulated[first : last + 1]), width / _BINS)
        shares = cumulated[first] + _kernel((points[:, None] - near) / width) @ masses
        smooth = _Smooth(points, shares, in_logarithm)
        quantile = float(smooth.point(np.array([p]))[0])
        if abs(quantile - at(p)) <= standard_error:
            scaled = np.log(values) if in_logarithm else values
            smooth.passed = _kernel((quantile - scaled) / width)
            return smooth
    return None


def _binned(values: Values, weight: Values, bin: float) -> tuple[Values, Values]:
    """Ascending values and their weight; of many, two for each bin, with its mean and variance."""
    if len(values) <= _MANY:
        return values, weight
    place = ((values - values[0]) / bin).astype(np.int64)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    sums = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight * values, starts) / sums
    off = values - np.repeat(mean, np.diff(starts, append=len(values)))
    deviation = np.sqrt(np.add.reduceat(weight * off * off, starts) / sums)
    return np.concatenate([mean - deviation, mean + deviation]), np.concatenate([sums, sums]) / 2


def _kernel(distance: Values) -> Values:
    """Cumulated Gaussian kernel of fourth order."""
    near = np.abs(distance) < _KERNEL_END
    of = np.append(distance[near], [-_KERNEL_END, _KERNEL_END])
    density = np.exp(-(of**2) / 2) / math.sqrt(2 * math.pi)
    cumulated = np.frombuffer(normal_cdf(of)) + of * density / 2
    passed: Values = np.where(distance > 0, cumulated[-1], cumulated[-2])
    passed[np.isnan(distance)] = np.nan
    passed[near] = cumulated[:-2]
    return passed
