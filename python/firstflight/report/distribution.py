"""The figures that any run can show: how completion times and the delays of datagrams are distributed."""

from __future__ import annotations

import math

import polars as pl

from firstflight.analysis.summary import as_in_the_scenario
from firstflight.report.figure import Figure, Spec, layer, legend, nominal, quantitative
from firstflight.report.style import BASE, ORDERED, scale

_QUANTILES = [percent / 100 for percent in range(1, 100)]


def completion_times(
    rows: pl.LazyFrame, keys: list[str], pages: bool = False, weights: pl.LazyFrame | None = None
) -> list[Figure]:
    """Distribution of completion times (s) of transfers or `pages`, 1st to 99th percentile, over all replicates.

    One line per application and cell, up to as many as the palette has colors. As in the tables, what did not finish
    is later than all else, and each user counts by `weights` (`analysis.summary.weights_of`). Empty where nothing
    finished or there are more lines.
    """
    by = [*_varying(rows, keys), "application"]
    time_s = pl.when(pl.col("completed") == 1).then(pl.col("completion_time_s")).otherwise(math.inf)
    if weights is None:
        of = {q: time_s.quantile(q, "lower") for q in _QUANTILES}
    else:
        rows = rows.join(weights, on=[*keys, "replicate", "client"], how="left")
        below = pl.col("weight").sort_by(time_s).cum_sum()
        of = {q: time_s.sort().filter(below >= q * below.last()).first() for q in _QUANTILES}
    quantiles = (
        rows.group_by(by, maintain_order=True)
        .agg(value.alias(f"{q:.2f}") for q, value in of.items())
        .filter(pl.col(f"{_QUANTILES[0]:.2f}").is_finite())
    )
    curves = as_in_the_scenario(quantiles, by).collect()
    if not 0 < curves.height <= len(ORDERED):
        return []
    names = _names(curves.select(by))
    points = [
        {"line": name, "time_s": row[f"{q:.2f}"], "share": 100 * q}
        for name, row in zip(names, curves.iter_rows(named=True), strict=True)
        for q in _QUANTILES
        if math.isfinite(row[f"{q:.2f}"])
    ]
    medians = {name: time_s for name, time_s in zip(names, curves["0.50"], strict=True) if math.isfinite(time_s)}

    def chart(width: int, height: int) -> Spec:
        color = nominal("line", sort=names, scale=scale(names), title=None, legend=legend(names, width))
        ticks = {"tickCount": width // 64, "labelOverlap": True}
        across = quantitative("time_s", title="completion time, s", axis=ticks)
        up = quantitative("share", title="share finished within, %", scale={"domain": [0, 100]})
        lines = layer({"type": "line", "strokeWidth": 2}, points, x=across, y=up, color=color)
        return lines | {"width": width, "height": height}

    return [
        Figure(
            "page_times" if pages else "completion_times",
            "Page times" if pages else "Completion times",
            f"{'Pages' if pages else 'Transfers'} of all replicates, 1st to 99th percentile; unfinished ones count.",
            chart(640, 280),
            chart(270, 220),
            f"Median: {_ends(medians, 's')}" if medians else "More than half did not finish",
        )
    ]


def _ends(values: dict[str, float], unit: str) -> str:
    """The least and the largest value, and whose they are; alone a value that all have."""
    whose = " ({})" if len({*values.values()}) > 1 else ""
    labels = sorted((value, f"{value:.3g} {unit}{whose.format(name)}") for name, value in values.items())
    return " to ".join(dict.fromkeys(text for _, text in (labels[0], labels[-1])))


def _names(cells: pl.DataFrame) -> list[str]:
    """Of each line: the varied keys, and the application where there are several."""
    several = cells["application"].n_unique() > 1 or cells.width == 1
    return [
        ", ".join(
            value if key == "application" else f"{key} {value}"
            for key, value in row.items()
            if several or key != "application"
        )
        for row in cells.iter_rows(named=True)
    ]


def stream_delays(streams: pl.LazyFrame, keys: list[str]) -> list[Figure]:
    """Median, 95th and 99th percentile of the delay (ms) of datagrams, means over streams and replicates.

    One line per application, sender and cell; empty where nothing arrived.
    """
    sender = pl.when(pl.col("from_server") == 1).then(pl.lit("server")).otherwise(pl.lit("client"))
    by = [*_varying(streams, keys), "application", "sender"]
    quantiles = (
        streams.filter(pl.col("packets_received") > 0)
        .with_columns(sender.alias("sender"))
        .group_by(by, maintain_order=True)
        .agg(pl.col("delay_p50_s", "delay_p95_s", "delay_p99_s").mean() * 1e3)
    )
    delays = as_in_the_scenario(quantiles, by).collect()
    if delays.is_empty():
        return []
    names = _names(delays.select(by))
    kinds = {"median": "delay_p50_s", "95%": "delay_p95_s", "99%": "delay_p99_s"}
    points = [
        {"line": name, "quantile": kind, "delay_ms": row[column]}
        for name, row in zip(names, delays.iter_rows(named=True), strict=True)
        for kind, column in kinds.items()
    ]
    y = nominal("line", sort=names, title=None, axis={"labelLimit": 400})
    low = quantitative("delay_ms", aggregate="min", title="delay, ms")
    kind = nominal("quantile", sort=list(kinds), title=None)
    layers = [
        layer({"type": "rule", "color": BASE}, x=low, x2={"field": "delay_ms", "aggregate": "max"}, y=y),
        layer(
            {"type": "point", "filled": True, "size": 70},
            x=quantitative("delay_ms"),
            y=y,
            color=kind | {"scale": scale(list(kinds))},
            shape=kind | {"scale": {"domain": list(kinds)}},
        ),
    ]
    chart = {"data": {"values": points}, "layer": layers}
    return [
        Figure(
            "stream_delays",
            "Delay of datagrams",
            "From sending to arrival: quantiles of each stream, averaged over streams and replicates.",
            chart | {"width": 520},
            chart | {"width": 200},
            f"99% arrive within {_ends(dict(zip(names, delays['delay_p99_s'], strict=True)), 'ms')}",
        )
    ]


def _varying(transfers: pl.LazyFrame, keys: list[str]) -> list[str]:
    if not keys:
        return []
    values = transfers.select(pl.col(keys).n_unique()).collect().row(0)
    return [key for key, count in zip(keys, values, strict=True) if count > 1]
