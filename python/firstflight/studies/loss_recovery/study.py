"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell

from ..study import Study
from .grid import cell, points

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class LossRecovery(Study):
    """Every single loss of a first flight; a larger window against SACK where packets are lost."""

    name = "loss-recovery"
    title = "RFC 6928, section 5.3: repairing a loss in the first flight"
    source = "RFC 6928 (Chu, Dukkipati, Cheng, Mathis, 2013), section 5.3"
    engines = ("simulate",)
    shows = "how a loss in the first flight is repaired, by its place and the initial window, and what it costs"
    asked = (
        "A segment of the first flight is lost. Is it retransmitted by fast retransmit, by early retransmit, by a tail "
        "loss probe or only by the timeout, and how much later is the response complete? RFC 6928 argues that a larger "
        "initial window makes the quick repair likelier, and reports that IW 10 without SACK beat IW 3 with it."
    )
    limitations = (
        "One loss at a time in the matrices. In the comparison losses are independent, or come from one queue: 40 "
        "packets at a round trip of 300 ms, as in the testbed that RFC 6928 cites, whose figures are not available.",
        "One path (100 ms, 10 Mbit/s): a timeout of the profile rfc costs a second at any round trip below that, so "
        "its cost in round trips is the larger the shorter the path.",
        "The server answers at once and in full segments; a response that is written in pieces has other tails.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """The matrices, then the comparison."""
        return [cell(point) for point in points()]

    def tables(self, run: Run) -> list[Table]:
        """How often each repair, what it costs, and completion times in the comparison."""
        from .measure import cases, completion_times
        from .tables import all_tables

        return all_tables(cases(run), completion_times(run))

    def claims(self, run: Run) -> list[Claim]:
        """What RFC 6928 says of repair, and what the RFCs of the means themselves say."""
        from .claims import all_claims
        from .measure import cases, completion_times

        return all_claims(cases(run), completion_times(run))

    def figures(self, run: Run) -> list[Figure]:
        """The matrices, and the comparison."""
        from .figures import all_figures
        from .measure import cases, completion_times

        return all_figures(cases(run), completion_times(run))

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from .answer import answer
        from .measure import cases, completion_times

        return answer(cases(run), completion_times(run))
