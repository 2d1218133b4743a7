"""The talk's statements as checks: those of its figure, its formula, and its two remarks.

The sentences are paraphrased. Limits and tolerances were fixed before the first run.
"""

from __future__ import annotations

from firstflight.analysis.claim import Claim
from firstflight.analysis.medians import Medians

from ..measure import Values
from . import figure, formula, remarks


def all_claims(values: Values) -> list[Claim]:
    """In the order of the talk."""
    data = Medians(values)
    return [*figure.claims(data), *formula.claims(data), *remarks.claims(data)]
