"""Laws of latencies whose true means and quantiles are known, skewed as real ones are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_UNTOUCHED, _LEAST = 0.2, 0.7


@dataclass(frozen=True)
class Latency:
    """A lognormal time (median `median_s`, `sigma` of its logarithm) and, for a share of flows, a timeout in addition.

    The treatment leaves a fifth of the flows as they are and shortens the others to a factor drawn evenly from 0.7 to
    1.
    """

    median_s: float = 0.3
    sigma: float = 0.8
    timeouts: float = 0.03
    timeout_s: float = 1.0

    def baseline(self, count: int, draw: np.random.Generator) -> Values:
        """Latencies of `count` flows, seconds."""
        times: Values = self.median_s * np.exp(self.sigma * draw.standard_normal(count))
        return times + self.timeout_s * (draw.random(count) < self.timeouts)

    def treatment(self, baseline: Values, draw: np.random.Generator) -> Values:
        """The same flows treated."""
        factor = np.where(draw.random(len(baseline)) < _UNTOUCHED, 1.0, draw.uniform(_LEAST, 1.0, len(baseline)))
        return np.asarray(baseline * factor, dtype=np.float64)

    @property
    def mean(self) -> float:
        """Of the baseline."""
        return self.median_s * math.exp(self.sigma**2 / 2) + self.timeouts * self.timeout_s

    @property
    def treated_mean(self) -> float:
        """Of the treatment."""
        return self.mean * (_UNTOUCHED + (1 - _UNTOUCHED) * (1 + _LEAST) / 2)

    def share_within(self, time: float) -> float:
        """Share of the baseline's flows that take no more than `time`."""
        from scipy.special import ndtr

        late = [(1 - self.timeouts, 0.0), (self.timeouts, self.timeout_s)]
        return sum(
            share * float(ndtr(math.log((time - jump) / self.median_s) / self.sigma))
            for share, jump in late
            if time > jump
        )

    def treated_share_within(self, time: float) -> float:
        """The same of the treatment."""
        nodes, weights = self._quadrature
        shortened = sum(w * self.share_within(time / factor) for factor, w in zip(nodes, weights, strict=True))
        return _UNTOUCHED * self.share_within(time) + (1 - _UNTOUCHED) * shortened

    def quantile(self, p: float) -> float:
        """Of the baseline."""
        return _root(lambda time: self.share_within(time) - p)

    def treated_quantile(self, p: float) -> float:
        """Of the treatment."""
        return _root(lambda time: self.treated_share_within(time) - p)

    @cached_property
    def _quadrature(self) -> tuple[list[float], list[float]]:
        nodes, weights = np.polynomial.legendre.leggauss(64)
        return list((1 + _LEAST + (1 - _LEAST) * nodes) / 2), list(weights / 2)


def _root(function: Callable[[float], float]) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, 1e-6, 1e3, xtol=1e-12))
