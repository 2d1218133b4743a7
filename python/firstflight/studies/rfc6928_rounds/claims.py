"""The statements of section 5.1, each value a claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from firstflight.counted import counted
from firstflight.engines.model.delayed_acks import first_rounds
from firstflight.engines.model.delayed_acks import round_trips as by_rule
from firstflight.studies.kernel import ClaimSpec, Quantities, Source, near

REFERENCE = Path(__file__).parent / "reference"
TABLE = {(n, iw): trips for n, iw, trips in pl.read_csv((REFERENCE / "round_trips.csv").read_bytes()).iter_rows()}
"""(segments, initial window) -> round trips, the 26 values of the RFC's table."""
_SENTENCES = pl.read_csv((REFERENCE / "sentences.csv").read_bytes())
EXAMPLE = {(n, iw): trips for sentence, n, iw, trips in _SENTENCES.iter_rows() if sentence == "example"}
"""The same for the transfer that the sentence after the table speaks of."""
FEW, MANY = 3, 10
EXACT = "Counts of round trips are exact, so the tolerance is 0."
SECTION = Source("RFC 6928 section 5.1", "rfc6928-s5.1-", needs="value", why=EXACT)


def claims(q: Quantities) -> Sequence[ClaimSpec]:
    """The 26 values of the table, the sentence about 32 segments (two values), and the largest saving."""
    printed = [_value(q, *key, trips) for key, trips in TABLE.items()]
    example = [_value(q, *key, trips, "example-", _contradiction(*key, trips)) for key, trips in EXAMPLE.items()]
    return [*printed, *example, _largest_saving(q)]


def _value(q: Quantities, segments: int, iw: int, trips: int, kind: str = "", note: str = "") -> ClaimSpec:
    return SECTION.says(
        f"{kind}{segments}-segments-iw{iw}",
        f"A transfer of {segments} segments with an initial window of {iw} takes {counted(trips, 'round trip')}.",
        q.round_trips.sel(segments=segments, iw=iw),
        near(trips, "round trips"),
        f"The rule applied round by round gives {by_rule(segments, iw)}. {EXACT}",
        note,
    )


def _contradiction(segments: int, iw: int, trips: int) -> str:
    """Where the RFC's text differs from its own rule: the printed neighbors of a size, which bound its rounds."""
    if trips == by_rule(segments, iw):
        return ""
    printed = {size: count for (size, window), count in TABLE.items() if window == iw}
    below, above = max(n for n in printed if n < segments), min(n for n in printed if n > segments)
    rounds = first_rounds(iw, by_rule(segments, iw))
    return (
        f"The RFC contradicts itself: its table has {printed[below]} for {below} segments and {printed[above]} for "
        f"{above}, and round {len(rounds) - 1} ends with segment {rounds[-2]}, so {segments} segments need round "
        f"{len(rounds)}."
    )


def _largest_saving(q: Quantities) -> ClaimSpec:
    saving = int(_SENTENCES.filter(pl.col("sentence") == "largest_saving")["round_trips"].item())
    trips = q.round_trips.sel(segments=[size for size, iw in TABLE if iw == FEW])
    saved = trips.sel(iw=FEW) - trips.sel(iw=MANY)
    where = saved["segments"].where(saved.isel(draw=0) == saved.isel(draw=0).max(), drop=True).values
    return SECTION.says(
        "largest-saving",
        f"An initial window of {MANY} segments instead of {FEW} saves up to {counted(saving, 'round trip')}.",
        saved.max("segments"),
        near(saving, "round trips"),
        note=f"Over the sizes of the table; reached at {' and '.join(f'{size:.0f}' for size in where)} segments.",
    )
