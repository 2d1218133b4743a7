"""What RFC 6928 says of repairs in the first flight, and what the RFCs of the means themselves say.

The sentences are paraphrased. Limits come from the sentence (a comparison: more than nothing; a rule: without
exception) and were fixed before the first run.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from firstflight.analysis.claim import Claim

from ..grid import Point
from . import comparison, matrices


def all_claims(cases: pl.DataFrame, times: Mapping[Point, Mapping[int, float]]) -> list[Claim]:
    """The claims about single losses, then the comparison with SACK."""
    return [*matrices.claims(cases), *comparison.claims(times)]
