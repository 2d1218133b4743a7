"""The gain of a larger initial window, and which parts of the figure a run has."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.analysis.medians import Medians, Values

from .grid import TRANSFER, Point, points, settings
from .measure import TIME, Place


@dataclass(frozen=True)
class Coordinates:
    """One coordinate of the figure: its name in a point, its values' in `study.toml`, and words for a sentence."""

    name: str
    setting: str
    unit: str
    others: str


def transfers() -> list[Point]:
    """The points of the talk's figure."""
    return [point for point in points() if point.experiment == TRANSFER]


def larger_windows() -> list[int]:
    """Initial windows above the base."""
    return [iw for iw in settings()["initial_windows"] if iw > settings()["base_window"]]


def relative(data: Medians[Place], point: Point, metric: str = TIME) -> Values:
    """Transfer time as a share of that with the base window; KeyError without either."""
    base = point._replace(iw=settings()["base_window"])
    return data(Place(metric, point)) / data(Place(metric, base))


def gain(data: Medians[Place], point: Point, metric: str = TIME) -> Values:
    """Percent of the base window's transfer time that the point's window saves."""
    return 100 * (1 - relative(data, point, metric))


def is_known(data: Medians[Place], point: Point) -> bool:
    """Whether the run has the point and its base."""
    base = point._replace(iw=settings()["base_window"])
    return Place(TIME, point) in data and Place(TIME, base) in data


def lines(data: Medians[Place], coordinate: Coordinates) -> list[list[Point]]:
    """Larger windows' points that differ in the coordinate only, in its order; the lines that the run has in full."""
    values = settings()[coordinate.setting]
    starts = [
        point for point in transfers() if point.iw in larger_windows() and getattr(point, coordinate.name) == values[0]
    ]
    drawn = [[point._replace(**{coordinate.name: value}) for value in values] for point in starts]
    return [line for line in drawn if all(is_known(data, point) for point in line)]
