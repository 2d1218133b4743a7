"""The study's answer, computed from the run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from firstflight.studies.kernel_check.claims import is_close
from firstflight.studies.kernel_check.grid import EMULATE, SIMULATE, ample, points
from firstflight.studies.kernel_check.measure import Pair


def answer(pairs: Sequence[Pair], engine: str) -> list[str]:
    """How close both engines are without and with losses, and what the run lacks."""
    if not pairs:
        if engine == SIMULATE:
            return [f'This run has the simulated half only; "--engine {EMULATE}" runs both.']
        return ["This run has no condition yet that both engines measured."]
    sentences = []
    clean = [pair for pair in pairs if pair.point.queue == ample()]
    shallow = [pair for pair in pairs if pair.point.queue != ample() and pair.is_lossy]
    if clean:
        close = sum(map(is_close, clean))
        sentences.append(
            f"Without losses simulated and emulated times are within 1 % or 1 ms of each other in {close} of "
            f"{len(clean)} cells."
        )
    if shallow:
        apart = median(abs(pair.difference_percent) for pair in shallow)
        sentences.append(
            f"Where a shallow queue overflows they differ by {apart:.1f} % (median over {len(shallow)} cells)."
        )
    lacking = len(points()) - len(pairs)
    if lacking:
        sentences.append(f"This run lacks {lacking} of the grid's {len(points())} conditions.")
    return sentences
