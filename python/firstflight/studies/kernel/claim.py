"""Claims: published sentences, or hypotheses written down before the first run, as expressions over quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr

from firstflight.analysis.claim import Claim, Expectation, Needs, Sentence

from .missing import depending
from .quantity import Quantities, estimate


@dataclass(frozen=True)
class ClaimSpec:
    """One sentence, `found`, what this run has (an array over `draw` alone), and what is expected of it.

    `tolerance` widens the expected range on both sides; `why` justifies it, or the limit.
    """

    id: str
    source: str
    text: str
    found: xr.DataArray
    expected: Expectation
    unit: str
    why: str
    tolerance: float = 0.0
    needs: Needs = "interval"
    note: str = ""

    def judge(self, lacking: Sequence[dict[str, Any]]) -> Claim:
        """The claim with its verdict; "cannot be checked" if it depends on cells that the run lacks."""
        sentence = Sentence(
            self.id, self.source, self.text, self.expected, self.tolerance, self.unit, self.why, needs=self.needs
        )
        found = estimate(self.found)
        if lacking or math.isnan(found.value):
            return sentence.unchecked(f"This run lacks {_listed(lacking)}.")
        return sentence.judge(found, self.note)


_NAMED = 3


def judge(
    specs: Callable[[Quantities], Sequence[ClaimSpec]], quantities: Quantities, keys: Sequence[str]
) -> list[Claim]:
    """Each claim with its verdict."""
    return [spec.judge(cells) for spec, cells in depending(specs, quantities, keys, _differ)]


def _differ(own: ClaimSpec, other: ClaimSpec) -> bool:
    return estimate(own.found).value != estimate(other.found).value


def _listed(cells: Sequence[dict[str, Any]]) -> str:
    shown = [" ".join(f"{key}={label}" for key, label in cell.items()) for cell in cells[:_NAMED]]
    more = len(cells) - _NAMED
    return ("; ".join(shown) + (f"; and {more} more cells" if more > 0 else "")) or "what the claim is about"
