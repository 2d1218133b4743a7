"""One sentence of the talk and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from firstflight.analysis.claim import Claim, Expectation, Needs, NoDataError, Sentence
from firstflight.analysis.medians import Medians, Values

from ..measure import Place

Data = Medians[Place]
SOURCE = "J. Thalheim's talk"
COMPARISON = "The sentence compares and gives no number, so any difference in its direction will do."


@dataclass(frozen=True)
class Statement:
    """`found` computes with arrays of medians, as `Medians.estimate` wants; it raises NoDataError if the run lacks what
    it needs, with a sentence that says what.
    """

    id: str
    text: str
    expectation: Expectation
    tolerance: float
    unit: str
    why: str
    found: Callable[[Data], Values]
    note: Callable[[Data], str]

    def over(self, shaper: str | None) -> Statement:
        """The same over one of the study's shapers."""
        if shaper is None:
            return self
        return replace(self, id=f"{self.id}-{shaper}", text=f"Over Mininet's shaper ({shaper}): {self.text}")

    def check(self, data: Data, needs: Needs = "interval") -> Claim:
        """The verdict, or why there is none."""
        sentence = Sentence(
            self.id, SOURCE, self.text, self.expectation, self.tolerance, self.unit, self.why, needs=needs
        )
        try:
            return sentence.judge(data.estimate(self.found), self.note(data))
        except NoDataError as error:
            return sentence.unchecked(str(error))
