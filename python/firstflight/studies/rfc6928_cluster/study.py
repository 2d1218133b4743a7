"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell
from firstflight.studies import offered
from firstflight.studies.rfc6928_cluster import grid
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class Cluster(Study):
    """The users of two data centres, with initial windows of 3 to 42."""

    name = "rfc6928-cluster"
    title = "RFC 6928's experiment: what IW 10 gains the users of two data centres, and what it costs"
    source = "RFC 6928 section 10; Dukkipati et al. 2010 (Figures 2, 5, 7)"
    engines = ("simulate",)
    shows = "IW 3 against 10 on whole populations: latency by round trip, bandwidth, BDP and size, and retransmissions"
    asked = (
        "RFC 6928 rests on an experiment with real users: two data centres, AvgDC with average and SlowDC with slow "
        "paths, initial windows of 3 and of 10. Nobody outside can run it again. Do simulated users with the published "
        "round trips, bandwidths and products of both gain what the RFC says, pay what it says, and does it matter how "
        "round trip and bandwidth go together, which is not published?"
    )
    limitations = (
        "The joint law of round trip and bandwidth is an assumption (a Gaussian copula, fitted to the published shares "
        "of their product); buffers, the way up, subnets and background traffic are ours, and SlowDC has only four "
        "published quantiles.",
        "Losses, back-end time and background traffic are fitted to the published figures for IW 3; the figures for IW "
        "10 and all gains are prediction.",
        "A user is alone on a path of her own: what one user's larger window does to another's queue is not in it.",
        "Each response has a new connection, but for the cells where three share one; the real services had both, in "
        "shares that are not published.",
        "TCP is a Linux without RACK, tail loss probes and PRR; what else the servers of 2010 did otherwise is not "
        "modelled.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """One cell a population, service, dependence, use of connections, assumption and initial window."""
        return grid.cells()

    def tables(self, run: Run) -> list[Table]:
        """Latency, its buckets, subnets, retransmissions, the tail, the populations; those with data."""
        return [self.table(run, name) for name in self.table_names(run)]

    def table_names(self, run: Run) -> list[str]:
        """From the cells that the run has."""
        from firstflight.studies.rfc6928_cluster.measure import of_run
        from firstflight.studies.rfc6928_cluster.tables import TABLES

        return offered.names(TABLES, of_run(run))

    def table(self, run: Run, name: str) -> Table:
        """That one alone."""
        from firstflight.studies.rfc6928_cluster.measure import of_run
        from firstflight.studies.rfc6928_cluster.tables import TABLES

        return offered.table(TABLES, of_run(run), name)

    def claims(self, run: Run) -> list[Claim]:
        """Every sentence of section 10 with a number, and the 2014 reproduction's critique."""
        from firstflight.studies.rfc6928_cluster.claims import all_claims

        return all_claims(run)

    def figures(self, run: Run) -> list[Figure]:
        """The paper's Figure 5 and what stands beside it."""
        from firstflight.studies.rfc6928_cluster.figures import all_figures

        return all_figures(run)

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from firstflight.studies.rfc6928_cluster.answer import answer

        return answer(run)
