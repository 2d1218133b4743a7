"""Tables of quantities."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.studies.kernel.quantity import dims_of, estimates, plain, words
from firstflight.studies.kernel.sample import DRAW


def table(
    name: str,
    title: str,
    caption: str,
    quantities: Sequence[xr.DataArray],
    across: str | None = None,
    published: Mapping[str, xr.DataArray] | None = None,
    notes: Sequence[str] = (),
    near: Mapping[str, tuple[Literal["relative", "absolute"], float]] | None = None,
    misprints: Mapping[str, xr.DataArray] | None = None,
    order: Sequence[str] = (),
) -> Table:
    """One row per cell and one metric per quantity, with its interval; `across` spreads a dimension over columns.

    `quantities` have the same dimensions; those of `order` come first. `published` has the printed values of a
    quantity, and `misprints` which of these are known to be wrong, along some of its dimensions; `near` gives the range
    of a quantity that counts as close. A cell without data has no row.
    """
    if isinstance(quantities, xr.DataArray) or isinstance(notes, str):
        raise RequestError(f'table "{name}": quantities and notes are lists; write [ ... ]')
    if not quantities:
        raise RequestError(f'table "{name}" has no quantity; give at least one')
    metrics = [str(of.name) for of in quantities]
    if twice := [metric for metric in metrics if metrics.count(metric) > 1]:
        raise RequestError(f'table "{name}": two quantities are called "{twice[0]}"; rename one with named(...)')
    # One mapping may serve several tables, and a table may be of a part of the grid.
    if published and not set(published) & set(metrics):
        there = nearest(min(published), metrics)
        raise RequestError(f'table "{name}": published has "{min(published)}", no quantity of the table; {there}')
    for of in quantities:
        if {*of.dims, DRAW} != {*quantities[0].dims, DRAW}:
            raise RequestError(
                f'table "{name}": {of.name} has the dimensions {dims_of(of)}, and {quantities[0].name} has '
                f"{dims_of(quantities[0])}; select or reduce, or make two tables"
            )
    quantities = [of.transpose(*order, ...) for of in quantities]
    keys = tuple(str(key) for key in quantities[0].dims if key != DRAW)
    rows, wrong, formats = [], [], []
    for quantity in quantities:
        metric, (label, unit, digits) = str(quantity.name), words(quantity)
        formats.append(Metric(metric, label, digits, *(near or {}).get(metric, ())))
        printed, misprinted = (
            _lookup((arrays or {}).get(metric), quantity, f'table "{name}": {argument} of "{metric}"')
            for argument, arrays in (("published", published), ("misprints", misprints))
        )
        for row, estimate in estimates(quantity, keys):
            rows.append(
                row
                | {"metric": metric, "ours": estimate.value, "low": estimate.low, "high": estimate.high}
                | {"published": printed(row), "unit": unit}
            )
            if misprinted(row):
                wrong.append((metric, *map(str, row.values())))
    frame = rows_frame(keys, rows)
    return Table(name, title, caption, keys, frame, across, tuple(formats), tuple(notes), misprints=frozenset(wrong))


def _lookup(array: xr.DataArray | None, of: xr.DataArray, where: str) -> Callable[[Mapping[str, Any]], Any]:
    """The value of `array` at a row's labels; None without one. RequestError if `of` has other labels."""
    if array is None:
        return lambda row: None
    keys = [str(key) for key in array.dims]
    for key in keys:
        if key not in of.dims:
            raise RequestError(f'{where} has the dimension "{key}"; the quantity has {dims_of(of)}')
        text, of_text = (labels[key].dtype.kind in "OUT" for labels in (array, of))
        if text != of_text and of.sizes[key]:
            raise RequestError(f"{where} has {'text' if text else 'numbers'} as {key}, and the quantity has not")
    places = itertools.product(*(map(plain, array[key].values) for key in keys))
    values = dict(zip(places, array.values.ravel().tolist(), strict=True))
    return lambda row: values.get(tuple(row[key] for key in keys))


def by_labels(rows: pl.DataFrame, *keys: str) -> xr.DataArray:
    """The column `value` of a published table along its columns `keys`; NaN where it has no row. RequestError for two
    rows of one cell.
    """
    if twice := rows.select(keys).filter(pl.struct(keys).is_duplicated()).rows():
        raise RequestError(f"the published table has two values at {', '.join(map(str, twice[0]))}; keep one")
    array = xr.DataArray(np.nan, {key: rows[key].unique().sort().to_list() for key in keys}, keys)
    for *place, value in rows.select(*keys, "value").iter_rows():
        array.loc[dict(zip(keys, place, strict=True))] = value
    return array
