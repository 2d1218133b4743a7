"""Thalheim's talk: the time of one download by initial window, delay, rate and size; traffic that shares its link."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.analysis.link_share import median_share
from firstflight.records import Run
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.thalheim import report
from firstflight.studies.thalheim.claims import DELAY_MS, SMALL_QUEUE, TOTAL_KB, claims

DONE = pl.col("completed") == 1
# In real time only rows without a stall of the machine count.
DISTURBED = pl.col("disturbed")
CALM = DONE & (DISTURBED == 0)
MOUSE = CALM & (pl.col("application").cast(pl.String) == "mouse")
TIME = 1e3 * pl.col("completion_time_s")
REQUEST_TIME = 1e3 * (pl.col("completion_time_s") - pl.col("handshake_time_s"))
END_S = pl.col("start_s") + pl.col("completion_time_s")
# Of connections that run together either all came through undisturbed or none counts.
TOGETHER = (pl.len() == pl.col("flows").first()) & (DISTURBED.max() == 0)


def of_parallel(name: str, title: str, unit: str, value: pl.Expr) -> Quantity:
    """A measure of connections that open together."""
    together = pl.when(TOGETHER).then(value)
    return Quantity(name, title, unit, together, DONE, digits=0, grid="parallel", over="median")


def elephants(run: Run) -> pl.LazyFrame:
    """The long download's share of the link while each short response was sent, percent, in medians by replicate."""
    transfers, links = (run.table(name, experiment="mice", flows=1) for name in ("transfers", "links"))
    bottleneck = links.filter(pl.col("link").cast(pl.String) == "links[0]")
    return median_share(transfers.filter(MOUSE), bottleneck, ["flows", "iw", "replicate"], DELAY_MS / 1000)


# Of one file alone on its path.
of_transfer = partial(Quantity, where=CALM, over="median")
QUANTITIES = (
    of_transfer("time", "Time", "ms", TIME.max(), grid="transfer"),
    of_transfer("request_time", "Time from the request on", "ms", REQUEST_TIME.max(), grid="transfer"),
    of_transfer("lower_quartile", "Lower quartile", "ms", TIME.max(), grid="transfer", over="lower quartile"),
    of_transfer("upper_quartile", "Upper quartile", "ms", TIME.max(), grid="transfer", over="upper quartile"),
    Quantity("transfers", "Transfers", "transfers", pl.len(), DONE, digits=0, grid="transfer", over="sum"),
    Quantity("disturbed", "Disturbed", "transfers", DISTURBED.sum(), DONE, digits=0, grid="transfer", over="sum"),
    of_transfer("shallow_time", "Time", "ms", TIME.max(), grid="shallow"),
    of_transfer("again", "Retransmitted segments", "segments", pl.col("retransmissions").max(), grid="shallow"),
    of_transfer("shaped_time", "Time", "ms", TIME.max(), grid="shaped"),
    of_transfer("shaped_request_time", "Time from the request on", "ms", REQUEST_TIME.max(), grid="shaped"),
    of_transfer("simulated_time", "Simulated", "ms", TIME.max(), grid="simulated"),
    of_transfer("simulated_shallow_time", "Simulated", "ms", TIME.max(), grid="simulated_shallow"),
    of_parallel("page_time", "All complete", "ms", 1e3 * (END_S.max() - pl.col("start_s").min())),
    of_parallel("object_time", "Mean of the objects", "ms", TIME.mean()),
    of_parallel("first_flights", "First flights together", "segments", pl.col("first_flight_segments").sum()),
    of_parallel("retransmitted", "Retransmitted segments", "segments", pl.col("retransmissions").sum()),
    Quantity("mouse_time", "Completion time", "ms", TIME.median(), MOUSE, digits=0, grid="mice", over="median"),
    Quantity(
        "elephant_share",
        "The long download's share",
        "percent",
        pl.col("share").max(),
        records=elephants,
        grid="mice",
        at={"flows": [1]},
        over="median",
    ),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The small queue; the same bytes over all connections; no application for a long download that is not there."""
    if grid in ("shallow", "simulated_shallow"):
        return scenario.replace("network.links[0].queue", f"{SMALL_QUEUE}p")
    if grid == "parallel":
        return scenario.replace("application.object.size", f"{TOTAL_KB // labels['flows']}kB")
    if grid == "mice" and not labels["flows"]:
        return scenario.replace("application", scenario.to_dict()["application"][:1])
    return scenario


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
