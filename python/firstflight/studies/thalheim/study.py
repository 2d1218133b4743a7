"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell

from ..study import Study
from .grid import NAME, cell, points

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class Thalheim(Study):
    """The transfer time of one download by initial window, delay, rate and size; and what shares its link."""

    name = NAME
    title = "Thalheim's talk: one HTTP download by initial window, delay, rate and size"
    source = "J. Thalheim, talk on TCP's initial window (Mininet, nginx and curl)"
    engines = ("simulate", "emulate")
    shows = (
        "what the initial window does to the time of one download, by delay, rate and size, and to what shares its link"
    )
    asked = (
        "A client fetches one file from a server over one link, with initial windows from 1 to 32. How much sooner is "
        "it there than with the 3 segments of old, and how does that depend on delay, rate and size? The talk states a "
        "gain of 0 to 60 % that grows with the delay and falls with the size, and that higher rates carry it to larger "
        "files; that parallel connections compete and add up their slow starts; and that an elephant takes more than "
        "its share."
    )
    limitations = (
        "The windows, delays, rates and sizes that the talk sweeps are not published; ours cover its statements, and "
        "its 60 % may lie at a size that ours do not have.",
        "Delay is that of one way, and both ways have it; whether the talk's is one way or the round trip it does not "
        "say. Its formula is an image that is not preserved.",
        "Which Linux the talk used is not known, and with it how long its GSO packets were. Mininet's shaper, whose "
        "effect depends on that, is shown for both forms, and simulated only.",
        "The queue is ample (1000 packets), so that the path decides and not a loss; what a small one changes is "
        "shown for one delay only.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """The talk's figure, the small queue, parallel connections, short requests beside a long download."""
        return [cell(point, engine) for point in points()]

    def tables(self, run: Run) -> list[Table]:
        """Relative and plain times, formulas and engines beside them, and what shares the link."""
        from .measure import values
        from .tables import all_tables

        return all_tables(values(run), run.engine == "emulate")

    def claims(self, run: Run) -> list[Claim]:
        """The talk's statements."""
        from .claims import all_claims
        from .measure import values

        return all_claims(values(run), run.engine == "emulate")

    def figures(self, run: Run) -> list[Figure]:
        """The talk's figure, one a rate; an overview; formulas; what shares the link."""
        from .figures import all_figures
        from .measure import values

        return all_figures(values(run), run.engine == "emulate")

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from .answer import answer
        from .measure import values

        return answer(values(run))
