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


class CongestionControl(Study):
    """One download under each algorithm, parallel connections, and short flows beside a long one."""

    name = "congestion-control"
    title = "Congestion control on one download at 10 Mbit/s: Reno, CUBIC, Westwood+, Vegas and BBR"
    source = "J. Thalheim, talk on TCP's initial window (recap of congestion control)"
    engines = ("simulate",)
    shows = "what each congestion control does with its window, the link and the queue, and who suffers beside it"
    asked = (
        "The talk shows one HTTP download over 10 Mbit/s under Reno, CUBIC, Westwood and Vegas, and states that "
        "parallel connections compete and add up their slow starts, and that long flows take an unfair share against "
        "short ones. What do the windows look like, and do the statements hold? BBR is added, and each algorithm is "
        "held against its own publication."
    )
    limitations = (
        "The talk gives neither round trip nor queue: both are ours (80 ms, one bandwidth-delay product; study.toml), "
        "and the tables show how much depends on them.",
        "Senders of one algorithm meet each other only; how Reno fares against BBR is not asked.",
        "Drop tail, one bottleneck, constant rate: no active queue management and no radio link.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """The downloads, then parallel connections, then short flows."""
        return [cell(point) for point in points()]

    def tables(self, run: Run) -> list[Table]:
        """Downloads, the grid around them, parallel connections, short flows."""
        from .measure import values
        from .tables import all_tables

        return all_tables(values(run))

    def claims(self, run: Run) -> list[Claim]:
        """The talk's statements, then what the algorithms' own publications say."""
        from .claims import all_claims
        from .measure import queues, traces, values

        return all_claims(values(run), traces(run), queues(run))

    def figures(self, run: Run) -> list[Figure]:
        """Window and throughput, the explained transfer, queues."""
        from .figures import all_figures
        from .measure import queues, traces

        return all_figures(traces(run), queues(run))

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from .answer import answer
        from .measure import values

        return answer(values(run))
