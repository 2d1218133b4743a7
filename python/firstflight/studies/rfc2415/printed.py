"""The RFC's printed values, from `reference/`, and the measures that it derives from others."""

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import xarray as xr

from firstflight.studies.kernel import Quantities, by_replicate, mean_of, named

WRONG_DROPS = ((32, 0), (32, 1), (32, 2))
"""(webs, ftps) of Table 2 with drop rates that repeat those of 16 webs (`reference/README.md`, error 1)."""
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
    records = rows(table).filter(pl.col("metric") == metric, *([pl.col("split") == "none"] if table == 6 else []))
    if metric == "packet_drop_rate":
        wrong = pl.any_horizontal((pl.col("webs") == w) & (pl.col("ftps") == f) for w, f in WRONG_DROPS)
        alike = rows(6).filter(pl.col("metric") == metric, pl.col("split") == "none", pl.col("webs") == 32)
        records = pl.concat([records.filter(~wrong), alike.select(records.columns)])
    labels = {key: records[key].cast(pl.Int64).unique().sort().to_list() for key in ("webs", "ftps", "iw")}
    values = xr.DataArray(np.full([len(of) for of in labels.values()], np.nan), labels, list(labels))
    for webs, ftps, iw, value in records.select("webs", "ftps", pl.col("iw").cast(pl.Int64), "value").iter_rows():
        values.loc[{"webs": webs, "ftps": ftps, "iw": iw}] = value
    return values


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
