"""What the segments at the server show: rounds of slow start, and how long ten segments take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl

from firstflight.analysis.claim import Claim, NoDataError, Sentence, near
from firstflight.analysis.intervals import Estimate
from firstflight.studies.cs244_2014.grid import ROUND_TRIP_S, TEN, ten_segments_fit_kbps
from firstflight.studies.cs244_2014.measure import (
    FEW,
    MANY,
    Tables,
    crossing_kbps,
    median_segments,
    rounds,
    ten_segments_ms,
    timed_out_percent,
)

SOURCE = "CS244 2014, results"
_EXPECTED = {FEW: 2, MANY: 1}


def claims(tables: Tables, rows: pl.DataFrame) -> Iterator[Claim]:
    """Rounds with either window, then the bandwidth below which ten segments no longer fit a round trip."""
    for iw, expected in _EXPECTED.items():
        yield _rounds(tables, rows, iw, expected)
    yield _ten_segments(tables, rows)


def _rounds(tables: Tables, rows: pl.DataFrame, iw: int, expected: int) -> Claim:
    sentence = Sentence(
        id=f"cs244-median-response-iw{iw}",
        source=SOURCE,
        text=f"The median response (9 kB) takes {expected} round{'' if expected == 1 else 's'} of slow start with "
        f"an initial window of {iw} (median over the responses of as many segments).",
        expectation=near(expected),
        tolerance=0,
        unit="rounds",
        why="A count, so the tolerance is 0.",
        needs="value",
    )
    chosen = rows.filter((pl.col("iw") == iw) & (pl.col("segments") == median_segments(rows)))
    if chosen.is_empty():
        return sentence.unchecked(f"This run has no response with IW {iw}.")
    counted = rounds(tables, chosen)
    each = ", ".join(f"{count} took {number}" for number, count in sorted(Counter(counted).items()))
    note = f"Counted from the segments at the server; of {chosen.height} responses of {median_segments(rows)}, {each}."
    odd = chosen.filter(pl.Series(counted) != expected)
    if not odd.is_empty():
        fastest = max(odd["rate_kbps"].to_list())
        note += (
            f" The others are of users of at most {fastest:.0f} kbit/s; the retransmission timer expired in "
            f"{timed_out_percent(odd):.0f} % of them."
        )
    return sentence.judge(Estimate(float(np.median(counted))), note)


def _ten_segments(tables: Tables, rows: pl.DataFrame) -> Claim:
    computed = ten_segments_fit_kbps()
    sentence = Sentence(
        id="cs244-ten-segments-fit",
        source=f"{SOURCE}; the value by arithmetic",
        text="Below some bandwidth ten segments no longer fit one round trip: where ten full packets of 1500 bytes "
        "take more than 70 ms on the link.",
        expectation=near(round(computed)),
        tolerance=round(0.05 * computed),
        unit="kbit/s",
        why="5 %: the users' bandwidths lie 10 % apart, and between them a straight line is drawn (logarithmic axes).",
        needs="value",
    )
    try:
        found, note = _crossing(ten_segments_ms(tables, rows))
    except NoDataError as error:
        return sentence.unchecked(str(error))
    return sentence.judge(Estimate(found), note)


def _crossing(times: dict[float, float]) -> tuple[float, str]:
    found = crossing_kbps(times)
    if found is None:
        raise NoDataError(
            f"This run has no first flights of {TEN} segments that take less, and others that take more, than "
            f"{1000 * ROUND_TRIP_S:.0f} ms."
        )
    slow = max(rate for rate in times if rate < found)
    fast = min(rate for rate in times if rate >= found)
    return found, (
        f"Measured at {len(times)} bandwidths: {times[slow]:.1f} ms at {slow:.0f} kbit/s, {times[fast]:.1f} ms at "
        f"{fast:.0f} kbit/s."
    )
