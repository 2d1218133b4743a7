"""Thalheim's talk: the transfer time of one download by initial window, delay, rate and size; traffic that shares its
link.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.link_share import median_share
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.kernel.quantity import Over
from firstflight.studies.thalheim import report
from firstflight.studies.thalheim.claims import DELAY_MS, SMALL_QUEUE, TOTAL_KB, claims

if TYPE_CHECKING:
    from firstflight.records import Run

DONE = pl.col("completed") == 1
# In real time only rows without a stall of the machine count.
CALM = DONE & (pl.col("disturbed") == 0)
MOUSE = CALM & (pl.col("application").cast(pl.String) == "mouse")
TIME = 1e3 * pl.col("completion_time_s")
REQUEST_TIME = 1e3 * (pl.col("completion_time_s") - pl.col("handshake_time_s"))
END_S = pl.col("start_s") + pl.col("completion_time_s")
# Of connections that run together either all came through undisturbed or none counts.
TOGETHER = (pl.len() == pl.col("flows").first()) & (pl.col("disturbed").max() == 0)


def of_transfer(name: str, title: str, unit: str, value: pl.Expr, grid: str, over: Over = "median") -> Quantity:
    """A measure of one file alone on its path."""
    return Quantity(name, title, unit, value.max(), CALM, grid=grid, over=over)


def counted(name: str, title: str, value: pl.Expr) -> Quantity:
    """Their number."""
    return Quantity(name, title, "transfers", value, DONE, digits=0, grid="transfer", over="sum")


def of_parallel(name: str, title: str, unit: str, value: pl.Expr) -> Quantity:
    """A measure of connections that open together."""
    together = pl.when(TOGETHER).then(value)
    return Quantity(name, title, unit, together, DONE, digits=0, grid="parallel", over="median")


def elephants(run: "Run") -> pl.LazyFrame:
    """The long download's share of the link while each short response was sent, percent, in medians by replicate."""
    transfers, links = (run.table(name, experiment="mice", flows=1) for name in ("transfers", "links"))
    bottleneck = links.filter(pl.col("link").cast(pl.String) == "links[0]")
    return median_share(transfers.filter(MOUSE), bottleneck, ["flows", "iw", "replicate"], DELAY_MS / 1000)


QUANTITIES = (
    of_transfer("time", "Time", "ms", TIME, "transfer"),
    of_transfer("request_time", "Time from the request on", "ms", REQUEST_TIME, "transfer"),
    of_transfer("lower_quartile", "Lower quartile", "ms", TIME, "transfer", "lower quartile"),
    of_transfer("upper_quartile", "Upper quartile", "ms", TIME, "transfer", "upper quartile"),
    counted("transfers", "Transfers", pl.len()),
    counted("disturbed", "Disturbed", pl.col("disturbed").sum()),
    of_transfer("shallow_time", "Time", "ms", TIME, "shallow"),
    of_transfer("again", "Retransmitted segments", "segments", pl.col("retransmissions"), "shallow"),
    of_transfer("shaped_time", "Time", "ms", TIME, "shaped"),
    of_transfer("shaped_request_time", "Time from the request on", "ms", REQUEST_TIME, "shaped"),
    of_transfer("simulated_time", "Simulated", "ms", TIME, "simulated"),
    of_transfer("simulated_shallow_time", "Simulated", "ms", TIME, "simulated_shallow"),
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
        None,
        elephants,
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
