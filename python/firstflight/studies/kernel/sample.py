"""Quantities of units that are drawn again together, such as the users of a subnet, whose paths are alike.

A draw takes as many clusters as there are, at random, the same in every cell with as many: arms stay paired. Means are
sums of clusters; percentiles are smoothed (`analysis.ab.statistic`), and the share below them is resampled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.ab.contrast import LEAST_BLOCKS, least_units
from firstflight.analysis.ab.resampling import Blocks, Places
from firstflight.analysis.ab.sample import ArmRows
from firstflight.analysis.ab.statistic import Quantile

if TYPE_CHECKING:
    from firstflight.records import Run
    from firstflight.studies.kernel.quantity import Sampled

Array = np.ndarray[Any, np.dtype[np.float64]]
Labels = Mapping[str, Sequence[Any]]
# Dimensions and coordinates in addition to the keys of a grid.
DRAW, REPLICATE, PERCENTILE, METHOD = "draw", "replicate", "percentile", "interval"
MEMBERS = "members"
"""The interval of an ensemble: the spread of its members."""
_CLUSTER = "_cluster"
RESAMPLES = 500
"""Enough for the ends of a 95% CI to stay within about a twentieth of its width."""


@dataclass(frozen=True)
class Sample:
    """Units of resampling, one row each.

    `rows` returns the units of the cells with the same labels except for the keys `together`, which are columns; those
    that no quantity reads are not computed. `cluster` names the columns of units that are drawn together.
    """

    rows: Callable[[Run, Mapping[str, Any]], pl.LazyFrame]
    cluster: tuple[str, ...]
    together: tuple[str, ...] = ()


def draws(
    run: Run,
    sample: Sample,
    quantities: Sequence[Sampled],
    coordinates: Labels,
    cells: Sequence[Mapping[str, Any]],
    grid: Mapping[str, Any],
) -> dict[Sampled, xr.DataArray]:
    """Value and resamples of each quantity in the run's `cells` of a grid, which `grid` names. A piece is read once."""
    labels = {of: of.all_labels(coordinates) for of in quantities}
    arrays = {of: np.full([*map(len, axes.values()), 1 + RESAMPLES], np.nan) for of, axes in labels.items()}
    fixed = [key for key in coordinates if key not in sample.together]
    for values in dict.fromkeys(tuple(cell[key] for key in fixed) for cell in cells):
        piece = dict(zip(fixed, values, strict=True))
        selection = [of for of in quantities if all(label in labels[of][key] for key, label in piece.items())]
        if not selection:
            continue
        columns = {*sample.cluster, *sample.together}.union(*(of.columns() for of in selection))
        rows = sample.rows(run, {**grid, **piece}).select(sorted(columns)).collect(engine="in-memory")
        cluster = _numbered(rows.select(sample.cluster))
        rows = rows.with_columns(pl.Series(_CLUSTER, cluster))
        drawn = _drawn(int(cluster.max(initial=-1)) + 1)
        known = {key: set(rows[key].unique()) for key in sample.together}
        alike: dict[object, list[Sampled]] = {}
        for quantity in selection:
            left = {key: of for key, of in labels[quantity].items() if key not in piece}
            if quantity.percentiles:
                _put(arrays[quantity], labels[quantity], piece, _percentiles(quantity, rows, left, drawn))
            else:
                alike.setdefault((id(quantity.where), id(quantity.weight), repr(left)), []).append(quantity)
        for same in alike.values():
            left = {key: of for key, of in labels[same[0]].items() if key not in piece}
            # Of cells that the run lacks there is not even a sum.
            there = {key: [label for label in left[key] if label in known[key]] for key in sample.together}
            made = _sums(same, rows, left | there, drawn)
            for quantity, drawn_values in zip(same, made, strict=True):
                _put(arrays[quantity], labels[quantity], piece | there, drawn_values)
    numbers = {DRAW: np.arange(1 + RESAMPLES)}
    return {of: xr.DataArray(arrays[of], {**axes, **numbers}) for of, axes in labels.items()}


def _put(array: Array, labels: Labels, at: Mapping[str, Any], values: Array) -> None:
    """Write the draws at these labels, one or a list of a dimension. xarray's own way took a tenth of a report."""
    places: list[list[int]] = []
    for key, known in labels.items():
        selection = at.get(key, known)
        places.append([known.index(label) for label in (selection if isinstance(selection, list) else [selection])])
    array[np.ix_(*places, range(array.shape[-1]))] = values.reshape([*map(len, places), array.shape[-1]])


@cache
def _drawn(clusters: int) -> Array:
    """The number of times that each cluster is drawn: once in draw 0, at random in the others."""
    picked = np.random.default_rng(clusters).integers(0, max(clusters, 1), (RESAMPLES, clusters))
    counts = [np.bincount(row, minlength=clusters) for row in picked]
    return np.array([np.ones(clusters), *counts], dtype=np.float64)


def _numbered(clusters: pl.DataFrame) -> Array:
    """The number of each row's cluster, from 0, in the order of their columns."""
    starts = _starts(clusters)
    code = np.zeros(len(starts), dtype=np.int64)
    for column in clusters[starts]:
        places = column.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        code = code * (1 + places.max(initial=0)) + places
    there = np.zeros(code.max(initial=-1) + 1, dtype=bool)
    there[code] = True
    numbers: Array = np.repeat((np.cumsum(there) - 1)[code], np.diff(starts, append=clusters.height))
    return numbers


def _starts(rows: pl.DataFrame) -> Places:
    """Where runs of equal rows begin: those of a user, or of a cluster, follow one another."""
    changed = pl.any_horizontal(pl.all().ne_missing(pl.all().shift()))
    # The first row has no other before it, which says nothing if it is null itself.
    return rows.select((changed | (pl.int_range(pl.len()) == 0)).arg_true()).to_series().to_numpy()


def _sums(quantities: Sequence[Sampled], rows: pl.DataFrame, labels: Labels, drawn: Array) -> list[Array]:
    """Means or sums of quantities of the same units."""
    weight, where = quantities[0].weight, quantities[0].where
    values = [of.value if weight is None else of.value * weight for of in quantities]
    terms = [pl.lit(1), *([] if weight is None else [weight]), *values]
    counted = terms if where is None else [pl.when(where).then(of).otherwise(0) for of in terms]
    keys = rows.select(*labels, _CLUSTER)
    starts = _starts(keys)
    keys = keys[starts]
    at = np.stack([*(_places(keys[key], of) for key, of in labels.items()), keys[_CLUSTER].to_numpy()])
    kept = (at >= 0).all(axis=0)
    shape = (*map(len, labels.values()), drawn.shape[-1])
    place = np.ravel_multi_index(tuple(at[:, kept]), shape)
    units = rows.select(of.cast(pl.Float64).fill_null(0).alias(str(index)) for index, of in enumerate(counted))
    sums = [np.add.reduceat(of.to_numpy(), starts) for of in units]
    columns = np.stack([np.bincount(place, of[kept], math.prod(shape)) for of in sums]).reshape(len(sums), *shape)
    count, there = columns[0].sum(axis=-1), (columns[0] > 0).sum(axis=-1)
    used = columns if weight is None else columns[1:]
    below, *totals = (used.reshape(-1, shape[-1]) @ drawn.T).reshape(*used.shape[:-1], len(drawn))
    few = (count < least_units("mean")) | (there < np.minimum(LEAST_BLOCKS, count))
    below[below == 0] = np.nan
    means = [total if of.summary == "sum" else total / below for of, total in zip(quantities, totals, strict=True)]
    for made in means:
        made[..., 1:][few] = np.nan
    return means


def _places(column: pl.Series, labels: Sequence[Any]) -> Places:
    """The index of each row's label among these; -1 for another."""
    places = {label: place for place, label in enumerate(labels)}
    if isinstance(column.dtype, pl.Enum):
        of_name = pl.Series([places.get(name, -1) for name in column.dtype.categories], dtype=pl.Int64)
        return of_name.gather(column.to_physical()).fill_null(-1).to_numpy()
    return column.replace_strict(places, default=-1, return_dtype=pl.Int64).to_numpy()


def _percentiles(quantity: Sampled, rows: pl.DataFrame, labels: Labels, drawn: Array) -> Array:
    """Percentiles of the value; infinite where too few finished."""
    others = {key: of for key, of in labels.items() if key != PERCENTILE}
    percentiles = np.full([*map(len, labels.values()), len(drawn)], np.nan)
    count = drawn.shape[-1]
    blocks = Blocks(np.arange(count), np.array([count]))
    for place in itertools.product(*(enumerate(of) for of in others.values())):
        here = [pl.col(key) == label for key, (_, label) in zip(others, place, strict=True)]
        units = rows if quantity.where is None else rows.filter(quantity.where)
        weights = (pl.lit(1.0) if quantity.weight is None else quantity.weight).alias("weight")
        cell = (
            units.filter(*here).select(quantity.value.cast(pl.Float64).alias("value"), weights, _CLUSTER).sort("value")
        )
        if not cell.height:
            continue
        cluster = cell[_CLUSTER].to_numpy()
        weight = cell["weight"].to_numpy()
        arm = ArmRows(
            cell["value"].to_numpy().reshape(-1, 1), weight, cluster, np.zeros(count, int), cell.height, 0, 0, 0
        )
        # Kish: units of equal weight with the same information as these.
        worth = round(weight.sum() ** 2 / (weight**2).sum())
        there = np.count_nonzero(np.bincount(cluster))
        made = [Quantile(arm, blocks, weight, percentile / 100) for percentile in quantity.percentiles]
        sums = np.split(np.concatenate([of.columns for of in made]) @ drawn.T, len(made))
        for at, (percentile, of) in enumerate(zip(quantity.percentiles, made, strict=True)):
            few = worth < least_units(f"p{percentile}") or there < min(LEAST_BLOCKS, cell.height)
            values = of.of(sums[at][:, :1] if few else sums[at])
            percentiles[(*(index for index, _ in place), at)][: len(values)] = values
    return percentiles
