"""The summary of any run, study or not: transfers, pages, links and a population's users, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from firstflight.analysis.histograms import RELATIVE_ERROR, quantiles
from firstflight.analysis.intervals import summarise
from firstflight.analysis.table import Metric, Table

if TYPE_CHECKING:
    from firstflight.records import Run

METRICS = (
    Metric("completed", "Completed", 0),
    Metric("disturbed", "Disturbed", 1),
    Metric("mean_completion_time", "Mean completion time", 3),
    Metric("median_completion_time", "Median completion time", 3),
    Metric("p95_completion_time", "95th percentile", 3),
    Metric("delivered", "Delivered", 2),
    Metric("retransmitted", "Retransmitted segments", 2),
    Metric("link_utilization", "Utilization", 1),
    Metric("packet_drop_rate", "Packet drop rate", 2),
    Metric("mean_queue", "Mean queue", 1),
    Metric("streams", "Streams", 0),
    Metric("lost", "Lost", 2),
    Metric("late", "Late", 2),
    Metric("mean_delay", "Mean delay", 1),
    Metric("p95_delay", "95th percentile of delay", 1),
    Metric("p99_delay", "99th percentile of delay", 1),
    Metric("jitter", "Jitter", 2),
    Metric("mouth_to_ear", "Mouth to ear", 1),
    Metric("rating", "R", 1),
    Metric("mos", "MOS", 2),
    Metric("p10", "10th percentile", 2),
    Metric("median", "Median", 2),
    Metric("p90", "90th percentile", 2),
)
_UNITS = {
    "completed": "count",
    "disturbed": "percent",
    "mean_completion_time": "s",
    "median_completion_time": "s",
    "p95_completion_time": "s",
    "delivered": "MB",
    "retransmitted": "percent",
    "link_utilization": "percent",
    "packet_drop_rate": "percent",
    "mean_queue": "packets",
    "streams": "count",
    "lost": "percent",
    "late": "percent",
    "mean_delay": "ms",
    "p95_delay": "ms",
    "p99_delay": "ms",
    "jitter": "ms",
    "mouth_to_ear": "ms",
    "rating": "",
    "mos": "",
    # The name of the quantity says it.
    "p10": "",
    "median": "",
    "p90": "",
}
_WEIGHTED = " Times and shares count each user by their weight."
_QUANTILES = {"median_completion_time": 0.5, "p95_completion_time": 0.95}
# A user's path, in the usual units.
_PATH = {
    "rtt_ms": 1e3 * pl.col("rtt_s"),
    "down_mbps": pl.col("down_bps") / 1e6,
    "up_mbps": pl.col("up_bps") / 1e6,
    "buffer_kB": pl.col("buffer_bytes") / 1e3,
    "loss_percent": 100 * pl.col("loss"),
}


# Links of a group that have a row each.
_LINKS_SHOWN = 16
_INDEX = re.compile(r"\[\d+\]")


def summary_tables(run: Run) -> list[Table]:
    """Tables `transfers`, `pages`, `links`, `streams`, `users` of a run, means over replicates; only those with rows.

    Completion times are those of finished transfers and pages, seconds from their start; `delivered` is the payload
    that arrived within the run, in 10⁶ bytes. In real time `disturbed` is the share of transfers that met a stall of
    the machine; they are part of the other values. Where a population kept aggregates, quantiles come from histograms
    (off by 0.5% at most), and there is no `delivered`. `users` has the paths. Where users weigh differently,
    all but counts is weighted.
    """
    keys = list(run.cells[0]) if run.cells else []
    weights = run.users.select(*keys, "replicate", "client", "weight")
    tables = of_records(
        run.transfers,
        run.pages,
        run.links,
        keys,
        in_real_time=bool(run.provenance["environments"]),
        weights=weights if _differ(weights) else None,
    )
    counted = [_aggregated(run.aggregates, run.histograms, keys, unit) for unit in ("transfer", "page")]
    return [
        table
        for table in (*tables, _streams(run.streams, keys), *counted, _users(run.users, keys))
        if not table.frame.is_empty()
    ]


def in_sentences(run: Run, users: int) -> list[str]:
    """The results of a population's users: their number, and each application's times and recoveries. Nothing for a
    run with several cells, which has tables for that.
    """
    if len(run.cells) != 1:
        return []
    tables = {table.name: table for table in summary_tables(run)}
    seen = [frame.select("replicate") for frame in (run.users, run.aggregates)]
    replicates = pl.concat(seen).select(pl.col("replicate").n_unique()).collect().item()
    found = [f"{replicates} sample{'s' if replicates > 1 else ''} of {users:,} users, each with a path of their own."]
    for name, unit in (("transfers", "transfer"), ("pages", "page")):
        rows = tables[name].frame if name in tables else pl.DataFrame(schema={"application": pl.String})
        for application in rows["application"].unique(maintain_order=True):
            ours = dict(rows.filter(pl.col("application") == application).select("metric", "ours").iter_rows())
            count, completed = _counted(run, name, unit, application)
            left = f", of which {count - completed:,} had not finished at the end" if completed < count else ""
            times = (
                f"; mean {ours['mean_completion_time']:.3f} s, median {ours['median_completion_time']:.3f} s, "
                f"95th percentile {ours['p95_completion_time']:.3f} s"
                if completed
                else ""
            )
            again = f"; {ours['retransmitted']:.2f}% of segments retransmitted" if "retransmitted" in ours else ""
            found.append(f"{application}: {count:,} {name}{left}{times}{again}.")
    return found


def _counted(run: Run, table: str, unit: str, application: str) -> tuple[int, int]:
    """The number of an application's transfers or pages, and the number of finished ones."""
    mine = pl.col("application").cast(pl.String) == application
    rows = getattr(run, table).filter(mine).select(pl.len().alias("count"), pl.col("completed").sum())
    whole = (pl.col("unit").cast(pl.String) == unit) & (pl.col("dimension").cast(pl.String) == "all")
    sums = run.aggregates.filter(mine & whole).select(pl.col("count", "completed").sum())
    ((count, completed),) = pl.concat([rows, sums], how="vertical_relaxed").sum().collect().iter_rows()
    return int(count), int(completed)


def of_records(
    transfers: pl.LazyFrame,
    pages: pl.LazyFrame,
    links: pl.LazyFrame,
    keys: Sequence[str],
    in_real_time: bool = False,
    weights: pl.LazyFrame | None = None,
) -> list[Table]:
    """The same from three record tables; `keys` are the cells' key columns, `weights` one row per user of a population
    (`keys`, `replicate`, `client`, `weight`).
    """
    weighted = weights is not None
    if weights is not None:
        of_user = [*keys, "replicate", "client"]
        transfers, pages = (
            frame.join(weights, on=of_user, how="left", maintain_order="left") for frame in (transfers, pages)
        )
    tables = [_transfers(transfers, keys, in_real_time, weighted), _pages(pages, keys, weighted), _links(links, keys)]
    return [table for table in tables if not table.frame.is_empty()]


def _table(
    name: str, title: str, caption: str, rows: pl.LazyFrame, keys: Sequence[str], values: dict[str, pl.Expr]
) -> Table:
    found = rows.group_by([*keys, "replicate"], maintain_order=True).agg(
        value.cast(pl.Float64).alias(metric) for metric, value in values.items()
    )
    return _over_replicates(name, title, caption, as_in_the_scenario(found, keys), keys, list(values))


def as_in_the_scenario(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Of each cell the applications or links in the order of the scenario, not of their first row, as text."""
    named = [key for key, dtype in rows.collect_schema().items() if key in keys and isinstance(dtype, pl.Enum)]
    if not named:
        return rows
    cell = [key for key in keys if key not in named]
    at = "__row"
    first = pl.col(at).min().over(cell or pl.lit(0))
    ordered = rows.with_row_index(at).sort(first, *named, maintain_order=True).drop(at)
    return ordered.with_columns(pl.col(named).cast(pl.String))


def _over_replicates(
    name: str, title: str, caption: str, found: pl.LazyFrame, keys: Sequence[str], metrics: Sequence[str]
) -> Table:
    """The table of metrics that are columns of `found`, one row per replicate and value of `keys`."""
    per_replicate = found.unpivot(
        on=list(metrics), index=[*keys, "replicate"], variable_name="metric", value_name="value"
    ).collect()
    # The share of a run that met a stall means nothing for other runs.
    estimated = pl.when(pl.col("metric") != "disturbed")
    frame = summarise(per_replicate, [*keys, "metric"]).with_columns(
        estimated.then(pl.col("low")).alias("low"),
        estimated.then(pl.col("high")).alias("high"),
        pl.col("metric").replace_strict(_UNITS).alias("unit"),
        pl.lit(None, dtype=pl.Float64).alias("published"),
    )
    alike = tuple(key for key in keys[:-1] if frame[key].n_unique() == 1)
    return Table(name, title, caption, tuple(keys), frame, metrics=METRICS, quiet=alike)


def _by(frame: pl.LazyFrame, column: str) -> pl.LazyFrame:
    return frame.with_columns(pl.col(column).cast(pl.String))


def _differ(weights: pl.LazyFrame) -> bool:
    """Whether users weigh differently, so that a row does not count as one."""
    return int(weights.select(pl.col("weight").n_unique()).collect().item()) > 1


def _times(weighted: bool) -> dict[str, pl.Expr]:
    finished = pl.col("completed") == 1
    done = pl.col("completion_time_s").filter(finished)
    completed = {"completed": pl.col("completed").sum()}
    if not weighted:
        wanted = {name: done.quantile(q, "linear") for name, q in _QUANTILES.items()}
        return completed | {"mean_completion_time": done.mean()} | wanted
    weight = pl.col("weight").filter(finished)
    in_order = weight.sort_by(done)
    return (
        completed
        | {"mean_completion_time": (done * weight).sum() / weight.sum()}
        | {name: _of_weights(done.sort(), in_order, q) for name, q in _QUANTILES.items()}
    )


def _of_weights(ascending: pl.Expr, weight: pl.Expr, q: float) -> pl.Expr:
    """The smallest value that has a share `q` of all weight at or below it."""
    # The last one by itself where rounding leaves the sum of shares below 1.
    return pl.coalesce(ascending.filter(weight.cum_sum() >= q * weight.sum()).first(), ascending.last())


def _transfers(transfers: pl.LazyFrame, keys: Sequence[str], in_real_time: bool, weighted: bool) -> Table:
    disturbed = {"disturbed": 100 * pl.col("disturbed").mean()} if in_real_time else {}
    weight = pl.col("weight") if weighted else pl.lit(1)
    told = " Disturbed: by a stall of the machine of more than a millisecond, and counted all the same."
    values = (
        _times(weighted)
        | disturbed
        | {
            "delivered": pl.col("delivered_bytes").sum() / 1e6,
            "retransmitted": 100
            * (weight * pl.col("retransmissions")).sum()
            / (weight * pl.col("segments_sent")).sum(),
        }
    )
    return _table(
        "transfers",
        "Transfers",
        f"Files, objects and responses, by application.{told if in_real_time else ''}{_WEIGHTED if weighted else ''}",
        transfers,
        [*keys, "application"],
        values,
    )


def _pages(pages: pl.LazyFrame, keys: Sequence[str], weighted: bool) -> Table:
    return _table(
        "pages",
        "Pages",
        f"From the beginning of a page to its last object.{_WEIGHTED if weighted else ''}",
        pages,
        [*keys, "application"],
        _times(weighted),
    )


def _links(links: pl.LazyFrame, keys: Sequence[str]) -> Table:
    values = {
        "link_utilization": 100 * pl.col("busy_s").sum() / pl.col("interval_s").sum(),
        "packet_drop_rate": 100 * pl.col("dropped_packets").sum() / pl.col("offered_packets").sum(),
        "mean_queue": (pl.col("queue_mean_packets") * pl.col("interval_s")).sum() / pl.col("interval_s").sum(),
    }
    link = pl.col("link")
    used = links.filter(pl.col("offered_packets").sum().over([*keys, "replicate", link]) > 0)
    return _table(
        "links",
        "Links",
        "Share of time in use, packets dropped of packets offered, packets waiting on average. Of a group of more than "
        f"{_LINKS_SHOWN} links all together.",
        _groups_together(used),
        [*keys, "link"],
        values,
    )


def _groups_together(links: pl.LazyFrame) -> pl.LazyFrame:
    """Links of large groups under one name: `home[0..499].reverse`."""
    named = links.collect_schema()["link"]
    groups: dict[str, list[str]] = {}
    for name in named.categories.to_list() if isinstance(named, pl.Enum) else ():
        groups.setdefault(_INDEX.sub("[]", name), []).append(name)
    shown = {
        name: name if len(members) <= _LINKS_SHOWN else group.replace("[]", f"[0..{len(members) - 1}]")
        for group, members in groups.items()
        for name in members
    }
    if not shown:
        return links
    order = pl.Enum(list(dict.fromkeys(shown.values())))
    return links.with_columns(pl.col("link").replace_strict(shown, return_dtype=order))


# The columns shown of a stream, in milliseconds.
_STREAM_TIMES = {
    "mean_delay": "delay_mean_s",
    "p95_delay": "delay_p95_s",
    "p99_delay": "delay_p99_s",
    "jitter": "jitter_mean_s",
    "mouth_to_ear": "mouth_to_ear_s",
}


def _streams(streams: pl.LazyFrame, keys: Sequence[str]) -> Table:
    ended = (pl.col("packets_received") + pl.col("packets_lost")).sum()
    sender = pl.when(pl.col("from_server") == 1).then(pl.lit("server")).otherwise(pl.lit("client"))
    return _table(
        "streams",
        "Streams",
        "Datagrams by application and sender: shares of all, then means over streams.",
        streams.with_columns(sender.alias("sender")),
        [*keys, "application", "sender"],
        {
            "streams": pl.len(),
            "lost": 100 * pl.col("packets_lost").sum() / ended,
            "late": 100 * pl.col("packets_late").sum() / ended,
        }
        | {name: 1e3 * pl.col(column).fill_nan(None).mean() for name, column in _STREAM_TIMES.items()}
        | {name: pl.col(name).fill_nan(None).mean() for name in ("rating", "mos")},
    )


def _aggregated(aggregates: pl.LazyFrame, histograms: pl.LazyFrame, keys: Sequence[str], unit: str) -> Table:
    """The table of transfers or pages where a population kept sums and histograms in the place of rows."""
    groups = [*keys, "application", "replicate"]
    wanted = (pl.col("dimension").cast(pl.String) == "all") & (pl.col("unit").cast(pl.String) == unit)
    counted, binned = (_by(frame.filter(wanted), "application") for frame in (aggregates, histograms))
    sums = counted.group_by(groups, maintain_order=True).agg(
        pl.col("completed").sum().cast(pl.Float64),
        (pl.col("completion_ns_sum").sum() / pl.col("completed").sum() / 1e9).alias("mean_completion_time"),
        (100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("retransmitted"),
    )
    metrics = ["completed", "mean_completion_time", *_QUANTILES, *(["retransmitted"] if unit == "transfer" else [])]
    name = f"{unit}s"
    return _over_replicates(
        name,
        name.capitalize(),
        f"By application, from counts and histograms: quantiles are off by {100 * RELATIVE_ERROR:.1f}% at most.",
        sums.join(quantiles(binned, groups, _QUANTILES), on=groups, how="left", maintain_order="left"),
        [*keys, "application"],
        metrics,
    )


def _users(users: pl.LazyFrame, keys: Sequence[str]) -> Table:
    """Quantiles of the users' paths; those of a table count by their weight."""
    quantities = users.select(*keys, "replicate", "weight", *(value.alias(name) for name, value in _PATH.items()))
    long = quantities.unpivot(
        on=list(_PATH), index=[*keys, "replicate", "weight"], variable_name="quantity", value_name="value"
    ).drop_nulls("value")
    order = pl.col("quantity").replace_strict({name: place for place, name in enumerate(_PATH)}, return_dtype=pl.Int8)
    return _table(
        "users",
        "Users",
        "The paths that were drawn: round trip and rates without anybody's traffic.",
        long.sort([*keys, "replicate", order, "value"]),
        [*keys, "quantity"],
        {
            name: _of_weights(pl.col("value"), pl.col("weight"), q)
            for name, q in (("p10", 0.1), ("median", 0.5), ("p90", 0.9))
        },
    )
