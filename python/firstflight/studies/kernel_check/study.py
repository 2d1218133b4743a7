"""The study as the command line sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.scenario import Cell
from firstflight.studies.kernel_check.grid import EMULATE, SIMULATE, cells
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class KernelCheck(Study):
    """One transfer under 1080 conditions, simulated with profile `linux` and by real programs on this kernel."""

    name = "kernel-check"
    title = "The simulator against the Linux kernel: one transfer, both engines side by side"
    source = "our own"
    engines = (EMULATE, SIMULATE)
    shows = "where simulated times are those of the running kernel, and where they differ"
    asked = (
        "The simulator's profile linux is written after the kernel's sources. Does it do what the kernel does? The "
        "same scenario is simulated and carried out by nginx and curl over the kernel's TCP: sizes from 5 to 500 kB, "
        "three round trips, three rates, four initial windows, Reno and CUBIC, without losses and with queues that "
        "overflow."
    )
    limitations = (
        "One connection alone on its path: how flows share a queue is not compared.",
        "Emulated times hold what nginx, curl and this machine need to act, which no simulation knows: some tenths of "
        "a millisecond.",
        "One kernel: the one that runs here.",
    )
    replicates = 5

    def cells(self, engine: str) -> list[Cell]:
        """Every condition twice; with "simulate" once."""
        return cells(engine)

    def tables(self, run: Run) -> list[Table]:
        """A summary, the cells farthest apart, and every cell."""
        from firstflight.studies.kernel_check.measure import pairs
        from firstflight.studies.kernel_check.tables import all_tables

        return all_tables(pairs(run))

    def claims(self, run: Run) -> list[Claim]:
        """How far the engines may differ."""
        from firstflight.studies.kernel_check.claims import all_claims
        from firstflight.studies.kernel_check.measure import pairs, unmeasured

        return all_claims(pairs(run), unmeasured(run))

    def figures(self, run: Run) -> list[Figure]:
        """Differences at a glance, connections segment by segment, times by initial window."""
        from firstflight.studies.kernel_check.figures import all_figures
        from firstflight.studies.kernel_check.measure import pairs, traces

        return all_figures(pairs(run), traces(run))

    def answer(self, run: Run) -> list[str]:
        """At most three sentences."""
        from firstflight.studies.kernel_check.answer import answer
        from firstflight.studies.kernel_check.measure import pairs

        return answer(pairs(run), run.engine)
