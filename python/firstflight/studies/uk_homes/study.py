"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell
from firstflight.studies import offered
from firstflight.studies.study import Study
from firstflight.studies.uk_homes import grid

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class UkHomes(Study):
    """Six initial windows on every home of two broadband panels."""

    name = "uk-homes"
    title = "UK homes: what larger initial windows would do today, home by home"
    source = "Ofcom, UK fixed-line broadband performance, panels of 2015 and March 2023 (Open Government Licence)"
    engines = ("simulate",)
    # Which packets are lost is chance; at the slow end, where few homes are, one draw would show.
    replicates = 3
    shows = "what IW 16, 32 or 64 would gain and cost real homes of 2015 and 2023, by percentile and technology"
    asked = (
        "Servers have sent ten segments first since 2010. Homes have become faster since: what would 16 or 32 do "
        "today, for whom, and at what cost? Every home of two broadband panels fetches single responses and a page "
        "with each initial window, over the path that was measured there: as near as the panel's test server in the "
        "country, and 30 and 80 ms farther away."
    )
    limitations = (
        "A home is alone on its line: nothing else is being downloaded there, and nothing beyond the line is busy.",
        "The buffer is a lower bound (what a download was seen to fill on average), and where none was measured it is "
        "another home's; the table of assumptions turns that round.",
        "Loss is the panel's mean, spread evenly over packets; real losses come in bursts, at busy hours, and are in "
        "part the queue's own.",
        "The server does not pace its first flight, and nothing but the home's line spreads it: the worst for a short "
        "queue. Wi-Fi, which most homes have behind the line, was not measured.",
        "TLS is left out: its handshake costs one or two round trips that no initial window saves, so that a share of "
        "the time saved is smaller with it.",
        "311 homes of 2023 have no weight (all of fixed wireless and satellite), and 1,163 of 2015 the weight 0: they "
        "are simulated, shown by technology and in the ranks, and count for nothing in the country's figures. Mobile "
        "networks are not in the panels at all.",
        "One home of 2023 (46 % loss) takes minutes for what others fetch in a second, so that its responses overlap "
        "and some do not finish. Its weight is 0.01 %.",
        "The intervals are those of the panel as a sample of homes; what is assumed about the paths is not in them.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """Two years, three distances, six windows; assumptions turned round; the curves of the map."""
        return grid.cells()

    def tables(self, run: Run) -> list[Table]:
        """Gains, cost, overfilled homes, assumptions, ranks."""
        return [self.table(run, name) for name in self.table_names(run)]

    def table_names(self, run: Run) -> list[str]:
        """From the cells that the run has."""
        from firstflight.studies.uk_homes.tables import TABLES

        return offered.names(TABLES, run)

    def table(self, run: Run, name: str) -> Table:
        """That one alone."""
        from firstflight.studies.uk_homes.tables import TABLES

        return offered.table(TABLES, run, name)

    def claims(self, run: Run) -> list[Claim]:
        """What we expected before the first simulation."""
        from firstflight.studies.uk_homes.hypotheses import all_claims

        return all_claims(run)

    def figures(self, run: Run) -> list[Figure]:
        """The map of sizes, gains by percentile and technology, overfilled homes, measured against simulated pages."""
        from firstflight.studies.uk_homes.figures import all_figures

        return all_figures(run)

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from firstflight.studies.uk_homes.answer import answer

        return answer(run)
