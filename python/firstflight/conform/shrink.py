"""Makes a mismatch small: the simplest connection that still parts in the same way."""

from collections.abc import Sequence

from firstflight.conform.oracle import Judged, Recorder
from firstflight.conform.parameters import simpler

_ROUNDS = 12
_TRIED = 24


def shrink(mismatches: Sequence[Judged], record: Recorder) -> list[Judged]:
    """The simplest connection found for each, in their order; simpler ones of all of them are recorded together."""
    found = list(mismatches)
    open_places = list(range(len(found)))
    for _ in range(_ROUNDS):
        tried = [list(simpler(found[place].parameters))[:_TRIED] for place in open_places]
        judged = iter(record([one for some in tried for one in some]) if any(tried) else [])
        still_open = []
        for place, some in zip(open_places, tried, strict=True):
            answers = [next(judged) for _ in some]
            parts = [one for one in answers if one.verdict == found[place].verdict and one.part == found[place].part]
            if parts:
                found[place] = min(parts, key=_size)
                still_open.append(place)
        open_places = still_open
        if not open_places:
            break
    return found


def _size(judged: Judged) -> int:
    """Lines to read."""
    return judged.script.count("\n")
