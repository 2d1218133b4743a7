"""One sentence of the talk and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firstflight.analysis.claim import Claim, Expectation, NoDataError, judge, unchecked
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

    def check(self, data: Data) -> Claim:
        """The verdict, or why there is none."""
        try:
            found, note = data.estimate(self.found), self.note(data)
        except NoDataError as error:
            return unchecked(
                id=self.id,
                source=SOURCE,
                text=self.text,
                expectation=self.expectation,
                tolerance=self.tolerance,
                unit=self.unit,
                reason=str(error),
            )
        return judge(
            id=self.id,
            source=SOURCE,
            text=self.text,
            expectation=self.expectation,
            tolerance=self.tolerance,
            why=self.why,
            unit=self.unit,
            found=found,
            note=note,
        )
