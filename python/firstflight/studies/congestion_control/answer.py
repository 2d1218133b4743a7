"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from firstflight.analysis.intervals import Means

from .grid import drawn, mouse, settings, talk, titles, together
from .measure import Place, Values


def answer(values: Values) -> list[str]:
    """Who is fast at what queue, what parallel connections do, what an elephant leaves to short flows."""
    data = Means(values)
    return [_told(part, data) for part in (_downloads, _parallel, _elephants)]


def _told(part: Callable[[Means[Place]], str], data: Means[Place]) -> str:
    try:
        return part(data)
    except KeyError as error:
        point = error.args[0].point
        return f"This run lacks {point.experiment} under {titles()[point.control]}."


def _downloads(data: Means[Place]) -> str:
    def of(metric: str, control: str) -> float:
        return data(Place(metric, drawn(control)))

    goodput = {control: of("goodput", control) for control in titles()}
    queue = {control: of("mean_queue", control) for control in titles()}
    least, most = min(queue, key=queue.__getitem__), max(queue, key=queue.__getitem__)
    return (
        f"Alone on the link all reach {_span(goodput.values(), 2)} Mbit/s; the queue that they keep differs, from "
        f"{queue[least]:.0f} packets on average under {titles()[least]} to {queue[most]:.0f} under {titles()[most]}."
    )


def _parallel(data: Means[Place]) -> str:
    many, size = max(settings()["parallel"]["flows"]), settings()["parallel"]["size_kb"]
    slower = [
        data(Place("completion_time", together(control, many))) / data(Place("completion_time", together(control, 1)))
        for control in talk()
    ]
    again = [data(Place("retransmitted", together(control, many))) for control in talk()]
    return (
        f"{many} connections that open together begin with {many} first flights; each object of {size} kB takes "
        f"{_span(slower, 1)} times as long as alone, and {_span(again, 0)} % of the segments are retransmitted."
    )


def _span(values: Iterable[float], digits: int) -> str:
    """From the least to the greatest, as one figure where they print alike."""
    ordered = sorted(values)
    least, most = f"{ordered[0]:.{digits}f}", f"{ordered[-1]:.{digits}f}"
    return least if least == most else f"{least} to {most}"


def _elephants(data: Means[Place]) -> str:
    parts = []
    for size in settings()["mice"]["sizes_kb"]:
        share = {control: data(Place("elephant_share", mouse(control, 1, size))) for control in titles()}
        least, most = min(share, key=share.__getitem__), max(share, key=share.__getitem__)
        parts.append(
            f"{share[least]:.0f} % ({titles()[least]}) to {share[most]:.0f} % ({titles()[most]}) of the link while "
            f"{size} kB are sent"
        )
    return f"A long flow keeps {', '.join(parts)}."
