"""The post's statements, paraphrased.

Limits and tolerances were fixed before the first run; that the gain is checked bucket by bucket, after it
(docs/validation.md says why).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.analysis.claim import Claim

from ..measure import of_run, pairs, responses, undisturbed
from . import flights, gains

if TYPE_CHECKING:
    from firstflight.records import Run

__all__ = ["all_claims"]


def all_claims(run: Run) -> list[Claim]:
    """Gain by bucket, how stable it is, the percentage; rounds, and where ten segments no longer fit."""
    tables = of_run(run)
    rows = responses(tables)
    return [*gains.claims(undisturbed(pairs(rows))), *flights.claims(tables, rows)]
