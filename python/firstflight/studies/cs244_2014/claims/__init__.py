"""The post's statements, paraphrased.

Limits and tolerances were fixed before the first run; that the gain is checked bucket by bucket, after it
(docs/validation.md says why).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.analysis.claim import Claim
from firstflight.studies.cs244_2014.claims import flights, gains
from firstflight.studies.cs244_2014.grid import LINE, paths
from firstflight.studies.cs244_2014.measure import of_run, pairs, responses, undisturbed

if TYPE_CHECKING:
    from firstflight.records import Run

__all__ = ["all_claims"]


def all_claims(run: Run) -> list[Claim]:
    """Gain by bucket, how stable it is, the percentage; rounds, and where ten segments no longer fit. The gains
    again over each form of Mininet's shaper, where the engine has it.
    """
    tables = of_run(run)
    rows = responses(tables)
    found = [*gains.claims(undisturbed(pairs(rows)), LINE), *flights.claims(tables, rows)]
    for path in [] if run.engine == "emulate" else paths()[1:]:
        found += gains.claims(undisturbed(pairs(responses(of_run(run, path)))), path)
    return found
