"""The measured distributions that a scenario names: files of `cumulative probability, value`."""

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from firstflight.input_files import read_beside


def read_points(name: str, directory: Path | None) -> tuple[tuple[float, float], ...]:
    """Read and check the file `name`, relative to `directory` (the scenario's; else the current one).

    Returns (cumulative probability, value) pairs, probabilities rising from 0 to 1 and values not falling.
    Raises ValueError with file and line.
    """
    path, text = read_beside(name, directory)
    points: list[tuple[float, float]] = []
    lines: list[int] = []
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not row or row[0].lstrip().startswith("#"):
            continue
        try:
            probability, value = (float(field) for field in row)
        except ValueError:
            if not points and not _is_number(row[0]):
                continue
            found = ",".join(row)
            raise ValueError(
                f'{path}, line {line}: "{found}" is not "cumulative probability, value", such as "0.5,2112"'
            ) from None
        points.append((probability, value))
        lines.append(line)
    check_points(points, [f"{path}, line {line}: " for line in lines] or [f"{path}: "])
    return tuple(points)


def check_points(points: Any, places: Sequence[str] | None = None) -> None:
    """Raise ValueError unless `points` is a CDF; `places[i]` says where point i was read."""

    def place(index: int) -> str:
        return places[index] if places else f"points[{index}]: "

    if not isinstance(points, list | tuple) or len(points) < 2:
        raise ValueError(f"{place(0)}a CDF needs at least two points")
    for index, point in enumerate(points):
        if not isinstance(point, list | tuple) or len(point) != 2:
            raise ValueError(f"{place(index)}a point is [cumulative probability, value]")
        probability, value = point
        if not 0 <= probability <= 1:
            raise ValueError(f"{place(index)}the cumulative probability {probability} is outside 0 to 1")
        if not 0 <= value < float("inf"):
            raise ValueError(f"{place(index)}the value {value} is negative or not finite")
    for index, (before, after) in enumerate(pairwise(points), start=1):
        if after[0] < before[0]:
            raise ValueError(
                f"{place(index)}the cumulative probability falls from {before[0]} to {after[0]}; a CDF never falls"
            )
        if after[0] == before[0]:
            raise ValueError(
                f"{place(index)}the cumulative probability stays at {after[0]}; it must rise from point to point"
            )
        if after[1] < before[1]:
            raise ValueError(
                f"{place(index)}the value falls from {before[1]} to {after[1]}; sort the points of a CDF by value"
            )
    if points[0][0] != 0:
        raise ValueError(f"{place(0)}the CDF starts at {points[0][0]}; its first point must have probability 0")
    if points[-1][0] != 1:
        last = place(len(points) - 1)
        raise ValueError(f"{last}the CDF ends at {points[-1][0]}; its last point must have probability 1")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
