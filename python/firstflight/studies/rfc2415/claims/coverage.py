"""What a run lacks for a claim, in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from firstflight.analysis.claim import NoDataError
from firstflight.analysis.intervals import Means
from firstflight.studies.rfc2415.grid import Point
from firstflight.studies.rfc2415.measure import AGAINST_IW1, Place


class _Probe(Means[Place]):
    """Lets a statistic go on where nothing was measured, and remembers where that was."""

    def __init__(self, values: Mapping[Place, Mapping[int, float]]):
        super().__init__(values)
        self.lacking: list[Place] = []

    def _kept(self, key: Place) -> list[float]:
        if key in self:
            return super()._kept(key)
        self.lacking.append(key)
        # Any values will do: what becomes of them is not looked at.
        return [1.0, 1.0]


def missing(values: Mapping[Place, Mapping[int, float]], statistic: Callable[[Means[Place]], float]) -> str:
    """Which cells a run must have for `statistic` and lacks; or, if it has them, what was not measured in them."""
    probe = _Probe(values)
    with contextlib.suppress(NoDataError):
        statistic(probe)
    present = {cell for place in values for cell in _cells(place)}
    needed = {cell for place in [*probe.read, *probe.lacking] for cell in _cells(place)}
    absent = needed - present
    if absent:
        several = f"all {len(needed)} cells" if absent == needed else f"{len(absent)} of the {len(needed)} cells"
        return f"The run lacks {several if len(needed) > 1 else 'the cell'} that this needs: {_described(absent)}."
    metric = probe.lacking[0].metric
    there = {cell for place in probe.lacking if place.metric == metric for cell in _cells(place)}
    return f"The run has no {metric.replace('_', ' ')} for {_described(there)}: nothing finished there."


def _cells(place: Place) -> list[Point]:
    """The cells that a metric comes from: its own, and that with IW 1 for what is taken against it."""
    own = Point(place.variant, place.webs, place.ftps, place.http, place.iw)
    return [own._replace(iw="1"), own] if place.metric in AGAINST_IW1 else [own]


def _described(cells: Iterable[Point]) -> str:
    """The cells, those that differ in one coordinate only told together."""
    windows: dict[Point, list[str]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.http, cell.variant, cell.webs, cell.ftps, cell.iw)):
        windows.setdefault(cell._replace(iw=""), []).append(cell.iw)
    ftps: dict[tuple[str, str, int, tuple[str, ...]], list[int]] = {}
    for cell, some in windows.items():
        ftps.setdefault((cell.variant, cell.http, cell.webs, tuple(some)), []).append(cell.ftps)
    webs: dict[tuple[str, str, tuple[str, ...], tuple[int, ...]], list[int]] = {}
    for (variant, http, number, iws), numbers in ftps.items():
        webs.setdefault((variant, http, iws, tuple(numbers)), []).append(number)
    return "; ".join(
        f"{_listed(numbers)} webs with {_listed(few)} ftps, HTTP/{http}, IW {_listed(iws)}"
        + ("" if variant == "base" else f", variant {variant}")
        for (variant, http, iws, few), numbers in webs.items()
    )


def _listed(values: Iterable[int | str]) -> str:
    """0 to 3; 8, 16 and 32."""
    *head, last = sorted(set(values), key=lambda value: (len(str(value)), str(value)))
    numbers = [int(value) for value in [*head, last] if str(value).isdigit()]
    if len(head) > 1 and numbers == list(range(numbers[0], numbers[0] + len(head) + 1)):
        return f"{head[0]} to {last}"
    return f"{', '.join(map(str, head))} and {last}" if head else str(last)
