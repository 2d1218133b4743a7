"""The summary of any run, study or not: transfers, pages, links and a population's users, cell by cell.

A value is that of the rows of all replicates together, as in a comparison of two arms (docs/statistics.md).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from firstflight.analysis.intervals import Estimate, quantile, ratio
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.records import Run
from firstflight.records.schema import GAMMA

RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)


def middle(place: pl.Expr) -> pl.Expr:
    """Of the bin of that number the time in seconds that is at most RELATIVE_ERROR (0.5%) away from everything in it:
    DDSketch's guarantee (Masson et al. 2019).
    """
    return place.cast(pl.Float64).mul(math.log(GAMMA)).exp() * (2 / (1 + GAMMA)) / 1e9


_SHARE: Any = {"least": 0, "most": 100, "unit": "percent"}
METRICS = (
    Metric("completed", "Completed", 0, least=0, unit="count"),
    Metric("disturbed", "Disturbed", 1, **_SHARE),
    Metric("mean_completion_time", "Mean completion time", 3, least=0, unit="s"),
    Metric("median_completion_time", "Median completion time", 3, least=0, unit="s"),
    Metric("p95_completion_time", "95th percentile", 3, least=0, unit="s"),
    Metric("mean_tls_handshake_time", "Mean TLS handshake", 3, least=0, unit="s"),
    Metric("mean_first_usable_byte_time", "Mean first usable byte", 3, least=0, unit="s"),
    Metric("delivered", "Delivered", 2, least=0, unit="MB"),
    Metric("retransmitted", "Retransmitted segments", 2, **_SHARE),
    Metric("server_flight", "Server flight", 1, least=0, unit="kB"),
    Metric("round_trips", "Round trips", 2, least=0),
    Metric("timed_out", "Timed out", 2, **_SHARE),
    Metric("link_utilization", "Utilization", 1, **_SHARE),
    Metric("packet_drop_rate", "Packet drop rate", 2, **_SHARE),
    Metric("mean_queue", "Mean queue", 1, least=0, unit="packets"),
    Metric("streams", "Streams", 0, least=0, unit="count"),
    Metric("lost", "Lost", 2, **_SHARE),
    Metric("late", "Late", 2, **_SHARE),
    Metric("mean_delay", "Mean delay", 1, least=0, unit="ms"),
    Metric("p95_delay", "95th percentile of delay", 1, least=0, unit="ms"),
    Metric("p99_delay", "99th percentile of delay", 1, least=0, unit="ms"),
    Metric("jitter", "Jitter", 2, least=0, unit="ms"),
    Metric("mouth_to_ear", "Mouth to ear", 1, least=0, unit="ms"),
    Metric("rating", "R", 1, least=0),
    Metric("mos", "MOS", 2, least=1, most=4.5),
    Metric("p10", "10th percentile", 2, least=0),
    Metric("median", "Median", 2, least=0),
    Metric("p90", "90th percentile", 2, least=0),
)
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
    """Tables `transfers`, `pages`, `links`, `handshakes`, `streams`, `users` of a run; only those with rows.

    Counts are means over replicates. A mean time is that of the transfers and pages that finished, seconds from their
    start; in a quantile those that did not are beyond every other. `delivered` is the payload that arrived within the
    run, in 10⁶ bytes. In real time `disturbed` is the share of transfers that met a stall of
    the machine; they are part of the other values. Where a population kept aggregates, quantiles come from histograms
    (off by 0.5% at most), and there is no `delivered`. `users` has the paths. Where users weigh differently,
    all but counts is weighted.
    """
    keys = list(run.cells[0]) if run.cells else []
    tables = of_records(
        run.transfers,
        run.pages,
        run.links,
        keys,
        in_real_time=bool(run.provenance["environments"]),
        weights=weights_of(run),
    )
    counted = [_aggregated(run.aggregates, run.histograms, keys, unit) for unit in ("transfer", "page")]
    return [
        table
        for table in (
            *tables,
            _handshakes(run.handshakes, run.transfers, keys),
            _streams(run.streams, keys),
            *counted,
            _users(run.users, keys),
        )
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
    sentences = [f"{replicates} sample{'s' if replicates > 1 else ''} of {users:,} users, each with a separate path."]
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
            sentences.append(f"{application}: {count:,} {name}{left}{times}{again}.")
    return sentences


def _counted(run: Run, table: str, unit: str, application: str) -> tuple[int, int]:
    """The number of an application's transfers or pages, and the number of finished ones."""
    mine = pl.col("application").cast(pl.String) == application
    rows = getattr(run, table).filter(mine).select(pl.len().alias("count"), pl.col("completed").sum())
    whole = (pl.col("unit").cast(pl.String) == unit) & (pl.col("dimension").cast(pl.String) == "all")
    sums = run.aggregates.filter(mine & whole).select(pl.col("count", "completed").sum())
    ((count, completed),) = pl.concat([rows, sums], how="vertical_relaxed").sum().collect().iter_rows()
    return int(count), int(completed)


def weights_of(run: Run) -> pl.LazyFrame | None:
    """One row per user (keys of the cells, `replicate`, `client`, `weight`); None where all weigh the same."""
    keys = list(run.cells[0]) if run.cells else []
    weights = run.users.select(*keys, "replicate", "client", "weight")
    return weights if weights.select(pl.col("weight").n_unique()).collect().item() > 1 else None


def of_records(
    transfers: pl.LazyFrame,
    pages: pl.LazyFrame,
    links: pl.LazyFrame,
    keys: Sequence[str],
    in_real_time: bool = False,
    weights: pl.LazyFrame | None = None,
) -> list[Table]:
    """The same from three record tables; `keys` are the cells' key columns, `weights` those of `weights_of`."""
    weighted = weights is not None
    if weights is not None:
        of_user = [*keys, "replicate", "client"]
        transfers, pages = (
            frame.join(weights, on=of_user, how="left", maintain_order="left") for frame in (transfers, pages)
        )
    tables = [_transfers(transfers, keys, in_real_time, weighted), _pages(pages, keys, weighted), _links(links, keys)]
    return [table for table in tables if not table.frame.is_empty()]


Measure = pl.Expr | tuple[pl.Expr, pl.Expr]
"""Of the rows of a replicate: a number, whose mean over replicates is wanted, or the two sums of a ratio."""
Quantile = tuple[pl.Expr, pl.Expr, float, bool]
"""Of rows: the values, infinite where something did not finish, their weights, and the rest as `intervals.quantile`."""


def estimates(
    rows: pl.LazyFrame, keys: Sequence[str], measures: Mapping[str, Measure], quantiles: Mapping[str, Quantile]
) -> Iterator[tuple[dict[str, Any], Estimate]]:
    """Each measure and quantile of each value of `keys` as (`keys` and `metric`, estimate over replicates)."""
    sums = {
        f"{side}{name}": of.cast(pl.Float64)
        for name, measure in measures.items()
        for side, of in zip(("+", "/"), measure if isinstance(measure, tuple) else (measure, pl.lit(1)), strict=True)
    }
    # Sums of floats depend on the order of the rows in the last digit.
    by_replicate = rows.group_by([*keys, "replicate"], maintain_order=True).agg(**sums).sort("replicate")
    order = rows.select(keys).unique(maintain_order=True).collect()
    summed = by_replicate.collect().partition_by(keys, as_dict=True)
    columns = {
        f"{what}{name}": of
        for name, (values, weights, _, _) in quantiles.items()
        for what, of in (("=", values.cast(pl.Float64)), ("*", weights.cast(pl.Float64)))
    }
    listed = rows.select(*keys, "replicate", **columns).collect().partition_by(keys, as_dict=True) if quantiles else {}
    for name in measures:
        for key in order.rows():
            part = summed[key].select(pl.col(f"+{name}", f"/{name}").fill_nan(None).fill_null(0))
            if summed[key][f"+{name}"].null_count() == len(part):
                continue
            yield (
                dict(zip(keys, key, strict=True)) | {"metric": name},
                ratio(*(part[c].to_numpy() for c in part.columns)),
            )
    for name, (_, _, p, counted) in quantiles.items():
        for key in order.rows():
            part = listed[key].filter(pl.col(f"*{name}") > 0, pl.col(f"={name}").is_not_null())
            if part.height:
                values, weights, of = (part[c].to_numpy() for c in (f"={name}", f"*{name}", "replicate"))
                estimate = quantile(values, weights, of, p, counted)
                yield dict(zip(keys, key, strict=True)) | {"metric": name}, estimate


def _table(
    name: str,
    title: str,
    caption: str,
    rows: pl.LazyFrame,
    keys: Sequence[str],
    measures: Mapping[str, Measure],
    quantiles: Mapping[str, Quantile] | None = None,
) -> Table:
    """The table of these measures and quantiles."""
    estimated = estimates(as_in_the_scenario(rows, keys), keys, measures, quantiles or {})
    return made_table(name, title, caption, keys, estimated, METRICS)


def made_table(
    name: str,
    title: str,
    caption: str,
    keys: Sequence[str],
    estimated: Iterator[tuple[dict[str, Any], Estimate]],
    metrics: Sequence[Metric],
) -> Table:
    """A table of estimates in the order of `metrics`, whose notes say why a value or an interval is missing."""
    by_name = {metric.name: metric for metric in metrics}
    cells = sorted(estimated, key=lambda item: list(by_name).index(item[0]["metric"]))
    rows: list[dict[str, Any]] = []
    blank: dict[tuple[str, str], list[str]] = {}
    bare: dict[str, list[str]] = {}
    alike = tuple(key for key in keys[:-1] if len({place[key] for place, _ in cells}) == 1)
    for place, of in cells:
        metric = place["metric"]
        # The share of a run that met a stall means nothing for other runs.
        low, high = (math.nan, math.nan) if metric == "disturbed" else (of.low, of.high)
        known = math.isfinite(of.value)
        rows.append(
            place | {"ours": of.value if known else None, "low": low, "high": high, "unit": by_name[metric].unit}
        )
        row = " ".join(str(place[key]) for key in keys if key not in alike)
        if not known:
            why = "too many did not finish" if of.value == math.inf else "there are no data"
            blank.setdefault((by_name[metric].label, why), []).append(row)
        elif math.isnan(of.low) and of.replicates > 1 and metric != "disturbed":
            bare.setdefault(by_name[metric].label, []).append(row)
    notes = [f"No {label.lower()} of {_some(of)}: {why}." for (label, why), of in blank.items()]
    notes += [f"No CI of the {label.lower()} of {_some(of)}: too few rows or replicates." for label, of in bare.items()]
    if cells and all(of.replicates < 2 for _, of in cells):
        notes.append("No CIs: they take two replicates.")
    return Table(
        name,
        title,
        caption,
        tuple(keys),
        rows_frame(keys, rows),
        metrics=tuple(metrics),
        notes=tuple(notes),
        quiet=alike,
    )


def _some(names: Sequence[str]) -> str:
    shown = list(dict.fromkeys(names))
    return ", ".join(shown) if len(shown) < 4 else f"{', '.join(shown[:2])} and {len(shown) - 2} more"


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


def _times(weighted: bool) -> dict[str, Measure]:
    finished = pl.col("completed") == 1
    done = pl.col("completion_time_s").filter(finished)
    weight = (pl.col("weight") if weighted else pl.lit(1)).filter(finished)
    mean = ((done * weight).sum(), weight.sum() if weighted else finished.sum())
    return {"completed": pl.col("completed").sum(), "mean_completion_time": mean}


def _quantiles(weighted: bool) -> dict[str, Quantile]:
    value = pl.when(pl.col("completed") == 1).then(pl.col("completion_time_s")).otherwise(math.inf)
    weight = pl.col("weight") if weighted else pl.lit(1)
    return {name: (value, weight, p, not weighted) for name, p in _QUANTILES.items()}


def _transfers(transfers: pl.LazyFrame, keys: Sequence[str], in_real_time: bool, weighted: bool) -> Table:
    disturbed: dict[str, Measure] = {"disturbed": (100 * pl.col("disturbed").sum(), pl.len())} if in_real_time else {}
    weight = pl.col("weight") if weighted else pl.lit(1)
    note = " Disturbed: by a host stall of more than 1 ms, and included in all values."
    values = (
        _times(weighted)
        | disturbed
        | {
            "delivered": pl.col("delivered_bytes").sum() / 1e6,
            "retransmitted": (
                100 * (weight * pl.col("retransmissions")).sum(),
                (weight * pl.col("segments_sent")).sum(),
            ),
        }
    )
    return _table(
        "transfers",
        "Transfers",
        f"Files, objects and responses, by application.{note if in_real_time else ''}{_WEIGHTED if weighted else ''}",
        transfers,
        [*keys, "application"],
        values,
        _quantiles(weighted),
    )


def _handshakes(handshakes: pl.LazyFrame, transfers: pl.LazyFrame, keys: Sequence[str]) -> Table:
    connection = [*keys, "replicate", "connection"]
    has_tls = pl.col("tls_handshake_time_s").is_not_nan()
    first = transfers.filter(has_tls).select(*connection, "first_usable_byte_time_s")
    tcp, tls = pl.col("handshake_time_s"), pl.col("tls_handshake_time_s")
    counts: dict[str, Measure] = {
        "completed": pl.col("completed").sum(),
        "timed_out": (100 * (pl.col("timeouts") > 0).sum(), pl.col("timeouts").count()),
    }
    return _table(
        "handshakes",
        "TLS handshakes",
        "By application. Time from opening the connection to the end of the TLS handshake at the client; bytes of the "
        "server's flights; round trips behind TCP's handshake, in units of its duration; handshakes with a "
        "retransmission timeout; time to the end of the first TLS record of the response.",
        handshakes.join(first, on=connection, how="left", maintain_order="left"),
        [*keys, "application"],
        counts
        | {
            "mean_tls_handshake_time": _mean(tls),
            "server_flight": _mean(pl.col("server_bytes") / 1e3),
            "round_trips": _mean((tls - tcp) / tcp),
            "mean_first_usable_byte_time": _mean(pl.col("first_usable_byte_time_s")),
        },
    )


def _pages(pages: pl.LazyFrame, keys: Sequence[str], weighted: bool) -> Table:
    return _table(
        "pages",
        "Pages",
        f"From the beginning of a page to its last object.{_WEIGHTED if weighted else ''}",
        pages,
        [*keys, "application"],
        _times(weighted),
        _quantiles(weighted),
    )


def _links(links: pl.LazyFrame, keys: Sequence[str]) -> Table:
    values: dict[str, Measure] = {
        "link_utilization": (100 * pl.col("busy_s").sum(), pl.col("interval_s").sum()),
        "packet_drop_rate": (100 * pl.col("dropped_packets").sum(), pl.col("offered_packets").sum()),
        "mean_queue": ((pl.col("queue_mean_packets") * pl.col("interval_s")).sum(), pl.col("interval_s").sum()),
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
    counts: dict[str, Measure] = {
        "streams": pl.len(),
        "lost": (100 * pl.col("packets_lost").sum(), ended),
        "late": (100 * pl.col("packets_late").sum(), ended),
    }
    sender = pl.when(pl.col("from_server") == 1).then(pl.lit("server")).otherwise(pl.lit("client"))
    return _table(
        "streams",
        "Streams",
        "Datagrams by application and sender: shares of all, then means over streams.",
        streams.with_columns(sender.alias("sender")),
        [*keys, "application", "sender"],
        counts
        | {name: _mean(1e3 * pl.col(column)) for name, column in _STREAM_TIMES.items()}
        | {name: _mean(pl.col(name)) for name in ("rating", "mos")},
    )


def _mean(value: pl.Expr) -> Measure:
    known = value.fill_nan(None)
    # No sum where nothing is known: there is no row of a measure that these streams do not have.
    return pl.when(known.count() > 0).then(known.sum()), known.count()


def _aggregated(aggregates: pl.LazyFrame, histograms: pl.LazyFrame, keys: Sequence[str], unit: str) -> Table:
    """The table of transfers or pages of a population that kept sums and histograms instead of rows."""
    of_unit = (pl.col("dimension").cast(pl.String) == "all") & (pl.col("unit").cast(pl.String) == unit)
    named = pl.col("application").cast(pl.String)
    counted, binned = (frame.filter(of_unit).with_columns(named) for frame in (aggregates, histograms))
    measures: dict[str, Measure] = {
        "completed": pl.col("completed").sum(),
        "mean_completion_time": (pl.col("completion_ns_sum").sum() / 1e9, pl.col("completed").sum()),
    }
    if unit == "transfer":
        measures["retransmitted"] = (100 * pl.col("retransmissions").sum(), pl.col("segments_sent").sum())
    return _table(
        f"{unit}s",
        f"{unit}s".capitalize(),
        f"By application, from counts and histograms: quantiles are off by {100 * RELATIVE_ERROR:.1f}% at most.",
        in_bins(counted, binned, [*keys, "application"]),
        [*keys, "application"],
        measures,
        {name: (pl.col("value_s"), pl.col("flows"), p, True) for name, p in _QUANTILES.items()},
    )


def in_bins(counted: pl.LazyFrame, binned: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """The rows of aggregates and, below, of histograms as `value_s` and number of `flows`, the unfinished infinite."""
    open_ = counted.with_columns(
        pl.lit(math.inf).alias("value_s"), (pl.col("count") - pl.col("completed")).alias("flows")
    )
    # The counts of a histogram are among those of the aggregates.
    bins = binned.select(*keys, "replicate", middle(pl.col("bin")).alias("value_s"), pl.col("count").alias("flows"))
    return pl.concat([open_, bins], how="diagonal_relaxed")


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
        long.sort([*keys, order], maintain_order=True),
        [*keys, "quantity"],
        {},
        {
            name: (pl.col("value"), pl.col("weight"), p, False)
            for name, p in (("p10", 0.1), ("median", 0.5), ("p90", 0.9))
        },
    )
