"""Which results depend on cells that a run lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from .quantity import Quantities

Result = TypeVar("Result")
# Times the median of a quantity: far enough that a least or a largest value takes it in, near enough that a share does.
_FILLS = (-1e6, 1e6)


def depending(
    results: Callable[[Quantities], Sequence[Result]],
    quantities: Quantities,
    keys: Sequence[str],
    differ: Callable[[Result, Result], bool],
) -> list[tuple[Result, list[dict[str, Any]]]]:
    """Each result with the cells without data that it depends on: those of which two fills give two results.

    Without a missing cell `results` is called once. xarray's reductions skip NaN, so a result alone does not show it. A
    comparison for equality is false of both fills, and is not seen: compare by a difference.
    """
    found = list(results(quantities))
    lacking: list[list[dict[str, Any]]] = [[] for _ in found]
    absent = quantities.absent(keys).stack(cell=list(keys))
    cells = absent["cell"].values[absent.values]
    # A missing cell would hide that another one is needed, so all have values, each its own.
    fills = xr.ones_like(absent, dtype=float)
    fills[absent.values] += np.arange(len(cells)) / (len(cells) or 1)
    fills = fills.unstack("cell")
    for cell in cells:
        place = dict(zip(keys, cell, strict=True))
        trials = []
        for fill in _FILLS:
            changed = fills.copy()
            changed.loc[place] = fill
            trials.append(results(quantities.filled(changed)))
        for needed, own, other in zip(lacking, *trials, strict=True):
            if differ(own, other):
                needed.append(place)
    return list(zip(found, lacking, strict=True))
