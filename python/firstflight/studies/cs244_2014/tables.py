"""The study's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.cs244_2014 import intervals
from firstflight.studies.cs244_2014.grid import LINE, bucket_name, edges_kbps, paths, ten_segments_fit_kbps
from firstflight.studies.cs244_2014.measure import (
    MANY,
    of_run,
    pairs,
    present,
    responses,
    simulated,
    ten_segments_ms,
    timed_out_percent,
    undisturbed,
)

if TYPE_CHECKING:
    from firstflight.records import Run

_UNITS = {
    "gain": "ms",
    "gain_percent": "percent",
    "time_iw3": "ms",
    "time_iw10": "ms",
    "pairs": "count",
    "disturbed": "count",
    "ten_segments": "ms",
    "first_flight": "segments",
    "timeouts": "percent",
    "difference": "ms",
    "difference_percent": "percent",
    "within": "percent",
}
BY_BANDWIDTH = (
    Metric("gain", "Gain", 1),
    Metric("gain_percent", "Gain", 1),
    Metric("time_iw3", "Time with IW 3", 0),
    Metric("time_iw10", "Time with IW 10", 0),
    Metric("pairs", "Pairs", 0),
    Metric("disturbed", "Disturbed, left out", 0),
)
BY_PATH = (Metric("gain", "Gain", 1), Metric("gain_percent", "Gain", 1))
BY_USER = (Metric("ten_segments", "Ten segments of a first flight on the link", 1),)
ENDS = (
    Metric("first_flight", "First flight", 0),
    Metric("timeouts", "Responses with a timeout", 1),
)
BESIDE = (
    Metric("difference", "Emulated minus simulated", 2),
    Metric("difference_percent", "Emulated minus simulated", 2),
    Metric("within", "Within 1 % or 1 ms", 0),
    Metric("pairs", "Responses", 0),
)


def all_tables(run: Run) -> list[Table]:
    """`by_bandwidth`, `windows`, `ten_segments`, `paths`, and `engines` for an emulated run; only those with rows."""
    tables = of_run(run)
    rows = responses(tables)
    found = [_by_bandwidth(pairs(rows)), _windows(rows), _ten_segments(ten_segments_ms(tables, rows))]
    by_path = {path: undisturbed(pairs(responses(of_run(run, path)))) for path in paths()}
    if any(not paired.is_empty() for path, paired in by_path.items() if path != LINE):
        found.append(_paths(by_path))
    if run.engine == "emulate":
        found.append(_engines(rows, responses(simulated(run))))
    return [table for table in found if not table.frame.is_empty()]


def _by_bandwidth(paired: pl.DataFrame) -> Table:
    rows = []
    calm = undisturbed(paired)
    columns = {"gain": "gain_ms", "gain_percent": "gain_percent", "time_iw3": "few_ms", "time_iw10": "many_ms"}
    for index in present(paired):
        own = calm.filter(pl.col("bucket") == index)
        counts = {"pairs": own.height, "disturbed": paired.filter(pl.col("bucket") == index).height - own.height}
        place = {"bandwidth_kbps": bucket_name(index)}
        rows += [
            _row(place, metric, intervals.median(own[column], metric, index)) for metric, column in columns.items()
        ]
        rows += [_row(place, metric, Estimate(count)) for metric, count in counts.items()]
    return Table(
        "by_bandwidth",
        "Gain of IW 10 over IW 3 by bandwidth",
        "Medians over pairs: the same request of the same user with either window. The time is from the opening of the "
        "connection to the last byte; percent are of the time with IW 3.",
        ("bandwidth_kbps",),
        rows_frame(("bandwidth_kbps",), rows),
        metrics=BY_BANDWIDTH,
    )


def _paths(by_path: Mapping[str, pl.DataFrame]) -> Table:
    rows = [
        _row(
            {"bandwidth_kbps": bucket_name(index), "path": path},
            metric,
            intervals.median(own[column], f"{path} {metric}", index),
        )
        for index in range(len(edges_kbps()))
        for path, paired in by_path.items()
        for own in [paired.filter(pl.col("bucket") == index)]
        if not own.is_empty()
        for metric, column in (("gain", "gain_ms"), ("gain_percent", "gain_percent"))
    ]
    keys = ("bandwidth_kbps", "path")
    return Table(
        "paths",
        "Gain of IW 10 over IW 3 on a line and over Mininet's shaper",
        "`line` transmits packet after packet. The others are Mininet's htb, a bucket of 1600 bytes: `htb-flights` "
        "with GSO packets of up to 64 kB (Linux before 3.12), `htb-pairs` with those of two segments (Linux since "
        "then, at this round trip).",
        keys,
        rows_frame(keys, rows),
        across="path",
        metrics=BY_PATH,
    )


def _windows(rows: pl.DataFrame) -> Table:
    keys = ("iw", "bandwidth_kbps")
    found = []
    for (iw, index), own in rows.sort("iw", "bucket").group_by("iw", "bucket", maintain_order=True):
        place = {"iw": iw, "bandwidth_kbps": bucket_name(index)}
        found.append(_row(place, "first_flight", Estimate(max(own["first_flight"].to_list()))))
        found.append(_row(place, "timeouts", Estimate(timed_out_percent(own))))
    return Table(
        "windows",
        "First flights and timeouts",
        "The largest first flight, and the responses during which the retransmission timer expired although nothing "
        "was lost.",
        keys,
        rows_frame(keys, found),
        across="iw",
        metrics=ENDS,
    )


def _ten_segments(times: Mapping[float, float]) -> Table:
    rows = [_row({"rate_kbps": rate}, "ten_segments", Estimate(time)) for rate, time in times.items()]
    return Table(
        "ten_segments",
        f"How long ten segments take (IW {MANY})",
        "One round trip is 70 ms; by arithmetic ten full packets take as long at "
        f"{ten_segments_fit_kbps():.0f} kbit/s.",
        ("rate_kbps",),
        rows_frame(("rate_kbps",), rows),
        metrics=BY_USER,
    )


def _engines(emulated: pl.DataFrame, computed: pl.DataFrame) -> Table:
    keys = ("iw", "bandwidth_kbps")
    rows = []
    for (iw, index), own in (
        side_by_side(emulated, computed).sort("iw", "bucket").group_by("iw", "bucket", maintain_order=True)
    ):
        place = {"iw": iw, "bandwidth_kbps": bucket_name(index)}
        difference = own["time_ms"] - own["simulated_ms"]
        percent = 100 * difference / own["simulated_ms"]
        rows.append(_row(place, "difference", intervals.median(difference, "difference", (iw, index))))
        rows.append(_row(place, "difference_percent", intervals.median(percent, "difference_percent", (iw, index))))
        rows.append(_row(place, "within", Estimate(close_percent(own))))
        rows.append(_row(place, "pairs", Estimate(own.height)))
    return Table(
        "engines",
        "The kernel beside the simulator",
        "The same requests of the same users; medians of the differences, response by response, disturbed ones left "
        "out.",
        keys,
        rows_frame(keys, rows),
        across="iw",
        metrics=BESIDE,
    )


def side_by_side(emulated: pl.DataFrame, computed: pl.DataFrame) -> pl.DataFrame:
    """The undisturbed responses of an emulated run with the simulator's time (`simulated_ms`) for each."""
    key = ["iw", "replicate", "client", "request", "bytes"]
    simulated = computed.select(*key, pl.col("time_ms").alias("simulated_ms"))
    return undisturbed(emulated).join(simulated, on=key, maintain_order="left")


def close_percent(beside: pl.DataFrame) -> float:
    """Share of the responses whose emulated time is within 1 % or 1 ms of the simulated one; 0 without any."""
    difference = (pl.col("time_ms") - pl.col("simulated_ms")).abs()
    close = beside.filter((difference <= 1) | (difference <= 0.01 * pl.col("simulated_ms")))
    return 100 * close.height / max(1, beside.height)


def _row(place: Mapping[str, Any], metric: str, found: Estimate) -> dict[str, Any]:
    figures = {"ours": found.value, "low": found.low, "high": found.high}
    return {**place, "metric": metric, **figures, "unit": _UNITS[metric]}
