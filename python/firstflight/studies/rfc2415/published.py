"""The RFC's printed values, read from `reference/`."""

from functools import lru_cache

import polars as pl

from firstflight.studies.rfc2415.measure import HERE

KNOWN_WRONG_DROPS = ((32, 0), (32, 1), (32, 2))
"""(webs, ftps) of Table 2 with drop rates that repeat those of 16 webs (`reference/README.md`, error 1)."""


@lru_cache
def printed(table: int) -> pl.DataFrame:
    """Table 1 to 6 as `webs, ftps, http, iw, metric, published` (6: also `split, group_webs`).

    `median_page_delay_derived`, the delay that a printed decrease implies, appears as
    `median_page_delay` of its IW. `http` and `iw` are text.
    """
    frame = pl.read_csv(
        (HERE / "reference" / f"rfc2415_table{table}.csv").read_bytes(),
        schema_overrides={"http": pl.String, "iw": pl.String, "value": pl.Float64},
    )
    return frame.drop("unit").with_columns(pl.col("metric").str.strip_suffix("_derived")).rename({"value": "published"})


def value(table: int, metric: str, webs: int, ftps: int, iw: int | str, split: str | None = None) -> float:
    """One printed value. Raises KeyError if the table has none there."""
    rows = printed(table).filter(
        pl.col("metric") == metric, pl.col("webs") == webs, pl.col("ftps") == ftps, pl.col("iw") == str(iw)
    )
    if split is not None:
        rows = rows.filter(pl.col("split") == split)
    if rows.is_empty():
        raise KeyError(f"RFC 2415 table {table}: no {metric} for {webs} webs, {ftps} ftps, IW {iw}")
    return float(rows["published"][0])


@lru_cache
def power_from_table_6() -> pl.DataFrame:
    """Web network power (MB/s) of the unsplit scenarios of Table 6: the only points of Figure 1 in print."""
    rows = printed(6).filter(pl.col("split") == "none")
    on = ["webs", "ftps", "http", "iw"]
    delay = rows.filter(pl.col("metric") == "median_page_delay").rename({"published": "delay"}).select(*on, "delay")
    return (
        rows.filter(pl.col("metric") == "goodput")
        .join(delay, on=on, maintain_order="left")
        .with_columns(pl.lit("network_power").alias("metric"), pl.col("published") / pl.col("delay"))
        .select(*on, "metric", "published")
    )


@lru_cache
def normalized_power_from_table_6() -> pl.DataFrame:
    """The same against IW 1."""
    power = power_from_table_6()
    base = power.filter(pl.col("iw") == "1").rename({"published": "base"}).select("webs", "ftps", "http", "base")
    return power.join(base, on=["webs", "ftps", "http"]).select(
        "webs",
        "ftps",
        "http",
        "iw",
        pl.lit("normalized_network_power").alias("metric"),
        pl.col("published") / pl.col("base"),
    )
