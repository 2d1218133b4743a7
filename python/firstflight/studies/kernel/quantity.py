"""Quantities: what the records say, as arrays with the grid's dimensions and one more, `draw`.

Draw 0 is the value over all replicates. Draw i leaves replicate i out (Tukey's delete-one jackknife), in all cells at
once: cells with the same seed share their random numbers, and arithmetic between cells keeps them paired. An interval
comes out of the draws at the end (`estimate`); no study computes one.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.intervals import Estimate, t_quantile

if TYPE_CHECKING:
    from firstflight.records import Run

DRAW = "draw"


@dataclass(frozen=True)
class Quantity:
    """A measure of one replicate of one cell: `value`, an aggregate of the rows of `records` that pass `where`.

    `by` names columns of the records that become dimensions beside the grid's. `unit` is what `value` is in; it is
    written here and nowhere else.
    """

    name: str
    title: str
    unit: str
    value: pl.Expr
    where: pl.Expr | None = None
    records: Literal["transfers", "pages", "links", "streams", "users"] = "transfers"
    by: tuple[str, ...] = ()
    digits: int = 1

    def measure(self, run: Run, coordinates: Mapping[str, Sequence[Any]]) -> xr.DataArray:
        """The quantity in every cell of `coordinates`, dimensions `(*coordinates, *by, draw)`; NaN where `run` has no
        data.
        """
        keys = [*coordinates, *self.by]
        where = pl.lit(True) if self.where is None else self.where
        needed = {*keys, "replicate", *self.value.meta.root_names(), *where.meta.root_names()}
        # Sums of floating-point numbers depend in the last digit on how a lazy frame is cut into parts.
        read = getattr(run, self.records).select(sorted(needed)).filter(where).collect()
        rows = (
            read.group_by(*keys, "replicate", maintain_order=True)
            .agg(self.value.cast(pl.Float64).alias("value"))
            .with_columns(pl.col(name).cast(pl.String) for name in self.by)
        )
        labels = dict(coordinates) | {name: rows[name].unique().sort().to_list() for name in self.by}
        replicates = max(rows["replicate"].max() or 0, 0) + 1
        values = np.full([*(len(found) for found in labels.values()), replicates], np.nan)
        places = [{label: place for place, label in enumerate(found)} for found in labels.values()]
        for *point, replicate, value in rows.select(*keys, "replicate", "value").iter_rows():
            values[(*(at[label] for at, label in zip(places, point, strict=True)), replicate)] = value
        attributes = {"long_name": self.title, "units": self.unit, "digits": self.digits}
        return xr.DataArray(
            _draws(values), {**labels, DRAW: np.arange(replicates + 1)}, [*labels, DRAW], self.name, attributes
        )


def _draws(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Means over the last axis, replicates: over all, then without each in turn. NaN where one is missing."""
    count = values.shape[-1]
    total = values.sum(axis=-1, keepdims=True)
    without = (total - values) / (count - 1) if count > 1 else np.full_like(values, np.nan)
    return np.concatenate([total / count, without], axis=-1)


class Quantities:
    """A study's quantities of one run, by name: `q.completion_time`. AttributeError names what there is."""

    def __init__(self, arrays: Mapping[str, xr.DataArray]) -> None:
        self._arrays = dict(arrays)

    def __getattr__(self, name: str) -> xr.DataArray:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(f'no quantity "{name}"; there are {", ".join(self._arrays)}') from None

    def absent(self, keys: Sequence[str]) -> xr.DataArray:
        """Whether a cell of the grid has no data for at least one quantity; dimensions `keys`."""
        gaps = []
        for array in self._arrays.values():
            value = array.isel({DRAW: 0})
            gaps.append(value.isnull().all([name for name in value.dims if name not in keys]))
        return functools.reduce(operator.or_, gaps)

    def filled(self, fills: xr.DataArray) -> Quantities:
        """The same with values where there are none: `fills`, by cell, times the median of the quantity."""
        return Quantities({name: array.fillna(fills * _scale(array)) for name, array in self._arrays.items()})


def _scale(array: xr.DataArray) -> float:
    median = abs(float(array.median()))
    return median if median > 0 else 1.0


def named(array: xr.DataArray, name: str, title: str, unit: str, digits: int = 1) -> xr.DataArray:
    """A derived quantity with what tables and figures write at it."""
    return array.rename(name).assign_attrs(long_name=title, units=unit, digits=digits)


def estimate(array: xr.DataArray) -> Estimate:
    """The value and its 95 % interval (Student's t on the jackknife's standard error) of an array over `draw` alone.

    The interval is NaN with fewer than two replicates. ValueError where other dimensions are left.
    """
    left = [str(name) for name in array.dims if name != DRAW]
    if left:
        raise ValueError(f'"{array.name}" still has the dimensions {", ".join(left)}; select or reduce them')
    if DRAW not in array.dims:
        return Estimate(float(array))
    value, without = float(array[0]), array.values[1:]
    count = len(without)
    if count < 2:
        return Estimate(value, replicates=count)
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = t_quantile(count) * error
    return Estimate(value, value - half, value + half, count)


def plain(label: Any) -> Any:
    """A label as a Python value, not as NumPy's."""
    return label.item() if hasattr(label, "item") else label
