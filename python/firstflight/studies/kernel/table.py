"""Tables of quantities."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import xarray as xr

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.errors import RequestError
from firstflight.studies.kernel.quantity import estimates
from firstflight.studies.kernel.sample import DRAW


def table(
    name: str,
    title: str,
    caption: str,
    quantities: Sequence[xr.DataArray],
    across: str | None = None,
    published: Mapping[tuple[Any, ...], float] | None = None,
    notes: Sequence[str] = (),
    near: Mapping[str, tuple[Literal["relative", "absolute"], float]] | None = None,
    misprints: Collection[tuple[Any, ...]] = (),
    order: Sequence[str] = (),
) -> Table:
    """One row per cell and one metric per quantity, with its interval; `across` spreads a dimension over columns.

    `quantities` have the same dimensions; those of `order` come first. `published` maps (quantity, *labels) to the
    printed value; `misprints` are known to be wrong; `near` gives the range of a quantity that counts as close. A cell
    without data has no row.
    """
    for of in quantities:
        if {*of.dims, DRAW} != {*quantities[0].dims, DRAW}:
            raise RequestError(
                f'table "{name}": {of.name} has the dimensions {_dims(of)}, and {quantities[0].name} has '
                f"{_dims(quantities[0])}; select or reduce, or make two tables"
            )
    quantities = [of.transpose(*order, ...) for of in quantities]
    keys = tuple(str(key) for key in quantities[0].dims if key != DRAW)
    rows = []
    for quantity in quantities:
        for row, estimate in estimates(quantity, keys):
            printed = (published or {}).get((quantity.name, *row.values()))
            rows.append(
                row
                | {"metric": quantity.name, "ours": estimate.value, "low": estimate.low, "high": estimate.high}
                | {"published": printed, "unit": quantity.attrs["units"]}
            )
    metrics = tuple(
        Metric(str(of.name), of.attrs["long_name"], of.attrs["digits"], *(near or {}).get(str(of.name), ()))
        for of in quantities
    )
    wrong = frozenset(tuple(map(str, place)) for place in misprints)
    return Table(name, title, caption, keys, rows_frame(keys, rows), across, metrics, tuple(notes), misprints=wrong)


def _dims(of: xr.DataArray) -> str:
    return ", ".join(str(key) for key in of.dims if key != DRAW) or "none"
