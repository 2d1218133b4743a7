"""RFC 6928 section 10, sentence by sentence, and what the 2014 reproduction says of it.

Limits and tolerances were fixed before the first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.analysis.claim import Claim
from firstflight.studies.rfc6928_cluster.claims import buckets, cost, latency, paths
from firstflight.studies.rfc6928_cluster.measure import of_run

if TYPE_CHECKING:
    from firstflight.records import Run

__all__ = ["all_claims"]


def all_claims(run: Run) -> list[Claim]:
    """Latency, its buckets, the joint law, cost, and the populations themselves."""
    results = of_run(run)
    return [
        statement.check(results)
        for statement in (*latency.statements(), *buckets.statements(), *cost.statements(), *paths.statements())
    ]
