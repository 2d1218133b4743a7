"""How far both engines may differ. The limits are issue 4's, fixed before the first run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from firstflight.analysis.claim import Claim, Expectation, Sentence, at_least, at_most, near
from firstflight.analysis.intervals import Estimate
from firstflight.studies.kernel_check.grid import ample, points
from firstflight.studies.kernel_check.measure import Pair

SOURCE = "our own requirement on the simulator"
CLOSE_S, CLOSE_PERCENT = 0.001, 1.0
LIMIT = "The limit is part of the sentence, so the tolerance is 0."
# Cells that a note names.
_NAMED = 5


def is_close(pair: Pair) -> bool:
    """Whether the times differ by at most 1 % or 1 ms, whichever is more."""
    return abs(pair.difference_s) <= CLOSE_S or abs(pair.difference_percent) <= CLOSE_PERCENT


def all_claims(pairs: Sequence[Pair], unmeasured: int) -> list[Claim]:
    """Time without losses, time with losses, losses of the first flight."""
    clean = [pair for pair in pairs if pair.point.queue == ample()]
    shallow = [pair for pair in pairs if pair.point.queue != ample()]
    lossy = [pair for pair in shallow if pair.is_lossy]
    first = [pair for pair in shallow if max(pair.emulated.first_flight_lost, pair.simulated.first_flight_lost) > 0]
    of_clean = sum(point.queue == ample() for point in points())
    of_shallow = len(points()) - of_clean
    return [
        _claim(
            "time-without-loss",
            "Without losses the median emulated time is within 1 % or 1 ms of the simulated one, in every cell.",
            near(100),
            "percent of cells",
            clean,
            of_clean,
            unmeasured,
            lambda chosen: _share(chosen, is_close),
            _far,
        ),
        _claim(
            "time-with-losses",
            "Where a shallow queue overflows, the times differ by at most 5 % (median over cells).",
            at_most(5),
            "percent",
            lossy,
            of_shallow,
            unmeasured,
            lambda chosen: median(abs(pair.difference_percent) for pair in chosen),
            _spread,
        ),
        _claim(
            "first-flight-losses",
            "With shallow queues both engines lose as many segments of the first flight (in nine of ten cells).",
            at_least(90),
            "percent of cells",
            shallow,
            of_shallow,
            unmeasured,
            lambda chosen: _share(chosen, _lose_alike),
            _unlike,
        ),
        _claim(
            "first-flight-losses-where-any",
            "The same among cells where either engine lost any segment of the first flight.",
            at_least(90),
            "percent of cells",
            first,
            of_shallow,
            unmeasured,
            lambda chosen: _share(chosen, _lose_alike),
            _unlike,
        ),
    ]


def _claim(
    name: str,
    text: str,
    expectation: Expectation,
    unit: str,
    chosen: Sequence[Pair],
    out_of: int,
    unmeasured: int,
    found: Callable[[Sequence[Pair]], float],
    note: Callable[[Sequence[Pair]], str],
) -> Claim:
    sentence = Sentence(name, SOURCE, text, expectation, 0, unit, LIMIT, needs="value")
    if not chosen:
        return sentence.unchecked("This run lacks a cell that both engines have measured and to which this applies.")
    parts = [f"{len(chosen)} cells, of {out_of} that the grid has with such queues.", note(chosen)]
    if unmeasured:
        parts.append(f"{unmeasured} cells have no undisturbed transfer and are left out.")
    mostly = sum(2 * pair.emulated.disturbed > pair.emulated.count for pair in chosen)
    if mostly:
        parts.append(f"In {mostly} cells more than half of the transfers were disturbed.")
    return sentence.judge(Estimate(found(chosen)), " ".join(part for part in parts if part))


def _share(chosen: Sequence[Pair], holds: Callable[[Pair], bool]) -> float:
    return 100 * sum(map(holds, chosen)) / len(chosen)


def _lose_alike(pair: Pair) -> bool:
    return pair.emulated.first_flight_lost == pair.simulated.first_flight_lost


def _far(chosen: Sequence[Pair]) -> str:
    far = sorted((pair for pair in chosen if not is_close(pair)), key=lambda pair: -abs(pair.difference_percent))
    return _named(far, lambda pair: f"{1000 * pair.difference_s:+.1f} ms, {pair.difference_percent:+.1f} %")


def _spread(chosen: Sequence[Pair]) -> str:
    share = _share(chosen, lambda pair: abs(pair.difference_percent) <= 5)
    ordered = sorted(chosen, key=lambda pair: -abs(pair.difference_percent))
    listed = _named(ordered, lambda pair: f"{pair.difference_percent:+.0f} %")
    return f"{share:.0f} % of these cells are within 5 %. Farthest apart: {listed}"


def _unlike(chosen: Sequence[Pair]) -> str:
    return _named(
        [pair for pair in chosen if not _lose_alike(pair)],
        lambda pair: f"{pair.emulated.first_flight_lost:g} emulated, {pair.simulated.first_flight_lost:g} simulated",
    )


def _named(pairs: Sequence[Pair], told: Callable[[Pair], str]) -> str:
    if not pairs:
        return ""
    shown = "; ".join(f"{pair.point}: {told(pair)}" for pair in pairs[:_NAMED])
    more = len(pairs) - _NAMED
    return f"{shown}; and {more} more." if more > 0 else f"{shown}."
