"""Each congestion control with one download, with parallel connections and with concurrent short flows."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.analysis.link_share import median_share
from firstflight.records import Run
from firstflight.scenario import Scenario
from firstflight.studies.congestion_control import report
from firstflight.studies.congestion_control.claims import DRAWN, PACKET_BYTES, RATE_BPS, STARTED_S, claims
from firstflight.studies.congestion_control.windows import MEASURES, Windows
from firstflight.studies.kernel import DeclaredStudy, Quantity

DONE = pl.col("completed") == 1
MOUSE = DONE & (pl.col("application").cast(pl.String) == "mouse")
BOTTLENECK = pl.col("link").cast(pl.String) == "links[0]"
RTT_S = DRAWN["rtt_ms"] / 1000
PLACE = ["control", "rtt_ms", "buffer_bdp", "replicate"]


def waiting(run: Run) -> pl.LazyFrame:
    """The bottleneck's intervals while a download lasts: nothing waits after it."""
    ends = run.table("transfers", experiment="download").select(*PLACE, pl.col("completion_time_s").alias("end_s"))
    links = run.table("links", experiment="download").filter(BOTTLENECK)
    return links.join(ends, on=PLACE, maintain_order="left").filter(pl.col("interval_start_s") < pl.col("end_s"))


def windows(run: Run) -> pl.LazyFrame:
    """Each sender's cwnd in the download that is drawn, one row per algorithm."""
    segments = run.table("segments", **DRAWN).filter(pl.col("replicate") == 0).collect()
    rows = []
    for (control,), own in segments.partition_by("control", as_dict=True, maintain_order=True).items():
        rows.append({"control": control, **DRAWN, "replicate": 0, **Windows(own).measures(STARTED_S)})
    return pl.LazyFrame(rows, schema={**segments.select(PLACE).schema, **dict.fromkeys(MEASURES, pl.Float64)})


def mice(run: Run) -> pl.LazyFrame:
    """The link's share of the long flow while each short response was sent, percent, in medians by replicate."""
    place = ["control", "size_kb", "elephants", "replicate"]
    transfers, links = (run.table(name, experiment="mice", elephants=1) for name in ("transfers", "links"))
    return median_share(transfers.filter(MOUSE), links.filter(BOTTLENECK), place, RTT_S / 2)


SECONDS = pl.col("completion_time_s")
QUEUE = pl.col("queue_mean_packets") * pl.col("interval_s")
AGAIN = 100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum()
AFTER = pl.col("interval_start_s") >= STARTED_S
# The download, its bottleneck, and the parallel connections.
of_download = partial(Quantity, where=DONE, digits=0, grid="download")
of_queue = partial(Quantity, records=waiting, grid="download")
of_objects = partial(Quantity, where=DONE, grid="parallel")
WINDOW_AT = {key: [label] for key, label in DRAWN.items()}
QUANTITIES = (
    of_download("completion_time", "Completion time", "s", SECONDS.max(), digits=2),
    of_download("goodput", "Goodput", "Mbit/s", (8 * pl.col("bytes") / SECONDS / 1e6).max(), digits=2),
    of_download("retransmissions", "Retransmitted segments", "segments", pl.col("retransmissions").max()),
    of_download("timeouts", "Timeouts", "count", pl.col("timeouts").max()),
    of_queue("mean_queue", "Mean queue", "packets", QUEUE.sum() / pl.col("end_s").max()),
    of_queue("max_queue", "Longest queue", "packets", pl.col("queue_max_packets").max(), digits=0),
    of_queue("later_queue", "Mean queue after start-up", "packets", pl.col("queue_mean_packets").mean(), AFTER),
    *(
        Quantity(name, title, unit, pl.col(name).max(), None, windows, grid="download", at=WINDOW_AT)
        for name, (title, unit) in MEASURES.items()
    ),
    of_objects("object_time", "Mean completion time", "s", SECONDS.mean(), digits=3),
    of_objects("first_flights", "First flights together", "segments", pl.col("first_flight_segments").sum(), digits=0),
    of_objects("retransmitted", "Retransmitted segments", "percent", AGAIN),
    Quantity("mouse_time", "Median completion time", "s", SECONDS.median(), MOUSE, digits=3, grid="mice"),
    Quantity(
        "elephant_share",
        "The long flow's share of the link meanwhile",
        "percent",
        pl.col("share").max(),
        records=mice,
        grid="mice",
        at={"elephants": [1]},
    ),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The queue of a download in whole full packets; no application for a long flow that is not there."""
    if grid == "download":
        product = RATE_BPS * labels["rtt_ms"] / 1000 / 8 / PACKET_BYTES
        return scenario.replace("network.links[0].queue", f"{max(1, round(labels['buffer_bdp'] * product))}p")
    if grid == "mice" and not labels["elephants"]:
        return scenario.replace("application", scenario.to_dict()["application"][:1])
    return scenario


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
