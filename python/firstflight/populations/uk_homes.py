"""UK homes of 2015 and 2023: measured paths, one home a row, from Ofcom's broadband panels (`ofcom/SOURCE.md`).

Values measured by the panels are used unchanged: round trip (idle, to a server in the country), rates, loss. Values
that they did not measure are assumed, only here:

- **Buffer.** The loaded round trip less the idle one, as time at the download rate: what the queue of this home was
  seen to hold, on average over a download, and so the least that it can hold. Where nothing was seen, a shaper or
  policer further up keeps the queue short, or the probe is the limit: such a home has the scenario's `min_buffer`.
- **Buffer not measured** (365 homes of 2023, all of 2015): that of the home of 2023 with the same technology whose
  download rate is nearest (ADSL1 and ADSL2+ are one technology here: seven homes of 2023 have ADSL1).
- **Loss** was measured on round trips; here a path loses as much of its data packets, each independently, and no
  acknowledgments. Real losses come in bursts and at busy hours.
- **Upload** of the one home where it is missing: that of the nearest home, found in the same way.
- **Weight** 0 or none: such a home is simulated and does not count in the country's values.
"""

from functools import cache
from pathlib import Path
from typing import Any, Literal

import polars as pl

Year = Literal[2015, 2023]
YEARS: tuple[Year, ...] = (2015, 2023)
Buffers = Literal["nearest", "small", "large"]
"""The buffer of a home where it was not measured: its nearest home's, or the lower or upper quartile of its kind."""
HERE = Path(__file__).parent
_QUANTILE = {"small": 0.25, "large": 0.75}
_DONORS = {
    "ADSL1": ("ADSL1", "ADSL2+"),
    "ADSL2": ("ADSL1", "ADSL2+"),
    "ADSL2+": ("ADSL1", "ADSL2+"),
    "FTTC 38": ("FTTC",),
    "FTTC 76": ("FTTC",),
    "FTTC Other": ("FTTC",),
}
"""Technologies of 2023 that stand for one of either year; one that is not listed stands for itself."""


def population(year: Year, buffers: Buffers = "nearest") -> dict[str, Any]:
    """The `[population]` table of `uk-2015` (2,802 homes) or `uk-2023` (2,426): user i is row i of `homes`."""
    columns = homes(year, buffers).select("rtt_s", "down_bps", "up_bps", "buffer_s", "loss", "weight")
    return {
        "paths": "table",
        "row_sampling": "in_order",
        "users": columns.height,
        "min_buffer": "10p",
        "columns": columns.to_dict(as_series=False),
    }


@cache
def homes(year: Year, buffers: Buffers = "nearest") -> pl.DataFrame:
    """Every home of the panel, in the file's order, in the units of a scenario's table of paths.

    Columns: `home` (u32, number of the row), `technology`, `area`, `rtt_s`, `down_bps`, `up_bps`, `buffer_s` (>= 0),
    `buffer_measured` (bool), `loss` (a share), `weight` (0: not in the country's figures) and `web_page_s`, measured.
    """
    table = _published(year)
    donors = _published(2023)
    return table.with_columns(
        _filled(table, donors, "buffer_s", buffers).clip(lower_bound=0.0),
        pl.col("buffer_s").is_not_null().alias("buffer_measured"),
        _filled(table, donors, "up_bps", "nearest"),
        pl.col("weight").fill_null(0.0),
    ).select(
        "home",
        "technology",
        "area",
        "rtt_s",
        "down_bps",
        "up_bps",
        "buffer_s",
        "buffer_measured",
        "loss",
        "weight",
        "web_page_s",
    )


@cache
def _published(year: Year) -> pl.DataFrame:
    frame = pl.read_csv((HERE / "ofcom" / f"paths_uk_{year}.csv").read_bytes(), infer_schema_length=None)
    loaded = pl.col("latency_download_loaded_ms") if "latency_download_loaded_ms" in frame.columns else pl.lit(None)
    return frame.with_row_index("home").with_columns(
        (pl.col("latency_ms") / 1e3).alias("rtt_s"),
        (pl.col("download_mbps") * 1e6).alias("down_bps"),
        (pl.col("upload_mbps") * 1e6).alias("up_bps"),
        ((loaded - pl.col("latency_ms")) / 1e3).cast(pl.Float64).alias("buffer_s"),
        (pl.col("loss_percent") / 100).alias("loss"),
        (pl.col("web_page_ms") / 1e3).alias("web_page_s"),
    )


def _filled(table: pl.DataFrame, donors: pl.DataFrame, column: str, how: Buffers) -> pl.Series:
    """`column` with missing values taken from homes of 2023 of the same technology."""
    values = table[column].to_list()
    known = donors.drop_nulls(column)
    for place, (technology, rate, value) in enumerate(table.select("technology", "down_bps", column).iter_rows()):
        if value is None:
            group = known.filter(pl.col("technology").is_in(_DONORS.get(technology, (technology,))))
            if how == "nearest":
                # By the ratio of the rates; of two as near, the first in the file.
                far = (group["down_bps"] / rate).log().abs()
                values[place] = group[column][far.arg_min()]
            else:
                values[place] = group[column].quantile(_QUANTILE[how], "linear")
    return pl.Series(column, values, dtype=pl.Float64)
