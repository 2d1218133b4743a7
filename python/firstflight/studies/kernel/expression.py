"""What many studies measure and compare: expressions over the rows of records, and over quantities."""

from typing import Any

import polars as pl
import xarray as xr

from firstflight.errors import RequestError


def percent(part: str, whole: str) -> pl.Expr:
    """The sum of the column `part`, in percent of that of `whole`."""
    return 100 * pl.col(part).sum() / pl.col(whole).sum()


def per_hundred(column: str) -> pl.Expr:
    """The sum of a column of counts, for each hundred rows."""
    return 100 * pl.col(column).sum() / pl.len()


def of(application: str) -> pl.Expr:
    """Whether a row is of this application, or of this group of users such as "page.adopters"."""
    return pl.col("application").cast(pl.String) == application


def jain(rate: pl.Expr) -> pl.Expr:
    """Jain's index of fairness: 1 if all rates are equal, 1/n if one of n has everything."""
    return rate.sum() ** 2 / (pl.len() * (rate**2).sum())


DONE = pl.col("completed") == 1
DOWN = pl.col("from_server") == 1
MEAN_S = pl.col("completion_time_s").mean()
MEAN_MS = 1e3 * MEAN_S
RETRANSMITTED = percent("retransmissions", "segments_sent")
FIRST_FLIGHT_LOST = percent("first_flight_lost_segments", "first_flight_segments")
DROPPED = percent("dropped_packets", "offered_packets")
MEAN_QUEUE = pl.col("queue_mean_packets").mean()


def relative(array: xr.DataArray, **base: Any) -> xr.DataArray:
    """In percent of the value at the labels `base`, such as `iw=3`, in the same cell otherwise. RequestError without a
    base, and for what is no label.
    """
    return 100 * _ratio(array, base)


def change(array: xr.DataArray, **base: Any) -> xr.DataArray:
    """By how many percent it is more than at the labels `base`, as `relative`."""
    return 100 * (_ratio(array, base) - 1)


def _ratio(array: xr.DataArray, base: dict[str, Any]) -> xr.DataArray:
    labels = {key: array[key].values.tolist() for key in base if key in array.dims}
    if not base or any(label not in labels.get(key, ()) for key, label in base.items()):
        raise RequestError(f'the base of "{array.name}" is {base}; write one label of a key, such as iw=3')
    return (array / array.sel(base, drop=True)).assign_attrs(units="percent")
