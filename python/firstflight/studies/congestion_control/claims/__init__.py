"""The talk's statements, and what each algorithm's own publication says of its window.

The sentences are paraphrased. Limits and tolerances were fixed before the first run; what HyStart's is measured by was
corrected after it (docs/validation.md says why).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from firstflight.analysis.claim import Claim

from ..measure import Values
from ..windows import Windows
from . import algorithms, talk


def all_claims(values: Values, traces: Mapping[str, pl.DataFrame], queues: pl.DataFrame) -> list[Claim]:
    """The talk's claims, then those of RFC 5681, RFC 9438, HyStart, Westwood+, Vegas and BBR."""
    windows = {control: Windows(segments) for control, segments in traces.items()}
    return [*talk.claims(values), *algorithms.claims(values, windows, queues)]
