"""The paper's Figure 5 with ours beside it, and what stands behind it and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.report.figure import Figure
from firstflight.studies.rfc6928_cluster.bars import by_bucket, by_connections, by_dependence, drawn, slow_quantiles
from firstflight.studies.rfc6928_cluster.curves import maps_tail, over_subnets, retransmissions, sweep
from firstflight.studies.rfc6928_cluster.forest import by_assumption
from firstflight.studies.rfc6928_cluster.measure import of_run

if TYPE_CHECKING:
    from firstflight.records import Run


def all_figures(run: Run) -> list[Figure]:
    """As far as the run has cells for them: `figure5`, `connections`, `dependence`, `sweep`, `retransmissions`, `tail`,
    `subnets`, `sensitivity`, `segments`, `figure6`, `population` and `slowdc`.
    """
    results = of_run(run)
    found = [
        by_bucket(results, "figure5"),
        by_connections(results),
        by_dependence(results),
        sweep(results),
        retransmissions(results),
        maps_tail(results),
        over_subnets(results),
        by_assumption(results),
        by_bucket(results, "segments"),
        by_bucket(results, "figure6"),
        drawn(results),
        slow_quantiles(),
    ]
    return [figure for figure in found if figure is not None]
