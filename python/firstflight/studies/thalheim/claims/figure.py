"""What the talk says of its figure: how large the gain is, and what it grows and falls with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from firstflight.analysis.claim import Claim, Needs, NoDataError, above, at_least, near
from firstflight.analysis.medians import Values, least, mean, most

from ..gain import Coordinates, gain, is_known, larger_windows, lines, transfers
from ..grid import Point, settings
from ..measure import REQUEST_TIME, TIME
from .statement import COMPARISON, Data, Statement


def claims(data: Data, needs: Needs, shaper: str | None = None) -> list[Claim]:
    """One by one, in the order of the talk."""
    return [statement.over(shaper).check(data, needs) for statement in _STATEMENTS]


def _known(data: Data) -> list[Point]:
    found = [point for point in transfers() if point.iw in larger_windows() and is_known(data, point)]
    if not found:
        base = settings()["base_window"]
        raise NoDataError(f"This run has no transfer with an initial window above {base} beside one with {base}.")
    return found


def _all(data: Data) -> list[Point]:
    known = _known(data)
    wanted = sum(point.iw in larger_windows() for point in transfers())
    if len(known) < wanted:
        raise NoDataError(f"The largest of a figure wants all of it, and this run has {len(known)} of {wanted} gains.")
    return known


def _least(data: Data) -> Values:
    return least(gain(data, point) for point in _known(data))


def _most(data: Data) -> Values:
    return most(gain(data, point) for point in _all(data))


def _at(data: Data, points: Sequence[Point], pick: Callable[[Sequence[float]], int], metric: str = TIME) -> str:
    gains = [float(gain(data, point, metric)[0]) for point in points]
    place = pick(gains)
    point = points[place]
    return (
        f"{gains[place]:.1f} % with IW {point.iw} for {point.size_kb} kB at {point.rate_mbit} Mbit/s and "
        f"{point.delay_ms} ms one way"
    )


def _least_note(data: Data) -> str:
    known = _known(data)
    return f"It is {_at(data, known, lambda gains: int(np.argmin(gains)))}; of {len(known)} gains."


def _most_note(data: Data) -> str:
    known = _all(data)
    largest = [_at(data, known, lambda gains: int(np.argmax(gains)), metric) for metric in (TIME, REQUEST_TIME)]
    return f"It is {largest[0]}; from the request on, without the handshake, {largest[1]}."


def _steps(coordinate: Coordinates) -> Callable[[Data], Values]:
    """Mean gain at each value of a coordinate, in its order, minus that at the value before; the least of them."""

    def least_step(data: Data) -> Values:
        means = _means(data, coordinate)
        return least(after - before for before, after in pairwise(means))

    return least_step


def _means(data: Data, coordinate: Coordinates) -> list[Values]:
    return _averaged(data, _lines(data, coordinate))


def _averaged(data: Data, drawn: list[list[Point]]) -> list[Values]:
    """Mean gain over lines at each place along them."""
    return [mean(gain(data, point) for point in place) for place in zip(*drawn, strict=True)]


def _lines(data: Data, coordinate: Coordinates) -> list[list[Point]]:
    found = lines(data, coordinate)
    if not found:
        *most, last = settings()[coordinate.setting]
        raise NoDataError(
            f"This needs transfers of the same {coordinate.others} at {', '.join(map(str, most))} and {last} "
            f"{coordinate.unit}, and this run has none."
        )
    return found


def _trend_note(coordinate: Coordinates, falls: bool = False) -> Callable[[Data], str]:
    def note(data: Data) -> str:
        drawn = _lines(data, coordinate)
        means = ", ".join(
            f"{average[0]:.1f} % at {value} {coordinate.unit}"
            for average, value in zip(_means(data, coordinate), settings()[coordinate.setting], strict=True)
        )
        against = 0
        for line in drawn:
            gains = np.array([gain(data, point)[0] for point in line])
            against += int(((np.diff(gains) if falls else -np.diff(gains)) > _NOTICED).sum())
        steps = len(drawn) * (len(drawn[0]) - 1)
        return (
            f"Mean gain of windows above {settings()['base_window']}: {means}. Of {steps} single steps {against} go "
            f"the other way by more than {_NOTICED} point."
        )

    return note


def _falls(data: Data) -> Values:
    means = _means(data, _SIZE)
    return means[0] - means[-1]


def _falls_each_step(data: Data) -> Values:
    return least(before - after for before, after in pairwise(_means(data, _SIZE)))


def _reach(data: Data) -> Values:
    """Mean gain of the two largest sizes at each rate: the least step from one rate to the next."""
    return least(after - before for before, after in pairwise(_large_means(data)))


def _large_means(data: Data) -> list[Values]:
    large = settings()["sizes_kb"][-2:]
    drawn = [line for line in _lines(data, _RATE) if line[0].size_kb in large]
    if not drawn:
        raise NoDataError(f"This needs files of {_LARGE} kB at all rates, and this run has none.")
    return _averaged(data, drawn)


def _large_note(data: Data) -> str:
    means = zip(_large_means(data), settings()["rates_mbit"], strict=True)
    return f"Mean gain: {', '.join(f'{average[0]:.1f} % at {rate} Mbit/s' for average, rate in means)}."


_NOTICED = 1
_DELAY = Coordinates("delay_ms", "delays_ms", "ms", "rate, size and window")
_SIZE = Coordinates("size_kb", "sizes_kb", "kB", "rate, delay and window")
_RATE = Coordinates("rate_mbit", "rates_mbit", "Mbit/s", "delay, size and window")
_LARGE = " and ".join(f"{size}" for size in settings()["sizes_kb"][-2:])
_BASE = settings()["base_window"]

_STATEMENTS = (
    Statement(
        "talk-gain-from-0",
        f"The transfer time falls by 0 % at least: no window above {_BASE} makes it longer (least gain over the "
        "figure).",
        at_least(0),
        1,
        "percent",
        "One point is below what a figure shows.",
        _least,
        _least_note,
    ),
    Statement(
        "talk-gain-to-60",
        "The transfer time falls by up to 60 % (largest gain over the figure).",
        near(60),
        5,
        "percent",
        "60 is a round number.",
        _most,
        _most_note,
    ),
    Statement(
        "talk-gain-grows-with-delay",
        "The gain grows with the delay (mean gain over rates, sizes and windows: the least step from one delay to the "
        "next).",
        above(0),
        0,
        "percentage points",
        COMPARISON,
        _steps(_DELAY),
        _trend_note(_DELAY),
    ),
    Statement(
        "talk-gain-falls-with-size",
        "The gain falls with the size (mean gain over rates, delays and windows: smallest size minus largest).",
        above(0),
        0,
        "percentage points",
        COMPARISON,
        _falls,
        _trend_note(_SIZE, falls=True),
    ),
    Statement(
        "talk-gain-falls-with-each-size",
        "Read strictly: the gain falls with every step of the size (the least fall from one size to the next).",
        above(0),
        0,
        "percentage points",
        COMPARISON,
        _falls_each_step,
        _trend_note(_SIZE, falls=True),
    ),
    Statement(
        "talk-rate-carries-gain-to-larger-files",
        f"Higher rates carry the gain to larger files (mean gain of {_LARGE} kB: the least step from one rate to the "
        "next).",
        above(0),
        0,
        "percentage points",
        COMPARISON,
        _reach,
        _large_note,
    ),
)
