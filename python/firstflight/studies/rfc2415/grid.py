"""The cells of the study: RFC 2415's grid and the variants that it names.

A cell's key is `variant, webs, ftps, http, iw`. Variants:

- `base`: Tables 1 to 5, Figures 1 to 4 (and the unsplit rows of Table 6 for 16 and 32 webs);
- `mix`: Table 6. IW "1+3": half the webs with either; IW "1" and "3": 64 webs alike;
- `red`: RED on the bottleneck;
- `reverse`: the same webs and ftps mirrored, so that data flows both ways;
- `rate10`, `rate100`: all rates, clients and buffers times 10 and 100. `webs` and `ftps` then count clients
  per 1.5 Mbit/s of the bottleneck;
- `long`: four times the run time;
- `ftp_window_20`: a hypothesis, not the RFC's setting: ftps with ns-2's default window of 20 segments, webs with 11.
"""

from __future__ import annotations

from typing import NamedTuple

WINDOWS = (1, 2, 3, 4)
FEW_WINDOWS = (1, 3)
"""Where the RFC speaks of "larger initial windows" in general: 1 and the 3 that it recommends."""

RED_SCENARIOS = ((16, 0), (16, 1), (16, 2), (32, 0), (32, 1))
REVERSE_SCENARIOS = ((16, 0), (16, 2), (32, 1))
LONG_SCENARIOS = ((8, 1), (16, 0), (16, 2))
SCALE_SCENARIOS = {"rate10": ((8, 0), (16, 0), (16, 1), (32, 0)), "rate100": ((16, 0), (16, 1))}
MIXED_WEBS = (16, 32, 64)

SCALE_FACTOR = {"rate10": 10, "rate100": 100}
REPLICATES = {"rate10": 4, "rate100": 2, "ftp_window_20": 5}
"""Fewer than the study's default: one replicate of a faster link costs 10 or 100 base ones and holds as many pages; the
hypothesis is no part of any verdict.
"""


class Point(NamedTuple):
    """One cell's key."""

    variant: str
    webs: int
    ftps: int
    http: str
    iw: str


def points() -> list[Point]:
    """The whole grid, base first."""
    grid = [
        Point("base", webs, ftps, http, str(iw))
        for http in ("1.0", "1.1")
        for webs in (8, 16, 32)
        for ftps in range(4)
        for iw in WINDOWS
    ]
    grid += [point._replace(variant="ftp_window_20") for point in grid if point.ftps]
    grid += [Point("mix", 64, 0, "1.0", str(iw)) for iw in FEW_WINDOWS]
    grid += [Point("mix", webs, 0, "1.0", "1+3") for webs in MIXED_WEBS]
    grid += [Point("red", *scenario, "1.0", str(iw)) for scenario in RED_SCENARIOS for iw in WINDOWS]
    few = {"reverse": REVERSE_SCENARIOS, "long": LONG_SCENARIOS, **SCALE_SCENARIOS}
    grid += [
        Point(variant, *scenario, "1.0", str(iw))
        for variant, scenarios in few.items()
        for scenario in scenarios
        for iw in FEW_WINDOWS
    ]
    return grid
