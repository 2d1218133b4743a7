"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell
from firstflight.studies.cs244_2014 import grid
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class Cs244(Study):
    """One server and many slow users, IW 3 against IW 10."""

    name = grid.NAME
    title = "CS244 2014: what an initial window of 10 gains slow users, by their bandwidth"
    source = "R. Jung and S. Quinonez, Stanford CS244 2014 (after Dukkipati et al. 2010, Figure 6)"
    engines = ("simulate", "emulate")
    shows = "what IW 10 instead of 3 gains users of a slow network, by bandwidth, in ms and in percent"
    asked = (
        "Dukkipati et al. report what an initial window of 10 segments gained the users of a data centre with slow "
        "paths, by bandwidth (their Figure 6). Two students of Stanford's CS244 reproduced it in Mininet, with a fixed "
        "round trip of 70 ms, and state: about one round trip at every bandwidth, a larger share of the time the "
        "faster the user. Do the same users, on links that are exact, gain the same?"
    )
    limitations = (
        "The post prints its Figure 2 as an image: its values are not available, its sentences are.",
        "Of SlowDC's bandwidths three quantiles are published; below 100 kbit/s and above the median the distribution "
        "is ours (reference/slowdc_bandwidth.csv says how).",
        "Sizes and bandwidths are independent, and one round trip for all: slow paths are longer ones in reality.",
        "Which Linux the post used is not known, and with it how long its GSO packets were: Mininet's shaper is shown "
        "for both. It is simulated only; the link box gets single packets.",
        "Nothing is lost: the queue holds a thousand packets, so the price of a larger window does not show.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """One cell per path and initial window."""
        return grid.cells(engine)

    def tables(self, run: Run) -> list[Table]:
        """Gains by bucket, rounds, and for an emulated run the simulator beside it."""
        from firstflight.studies.cs244_2014.tables import all_tables

        return all_tables(run)

    def claims(self, run: Run) -> list[Claim]:
        """The post's statements."""
        from firstflight.studies.cs244_2014.claims import all_claims

        return all_claims(run)

    def figures(self, run: Run) -> list[Figure]:
        """The post's Figure 2, and what stands behind it."""
        from firstflight.studies.cs244_2014.figures import all_figures

        return all_figures(run)

    def answer(self, run: Run) -> list[str]:
        """Four sentences."""
        from firstflight.studies.cs244_2014.answer import answer

        return answer(run)
