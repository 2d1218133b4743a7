"""RFC 2415: initial windows of one to four segments for web pages and file transfers on a slow, shared link."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from firstflight.scenario import Scenario
from firstflight.scenario.units import BitsPerSecond, Packets
from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.rfc2415 import report
from firstflight.studies.rfc2415.claims import claims

SEGMENT_BYTES = 1460
VARIANTS = ("red", "reverse", "access", "long", "rate10", "rate100")
ACCESS_FACTOR = 2.0
RATE_FACTOR = {"rate10": 10, "rate100": 100}
# ns-2's default window, which also is its first ssthresh.
FTP_WINDOW_20 = {"max_send_window_segments": 20, "initial_ssthresh_segments": 20, "receive_window": "29200B"}
# ns-2's defaults of 1998, before gentle mode existed; the RFC names only "the RED included with ns-2".
RED = {
    "kind": "red",
    "min_threshold_packets": 5.0,
    "max_threshold_packets": 15.0,
    "max_probability": 0.1,
    "weight": 0.002,
    "gentle": False,
    "mean_packet": "500B",
}

At = Mapping[str, Sequence[Any]]
DONE = pl.col("completed") == 1
# Servers are on the right, so the data direction of the bottleneck is its reverse link.
BOTTLENECK = pl.col("link") == "bottleneck.reverse"
# The start of a page's clock. RFC 2415 does not say. FITTED, for each of its two HTTP models (which were two
# application classes in its ns-2, with their own code): of HTTP/1.1 when the client opens the page's first
# connection, of HTTP/1.0 when that connection is up, one round trip later. No law of file sizes fits both models with
# one clock: with the clock that fits HTTP/1.1, HTTP/1.0 is one round trip (0.1 s of 0.56 s) too slow at 8 webs without
# ftps (docs/evidence/rfc2415.md).
CONNECTING = pl.when(pl.col("http") == "1.1").then(0.0).otherwise(pl.col("connect_time_s"))
PAGE_DELAY = (pl.col("completion_time_s") - CONNECTING).median()
# In whole nanoseconds, which they were counted in: a sum of integers does not depend on the order of the rows.
BUSY, INTERVAL = ((1e9 * pl.col(name)).round().cast(pl.Int64).sum() for name in ("busy_s", "interval_s"))
GOODPUT = pl.col("delivered_bytes").sum() / 1e6
SEGMENTS = pl.col("bytes").median() / SEGMENT_BYTES
# Sizes are drawn alike in every cell: one column of the grid is enough, and medians are dear.
SIZES: At = {"http": ["1.0"], "ftps": [0], "iw": [1]}


def of(application: str) -> pl.Expr:
    """Rows of one application."""
    return pl.col("application") == application


SIZED = (pl.col("ftps") == 0) & (pl.col("iw") == 1) & (pl.col("http") == "1.0") & of("web")
PRIMARY, INLINE = SIZED & (pl.col("object") == 0), SIZED & (pl.col("object") > 0)


def page_delay(grid: str, name: str, application: str = "web") -> Quantity:
    """Median over the pages completed within the run."""
    return Quantity(name, "Median page delay", "s", PAGE_DELAY, DONE & of(application), "pages", digits=2, grid=grid)


def goodput(grid: str, name: str, application: str = "web", at: At | None = None) -> Quantity:
    """Bytes delivered in order to the application's clients within the run; MB are 10^6 bytes."""
    return Quantity(name, "Goodput", "MB", GOODPUT, of(application), grid=grid, at=at)


def bottleneck(grid: str, prefix: str) -> Iterator[Quantity]:
    """Share of the run in which the link was sending in the direction of the data, and drops of its queue."""
    dropped = 100 * pl.col("dropped_packets").sum() / pl.col("offered_packets").sum()
    used = "Utilization of the bottleneck"
    yield Quantity(f"{prefix}utilization", used, "percent", 100 * BUSY / INTERVAL, BOTTLENECK, "links", grid=grid)
    yield Quantity(f"{prefix}drops", "Packet drop rate", "percent", dropped, BOTTLENECK, "links", grid=grid)


FTPS: At = {"ftps": [1, 2, 3]}
FILE_DELAY = pl.col("completion_time_s").median()
BURST = 100 * (pl.col("first_flight_lost_segments") >= 2).mean()
# Of transfers in the RFC's own experiment.
of_base = partial(Quantity, grid="base")
QUANTITIES = (
    page_delay("base", "delay"),
    goodput("base", "goodput"),
    *bottleneck("base", ""),
    goodput("base", "ftp_goodput", "ftp", FTPS),
    of_base("file_delay", "Median file delay", "s", FILE_DELAY, DONE & of("ftp"), at=FTPS),
    of_base("burst_loss", "Web transfers that lost two or more of their first flight", "percent", BURST, of("web")),
    of_base("primary_size", "Median size of primary files", "segments", SEGMENTS, PRIMARY, at=SIZES),
    of_base("inline_size", "Median size of inline files", "segments", SEGMENTS, INLINE, at=SIZES),
    page_delay("alike", "alike_delay"),
    goodput("alike", "alike_goodput"),
    *bottleneck("alike", "alike_"),
    *(page_delay("split", f"split{iw}_delay", group) for iw, group in ((1, "web"), (3, "web_iw3"))),
    *(goodput("split", f"split{iw}_goodput", group) for iw, group in ((1, "web"), (3, "web_iw3"))),
    *bottleneck("split", "split_"),
    *(page_delay(variant, f"{variant}_delay") for variant in VARIANTS),
    *(quantity for variant in VARIANTS for quantity in bottleneck(variant, f"{variant}_")),
    page_delay("ftp_window_20", "wide_delay"),
    *bottleneck("ftp_window_20", "wide_"),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """Clients of a cell, and the other changes of its experiment."""
    webs, ftps = (
        map(int, labels["clients"].split("/")) if "clients" in labels else (labels["webs"], labels.get("ftps", 0))
    )
    document, changes = scenario.to_dict(), dict[str, Any]()
    web, ftp = document["application"]
    web["clients"], ftp["clients"] = webs, ftps
    chosen = [web, ftp] if ftps else [web]
    if grid == "split":
        changes["tcp.initial_window"] = 1
        web["clients"] = webs // 2
        chosen.append(deepcopy(web) | {"name": "web_iw3", "tcp": {"initial_window": 3}})
    elif grid == "reverse":
        sides, share = {"client_hosts": "right", "server_hosts": "left"}, labels["mirrored"]
        for group in tuple(chosen):
            if clients := group["clients"] * share // 100:
                chosen.append(deepcopy(group) | sides | {"name": f"mirrored_{group['name']}", "clients": clients})
    elif grid in RATE_FACTOR:
        changes["network"] = _scaled(document["network"], RATE_FACTOR[grid])
        for application in chosen:
            application["clients"] *= RATE_FACTOR[grid]
    elif grid == "red":
        changes["network.bottleneck.queue"] = document["network"]["bottleneck"]["queue"] | RED
    elif grid == "ftp_window_20":
        ftp["tcp"] = FTP_WINDOW_20
    elif grid == "long":
        changes["duration"] = "1440s"
    # At once: each change checks the whole scenario.
    built = scenario.replace_all([*changes.items(), ("application", chosen)])
    return own_delays(built, labels["delays"], 1) if grid == "access" else built


def own_delays(scenario: Scenario, draw: int, middle_ms: float) -> Scenario:
    """Each host with an access delay of its own, half to twice the middle, even in the logarithm.

    With one delay for all, packets meet the full queue always in the same phase.
    """
    rng, network = np.random.default_rng(draw), scenario.to_dict()["network"]
    for side in ("left", "right"):
        [host] = network[side]
        delays = middle_ms * ACCESS_FACTOR ** rng.uniform(-1, 1, host["count"])
        network[side] = [host | {"count": 1, "delay": f"{delay:.6f}ms"} for delay in delays]
    return scenario.replace("network", network)


def _scaled(network: dict[str, Any], factor: int) -> dict[str, Any]:
    """Rates and buffers times `factor`: the bottleneck's buffer keeps its 200 ms. Delays, file sizes and the window
    limit of 11 segments stay: they belong to distance, content and hosts, not to the link's rate.
    """
    for link in (network["bottleneck"], *network["left"], *network["right"]):
        link["rate"] = f"{int(BitsPerSecond(link['rate'])) * factor}bit"
        link["queue"]["limit"] = f"{int(Packets(link['queue']['limit'])) * factor}p"
    return network


STUDY = DeclaredStudy(__file__, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
