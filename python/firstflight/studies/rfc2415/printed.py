"""The RFC's printed values, from `reference/`, and the measures that it derives from others."""

from functools import cache
from pathlib import Path

import polars as pl
import xarray as xr

from firstflight.studies.kernel import Quantities, by_labels, by_replicate, mean_of, named

WRONG = xr.DataArray(True, {"webs": [32], "ftps": [0, 1, 2], "iw": [1, 2, 3, 4]}, ["webs", "ftps", "iw"])
"""Places of Table 2 with drop rates that repeat those of 16 webs (`reference/README.md`, error 1)."""
HTTP = {1: "1.0", 2: "1.0", 3: "1.0", 4: "1.1", 5: "1.1"}
WHOLE = 100
"""Percent of the clients mirrored for traffic in the other direction: as many both ways."""
_FTP_POWER = "Network power of file transfers"


@cache
def rows(table: int) -> pl.DataFrame:
    """Table 1 to 6 as `webs, ftps, http, iw, metric, value` (6: also `split`). A delay that a printed decrease implies
    is `median_page_delay` of its IW. `http` and `iw` are text.
    """
    path = Path(__file__).parent / "reference" / f"rfc2415_table{table}.csv"
    types = {"http": pl.String, "iw": pl.String, "value": pl.Float64}
    frame = pl.read_csv(path.read_bytes(), schema_overrides=types)
    return frame.with_columns(pl.col("metric").str.strip_suffix("_derived"))


@cache
def printed(table: int, metric: str) -> xr.DataArray:
    """A column of a table along `webs`, `ftps` and `iw`; of Table 6 that of clients with one window. The wrong drop
    rates are left out and, for 32 webs without ftps, are those of Table 6, which prints IW 1 and 3.
    """
    values = as_printed(table, metric)
    if table != 2 or metric != "packet_drop_rate":
        return values
    return values.where(~WRONG.reindex_like(values, fill_value=False), printed(6, metric).reindex_like(values))


@cache
def as_printed(table: int, metric: str) -> xr.DataArray:
    """The same, misprints and all."""
    records = rows(table).filter(pl.col("metric") == metric, *([pl.col("split") == "none"] if table == 6 else []))
    return by_labels(records.with_columns(pl.col("iw").cast(pl.Int64)), "webs", "ftps", "iw")


def decrease(q: Quantities) -> xr.DataArray:
    """Of the median page delay against IW 1, replicate by replicate, for IW 2 to 4."""
    return decrease_of(q.delay)


def decrease_of(delays: xr.DataArray) -> xr.DataArray:
    """The same of the delays of an experiment, for the larger windows that it has."""
    delay = by_replicate(delays)
    less = mean_of(100 * (1 - delay.isel(iw=slice(1, None)) / delay.sel(iw=1, drop=True)))
    return named(less, "decrease", "Decrease against IW 1", "percent")


def power(q: Quantities) -> xr.DataArray:
    """Network power of web traffic: goodput divided by the median delay, the RFC's definition (section 3)."""
    return named(mean_of(by_replicate(q.goodput) / by_replicate(q.delay)), "power", "Network power", "MB/s")


def relative_power(q: Quantities) -> xr.DataArray:
    """The same against IW 1, replicate by replicate."""
    powers = by_replicate(q.goodput) / by_replicate(q.delay)
    relative = mean_of(powers / powers.sel(iw=1, drop=True))
    return named(relative, "relative_power", "Network power", "times IW 1's", 2)


def file_power(q: Quantities) -> xr.DataArray:
    """Network power of file transfers."""
    return named(mean_of(by_replicate(q.ftp_goodput) / by_replicate(q.file_delay)), "ftp_power", _FTP_POWER, "MB/s", 2)


def beside(of: xr.DataArray, clients: xr.DataArray) -> xr.DataArray:
    """Cells of the base grid, HTTP/1.0, with the same webs and ftps as `clients`, such as "16/1"."""
    webs, ftps = (
        xr.DataArray([int(label.split("/")[part]) for label in clients.values.tolist()], dims="clients")
        for part in (0, 1)
    )
    base = of.sel(http="1.0", drop=True).sel(webs=webs, ftps=ftps).drop_vars(["webs", "ftps"])
    return base.assign_coords(clients=clients)
