"""Both engines side by side, and how far they may differ. The limits were fixed before the first run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.counted import counted
from firstflight.studies.kernel import ClaimSpec, Quantities, Source, at_least, at_most, near

KEYS = ("queue", "control", "size_kb", "rtt_ms", "rate_mbit", "iw")
AMPLE = 1000
"""The queue, in packets, that never overflows."""
CLOSE_MS, CLOSE_PERCENT = 1.0, 1.0
LIMIT = "The limit is part of the sentence, so the tolerance is 0."
SOURCE = Source("firstflight's requirement on the simulator", needs="value", why=LIMIT)
# Cells that a note names.
_NAMED = 5


class Sides:
    """Medians over the undisturbed, completed transfers of either engine, of the cells that both measured."""

    def __init__(self, q: Quantities) -> None:
        self.q = q
        self.has_both = "emulated_time" in q
        self.emulated, self.simulated = self.medians("time")
        self.difference = self.emulated - self.simulated
        self.percent = 100 * self.difference / self.simulated
        # Whether both engines measured the cell, and whether its queue is ample.
        self.measured, self.clean = self.percent.notnull(), self.percent["queue"] == AMPLE
        # Whether the times differ by at most 1% or 1 ms, whichever is more.
        self.close = (abs(self.difference) <= CLOSE_MS) | (abs(self.percent) <= CLOSE_PERCENT)
        # Whether a shallow queue made either engine retransmit.
        again, again_too = self.medians("retransmissions")
        self.lossy = ~self.clean & (np.maximum(again, again_too) > 0)
        # Whether both lose as many segments of the first flight.
        lost, lost_too = self.medians("lost")
        self.alike = lost == lost_too

    def medians(self, name: str) -> list[xr.DataArray]:
        """Of the quantity `name`: emulated, which a simulated run lacks, then simulated."""
        simulated = getattr(self.q, f"simulated_{name}")
        emulated = getattr(self.q, f"emulated_{name}") if self.has_both else simulated.where(False)
        both = [of.median("replicate") for of in (emulated, simulated)]
        return [of.where(both[0].notnull() & both[1].notnull()) for of in both]

    @property
    def transfers(self) -> xr.DataArray:
        """Emulated transfers that were begun and, along `disturbed`, those that met a stall of the machine."""
        disturbed = self.q.emulated_disturbed
        counts = [disturbed.count("replicate"), disturbed.sum("replicate")]
        return xr.concat(counts, "disturbed").where(counts[0] > 0)


def percent_of(holds: xr.DataArray, chosen: xr.DataArray, over: Sequence[str] = KEYS) -> xr.DataArray:
    """Share of the cells `chosen` for which it `holds`, percent; NaN without any."""
    return 100 * holds.where(chosen).mean(over)


def flat(array: xr.DataArray) -> np.ndarray[Any, Any]:
    """Of every cell, in the order of the grid."""
    found: np.ndarray[Any, Any] = array.transpose(*KEYS).values.ravel()
    return found


def at(place: int, array: xr.DataArray) -> str:
    """Words for the cell at a place of `flat`."""
    places = np.unravel_index(place, [array.sizes[key] for key in KEYS])
    return words(*(array[key].values[own] for key, own in zip(KEYS, places, strict=True)))


def words(queue: int, control: str, size: int, rtt: int, rate: int, iw: int) -> str:
    """A cell, for people."""
    return f"{size} kB, {rtt} ms, {rate} Mbit/s, IW {iw}, {control}, queue {queue}"


def claims(q: Quantities) -> Sequence[ClaimSpec]:
    """Time without losses, time with losses, losses of the first flight."""
    sides = Sides(q)
    clean, shallow = sides.measured & sides.clean, sides.measured & ~sides.clean
    lost, lost_too = sides.medians("lost")
    lossy, losing = sides.measured & sides.lossy, shallow & (np.maximum(lost, lost_too) > 0)
    distance, emulated, simulated = abs(sides.percent), flat(lost), flat(lost_too)
    ms, percent = flat(sides.difference), flat(sides.percent)

    def unlike(chosen: xr.DataArray) -> str:
        return _named(chosen & ~sides.alike, lambda of: f"{emulated[of]:g} emulated, {simulated[of]:g} simulated")

    def claim(
        name: str, text: str, found: xr.DataArray, expected: Expectation, chosen: xr.DataArray, note: str
    ) -> ClaimSpec:
        note = _about(sides, chosen, note) if bool(chosen.any()) else _NONE
        return SOURCE.says(name, text, found, expected, note=note)

    return [
        claim(
            "time-without-loss",
            "Without losses the median emulated time is within 1% or 1 ms of the simulated one, in every cell.",
            percent_of(sides.close, clean),
            near(100, "percent of cells"),
            clean,
            _named(clean & ~sides.close, lambda of: f"{ms[of]:+.1f} ms, {percent[of]:+.1f}%", distance),
        ),
        claim(
            "time-with-losses",
            "Where a shallow queue makes either engine retransmit, the times differ by at most 5% (median over cells).",
            distance.where(lossy).median(),
            at_most(5, "percent"),
            lossy,
            f"{float(percent_of(distance <= 5, lossy)):.0f}% of these cells are within 5%. Farthest apart: "
            + _named(lossy, lambda of: f"{percent[of]:+.0f}%", distance),
        ),
        claim(
            "first-flight-losses",
            "With shallow queues both engines lose as many segments of the first flight (in nine of ten cells).",
            percent_of(sides.alike, shallow),
            at_least(90, "percent of cells"),
            shallow,
            unlike(shallow),
        ),
        claim(
            "first-flight-losses-where-any",
            "Both engines lose as many segments of the first flight among cells where either lost any.",
            percent_of(sides.alike, losing),
            at_least(90, "percent of cells"),
            losing,
            unlike(losing),
        ),
    ]


_NONE = "This run lacks a cell that both engines have measured and to which this applies."


def _about(sides: Sides, chosen: xr.DataArray, note: str) -> str:
    # Those of the chosen cells' queues: all are ample, or none is.
    queues = sides.clean.where(sides.clean == bool((chosen & sides.clean).any()))
    out_of = int(queues.count()) * chosen.size // chosen.sizes["queue"]
    transfers, disturbed = sides.transfers
    parts = [f"{counted(int(chosen.sum()), 'cell')}, of {out_of:,} that the grid has with such queues.", note]
    if unmeasured := int((transfers.notnull() & sides.q.emulated_time.isnull().all("replicate")).sum()):
        parts.append(f"Left out, because every transfer was disturbed: {counted(unmeasured, 'cell')}.")
    if mostly := int((chosen & (2 * disturbed > transfers)).sum()):
        parts.append(f"In {counted(mostly, 'cell')} more than half of the transfers were disturbed.")
    return " ".join(part for part in parts if part)


def _named(chosen: xr.DataArray, shown: Callable[[int], str], by: xr.DataArray | None = None) -> str:
    """The first cells, or those with the most `by`."""
    places = np.flatnonzero(flat(chosen))
    if by is not None:
        places = places[np.argsort(-flat(by)[places], kind="stable")]
    if not places.size:
        return ""
    each = "; ".join(f"{at(place, chosen)}: {shown(place)}" for place in places[:_NAMED])
    more = places.size - _NAMED
    return f"{each}; and {more} more." if more > 0 else f"{each}."
