"""Values in place of those that a run lacks, which show the results that depend on them."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from firstflight.analysis.intervals import seed_of
from firstflight.studies.kernel.sample import DRAW, METHOD, PERCENTILE, REPLICATE

if TYPE_CHECKING:
    from firstflight.studies.kernel.quantity import Array, Quantity

FROM_ELSEWHERE, RISING = 3, 4


class Filling:
    """The cells of a quantity without data, and the values for them.

    In NumPy, since claims on a part of a run ask for some thousand fillings of small arrays.
    """

    def __init__(self, quantity: Quantity, array: xr.DataArray) -> None:
        self._quantity, self._array = quantity, array
        self._made = cache(self._make)
        # Several trials change the same cells, one after the other.
        self._changed: tuple[xr.DataArray | None, Array] = (None, np.zeros(0))
        self._near = cache(lambda: self._replaced(self._made(0)[0]))

    @cached_property
    def gaps(self) -> xr.DataArray:
        """Whether a cell has no data; the dimensions are the grid's keys."""
        of, array = self._quantity, self._array
        if of.over == "each":
            return array.isnull().all([*of.by, REPLICATE])
        value = array.isel({DRAW: 0}, drop=True).drop_vars(METHOD, errors="ignore")
        return value.isnull().all([*of.by, *([PERCENTILE] if of.percentiles else [])])

    @cached_property
    def is_needed(self) -> bool:
        """Whether cells are to be filled: those missing, but of a partial quantity only if all are."""
        return bool(self.gaps.all() or (self.gaps.any() and not self._quantity.partial))

    def filled(self, changed: xr.DataArray | None, trial: int) -> xr.DataArray:
        """The quantity with a value in each of `gaps`; in those of `changed` another one in each trial.

        Trial values change minima, maxima and shares (far from the median), comparisons and ratios (another sign),
        counts of equal values (values that occur elsewhere), and trends (rising with the labels).
        """
        if changed is None:
            return self._near()
        if changed is not self._changed[0]:
            self._changed = changed, self._spread(changed.reindex_like(self.gaps, fill_value=False))
        near, other = self._made(trial)
        return self._replaced(np.where(self._changed[1], other, near))

    @cached_property
    def _missing(self) -> Array:
        return self._spread(self.gaps)

    def _spread(self, cells: xr.DataArray) -> Array:
        """`cells` with a dimension for each of the quantity's."""
        dims = [key for key in self._array.dims if key in cells.dims]
        spread = tuple(slice(None) if key in dims else None for key in self._array.dims)
        return cells.transpose(*dims).values[spread]

    def _replaced(self, values: Array) -> xr.DataArray:
        return self._array.copy(data=np.where(self._missing, values, self._array.values))

    def _make(self, trial: int) -> tuple[Array, Array]:
        """Values that are the same in all trials, but for the scatter of draws, and those of this one."""
        of, array = self._quantity, self._array
        places = array.values[..., 0] if DRAW in array.dims else array.values
        first = np.random.default_rng(seed_of("fill", of.name))
        if of.kinds:
            kinds = first.integers(0, len(of.kinds), places.shape).astype(float)
            return self._drawn(kinds, np.zeros(1)), self._drawn((kinds + trial) % len(of.kinds), np.zeros(1))
        known = places[~np.isnan(places)]
        scale = (abs(float(np.median(known))) if known.size else 1.0) or 1.0
        near = scale * first.uniform(1, 2, places.shape)
        draw = np.random.default_rng(seed_of("trial", of.name, trial // 2))
        far = scale * 1e6 * 10 ** draw.uniform(0, 3, places.shape)
        if trial == FROM_ELSEWHERE:
            # Quantities of which nothing is known are then equal.
            other = draw.choice(known, places.shape) if known.size else np.ones(places.shape)
        elif trial == RISING:
            # With the label, of one quantity more than of another.
            other = scale * np.linspace(1, 2, places.size).reshape(places.shape) ** first.uniform(1, 9)
        else:
            other = (-1) ** trial * far
        # The replicates scatter as well.
        scatter = draw.uniform(0, 1e-3, array.sizes[DRAW] - 1) if DRAW in array.dims else np.zeros(0)
        scatter = np.concatenate([[0.0], scatter])
        return self._drawn(near, scatter), self._drawn(other, scatter)

    def _drawn(self, values: Array, scatter: Array) -> Array:
        return values[..., None] * (1 + scatter) if DRAW in self._array.dims else values
