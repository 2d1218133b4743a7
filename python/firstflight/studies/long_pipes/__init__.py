"""Long fat pipes and random loss: the utilization of each path by each congestion control, and the share left to
Reno.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

DURATION_S = 60
GOODPUT = 8e-6 / DURATION_S * pl.col("delivered_bytes").sum()
APPLICATION, LINK = (pl.col(name).cast(pl.String) for name in ("application", "link"))


def of_grid(prefix: str, grid: str) -> Iterator[k.Quantity]:
    """Goodput, retransmissions and queue of the download."""
    is_download = k.of("download")
    yield k.Quantity(f"{prefix}goodput", "Goodput", "Mbit/s", GOODPUT, is_download, grid=grid, digits=2)
    yield k.Quantity(f"{prefix}again", "Retransmitted", "percent", k.RETRANSMITTED, is_download, grid=grid, digits=3)
    waiting = k.MEAN_QUEUE
    yield k.Quantity(f"{prefix}queue", "Mean queue", "packets", waiting, LINK == "links[0]", "links", grid=grid)


QUANTITIES = (
    *of_grid("clean_", "clean"),
    *of_grid("", "long"),
    *of_grid("radio_", "radio"),
    *of_grid("beside_", "rival"),
    k.Quantity("rival", "Goodput of Reno next to it", "Mbit/s", GOODPUT, k.of("rival"), grid="rival", digits=2),
)
TALK = k.Source("Thalheim's talk")


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """Rare losses of long pipes, and the Reno flow where it is meant."""
    if grid == "long":
        scenario = scenario.replace("network.links[0].loss", 1e-5)
    return scenario if grid == "rival" else scenario.replace("application", scenario.to_dict()["application"][:1])


def against(goodput: xr.DataArray, control: str, others: list[str]) -> xr.DataArray:
    """Goodput of `control` over that of the best of `others`."""
    return goodput.sel(control=control, drop=True) / goodput.sel(control=others).max("control")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The talk's two recommendations, and hypotheses."""
    long, radio = q.goodput.sel(rtt_ms=300), q.radio_goodput.sel(loss_percent=1.0)
    short = against(q.clean_goodput, "cubic", ["reno"]).sel(rtt_ms=20)
    left = (q.rival / q.rival.sel(control="reno")).sel(path="100 Mbit/s, 100 ms")
    beside = (q.beside_goodput / q.beside_goodput.sel(control="reno")).sel(path="100 Mbit/s, 100 ms")

    return (
        TALK.says(
            "cubic-for-long-pipes",
            "On a long fat pipe CUBIC has more goodput than Reno (300 ms, 0.001% loss; least ratio by queue).",
            against(long, "cubic", ["reno"]).min("queue_bdp"),
            k.above(1, "ratio"),
        ),
        TALK.says(
            "cubic-best-of-four",
            "On a long fat pipe CUBIC has the most goodput of the four (300 ms, 0.001% loss; least ratio by queue).",
            against(long, "cubic", ["reno", "westwood", "vegas"]).min("queue_bdp"),
            k.above(1, "ratio"),
        ),
        TALK.says(
            "vegas-for-wireless",
            "Under random loss of 1% Vegas has more goodput than Reno and CUBIC (least ratio by RTT).",
            against(radio, "vegas", ["reno", "cubic"]).min("rtt"),
            k.above(1, "ratio"),
        ),
        k.OURS.says(
            "westwood-rather",
            "Under random loss of 1% Westwood+, made for wireless, has more goodput than Vegas (least ratio by RTT).",
            against(radio, "westwood", ["vegas"]).min("rtt"),
            k.above(1, "ratio"),
        ),
        k.OURS.says(
            "bbr-ignores-loss",
            "Under random loss of 1% BBR has at least twice the goodput of any other (least ratio by RTT).",
            against(radio, "bbr", ["reno", "cubic", "westwood", "vegas"]).min("rtt"),
            k.at_least(2, "ratio"),
            k.FIXED,
        ),
        k.OURS.says(
            "no-matter-on-short-pipes",
            "On a short pipe without loss CUBIC and Reno do not differ (20 ms, mean ratio by queue).",
            short.mean("queue_bdp"),
            k.near(1, "ratio", 0.05),
            "The tolerance of 5% was fixed before the first run.",
            needs="value",
        ),
        k.OURS.says(
            "bbr-takes-from-reno",
            "A Reno flow next to BBR has less than half of its goodput next to Reno (100 Mbit/s, 100 ms).",
            left.sel(control="bbr"),
            k.below(0.5, "ratio"),
            k.FIXED,
        ),
        k.OURS.says(
            "vegas-yields-to-reno",
            "Vegas next to Reno has less than half of Reno's goodput (100 Mbit/s, 100 ms).",
            beside.sel(control="vegas"),
            k.below(0.5, "ratio"),
            k.FIXED,
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Long pipes, radio, and the concurrent Reno flow."""
    long = q.goodput.sel(rtt_ms=300, queue_bdp=1.0, draw=0)
    radio = q.radio_goodput.sel(loss_percent=1.0, rtt="40 ms", draw=0)
    left = q.rival.sel(path="100 Mbit/s, 100 ms", draw=0)

    def each(of: xr.DataArray) -> str:
        titles = of["control"].attrs["titles"]
        return ", ".join(f"{titles[str(name)]} {float(of.sel(control=name)):.1f}" for name in of["control"].values)

    return (
        f"Goodput in Mbit/s at 100 Mbit/s, an RTT of 300 ms and one loss in 100,000 packets: {each(long)}.",
        f"At 10 Mbit/s, 40 ms and 1% random loss: {each(radio)}.",
        f"Goodput of a Reno flow at 100 Mbit/s and 100 ms next to one flow of each: {each(left)}.",
    )


def shown(goodput: xr.DataArray, name: str, rate: float) -> xr.DataArray:
    """In percent of the link."""
    return k.named(100 * goodput / rate, name, "Goodput", "% of the link", 0)


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table(
            "clean",
            "Long fat pipes without loss",
            "100 Mbit/s.",
            [q.clean_goodput, q.clean_queue, q.clean_again],
            across="control",
        ),
        k.table(
            "long",
            "Long fat pipes",
            "100 Mbit/s, a loss in 100,000 packets.",
            [q.goodput, q.queue, q.again],
            across="control",
        ),
        k.table("radio", "Radio", "10 Mbit/s.", [q.radio_goodput, q.radio_queue, q.radio_again], across="control"),
        k.table("rival", "Next to a Reno flow", "Both together.", [q.beside_goodput, q.rival, q.beside_queue]),
    ],
    lambda q: [
        k.lines(
            shown(q.goodput, "long", 100),
            "Long fat pipes: who fills 100 Mbit/s",
            "Goodput over a minute with a loss in 100,000 packets. A panel per queue, bandwidth-delay products.",
            "rtt_ms",
            "control",
            columns="queue_bdp",
        ),
        k.lines(
            shown(q.radio_goodput, "radio", 10),
            "Radio: who fills 10 Mbit/s under random loss",
            "Goodput over a minute. A panel per RTT.",
            "loss_percent",
            "control",
            columns="rtt",
        ),
    ],
    answer,
    build,
)
