"""The results that depend on cells that a run lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from firstflight.studies.kernel.filling import FROM_ELSEWHERE
from firstflight.studies.kernel.quantity import Quantities

Result = TypeVar("Result")


Lacking = dict[str, dict[str, list[Any]]]
"""By grid and key: the labels of cells without data that a result depends on."""


def depending(
    results: Callable[[Quantities], Iterable[Result]],
    quantities: Quantities,
    differ: Callable[[Result, Result], bool],
    *,
    listed: bool = True,
) -> list[tuple[Result, Lacking]]:
    """Each result with the cells without data that it depends on: it changes with the values filled in for them.

    xarray's reductions skip NaN, so a result alone does not show it. All missing cells are filled at once, several
    times; only if a result changes, those of each grid in turn, and where a part of a grid is missing, of each label of
    each key. Without a missing cell `results` is called once, and never with one empty. Without `listed` such a result
    has all missing cells, which takes some fillings instead of hundreds.
    """
    # A value that is filled in may be a divisor and give infinite numbers.
    with xr.set_options(arithmetic_join="exact"), np.errstate(all="ignore"):  # type: ignore[no-untyped-call]
        absent = {grid: gaps for grid, gaps in quantities.absent().items() if gaps.any()}
        first = quantities.filled(absent, {}, 0)
        found = list(results(first))
        read = first.grids_read()
        lacking: list[Lacking] = [{} for _ in found]
        nowhere = [False] * len(found)

        # Only values are compared, with those of arrays of the same layout: it decides how a sum is rounded.
        values = quantities.values()
        before = list(results(values.filled(absent, {}, 0))) if absent else found

        def changing(gaps: Mapping[str, xr.DataArray], trials: Iterable[int]) -> list[bool]:
            made = []
            for trial in trials:
                filled = values.filled(absent, gaps, trial)
                made.append(list(results(filled)))
                read.update(filled.grids_read())
            return [any(differ(own, other) for other in of) for own, *of in zip(before, *made, strict=True)]

        every = range(quantities.trials)
        needing = changing(absent, every) if absent else []
        if not any(needing):
            return list(zip(found, lacking, strict=True))
        whole = {grid: {str(key): gaps[key].values.tolist() for key in gaps.dims} for grid, gaps in absent.items()}
        # A value that is never read changes nothing.
        for grid, gaps in ((grid, gaps) for grid, gaps in absent.items() if listed and grid in read):
            # Of an experiment that is not there at all only its name is said: two trials are enough.
            nothing = quantities.is_empty(grid)
            depends = changing({grid: gaps}, _TWO_TRIALS if nothing else every)
            for named, needed in zip(lacking, depends, strict=True):
                if needed:
                    named[grid] = dict(whole[grid])
            if nothing or not any(depends):
                continue
            for key, labels in whole[grid].items():
                own = [gaps & (gaps[key] == label) for label in labels]
                by_label = [
                    # Changed already, with the grid.
                    depends if cells.equals(gaps) else changing({grid: cells}, every) if cells.any() else nowhere
                    for cells in own
                ]
                for named, *matters in zip(lacking, *by_label, strict=True):
                    if grid in named and any(matters):
                        named[grid][key] = [label for label, needed in zip(labels, matters, strict=True) if needed]
        for named, needed in zip(lacking, needing, strict=True):
            if needed and not named:
                named |= whole
    return list(zip(found, lacking, strict=True))


_TWO_TRIALS = (1, FROM_ELSEWHERE)
