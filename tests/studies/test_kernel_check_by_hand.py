"""The claims of kernel-check on made-up transfers of both engines; their values are calculated by hand."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from firstflight.studies.kernel import Quantities
from specs_by_hand import Sides, found, made_up, misjudged, put, specs, value_decides

NAME = "kernel-check"
NONE = (math.nan, math.nan, math.nan)


class Cell(NamedTuple):
    """A cell: the times of its three emulated transfers (NaN: disturbed) and of the simulated one."""

    queue: int
    control: str
    size_kb: int
    rtt_ms: int
    rate_mbit: int
    iw: int
    emulated: tuple[float, float, float]
    simulated: float
    retransmissions: tuple[float, float] = (0, 0)
    lost: tuple[float, float] = (0, 0)
    """Emulated and simulated."""


CELLS = [
    # With the ample queue: 1 ms, which are 2%; 0.9%; 9 ms, which are 0.9%; 1% of 500 ms.
    Cell(1000, "reno", 5, 20, 1, 1, (50, 51, 700), 50, lost=(1, 0)),
    Cell(1000, "cubic", 15, 20, 10, 3, (10, 100.9, 101), 100),
    Cell(1000, "reno", 500, 200, 100, 10, (1008, 1010, math.nan), 1000, lost=(0, 2)),
    Cell(1000, "cubic", 100, 70, 1, 32, (505, 2, 900), 500),
    # 11 ms, which are 1.1%; 2 ms less, which are 10%; 70% more, with retransmissions despite the ample queue.
    Cell(1000, "reno", 35, 70, 10, 32, (1011, 900, 1012), 1000),
    Cell(1000, "cubic", 5, 20, 100, 32, (18, 17, 400), 20),
    Cell(1000, "cubic", 500, 200, 1, 10, (170, 1, 171), 100, (6, 6), (3, 4)),
    # Measured by the simulator alone.
    Cell(1000, "reno", 15, 70, 10, 10, NONE, 300),
    Cell(25, "reno", 15, 70, 10, 10, NONE, 300, (2, 2), (2, 1)),
    # Queues of 25 and 10 that overflow in one engine or both: 4, -5, 20, -13, 1 and 30%.
    Cell(25, "reno", 500, 70, 10, 10, (104, 0, 105), 100, (0, 2), (2, 2)),
    Cell(10, "cubic", 500, 20, 1, 3, (190, 0, 191), 200, (1, 0), (0, 0)),
    Cell(25, "cubic", 100, 200, 100, 32, (120, 119, 900), 100, (3, 3), (3, 4)),
    Cell(10, "reno", 100, 70, 1, 10, (43.5, 0, 44), 50, (5, 1), (5, 0)),
    Cell(25, "reno", 35, 20, 10, 32, (101, 100, 300), 100, (1, 1), (0, 1)),
    Cell(10, "cubic", 500, 200, 100, 32, (128, 132, math.nan), 100, (1, 1), (1, 1)),
    # Shallow queues that do not overflow: 60, -80 and 0.2%.
    Cell(25, "cubic", 5, 70, 1, 1, (160, 159, 161), 100),
    Cell(10, "reno", 15, 200, 10, 3, (20, 19, 90), 100),
    Cell(10, "reno", 5, 20, 100, 1, (100.2, 100.1, 100.3), 100),
]


def of_cells() -> Quantities:
    """In all other cells no emulated time was measured, and the losses differ."""
    whole = made_up(NAME, "emulate")
    transfers = {"emulated": 3, "simulated": 1, "parallel_emulated": 20, "parallel_simulated": 40}
    q = Quantities(
        {
            of: array.isel(replicate=[0] * transfers[of.grid]).assign_coords(replicate=range(transfers[of.grid]))
            for of, array in whole._measured.values()
        }
    )
    for of in (q.emulated_time, q.emulated_mean, q.emulated_last):
        of[:] = math.nan
    # The same times, and 10% more; four transfers are too few.
    for flows, more in ((2, 0.0), (4, 10.0), (8, 50.0)):
        for replicate in range(40):
            place = {"queue": 25, "iw": 10, "flows": flows, "replicate": replicate}
            time = 100 + 0.01 * replicate
            put(q.simulated_mean, time, **place)
            put(q.simulated_last, 2 * time, **place)
            if replicate < (4 if flows == 8 else 20):
                put(q.emulated_mean, (1 + more / 100) * (time + 0.1), **place)
                put(q.emulated_last, 2 * time + 0.2, **place)
    keys = Cell._fields[:6]
    for cell in CELLS:
        place = dict(zip(keys, cell[:6], strict=True))
        for replicate, time in enumerate(cell.emulated):
            put(q.emulated_time, time, **place, replicate=replicate)
        put(q.simulated_time, cell.simulated, **place)
        for name, (emulated, simulated) in (("retransmissions", cell.retransmissions), ("lost", cell.lost)):
            # The median of three; the mean is another.
            for replicate, more in enumerate((0, 9, 0)):
                put(getattr(q, f"emulated_{name}"), emulated + more, **place, replicate=replicate)
            put(getattr(q, f"simulated_{name}"), simulated, **place)
    return q


def test_agreement() -> None:
    assert found(NAME, of_cells()) == pytest.approx(
        {
            # Four of seven.
            "time-without-loss": 57.1428571,
            # Half-way between 5 and 13.
            "time-with-losses": 9,
            # 2 and 2, 1 and 1, and four times none; not 3 and 4, 5 and 0, and 0 and 1.
            "first-flight-losses": 66.6666667,
            # Two of five.
            "first-flight-losses-where-any": 40,
            # Of 0 and 10%.
            "shared-queue-means": 5,
            # The means of one of two; none of the slowest.
            "shared-queue-distributions": 25,
        }
    )


def test_differences_are_those_of_the_emulated_times() -> None:
    note = specs(NAME, of_cells())["time-without-loss"].note
    assert isinstance(note, str)
    assert all(of in note for of in ("+70.0 ms, +70.0%", "-2.0 ms, -10.0%", "+11.0 ms, +1.1%"))


def test_a_simulated_run_has_nothing_to_compare() -> None:
    assert all(map(math.isnan, found(NAME, made_up(NAME)).values()))


def test_verdicts_on_either_side_of_the_limits() -> None:
    limits: dict[str, Sides] = {
        "time-without-loss": ((100,), (99.9,)),
        "time-with-losses": ((0, 5), (5.01,)),
        "first-flight-losses": ((90, 100), (89.9,)),
        "first-flight-losses-where-any": ((90, 100), (89.9,)),
        "shared-queue-means": ((-2, 2), (-2.1, 2.1)),
        "shared-queue-distributions": ((0, 10), (10.1,)),
    }
    for engine in ("emulate", "simulate"):
        q = made_up(NAME, engine)
        assert misjudged(NAME, q, limits) == {}
        assert value_decides(NAME, q) == set(limits)
