"""What the study measures in each replicate of each cell.

All figures come from the records' three tables. One row a cell, application, replicate and metric:

- `median_page_delay` (s): median over the pages completed within the run.
- `goodput` (MB = 10^6 bytes): bytes delivered in order to the application's clients within the run.
- `median_file_delay` (s): median over the files completed within the run.
- `network_power` (MB/s): goodput divided by the median delay, the RFC's definition (section 3).
- `link_utilization` (percent): share of the run in which the bottleneck was sending data packets' direction.
- `packet_drop_rate` (percent): packets dropped by the bottleneck's queue of those offered to it.
- `median_primary_segments`, `median_inline_segments`: median size of a web file in segments of 1460 bytes
  (HTTP/1.0, IW 1, no ftps).
- `first_flight_burst_loss` (percent): web transfers that lost two or more segments of their first flight.

and, against the same replicate with IW 1 (common random numbers):

- `median_page_delay_decrease_vs_iw1` (percent), `normalized_network_power` (ratio).
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from firstflight.records import Run

HERE = Path(__file__).parent
KEYS = ("variant", "webs", "ftps", "http", "iw")
SEGMENT_BYTES = 1460
BOTTLENECK = "bottleneck.reverse"
"""Servers are on the right, so the data direction of the bottleneck is its reverse link."""

AGAINST_IW1 = ("median_page_delay_decrease_vs_iw1", "normalized_network_power")
"""Metrics that need the cell with IW 1 beside their own."""

PageClocks = dict[str, Literal["start", "connected"]]
_COLUMNS = [*KEYS, "group", "replicate", "metric", "value"]
_PLACE = [*KEYS, "group", "replicate"]


class Place(NamedTuple):
    """Where a metric was measured: a cell and one of its applications ("link": the bottleneck)."""

    metric: str
    variant: str
    webs: int
    ftps: int
    http: str
    iw: str
    group: str = "web"


@dataclass(frozen=True)
class Measures:
    """`frame`: one row a place and replicate; `values`: the same, by place and replicate."""

    frame: pl.DataFrame
    values: dict[Place, dict[int, float]]


def page_clocks() -> PageClocks:
    """The study's choice of where a page's clock starts, by HTTP version. Raises ValueError if it is neither."""
    with (HERE / "study.toml").open("rb") as file:
        chosen = tomllib.load(file)["measure"]["page_clock"]
    clocks: PageClocks = {}
    for http, clock in chosen.items():
        if clock == "start":
            clocks[http] = "start"
        elif clock == "connected":
            clocks[http] = "connected"
        else:
            raise ValueError(f'study.toml: measure.page_clock."{http}" is "{clock}", not "start" or "connected"')
    return clocks


def measure(run: Run) -> Measures:
    """All metrics of a run; tables, claims and figures of one run share the result."""
    return _measured(run, len(run.cells))


@lru_cache(maxsize=2)
def _measured(run: Run, finished_cells: int) -> Measures:
    # The number of cells is part of the key because a run may grow between two calls.
    return from_records(run.transfers, run.pages, run.links, page_clocks())


def from_records(transfers: pl.LazyFrame, pages: pl.LazyFrame, links: pl.LazyFrame, clocks: PageClocks) -> Measures:
    """The metrics of the three record tables, each with the cells' key columns."""
    direct = [
        _file_delays(transfers),
        _goodputs(transfers),
        *_web_files(transfers),
        *_bottleneck(links),
    ]
    # The streaming engine keeps the millions of transfers out of memory. A median of many groups is faster without it,
    # and of the pages few columns are read.
    delays = _typed(_page_delays(pages, clocks)).collect(engine="in-memory")
    frame = pl.concat([delays, *pl.collect_all(map(_typed, direct), engine="streaming")])
    frame = pl.concat([frame, _power(frame)])
    frame = pl.concat([frame, *_against_initial_window_one(frame)])
    frame = frame.sort(_PLACE, maintain_order=True)
    values: dict[Place, dict[int, float]] = {}
    for variant, webs, ftps, http, iw, group, replicate, metric, value in frame.iter_rows():
        if value is not None and not math.isnan(value):
            place = Place(metric, variant, webs, ftps, http, iw, group)
            values.setdefault(place, {})[replicate] = value
    return Measures(frame, values)


_TYPES: dict[str, type[pl.DataType]] = {
    "variant": pl.String,
    "webs": pl.Int64,
    "ftps": pl.Int64,
    "http": pl.String,
    "iw": pl.String,
    "group": pl.String,
    "replicate": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
}


def _typed(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.select(pl.col(name).cast(kind) for name, kind in _TYPES.items())


def _named(frame: pl.LazyFrame, metric: str) -> pl.LazyFrame:
    return frame.with_columns(pl.lit(metric).alias("metric"))


def _by_application(frame: pl.LazyFrame, value: pl.Expr) -> pl.LazyFrame:
    # The records' Enum becomes text after the grouping only: millions of rows, a few thousand groups.
    return (
        frame.group_by([*KEYS, "application", "replicate"])
        .agg(value.alias("value"))
        .with_columns(pl.col("application").cast(pl.String).alias("group"))
    )


def _page_delays(pages: pl.LazyFrame, clocks: PageClocks) -> pl.LazyFrame:
    late = [http for http, clock in clocks.items() if clock == "connected"]
    connecting = pl.when(pl.col("http").is_in(late)).then(pl.col("connect_time_s")).otherwise(0.0)
    delay = pl.col("completion_time_s") - connecting
    return _named(_by_application(pages.filter(pl.col("completed") == 1), delay.median()), "median_page_delay")


def _is_file(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.filter(pl.col("application").cast(pl.String).str.starts_with("ftp"))


def _is_web(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.filter(pl.col("application").cast(pl.String).str.starts_with("web"))


def _file_delays(transfers: pl.LazyFrame) -> pl.LazyFrame:
    done = _is_file(transfers).filter(pl.col("completed") == 1)
    return _named(_by_application(done, pl.col("completion_time_s").median()), "median_file_delay")


def _goodputs(transfers: pl.LazyFrame) -> pl.LazyFrame:
    return _named(_by_application(transfers, pl.col("delivered_bytes").sum() / 1e6), "goodput")


def _web_files(transfers: pl.LazyFrame) -> list[pl.LazyFrame]:
    web = _is_web(transfers)
    # Sizes are drawn alike in every cell: one column of the grid is enough, and medians are dear.
    sizes = web.filter(pl.col("variant") == "base", pl.col("ftps") == 0, pl.col("iw") == "1", pl.col("http") == "1.0")
    segments = pl.col("bytes").median() / SEGMENT_BYTES
    burst = 100 * (pl.col("first_flight_lost") >= 2).mean()
    return [
        _named(_by_application(sizes.filter(pl.col("object") == 0), segments), "median_primary_segments"),
        _named(_by_application(sizes.filter(pl.col("object") > 0), segments), "median_inline_segments"),
        _named(_by_application(web, burst), "first_flight_burst_loss"),
    ]


def _bottleneck(links: pl.LazyFrame) -> list[pl.LazyFrame]:
    here = links.filter(pl.col("link").cast(pl.String) == BOTTLENECK).with_columns(pl.lit("link").alias("group"))
    # In whole nanoseconds, which they were counted in: a sum of integers does not depend on the order of the rows.
    busy_ns, interval_ns = ((1e9 * pl.col(name)).round().cast(pl.Int64).sum() for name in ("busy_s", "interval_s"))
    busy = 100 * busy_ns / interval_ns
    dropped = 100 * pl.col("dropped_packets").sum() / pl.col("offered_packets").sum()
    return [
        _named(here.group_by(_PLACE).agg(busy.alias("value")), "link_utilization"),
        _named(here.group_by(_PLACE).agg(dropped.alias("value")), "packet_drop_rate"),
    ]


def _only(frame: pl.DataFrame, *metrics: str) -> pl.DataFrame:
    return frame.filter(pl.col("metric").is_in(metrics))


def _power(frame: pl.DataFrame) -> pl.DataFrame:
    delay = _only(frame, "median_page_delay", "median_file_delay").rename({"value": "delay"})
    return (
        _only(frame, "goodput")
        .join(delay.drop("metric"), on=_PLACE)
        .with_columns(pl.lit("network_power").alias("metric"), pl.col("value") / pl.col("delay"))
        .select(_COLUMNS)
    )


def _against_initial_window_one(frame: pl.DataFrame) -> list[pl.DataFrame]:
    on = [key for key in _PLACE if key != "iw"]

    def against(metric: str, name: str, value: pl.Expr) -> pl.DataFrame:
        rows = _only(frame, metric)
        base = rows.filter(pl.col("iw") == "1").rename({"value": "base"}).select(*on, "base")
        return rows.join(base, on=on).with_columns(pl.lit(name).alias("metric"), value.alias("value")).select(_COLUMNS)

    decrease, relative_power = AGAINST_IW1
    return [
        against(
            "median_page_delay",
            decrease,
            100 * (1 - pl.col("value") / pl.col("base")),
        ).filter(pl.col("iw") != "1"),
        against("network_power", relative_power, pl.col("value") / pl.col("base")),
    ]
