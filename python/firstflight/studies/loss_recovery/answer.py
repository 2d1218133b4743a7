"""The study's answer, computed from the run."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from firstflight.analysis.intervals import Means

from .claims.sentences import FEW, MANY
from .grid import CONGESTED, FLIGHT, RANDOM, Point
from .measure import EARLY, FAST, PROBE, TIMEOUT, share

Times = Mapping[Point, Mapping[int, float]]


def answer(cases: pl.DataFrame, times: Times) -> list[str]:
    """The gain of the larger window, what later means make of it, and the comparison with SACK."""
    return [_larger_window(cases), _later_means(cases), _against_sack(times)]


def _larger_window(cases: pl.DataFrame) -> str:
    try:
        few, many = (share(cases, FLIGHT, "new_reno", iw, (FAST,)) for iw in (FEW, MANY))
    except LookupError as error:
        return str(error)
    return (
        f"Where nothing follows the first flight, NewReno repairs {few:.0f} % of its single losses by fast retransmit "
        f"with an initial window of {FEW} segments and {many:.0f} % with {MANY}; the others wait for the timeout."
    )


def _later_means(cases: pl.DataFrame) -> str:
    try:
        left = share(cases, FLIGHT, "linux", MANY, (TIMEOUT,))
        by = {repair: share(cases, FLIGHT, "linux", MANY, (repair,)) for repair in (FAST, EARLY, PROBE)}
    except LookupError as error:
        return str(error)
    parts = ", ".join(f"{part:.0f} % by {repair}" for repair, part in by.items() if part)
    return f"Profile linux with IW {MANY} repairs {parts}; {left:.0f} % wait for the timeout."


_WHERE = {RANDOM: "under random loss", CONGESTED: "over a congested link"}


def _against_sack(times: Times) -> str:
    data = Means(times)
    parts = []
    for experiment, where in _WHERE.items():
        bases = dict.fromkeys(
            point._replace(stack="new_reno", iw=MANY) for point in times if point.experiment == experiment
        )
        pairs = [(base, base._replace(stack="sack", iw=FEW)) for base in bases]
        pairs = [pair for pair in pairs if pair[0] in data and pair[1] in data]
        if pairs:
            sooner = sum(data(without) < data(with_sack) for without, with_sack in pairs)
            parts.append(f"in {sooner} of {len(pairs)} cases {where}")
    if not parts:
        return f"This run does not compare IW {MANY} without SACK and IW {FEW} with SACK."
    return f"IW {MANY} without SACK is faster on average than IW {FEW} with SACK {' and '.join(parts)}."
