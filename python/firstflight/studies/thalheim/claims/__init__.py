"""The talk's statements as checks: those of its figure, its formula, and its two remarks.

The sentences are paraphrased. Limits and tolerances were fixed before the first run.
"""

from __future__ import annotations

from firstflight.analysis.claim import Claim, Needs
from firstflight.analysis.medians import Medians

from ..computed import over_shaper
from ..grid import NAME, settings
from ..measure import Values
from . import figure, formula, remarks


def all_claims(values: Values, emulated: bool) -> list[Claim]:
    """In the order of the talk, then those of its figure simulated over each form of Mininet's shaper. Simulated, a
    transfer alone on its path has nothing random: its value decides.
    """
    needs: Needs = "interval" if emulated else "value"
    data = Medians(values, NAME)
    found = [*figure.claims(data, needs), *formula.claims(data, needs), *remarks.claims(data)]
    for shaper in [] if emulated else settings()["shapers"]:
        found += figure.claims(Medians(over_shaper(values, shaper), NAME), needs, shaper)
    return found
