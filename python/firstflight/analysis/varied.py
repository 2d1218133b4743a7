"""Each value of a key that was varied against its first value: the same replicates and users in both arms.

All by `analysis.ab`. In a population users are the units, drawn by subnet where they share one. In one network they
share queues, and a population's aggregates hold no single users: there replicates are.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from firstflight.analysis.ab import Comparison, Design, compare, compare_rate, of_aggregates
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.records import Run

Value = str | int | float
Order = Mapping[str, Sequence[Value]]
"""Keys that were varied, and the values of each as they were given."""

_TIMES = ("mean", "p50", "p95", "p99")
_RETRANSMITTED, _SENT = "retransmitted", "segments_sent"
# Shares of two sums.
_SHARES = {
    _RETRANSMITTED: ("retransmissions", _SENT),
    "lost": ("packets_lost", "packets_ended"),
    "late": ("packets_late", "packets_ended"),
}
# Means over streams.
_OF_STREAMS = {"mean_delay": "delay_mean_s", "jitter": "jitter_mean_s", "mos": "mos"}
_OF_DELIVERY = ("mean_delay", "jitter", "lost", "late", "mos")
_PERCENT: Any = {"least": -100, "unit": "percent"}
_POINTS: Any = {"least": -100, "most": 100, "unit": "percentage points"}
METRICS = (
    Metric("mean", "Mean time", 1, **_PERCENT),
    Metric("p50", "Median time", 1, **_PERCENT),
    Metric("p95", "95th percentile", 1, **_PERCENT),
    Metric("p99", "99th percentile", 1, **_PERCENT),
    Metric(_RETRANSMITTED, "Retransmitted segments", 2, **_POINTS),
    Metric("mean_delay", "Mean delay", 1, **_PERCENT),
    Metric("jitter", "Jitter", 1, **_PERCENT),
    Metric("lost", "Lost", 2, **_POINTS),
    Metric("late", "Late", 2, **_POINTS),
    Metric("mos", "MOS", 2, least=-3.5, most=3.5, unit="points"),
)
_BY_NAME = {metric.name: metric for metric in METRICS}
# Differences up to this size come from rounding.
_SAME = 1e-9
_CAPTION = (
    "{key} = {values} against {key} = {first}, with the same random numbers: change of completion times in percent, "
    "and of the share of retransmitted segments in percentage points; of datagrams change of delay and jitter in "
    "percent, of lost and late ones in percentage points, of the MOS in points. Intervals over {units}. Unfinished "
    "transfers count as longer than every time in a quantile, and are not in a mean."
)


@dataclass(frozen=True)
class Compared:
    """One metric of one application where `key` has `value` instead of `first`, and the other keys are `others`.

    `estimate`: change in percent; of shares in percentage points, of the MOS in points. NaN where there is nothing, and
    `reason` says why there is no value or no interval.
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
    reason: str = ""


def compared(run: Run, order: Order, population: bool) -> list[Compared]:
    """Every comparison that the finished cells of a run allow. `population`: whether each user has a path."""
    aggregated = run.aggregates.head(1).collect().height > 0
    units = "users" if population and not aggregated else "replicates"
    streams = _stream_rows(run, list(order))
    if aggregated:
        rows, bins = _whole(run.aggregates), _whole(run.histograms)
    else:
        rows = _rows(run, list(order), population)
        segments = rows if population else _with_all_arms(run.transfers).collect()
    comparisons = []
    for key, first, value, fixed in _pairs(order):
        if aggregated:
            changes = list(_of_aggregates(_where(rows, fixed), _where(bins, fixed), key, first, value))
        else:
            changes = [
                *_both(_where(rows, fixed), key, first, value, units, _TIMES),
                *_both(_where(segments, fixed), key, first, value, units, (_RETRANSMITTED,)),
            ]
        of_streams = _both(_where(streams, fixed), key, first, value, "replicates", _OF_DELIVERY)
        for drawn, found in ((units, changes), ("replicates", of_streams)):
            comparisons += [
                Compared(key, first, value, fixed, application, metric, _drawn(estimate), drawn, reason)
                for application, metric, estimate, reason in found
            ]
    return comparisons


def _pairs(order: Order) -> Iterator[tuple[str, Value, Value, dict[str, Value]]]:
    """Key, first and another value of it, and the values of the other keys."""
    for key, (first, *values) in order.items():
        others = [name for name in order if name != key]
        for point in itertools.product(*(order[name] for name in others)):
            for value in values:
                yield key, first, value, dict(zip(others, point, strict=True))


def comparison_tables(comparisons: Sequence[Compared], order: Order) -> list[Table]:
    """A table of each key that was varied, `comparison` or, of several, `comparison_KEY`."""
    tables = []
    for key, (first, *values) in order.items():
        rows = [item for item in comparisons if item.key == key]
        if not rows:
            continue
        others = [name for name in order if name != key]
        keys = (*others, key, "application")
        frame = rows_frame(
            keys,
            (
                {**item.others, key: item.value, "application": item.application, "metric": item.metric}
                | {"ours": item.estimate.value, "low": item.estimate.low, "high": item.estimate.high}
                | {"unit": _BY_NAME[item.metric].unit}
                for item in rows
            ),
        )
        notes: dict[str, list[str]] = {}
        for item in rows:
            if item.reason:
                label = _BY_NAME[item.metric].label.lower()
                notes.setdefault(f"{label}: {item.reason}", []).append(f"{key} {item.value} of {item.application}")
        why = tuple(f"{'; '.join(dict.fromkeys(of))}: no CI of the {reason}." for reason, of in notes.items())
        name = "comparison" if len(order) == 1 else f"comparison_{key}"
        caption = _CAPTION.format(key=key, first=first, values=", ".join(map(str, values)), units=rows[0].units)
        tables.append(Table(name, f"{key}: compared with {first}", caption, keys, frame, metrics=METRICS, notes=why))
    return tables


def sentences(comparisons: Sequence[Compared], order: Order) -> list[str]:
    """Three changes of the mean time, the worst among them, where one key was varied."""
    if len(order) != 1:
        return []
    means = [item for item in comparisons if item.metric == "mean" and not math.isnan(item.estimate.value)]
    worst = sorted(means, key=lambda item: -item.estimate.value)[:1]
    shown = [item for item in means if item not in worst][:2] + worst
    return [_in_words(item) for item in means if item in shown]


def _in_words(item: Compared) -> str:
    change = item.estimate
    sign, how = (-1, "less") if change.value < 0 else (1, "more")
    low, high = sorted((sign * change.low, sign * change.high))
    interval = "" if math.isnan(low) else f" (95% CI {low:z.1f} to {high:z.1f}%)"
    return (
        f"With {item.key} {item.value} instead of {item.first}, {item.application} takes "
        f"{abs(change.value):.1f}% {how} time on average{interval}."
    )


def _where(rows: pl.DataFrame, fixed: Mapping[str, Value]) -> pl.DataFrame:
    return rows.filter(pl.col(key) == _as_stored(rows, key, value) for key, value in fixed.items()) if fixed else rows


def _as_stored(rows: pl.DataFrame, key: str, value: Value) -> Value:
    return str(value) if rows.schema[key] == pl.String else value


Found = tuple[str, str, Estimate, str]
"""Application, metric, change, and why there is no interval."""


def _both(
    arms: pl.DataFrame, key: str, first: Value, value: Value, units: str, metrics: Sequence[str]
) -> Iterator[Found]:
    baseline, treatment = (_as_stored(arms, key, side) for side in (first, value))
    arms = arms.filter((pl.col(key) == baseline) | (pl.col(key) == treatment))
    design = Design(arm=key, baseline=baseline, treatment=treatment, unit=["replicate"])
    if units == "users":
        in_subnets = arms["subnet"].null_count() == 0
        cluster = ["replicate", "subnet"] if in_subnets else None
        design = replace(design, unit=["replicate", "client"], cluster=cluster)
    weight = "weight" if units == "users" else None
    for (application,), part in arms.partition_by("application", as_dict=True, maintain_order=True).items():
        if part[key].n_unique() < 2:
            continue
        for metric in metrics:
            if metric in _SHARES:
                of = _SHARES[metric]
                if part[of[1]].null_count():
                    continue
                comparison = compare_rate(part, *of, design)
            elif metric in _OF_STREAMS:
                known = part.with_columns(pl.col(_OF_STREAMS[metric]).fill_nan(None))
                comparison = compare(known, _OF_STREAMS[metric], design)
            else:
                comparison = compare(part, "completion_time_s", replace(design, weight=weight), statistic=metric)
            if comparison.units:
                yield str(application), metric, *_change(comparison, metric)


def _change(comparison: Comparison, metric: str) -> tuple[Estimate, str]:
    """The change in the unit of the metric, and why it has no interval."""
    if _BY_NAME[metric].unit == "percent":
        if math.isnan(comparison.percent.low) and not comparison.reason:
            return Estimate(math.nan), "that of the first value includes 0, so there is no change in percent"
        # Where the first value's lies among unfinished transfers, any finite one is a change of -100%.
        ends = (comparison.baseline.value, comparison.treatment.value)
        if all(map(math.isfinite, ends)):
            return comparison.percent, comparison.reason
        return Estimate(math.nan), comparison.reason or "too many did not finish"
    return comparison.difference.times(100 if metric in _SHARES else 1), comparison.reason


def _whole(table: pl.LazyFrame) -> pl.DataFrame:
    """The rows of aggregates or histograms for all users, of pages where an application has any."""
    of_pages = pl.col("unit").cast(pl.String) == "page"
    whole = table.filter(pl.col("dimension").cast(pl.String) == "all").with_columns(
        pl.col("application").cast(pl.String)
    )
    return whole.filter(of_pages == of_pages.any().over("application")).collect()


def _of_aggregates(sums: pl.DataFrame, bins: pl.DataFrame, key: str, first: Value, value: Value) -> Iterator[Found]:
    for application, unit in (
        sums.select("application", pl.col("unit").cast(pl.String)).unique(maintain_order=True).rows()
    ):
        for metric in (*_TIMES, _RETRANSMITTED):
            rate = metric == _RETRANSMITTED
            comparison = of_aggregates(
                sums,
                bins,
                arm=key,
                baseline=first,
                treatment=value,
                statistic="retransmission rate" if rate else metric,
                application=application,
                unit=unit,
            )
            if comparison.units:
                yield application, metric, *_change(comparison, metric)


def _drawn(estimate: Estimate) -> Estimate:
    """Without the interval where all replicates agree to the last digits: nothing in them was random."""
    if estimate.high - estimate.low > _SAME * max(1.0, abs(estimate.value)):
        return estimate
    return Estimate(estimate.value, math.nan, math.nan, estimate.replicates)


def _rows(run: Run, keys: list[str], by_users: bool) -> pl.DataFrame:
    """The compared rows, pages before transfers of the same application; `by_users`: with their subnet and weight."""
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
    if not by_users:
        return times.collect()
    users = run.users.select(*keys, "replicate", "client", "subnet", "weight")
    # Sums of floats depend on the order of the rows in the last digit.
    return times.join(users, on=[*keys, "replicate", "client"], how="left", maintain_order="left").collect()


def _stream_rows(run: Run, keys: list[str]) -> pl.DataFrame:
    """Delivery of datagrams, named after application and sender."""
    sender = pl.when(pl.col("from_server") == 1).then(pl.lit("server")).otherwise(pl.lit("client"))
    name = pl.format("{}, sender {}", pl.col("application"), sender)
    ended = (pl.col("packets_received") + pl.col("packets_lost")).alias("packets_ended")
    columns = [*keys, "replicate", "packets_lost", "packets_late", *_OF_STREAMS.values()]
    return _with_all_arms(run.streams).select(name.alias("application"), ended, *columns).collect()


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
