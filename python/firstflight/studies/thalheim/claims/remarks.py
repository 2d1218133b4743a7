"""The talk's two remarks: parallel connections, and elephants against short requests."""

from __future__ import annotations

from collections.abc import Callable

from firstflight.analysis.claim import Claim, NoDataError, above, near
from firstflight.analysis.medians import Values, least

from ..grid import MICE, Point, mouse, settings, shallow, together, transfer
from ..measure import FLIGHTS, SHARE, TIME, Place
from .statement import COMPARISON, Data, Statement

ByWindow = Callable[[Data, int], Values]


def claims(data: Data) -> list[Claim]:
    """Parallel connections, then the elephant."""
    return [statement.check(data) for statement in _STATEMENTS]


def _least(found: ByWindow, setting: str) -> Callable[[Data], Values]:
    """The least over the windows that were tried."""
    return lambda data: least(_each(data, found, setting).values())


def _each(data: Data, found: ByWindow, setting: str) -> dict[int, Values]:
    each = {}
    for iw in settings()[setting]["windows"]:
        try:
            each[iw] = found(data, iw)
        except KeyError as error:
            raise NoDataError(f"This run lacks {_told(error.args[0].point)} with IW {iw}.") from None
    return each


def _told(point: Point) -> str:
    if point.experiment == MICE:
        return f"requests of {point.size_kb} kB beside a long download"
    connections = "one connection" if point.flows == 1 else f"{point.flows} connections together"
    return f"{connections} of {point.size_kb} kB over a queue of {point.queue_packets} packets"


def _note(found: ByWindow, setting: str, unit: str) -> Callable[[Data], str]:
    def note(data: Data) -> str:
        each = _each(data, found, setting)
        return f"{', '.join(f'{value[0]:.3g}{unit} with IW {iw}' for iw, value in each.items())}."

    return note


def _flights(data: Data, iw: int) -> Values:
    ample = settings()["ample_packets"]
    return data(Place(FLIGHTS, together(ample, _MANY, iw))) / data(Place(FLIGHTS, together(ample, 1, iw)))


def _slower(queue_packets: int) -> ByWindow:
    """By how much an object beside others takes longer than the same object alone, percent."""

    def slower(data: Data, iw: int) -> Values:
        beside = together(queue_packets, _MANY, iw)
        if queue_packets == settings()["ample_packets"]:
            alone = transfer(beside.rate_mbit, beside.delay_ms, beside.size_kb, iw)
        else:
            alone = shallow(beside.rate_mbit, beside.size_kb, iw)
        return 100 * (data(Place("object_time", beside)) / data(Place(TIME, alone)) - 1)

    return slower


def _share(data: Data, iw: int) -> Values:
    return data(Place(SHARE, mouse(1, iw)))


_MANY = max(settings()["parallel"]["connections"])
_OBJECT_KB = settings()["parallel"]["total_kb"] // _MANY


def _compete(name: str, queue_packets: int) -> Statement:
    found = _slower(queue_packets)
    return Statement(
        f"talk-parallel-compete-{name}",
        f"Parallel connections compete: an object of {_OBJECT_KB} kB takes longer beside {_MANY - 1} others than alone "
        f"(queue of {queue_packets} packets, least over the windows).",
        above(0),
        0,
        "percent",
        COMPARISON,
        _least(found, "parallel"),
        _note(found, "parallel", " %"),
    )


_STATEMENTS = (
    Statement(
        "talk-parallel-slow-starts",
        f"Parallel connections add up their slow starts: {_MANY} that open together send {_MANY} times as much before "
        "the first acknowledgement as one does (least over the windows).",
        near(_MANY),
        0,
        "times",
        "A count of segments, so the tolerance is 0.",
        _least(_flights, "parallel"),
        _note(_flights, "parallel", ""),
    ),
    _compete("ample", settings()["ample_packets"]),
    _compete("small", settings()["small_packets"]),
    Statement(
        "talk-elephant",
        "An elephant takes more than its share against a short request: more than half of the link while a response "
        f"of {settings()['mice']['size_kb']} kB is sent (least over the windows).",
        above(50),
        0,
        "percent",
        "Half is the fair share of two flows.",
        _least(_share, "mice"),
        _note(_share, "mice", " %"),
    ),
)
