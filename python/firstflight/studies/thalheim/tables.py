"""The study's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from firstflight.analysis.medians import Medians, Sample, Values
from firstflight.analysis.table import Metric, Table, rows_frame

from .computed import closed_form_s, simulated_s, talk_s
from .gain import relative
from .grid import MICE, NAME, PARALLEL, SHALLOW, TRANSFER, Point, settings
from .measure import AGAIN, FLIGHTS, SHARE, TIME, Place
from .measure import Values as Measured

_FIGURE = ("rate_mbit", "size_kb", "delay_ms", "iw")
_ONE_PATH = "10 Mbit/s, 50 ms one way."


def all_tables(values: Measured, emulated: bool) -> list[Table]:
    """Those for which there is data. `emulated`: with quartiles, what was left out, and the simulator's times."""
    data = Medians(values, NAME)
    alone = {place.point: sample for place, sample in values.items() if place.metric == TIME}
    figure = {point: sample for point, sample in alone.items() if point.experiment == TRANSFER}
    tables = [_relative(data, figure), _times(figure, emulated), _formula(figure)]
    if emulated:
        tables.insert(2, _engines(alone))
    tables += [_shallow(values, data), _parallel(values), _mice(values)]
    return [table for table in tables if not table.frame.is_empty()]


def _relative(data: Medians[Place], figure: Iterable[Point]) -> Table:
    return _table(
        "relative",
        f"Transfer time relative to an initial window of {settings()['base_window']}",
        "In percent: below 100 is a gain. The talk's figure in numbers; delay one way, ample queue.",
        _FIGURE,
        (Metric("relative_time", "Time", 0),),
        [row for point in figure for row in _relative_row(data, point, _FIGURE)],
        across="iw",
    )


def _relative_row(data: Medians[Place], point: Point, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        found = data.estimate(lambda medians: 100 * relative(medians, point))
    except KeyError:
        return []
    return [_row(keys, point, "relative_time", found.value, "percent") | {"low": found.low, "high": found.high}]


def _times(figure: dict[Point, Sample], emulated: bool) -> Table:
    rows, notes = [], []
    for point, sample in figure.items():
        if sample.values:
            lower, median, upper = sample.quartiles
            rows.append(_row(_FIGURE, point, "median_time", 1000 * median, "ms"))
            if emulated:
                rows.append(_row(_FIGURE, point, "quartile_range", 1000 * (upper - lower), "ms"))
        if emulated:
            rows.append(_row(_FIGURE, point, "disturbed", sample.left_out, "transfers"))
            if sample.mostly_left_out:
                notes.append(
                    f"{_where(point)}: {sample.left_out} of {sample.count} transfers were disturbed; the figure rests "
                    "on the others."
                )
    return _table(
        "times",
        "Transfer times",
        "From the opening of the connection to the last byte."
        + (" Over the transfers that no stall of the machine disturbed." if emulated else ""),
        _FIGURE,
        (
            Metric("median_time", "Median" if emulated else "Time", 1),
            Metric("quartile_range", "Between the quartiles", 2),
            Metric("disturbed", "Disturbed", 0),
        ),
        rows,
        across="iw",
        notes=tuple(notes),
    )


def _engines(alone: dict[Point, Sample]) -> Table:
    """The emulated median beside the simulated time of the same cell."""
    keys = ("experiment", *_FIGURE)
    rows = []
    for point, sample in alone.items():
        if point.experiment in (TRANSFER, SHALLOW) and sample.values:
            simulated = simulated_s(point)
            difference = 100 * (sample.median / simulated - 1)
            rows.append(_row(keys, point, "simulated", 1000 * simulated, "ms"))
            rows.append(_row(keys, point, "difference", difference, "percent"))
    return _table(
        "engines",
        "The kernel's times against the simulator's",
        "Simulated: the same cell in virtual time. Difference: of the kernel's median from it.",
        keys,
        (Metric("simulated", "Simulated", 1), Metric("difference", "Kernel against simulator", 2)),
        rows,
        across="iw",
    )


def _formula(figure: dict[Point, Sample]) -> Table:
    rows = []
    for point, sample in figure.items():
        if sample.values:
            for name, computed in (("talk", talk_s(point)), ("closed_form", closed_form_s(point))):
                rows.append(_row(_FIGURE, point, name, 100 * (computed / sample.median - 1), "percent"))
    return _table(
        "formula",
        "Formulas against measured times",
        "By how much a formula's time differs from the measured one. The talk's, as far as its words give it: windows "
        "that double each round trip, and one for the handshake. The closed form of docs/model.md: the same, and the "
        "time that the link takes for the bytes.",
        _FIGURE,
        (Metric("talk", "The talk's words", 0), Metric("closed_form", "Closed form", 1)),
        rows,
        across="iw",
    )


def _shallow(values: Measured, data: Medians[Place]) -> Table:
    keys = ("rate_mbit", "size_kb", "iw")
    rows = []
    for place, sample in values.items():
        point = place.point
        if point.experiment == SHALLOW and place.metric == TIME:
            rows += _relative_row(data, point, keys)
            ample = Place(TIME, point._replace(experiment=TRANSFER, queue_packets=settings()["ample_packets"]))
            if ample in data and sample.values:
                longer = 100 * (sample.median / values[ample].median - 1)
                rows.append(_row(keys, point, "longer", longer, "percent"))
        if point.experiment == SHALLOW and place.metric == AGAIN and sample.values:
            rows.append(_row(keys, point, "again", float(np.mean(sample.values)), "segments"))
    return _table(
        "shallow",
        f"The same over a queue of {settings()['small_packets']} packets",
        f"{settings()['path']['delay_ms']} ms one way. Longer: than over the ample queue.",
        keys,
        (
            Metric("relative_time", f"Time relative to IW {settings()['base_window']}", 0),
            Metric("longer", "Longer", 0),
            Metric("again", "Retransmitted segments", 1),
        ),
        rows,
        across="iw",
    )


def _parallel(values: Measured) -> Table:
    units = {TIME: "s", "object_time": "s", FLIGHTS: "segments", AGAIN: "segments"}
    return _plain(
        values,
        "parallel",
        f"{settings()['parallel']['total_kb']} kB over connections that open together",
        f"{_ONE_PATH} Medians; `flows` connections share the bytes.",
        ("queue_packets", "iw", "flows"),
        (
            Metric(TIME, "All complete", 3),
            Metric("object_time", "Mean of the objects", 3),
            Metric(FLIGHTS, "First flights together", 0),
            Metric(AGAIN, "Retransmitted segments", 0),
        ),
        units,
        PARALLEL,
    )


def _mice(values: Measured) -> Table:
    chosen = settings()["mice"]
    return _plain(
        values,
        "mice",
        f"Requests of {chosen['size_kb']} kB beside a long download",
        f"{_ONE_PATH} A queue of {chosen['queue_packets']} packets; medians. `flows` downloads, begun ten seconds "
        "before. Share: of the bytes that the link carried while the server sent the short response.",
        ("iw", "flows"),
        (Metric(TIME, "Completion time", 3), Metric(SHARE, "The long download's share", 1)),
        {TIME: "s", SHARE: "percent"},
        MICE,
    )


def _plain(
    values: Measured,
    name: str,
    title: str,
    caption: str,
    keys: tuple[str, ...],
    metrics: tuple[Metric, ...],
    units: dict[str, str],
    experiment: str,
) -> Table:
    order = [metric.name for metric in metrics]
    data = Medians(values, NAME)
    rows = []
    chosen = [place for place in values if place.point.experiment == experiment and place.metric in order]
    chosen.sort(key=lambda place: ([getattr(place.point, key) for key in keys], order.index(place.metric)))
    for place in chosen:
        if place in data:
            found = data.estimate(_median_of(place))
            row = _row(keys, place.point, place.metric, found.value, units[place.metric])
            rows.append(row | {"low": found.low, "high": found.high})
    return _table(name, title, caption, keys, metrics, rows)


def _median_of(place: Place) -> Callable[[Medians[Place]], Values]:
    return lambda medians: medians(place)


def _row(keys: tuple[str, ...], point: Point, metric: str, value: float, unit: str) -> dict[str, Any]:
    return {key: getattr(point, key) for key in keys} | {"metric": metric, "ours": value, "unit": unit}


def _where(point: Point) -> str:
    return f"{point.rate_mbit} Mbit/s, {point.delay_ms} ms, {point.size_kb} kB, IW {point.iw}"


def _table(
    name: str,
    title: str,
    caption: str,
    keys: tuple[str, ...],
    metrics: tuple[Metric, ...],
    rows: list[dict[str, Any]],
    across: str | None = None,
    notes: tuple[str, ...] = (),
) -> Table:
    return Table(name, title, caption, keys, rows_frame(keys, rows), across=across, metrics=metrics, notes=notes)
