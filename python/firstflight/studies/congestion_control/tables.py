"""The study's tables."""

from __future__ import annotations

from collections.abc import Callable

from firstflight.analysis.intervals import student
from firstflight.analysis.table import Metric, Table, rows_frame

from .grid import DOWNLOAD, MICE, PARALLEL, RATE_BPS, Point, drawn, queue_packets, settings, titles
from .measure import Values

_UNITS = {
    "completion_time": "s",
    "goodput": "Mbit/s",
    "retransmissions": "segments",
    "timeouts": "count",
    "mean_queue": "packets",
    "max_queue": "packets",
    "first_flights": "segments",
    "retransmitted": "percent",
    "elephant_share": "percent",
}
DOWNLOADS = (
    Metric("completion_time", "Completion time", 2),
    Metric("goodput", "Goodput", 2),
    Metric("retransmissions", "Retransmitted segments", 0),
    Metric("timeouts", "Timeouts", 0),
    Metric("mean_queue", "Mean queue", 1),
    Metric("max_queue", "Longest queue", 0),
)
AROUND = (DOWNLOADS[1], DOWNLOADS[2], DOWNLOADS[4])
TOGETHER = (
    Metric("completion_time", "Mean completion time", 3),
    Metric("first_flights", "First flights together", 0),
    Metric("retransmitted", "Retransmitted segments", 1),
)
BESIDE = (
    Metric("completion_time", "Median completion time", 3),
    Metric("elephant_share", "The long flow's share of the link meanwhile", 1),
)


def all_tables(values: Values) -> list[Table]:
    """`downloads`, `paths`, `parallel` and `mice`; only those for which there is data."""
    base = {drawn(control) for control in titles()}
    path: Point = drawn("")
    packets = queue_packets(path.rtt_ms, path.buffer_bdp)
    parallel = settings()["parallel"]
    tables = [
        _table(
            values,
            "downloads",
            f"One download of {path.size_kb // 1000} MB",
            f"{RATE_BPS // 10**6} Mbit/s, round trip {path.rtt_ms} ms, a queue of {packets} packets "
            f"({path.buffer_bdp:g} x the bandwidth-delay product), alone on its path.",
            ("control",),
            DOWNLOADS,
            lambda point: point in base,
        ),
        _table(
            values,
            "paths",
            "The same download over other paths",
            "Round trip in ms; queue in bandwidth-delay products.",
            ("rtt_ms", "buffer_bdp", "control"),
            AROUND,
            lambda point: point.experiment == DOWNLOAD,
            across="control",
        ),
        _table(
            values,
            "parallel",
            f"Objects of {parallel['size_kb']} kB over connections that open together",
            "`flows` connections with an object each. First flights: segments sent before an acknowledgement of data.",
            ("control", "flows"),
            TOGETHER,
            lambda point: point.experiment == PARALLEL,
        ),
        _table(
            values,
            "mice",
            "Short flows beside a long one",
            "`flows` long flows of the same algorithm, begun ten seconds before. Share: of the bytes that the "
            "bottleneck carried while the server sent the short response.",
            ("size_kb", "control", "flows"),
            BESIDE,
            lambda point: point.experiment == MICE,
        ),
    ]
    return [table for table in tables if not table.frame.is_empty()]


def _table(
    values: Values,
    name: str,
    title: str,
    caption: str,
    keys: tuple[str, ...],
    metrics: tuple[Metric, ...],
    belongs: Callable[[Point], bool],
    across: str | None = None,
) -> Table:
    rows = []
    order = {metric.name: place for place, metric in enumerate(metrics)}
    names = list(titles())
    chosen = [place for place in values if place.metric in order and belongs(place.point)]
    chosen.sort(key=lambda place: (*_sorted(place.point, keys, names), order[place.metric]))
    for place in chosen:
        mean = student(list(values[place].values()))
        key = {key: getattr(place.point, key) for key in keys}
        figures = {"ours": mean.value, "low": mean.low, "high": mean.high}
        rows.append(key | {"metric": place.metric, **figures, "unit": _UNITS[place.metric]})
    return Table(name, title, caption, keys, rows_frame(keys, rows), across=across, metrics=metrics)


def _sorted(point: Point, keys: tuple[str, ...], names: list[str]) -> list[float]:
    return [names.index(point.control) if key == "control" else getattr(point, key) for key in keys]
