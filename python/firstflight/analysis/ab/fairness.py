"""Jain's index of fairness, of one sample and of two arms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import of_sample
from firstflight.analysis.ab.design import Design
from firstflight.analysis.ab.sample import read
from firstflight.analysis.ab.statistic import Jain

Values = npt.NDArray[np.float64]


def jain_index(values: Sequence[float] | Values, weights: Sequence[float] | Values | None = None) -> float:
    """(Σ w x)² / (Σ w · Σ w x²): 1 where all get the same, 1/n where one of n gets all; NaN where all get nothing.

    `values` (flows,), the allocation of each, throughput say; `weights` (flows,), 1 by default. ValueError for a
    value or weight that is not a number or negative, and without values.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(x) == 0 or len(x) != len(w):
        raise ValueError(f"Jain's index of {len(x)} values with {len(w)} weights: give as many, and at least one")
    if not (x >= 0).all() or not (w >= 0).all() or np.isinf(x).any():
        raise ValueError("Jain's index: every value and weight is a finite number of at least 0")
    return _index(float(w.sum()), float(w @ x), float(w @ x**2))


def compare_jain(frame: pl.DataFrame | pl.LazyFrame, value: str, design: Design) -> Comparison:
    """Jain's index of `value` (the allocation of a row, at least 0) over all rows of an arm. The rest as `compare`."""
    sample = read(frame, [value], design, unfinished_last=False).sample()
    if any((side.values < 0).any() for side in (sample.baseline, sample.treatment)):
        raise ValueError(f"{value}: Jain's index is of values of at least 0")
    return of_sample(sample, Jain, "jain", design)


def _index(flows: float, got: float, squares: float) -> float:
    return got**2 / (flows * squares) if flows * squares else math.nan
