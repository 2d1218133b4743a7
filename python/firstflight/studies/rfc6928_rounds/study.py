"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell, Scenario

from ..study import Study
from . import published
from .measure import round_trips

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class Rounds(Study):
    """Section 5.1's table by simulation or by the model engine, beside the rule applied round by round."""

    name = "rfc6928-rounds"
    title = "RFC 6928, section 5.1: round trips with initial windows of 3 and 10 segments"
    source = "RFC 6928 (Chu, Dukkipati, Cheng, Mathis, 2013), section 5.1"
    engines = ("simulate", "model")
    shows = "round trips saved by an initial window of 10, on a path of infinite bandwidth"
    asked = (
        "How many round trips does a transfer take with an initial window of 10 segments instead of 3, if "
        "nothing but the window limits it? RFC 6928 answers with a table of 13 sizes and a sentence about a 14th."
    )
    limitations = (
        "Infinite bandwidth: on a real path the gain ends where the window fills the pipe (docs/model.md).",
        "Nothing is lost, so the study shows the gain of a larger window and none of its cost.",
        "The delayed-ACK timer never fires; a real one of 40 to 500 ms acknowledges an odd segment sooner on long "
        "paths.",
    )

    def cells(self, engine: str) -> list[Cell]:
        """Every size with every initial window; the grid is the same for both engines."""
        base = Scenario.load(published.HERE / "scenario.toml")
        mss = base.to_plan()["applications"][0]["server_tcp"]["mss_bytes"]
        return [
            Cell(
                {"segments": segments, "iw": iw},
                base.replace("application.transfer.size", f"{segments * mss}B").replace("tcp.initial_window", iw),
            )
            for segments in published.sizes()
            for iw in published.initial_windows()
        ]

    def tables(self, run: Run) -> list[Table]:
        """The RFC's table."""
        from .tables import all_tables

        return all_tables(round_trips(run))

    def claims(self, run: Run) -> list[Claim]:
        """Every printed value, and the sentences around the table."""
        from .claims import all_claims

        return all_claims(round_trips(run))

    def figures(self, run: Run) -> list[Figure]:
        """Segments delivered against round trips."""
        from .figures import all_figures

        return all_figures(round_trips(run))

    def answer(self, run: Run) -> list[str]:
        """Three sentences."""
        from .answer import answer

        return answer(round_trips(run))
