"""What section 5.1 states, each value a claim."""

from __future__ import annotations

from firstflight.analysis.claim import Claim, Sentence, near
from firstflight.analysis.intervals import Estimate
from firstflight.engines.model.delayed_acks import first_rounds
from firstflight.engines.model.delayed_acks import round_trips as modelled

from . import published

SOURCE = "RFC 6928 section 5.1"
UNIT = "round trips"
EXACT = "Counts of round trips are exact, so the tolerance is 0."

Measured = dict[tuple[int, int], float]


def all_claims(measured: Measured) -> list[Claim]:
    """The 26 values of the table, the sentence about 32 segments (two values), and the largest saving."""
    claims = [
        _value(measured, segments, iw, trips, f"rfc6928-s5.1-{segments}-segments-iw{iw}", "")
        for (segments, iw), trips in published.table().items()
    ]
    for (segments, iw), trips in published.example().items():
        note = _against_the_table(segments, iw) if trips != modelled(segments, iw) else ""
        claims.append(_value(measured, segments, iw, trips, f"rfc6928-s5.1-example-{segments}-segments-iw{iw}", note))
    claims.append(_largest_saving(measured))
    return claims


def _value(measured: Measured, segments: int, iw: int, trips: int, name: str, note: str) -> Claim:
    text = f"A transfer of {segments} segments with an initial window of {iw} takes {_count(trips)}."
    rule = f"The rule applied round by round gives {modelled(segments, iw)}."
    sentence = Sentence(name, SOURCE, text, near(trips), 0, UNIT, f"{rule} {EXACT}", needs="value")
    found = measured.get((segments, iw))
    if found is None:
        return sentence.unchecked(f"This run has no finished transfer of {segments} segments with IW {iw}.")
    return sentence.judge(Estimate(found), note)


def _against_the_table(segments: int, iw: int) -> str:
    """The printed neighbours of a size, which bound what it can take."""
    trips = {size: count for (size, window), count in published.table().items() if window == iw}
    below, above = (
        max(size for size in trips if size < segments),
        min(size for size in trips if size > segments),
    )
    rounds = first_rounds(iw, modelled(segments, iw))
    return (
        f"The RFC contradicts itself: its table has {trips[below]} for {below} segments and {trips[above]} for "
        f"{above}, and round {len(rounds) - 1} ends with segment {rounds[-2]}, so {segments} segments need round "
        f"{len(rounds)}."
    )


def _largest_saving(measured: Measured) -> Claim:
    few, many = published.initial_windows()
    saving = published.largest_saving()
    text = f"An initial window of {many} segments instead of {few} saves up to {_count(saving)}."
    sentence = Sentence("rfc6928-s5.1-largest-saving", SOURCE, text, near(saving), 0, UNIT, EXACT, needs="value")
    sizes = [segments for segments, iw in published.table() if iw == few]
    missing = [n for n in sizes if (n, few) not in measured or (n, many) not in measured]
    if missing:
        return sentence.unchecked(f"This run lacks the sizes {', '.join(map(str, missing))} with IW {few} or {many}.")
    saved = {n: measured[n, few] - measured[n, many] for n in sizes}
    largest = max(saved.values())
    where = " and ".join(str(n) for n, trips in saved.items() if trips == largest)
    return sentence.judge(Estimate(largest), f"Over the sizes of the table; reached at {where} segments.")


def _count(trips: int) -> str:
    return f"{trips} round trip{'' if trips == 1 else 's'}"
