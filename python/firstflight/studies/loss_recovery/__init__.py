"""RFC 6928 section 5.3: recovery from a loss in the first flight, by initial window, and its cost."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.records import Run
from firstflight.report.loss_matrix import REPAIRS
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.loss_recovery import report
from firstflight.studies.loss_recovery.claims import claims

LONG_SEGMENTS = 64
"""A response that goes on after its first flight: four times the largest window, so that every recovery ends before."""
TIMESTAMP_BYTES = 12
"""The option with its padding."""
DONE = pl.col("completed") == 1
TIME = pl.col("completion_time_s").mean()
# The slowest means that the sender needed.
REPAIR = (
    pl.when(pl.col("timeouts") > 0)
    .then(3)
    .when(pl.col("tail_loss_probes") > 0)
    .then(2)
    .when(pl.col("early_retransmits") > 0)
    .then(1)
    .when(pl.col("fast_retransmits") > 0)
    .then(0)
)


def positions(run: Run) -> pl.LazyFrame:
    """The transfers by `position`, that of the loss in the first flight; 0 lost nothing."""
    transfers = run.table("transfers", experiment="one_loss")
    return transfers.with_columns(pl.col("client").cast(pl.Int64).alias("position"))


ARRIVED = (pl.col("event") == 1) & (pl.col("from_server") == 1) & (pl.col("length") > 0)
TWICE = 100 * (1 - pl.struct("connection", "seq").n_unique() / pl.len())

# Of the transfer that lost the segment at each position.
of_position = partial(Quantity, where=DONE, records=positions, by={"position": range(17)}, grid="one_loss")
QUANTITIES = (
    of_position("time", "Completion time", "ms", (1e3 * pl.col("completion_time_s")).max()),
    of_position("repair", "Repair", "", REPAIR.max(), kinds=REPAIRS),
    of_position("retransmissions", "Retransmitted segments", "segments", pl.col("retransmissions").max()),
    Quantity("random_loss", "Mean completion time", "s", TIME, DONE, digits=3, grid="random_loss"),
    Quantity("congested", "Mean completion time", "s", TIME, DONE, digits=3, grid="congested"),
    Quantity("duplicates", "Segments that arrive twice", "percent", TWICE, ARRIVED, "segments", grid="duplicates"),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """Sizes in full segments, without timestamps (RFC 7323 appendix A); in `one_loss` a user for each lost position."""
    tcp = scenario.to_plan()["applications"][0]["server_tcp"]
    payload = int(tcp["mss_bytes"]) - (TIMESTAMP_BYTES if tcp["timestamps"] else 0)
    if grid != "one_loss":
        return scenario.replace("application.response.size", f"{labels['size_segments'] * payload}B")
    iw = labels["iw"]
    size = iw if labels["follows"] == "nothing" else LONG_SEGMENTS
    (spoke,) = scenario.to_dict()["network"]["spokes"]
    # The request is a data packet too, the first of the other direction.
    spokes = [spoke | {"loss_list": [lost] if lost else [], "reverse": {"loss_list": []}} for lost in range(iw + 1)]
    scenario = scenario.replace("network.spokes", spokes).replace("application.response.clients", iw + 1)
    return scenario.replace("application.response.size", f"{size * payload}B")


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
