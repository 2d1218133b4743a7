"""Which results depend on cells that a run lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import xarray as xr

from .quantity import Quantities

Result = TypeVar("Result")


Lacking = dict[str, dict[str, list[Any]]]
"""By grid and key: the labels of cells without data that a result depends on."""


def depending(
    results: Callable[[Quantities], Sequence[Result]],
    quantities: Quantities,
    differ: Callable[[Result, Result], bool],
) -> list[tuple[Result, Lacking]]:
    """Each result with the cells without data that it depends on: it changes with what is filled in for them.

    xarray's reductions skip NaN, so a result alone does not show it. All missing cells are filled at once, several
    times; only if a result changes, those of each label of each key in turn. Without a missing cell `results` is called
    once, and never with one empty.
    """
    with xr.set_options(arithmetic_join="exact"):  # type: ignore[no-untyped-call]
        absent = {grid: gaps for grid, gaps in quantities.absent().items() if gaps.any()}
        found = list(results(quantities.filled(absent, {}, 0)))
        lacking: list[Lacking] = [{} for _ in found]

        def changing(gaps: Mapping[str, xr.DataArray]) -> list[bool]:
            trials = [results(quantities.filled(absent, gaps, trial)) for trial in range(quantities.trials)]
            return [any(differ(*pair) for pair in pairwise(of)) for of in zip(*trials, strict=True)]

        if absent and any(changing(absent)):
            for grid, gaps in absent.items():
                for key in map(str, gaps.dims):
                    for label in gaps[key].values:
                        own = gaps & (gaps[key] == label)
                        for labels, needed in zip(lacking, changing({grid: own}) if own.any() else (), strict=False):
                            if needed:
                                labels.setdefault(grid, {}).setdefault(key, []).append(label)
    return list(zip(found, lacking, strict=True))
