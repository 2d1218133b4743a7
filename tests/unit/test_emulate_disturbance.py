"""A stall of the machine disturbs the transfers whose packets it met, and no others."""

from typing import Any

import polars as pl
import pytest

from firstflight.engines.emulate.disturbance import Stalls

MS = 1_000_000
EPOCH = 1_000 * MS
DELAYS = {"down": 10 * MS, "up": 10 * MS}
PATHS = [["down"], ["up"]]
ALL = (EPOCH, EPOCH + 1_000 * MS)

# A packet comes at 100 ms, has left the line at 101 ms, and is due 10 ms later; one at 200 ms is lost.
CROSSED = pl.DataFrame(
    {
        "link": ["down", "down"],
        "time_ns": [100 * MS, 200 * MS],
        "end_ns": [101 * MS, 201 * MS],
        "event": pl.Series([1, 3], dtype=pl.UInt8),
    }
)


def worst_ms(due_ms: float, late_ms: float, port: int | None, window: tuple[int, int] = ALL) -> float:
    stall: dict[str, Any] = {"due_ns": EPOCH + round(due_ms * MS), "late_ns": round(late_ms * MS), "port": port}
    stalls = Stalls({"lateness": {"stalls": [stall]}}, EPOCH, DELAYS)
    return 1000 * stalls.worst_s(CROSSED, PATHS, window)


def test_a_packet_handed_over_late_disturbs_its_own_transfer_only() -> None:
    assert worst_ms(111, 3, port=0) == 3
    assert worst_ms(111.001, 3, port=0) == 0
    # A lost packet is not handed over.
    assert worst_ms(211, 3, port=0) == 0


@pytest.mark.parametrize(("due_ms", "found"), [(98, 3), (100, 3), (97, 3), (96.5, 0), (96.9, 3), (100.1, 0)])
def test_a_packet_that_came_while_the_box_was_not_let_run_disturbs_its_transfer(due_ms: float, found: float) -> None:
    # Away from then on for 3 ms; a packet that waited is stamped up to 0.2 ms after that.
    assert worst_ms(due_ms, 3, port=None) == found


def test_what_happened_before_or_after_a_transfer_does_not_disturb_it() -> None:
    assert worst_ms(111, 3, port=0, window=(EPOCH + 120 * MS, EPOCH + 130 * MS)) == 0
    assert worst_ms(111, 3, port=0, window=(EPOCH, EPOCH + 110 * MS)) == 0
    assert worst_ms(111, 3, port=0, window=(EPOCH, EPOCH + 111 * MS)) == 3


def test_stalls_that_are_not_listed_disturb_whoever_was_under_way() -> None:
    told = [{"due_ns": EPOCH + at * MS, "late_ns": 2 * MS, "port": 1} for at in (20, 150)]
    stalls = Stalls({"lateness": {"stalls": told, "more_stalls": 1}}, EPOCH, DELAYS)
    assert stalls.worst_s(CROSSED, PATHS, (EPOCH, EPOCH + 140 * MS)) == 0
    assert stalls.worst_s(CROSSED, PATHS, (EPOCH, EPOCH + 160 * MS)) == 0.002
