"""Each value of a key that was varied against its first value: the same replicates and users in both arms.

In a population users are the units, drawn by subnet where they share one (`analysis.ab`). In one network they share
queues, and a population's aggregates hold no single users: there replicates are, with intervals by the jackknife.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from firstflight.analysis.ab import Design, compare, compare_rate, of_aggregates
from firstflight.analysis.intervals import Estimate, Means, jackknife
from firstflight.analysis.table import Metric, Table, rows_frame

if TYPE_CHECKING:
    from firstflight.records import Run

Value = str | int | float
Order = Mapping[str, Sequence[Value]]
"""Keys that were varied, and the values of each as they were given."""

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_TIMES = ("mean", *_QUANTILES)
_RETRANSMITTED = "retransmitted"
# Delivery of datagrams: shares of all in percent, and means over streams.
_STREAMS = {
    "mean_delay": pl.col("delay_mean_s").fill_nan(None).mean(),
    "jitter": pl.col("jitter_mean_s").fill_nan(None).mean(),
    "lost": 100 * pl.col("packets_lost").sum() / (pl.col("packets_received") + pl.col("packets_lost")).sum(),
    "late": 100 * pl.col("packets_late").sum() / (pl.col("packets_received") + pl.col("packets_lost")).sum(),
    "mos": pl.col("mos").fill_nan(None).mean(),
}
# Metrics that are compared by their difference, with its unit; the others are by their ratio.
_DIFFERENCES = {
    _RETRANSMITTED: "percentage points",
    "lost": "percentage points",
    "late": "percentage points",
    "mos": "points",
}
METRICS = (
    Metric("mean", "Mean time", 1),
    Metric("p50", "Median time", 1),
    Metric("p95", "95th percentile", 1),
    Metric("p99", "99th percentile", 1),
    Metric(_RETRANSMITTED, "Retransmitted segments", 2),
    Metric("mean_delay", "Mean delay", 1),
    Metric("jitter", "Jitter", 1),
    Metric("lost", "Lost", 2),
    Metric("late", "Late", 2),
    Metric("mos", "MOS", 2),
)
# Differences up to this size come from rounding.
_SAME = 1e-9
_CAPTION = (
    "{key} = {values} against {key} = {first}, with the same random numbers: change of completion times in percent, "
    "and of the share of retransmitted segments in percentage points; of datagrams change of delay and jitter in "
    "percent, of lost and late ones in percentage points, of the MOS in points. Intervals over {units}. Unfinished "
    "transfers count as longer than every time in a quantile, which is left out if it reaches them, and are not in a "
    "mean."
)


@dataclass(frozen=True)
class Compared:
    """One metric of one application where `key` has `value` instead of `first`, and the other keys are `others`.

    `estimate`: change in percent; of shares in percentage points, of the MOS in points. NaN where there is nothing.
    """

    key: str
    first: Value
    value: Value
    others: dict[str, Value]
    application: str
    metric: str
    estimate: Estimate
    units: str
    """The unit resampled for the interval: users or replicates."""


def compared(run: Run, order: Order, population: bool) -> list[Compared]:
    """Every comparison that the finished cells of a run allow. `population`: whether each user has a path."""
    found = []
    if aggregated := _is_aggregated(run):
        rows = _whole(run.aggregates)
        bins = _whole(run.histograms)
    else:
        rows = _rows(run, list(order), population)
    streams = _stream_rows(run, list(order))
    for key, (first, *values) in order.items():
        others = [name for name in order if name != key]
        for point in itertools.product(*(order[name] for name in others)):
            fixed = dict(zip(others, point, strict=True))
            for value in values:
                arms = _where(rows, fixed).filter(_is(rows, key, first) | _is(rows, key, value))
                both = (
                    _of_aggregates(arms, _where(bins, fixed), key, first, value)
                    if aggregated
                    else _both(arms, key, first, value, population)
                )
                units = "users" if population and not aggregated else "replicates"
                sent = _where(streams, fixed).filter(_is(streams, key, first) | _is(streams, key, value))
                of_streams = _both(sent, key, first, value, False, tuple(_STREAMS))
                for drawn, estimates in ((units, both), ("replicates", of_streams)):
                    for application, metric, estimate in estimates:
                        found.append(Compared(key, first, value, fixed, application, metric, _drawn(estimate), drawn))
    return found


def comparison_tables(found: Sequence[Compared], order: Order) -> list[Table]:
    """A table of each key that was varied, `comparison` or, of several, `comparison_KEY`."""
    tables = []
    for key, (first, *values) in order.items():
        rows = [item for item in found if item.key == key]
        if not rows:
            continue
        others = [name for name in order if name != key]
        keys = (*others, key, "application")
        frame = rows_frame(
            keys,
            (
                {
                    **item.others,
                    key: item.value,
                    "application": item.application,
                    "metric": item.metric,
                    "ours": _number(item.estimate.value),
                    "low": _number(item.estimate.low),
                    "high": _number(item.estimate.high),
                    "unit": _DIFFERENCES.get(item.metric, "percent"),
                }
                for item in rows
            ),
        )
        name = "comparison" if len(order) == 1 else f"comparison_{key}"
        caption = _CAPTION.format(key=key, first=first, values=", ".join(map(str, values)), units=rows[0].units)
        tables.append(Table(name, f"{key}: compared with {first}", caption, keys, frame, metrics=METRICS))
    return tables


def sentences(found: Sequence[Compared], order: Order) -> list[str]:
    """The mean time with each value of the first key, where nothing else was varied."""
    if len(order) != 1:
        return []
    told = []
    for item in found:
        low, high = item.estimate.low, item.estimate.high
        if item.metric != "mean" or math.isnan(item.estimate.value):
            continue
        interval = "" if math.isnan(low) else f" (95% CI {low:+z.1f} to {high:+z.1f}%)"
        told.append(
            f"{item.key} {item.value} instead of {item.first} changes the mean time of {item.application} by "
            f"{item.estimate.value:+z.1f}%{interval}."
        )
    return told[:3]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _is_aggregated(run: Run) -> bool:
    return run.aggregates.head(1).collect().height > 0


def _where(rows: pl.DataFrame, fixed: Mapping[str, Value]) -> pl.DataFrame:
    return rows.filter(_is(rows, key, value) for key, value in fixed.items()) if fixed else rows


def _is(rows: pl.DataFrame, key: str, value: Value) -> pl.Expr:
    return pl.col(key) == (str(value) if rows.schema[key] == pl.String else value)


def _both(
    arms: pl.DataFrame,
    key: str,
    first: Value,
    value: Value,
    by_users: bool,
    metrics: Sequence[str] = (*_TIMES, _RETRANSMITTED),
) -> Iterator[tuple[str, str, Estimate]]:
    baseline, treatment = (str(side) if arms.schema[key] == pl.String else side for side in (first, value))
    for (application,), part in arms.partition_by("application", as_dict=True, maintain_order=True).items():
        if part[key].n_unique() < 2:
            continue
        for metric in metrics:
            estimate = (
                _by_users(part, metric, key, baseline, treatment)
                if by_users
                else _by_replicates(part, metric, key, baseline, treatment)
            )
            if estimate is not None and not math.isnan(estimate.value):
                yield str(application), metric, estimate


def _whole(table: pl.LazyFrame) -> pl.DataFrame:
    """The rows of aggregates or histograms for all users, of pages where an application has any."""
    of_pages = pl.col("unit").cast(pl.String) == "page"
    whole = table.filter(pl.col("dimension").cast(pl.String) == "all").with_columns(
        pl.col("application").cast(pl.String)
    )
    return whole.filter(of_pages == of_pages.any().over("application")).collect()


def _of_aggregates(
    sums: pl.DataFrame, bins: pl.DataFrame, key: str, first: Value, value: Value
) -> Iterator[tuple[str, str, Estimate]]:
    for application, unit in (
        sums.select("application", pl.col("unit").cast(pl.String)).unique(maintain_order=True).rows()
    ):
        for metric in (*_TIMES, _RETRANSMITTED):
            rate = metric == _RETRANSMITTED
            found = of_aggregates(
                sums,
                bins,
                arm=key,
                baseline=first,
                treatment=value,
                statistic="retransmission rate" if rate else metric,
                application=application,
                unit=unit,
            )
            estimate = _in_percent(found.difference) if rate else found.percent
            if not math.isnan(estimate.value):
                yield application, metric, estimate


def _drawn(estimate: Estimate) -> Estimate:
    """Without the interval where all replicates agree to the last digits: nothing in them was random."""
    if estimate.high - estimate.low > _SAME * max(1.0, abs(estimate.value)):
        return estimate
    return Estimate(estimate.value, math.nan, math.nan, estimate.replicates)


def _in_percent(share: Estimate) -> Estimate:
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high, share.replicates)


def _by_users(part: pl.DataFrame, metric: str, key: str, baseline: object, treatment: object) -> Estimate | None:
    unit, cluster = ["replicate", "client"], None
    if part["subnet"].null_count() == 0:
        cluster = ["replicate", "subnet"]
    design = Design(arm=key, baseline=baseline, treatment=treatment, unit=unit, cluster=cluster)
    if metric == _RETRANSMITTED:
        if part[_SENT].null_count():
            return None
        return _in_percent(compare_rate(part, "retransmissions", _SENT, design).difference)
    return compare(part, "completion_time_s", replace(design, weight="weight"), statistic=metric).percent


def _by_replicates(part: pl.DataFrame, metric: str, key: str, baseline: object, treatment: object) -> Estimate:
    values: dict[object, dict[int, float]] = {baseline: {}, treatment: {}}
    for side, replicate, value in part.select(key, "replicate", metric).iter_rows():
        if value is not None:
            values[side][replicate] = value
    # Without those replicates in which the unfinished reach into a quantile, it would be that of the better ones.
    if not all(values.values()) or not all(math.isfinite(value) for side in values.values() for value in side.values()):
        return Estimate(math.nan)

    def change(mean: Means[object]) -> float:
        one, other = mean(treatment), mean(baseline)
        if metric in _DIFFERENCES:
            return one - other
        return 100 * (one / other - 1) if other else math.nan

    return jackknife(values, change)


_SENT = "segments_sent"


def _rows(run: Run, keys: list[str], by_users: bool) -> pl.DataFrame:
    """The compared rows, pages before transfers of the same application: one row per user, else one per replicate."""
    pages, transfers = _with_all_arms(run.pages), _with_all_arms(run.transfers)
    columns = [*keys, "replicate", "application", "client", "completion_time_s", "retransmissions"]
    # A page's segments are those of its transfers, and its time is its own.
    on_pages = pages.select("application").unique().collect()["application"].to_list()
    times = pl.concat(
        [
            pages.select(*columns, pl.lit(None, dtype=pl.UInt32).alias(_SENT)),
            transfers.filter(~pl.col("application").is_in(on_pages)).select(*columns, _SENT),
        ]
    )
    if by_users:
        users = run.users.select(*keys, "replicate", "client", "subnet", "weight")
        # Sums of floats depend on the order of the rows in the last digit.
        paired = times.join(users, on=[*keys, "replicate", "client"], how="left", maintain_order="left")
        return paired.collect()
    finished = pl.col("completion_time_s")
    by = [*keys, "application", "replicate"]
    retransmissions = transfers.group_by(by).agg(
        (100 * pl.col("retransmissions").sum() / pl.col(_SENT).sum()).alias(_RETRANSMITTED)
    )
    return (
        times.group_by(by, maintain_order=True)
        .agg(
            finished.filter(finished.is_not_nan()).mean().alias("mean"),
            *(finished.fill_nan(math.inf).quantile(q, "linear").alias(name) for name, q in _QUANTILES.items()),
        )
        .join(retransmissions, on=by, how="left", maintain_order="left")
        .collect()
    )


def _stream_rows(run: Run, keys: list[str]) -> pl.DataFrame:
    """Delivery of datagrams, one row per replicate, application and sender."""
    sender = pl.when(pl.col("from_server") == 1).then(pl.lit("server")).otherwise(pl.lit("client"))
    name = pl.format("{}, sender {}", pl.col("application"), sender)
    return (
        _with_all_arms(run.streams)
        .with_columns(name.alias("application"))
        .group_by([*keys, "application", "replicate"], maintain_order=True)
        .agg(value.alias(metric) for metric, value in _STREAMS.items())
        .collect()
    )


def _with_all_arms(rows: pl.LazyFrame) -> pl.LazyFrame:
    """With its name as text; the rows of an application with arms again under one name for all of them."""
    named = rows.collect_schema()["application"]
    names = named.categories.to_list() if isinstance(named, pl.Enum) else []
    # An application comes before its arms.
    of = {name: next(of for of in names if name == of or name.startswith(f"{of}.")) for name in names}
    arms = {name: base for name, base in of.items() if list(of.values()).count(base) > 1}
    text = rows.with_columns(pl.col("application").cast(pl.String))
    if not arms:
        return text
    together = text.filter(pl.col("application").is_in(list(arms)))
    whole = pl.format("{}, all arms", pl.col("application").replace(arms))
    return pl.concat([text, together.with_columns(whole.alias("application"))])
