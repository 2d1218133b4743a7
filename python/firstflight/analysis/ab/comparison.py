"""The result of a comparison of two arms."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from firstflight.analysis.ab.sample import TwoArms
from firstflight.analysis.intervals import COMPARED, Estimate, Evidence, Spread

Verdict = Literal["better", "worse", "no significant difference", "no flows", "too few flows"]


@dataclass(frozen=True)
class Comparison:
    """A statistic in two arms, and its difference.

    `baseline`, `treatment` and `difference` (treatment minus baseline) are in the value's unit, `percent` is
    100·(treatment/baseline - 1): NaN for a baseline of 0, without an interval if that of the baseline includes 0. Each
    is an `Estimate` whose `replicates` is its number of units; `reason` says why an interval is NaN. `units`: pairs or,
    if not paired, units of both arms together. `unmatched`: units without a partner in the other arm, excluded.
    `unfinished`: rows with NaN; `unknown`: rows with null, excluded. These three are (baseline, treatment).
    `confidence`: of the intervals, which are made by `method`.
    """

    statistic: str
    baseline: Estimate
    treatment: Estimate
    difference: Estimate
    percent: Estimate
    units: int
    unmatched: tuple[int, int]
    unfinished: tuple[int, int]
    unknown: tuple[int, int]
    method: str
    confidence: float = 0.95
    reason: str = ""
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    @property
    def p_value(self) -> float:
        """Of no difference, two-sided, by inverting the intervals of difference and percent; NaN without intervals."""
        return math.nan if self.evidence is None else self.evidence.p_value

    @property
    def standard_error(self) -> float:
        """Of the difference; NaN without intervals."""
        return math.nan if self.evidence is None else self.evidence.spreads["difference"].error

    def at(self, confidence: float) -> Comparison:
        """The same comparison with intervals of another confidence. ValueError without intervals."""
        if self.evidence is None:
            raise ValueError("a comparison without intervals has none of another confidence")
        estimates: Any = self.evidence.estimates(confidence)
        return replace(self, **estimates, confidence=confidence)

    def _repr_html_(self) -> str:
        """The notebook view: a row for each arm, for the difference and for its percentage."""
        cells = "".join(
            f"<tr><th>{name}</th><td>{of.value:.4g}</td><td>{of.low:.4g} to {of.high:.4g}</td></tr>"
            for name, of in ((name, getattr(self, name)) for name in COMPARED)
        )
        head = f"<tr><th>{html.escape(self.statistic)}</th><th>value</th><th>{self.confidence:.0%} interval</th></tr>"
        below = f"{self.units} units, p = {self.p_value:.3g}; {self.method} {self.reason}"
        return f"<table>{head}{cells}</table><p>{html.escape(below.rstrip())}</p>"

    def verdict(self, lower_is_better: bool = True) -> Verdict:
        """The verdict by the interval of the difference, for a single comparison."""
        if self.units == 0:
            return "no flows"
        if math.isnan(self.difference.low) or math.isnan(self.difference.high):
            return "too few flows"
        if self.difference.high < 0:
            return "better" if lower_is_better else "worse"
        if self.difference.low > 0:
            return "worse" if lower_is_better else "better"
        return "no significant difference"


def described(sample: TwoArms, spreads: Mapping[str, Spread], resamples: int, drawn_from: int) -> str:
    """The method of the intervals, in words: for a caption."""
    of_one, of_both = spreads["baseline"].kind, spreads["difference"].kind
    name = f"{of_both} bootstrap" + ("" if of_one == of_both else f" ({of_one} of one arm)")
    arms = (sample.baseline,) if sample.paired else (sample.baseline, sample.treatment)
    groups = f" in {drawn_from:,} random groups" if drawn_from < sum(arm.blocks for arm in arms) else ""
    within = " within strata" if len(sample.strata) > 1 else ""
    kind = "drawn together in both arms" if sample.paired else "of each arm drawn apart"
    return f"{name}, {resamples:,} resamples by {sample.block}, {kind}{within}{groups}"
