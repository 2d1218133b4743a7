"""Start-up schemes side by side: time, retransmissions, and the cost to others."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.scenario import Scenario
from firstflight.studies import kernel as k
from firstflight.studies.startup_schemes import beginning
from firstflight.studies.startup_schemes.beginning import FAST

OWN, OTHER = k.of("own"), k.of("other")
REQUEST = (pl.col("completion_time_s") - pl.col("handshake_time_s")).mean()
SEGMENT_BITS = 8 * 1500
NETWORKS, TESTBED, HOMES, BURSTS = "networks", "testbed", "homes", "bursts"
QUANTITIES = (
    k.Quantity("time", "Time", "ms", k.MEAN_MS, OWN & k.DONE, digits=0, grid=NETWORKS),
    k.Quantity("again", "Retransmitted", "percent", k.RETRANSMITTED, OWN, digits=2, grid=NETWORKS),
    k.Quantity("other", "Time of others' 20 kB", "ms", k.MEAN_MS, OTHER & k.DONE, digits=0, grid=NETWORKS),
    k.Quantity(
        "queue",
        "Longest queue",
        "packets",
        pl.col("queue_max_packets").max(),
        pl.col("link").cast(pl.String) == "spokes[0]",
        "links",
        digits=0,
        grid=NETWORKS,
    ),
    k.Quantity("testbed_time", "Time from the request on", "s", REQUEST, k.DONE, digits=2, grid=TESTBED),
    k.Quantity("testbed_lost", "Lost", "packets", pl.col("retransmissions").sum(), digits=0, grid=TESTBED),
    k.Quantity(
        "home_time", "Mean logarithm of the time", "", pl.col("completion_time_s").log().mean(), k.DONE, grid=HOMES
    ),
    k.Quantity("home_again", "Retransmitted", "percent", k.RETRANSMITTED, digits=2, grid=HOMES),
    k.Quantity("burst_time", "Time", "ms", k.MEAN_MS, OWN & k.DONE, grid=BURSTS),
    k.Quantity("burst_again", "Retransmitted", "percent", k.RETRANSMITTED, OWN, digits=2, grid=BURSTS),
    *beginning.QUANTITIES,
)
SUSS = k.Source("SUSS (SIGCOMM 2024)")
FIGURES = k.Source("SUSSdeveloper/HyStartPP:evaluation/index.html", needs="value")
PUBLISHED = {"no HyStart": (1.50, 1105), "IW 10": (1.29, 40), "HyStart++": (1.50, 704), "SUSS": (1.11, 35)}


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The state saved by Careful Resume: the bandwidth-delay product of the line, and its RTT, from a lone download."""
    if grid == beginning.BEGIN:
        scenario = beginning.alone(scenario)
    if labels.get("scheme") != "Careful Resume":
        return scenario
    link = scenario.to_plan()["network"]["spokes"][0]["forward"]
    rtt_ns = 2 * link["delay_ns"]
    saved = max(2, round(link["rate_bps"] * rtt_ns / 1e9 / SEGMENT_BITS))
    startup = {"scheme": "careful_resume", "saved_window_segments": saved, "saved_rtt": f"{rtt_ns}ns"}
    return scenario.replace("application.own.server_tcp.startup", startup)


def at_home(q: k.Quantities) -> xr.DataArray:
    """Time saved in British homes since IW 10, percent of the geometric mean."""
    saved = 100 * (1 - math.e ** (q.home_time - q.home_time.sel(scheme="IW 10", drop=True)))
    return k.named(saved, "home_saved", "Time saved since IW 10", "percent")


def testbed(q: k.Quantities) -> list[k.ClaimSpec]:
    """The published figures of one download."""
    why = "Ten percent: a kernel's tick, nginx and the clock's beginning."
    loose = "A fifth of it or ten packets, whichever is more."
    specs = []
    for scheme, (time, lost) in PUBLISHED.items():
        word = "hystart" if scheme == "IW 10" else scheme.lower().replace(" ", "-").replace("++", "-plus-plus")
        name = "HyStart" if scheme == "IW 10" else scheme
        of_time, of_lost = q.testbed_time.sel(scheme=scheme, size="5MB"), q.testbed_lost.sel(scheme=scheme, size="20MB")
        specs += [
            FIGURES.says(
                f"testbed-time-{word}", f"5 MB take {time} s with {name}.", of_time, k.near(time, "s", 0.1 * time), why
            ),
            FIGURES.says(
                f"testbed-lost-{word}",
                f"Of 20 MB {lost} packets are lost with {name}.",
                of_lost,
                k.near(lost, "packets", max(0.2 * lost, 10)),
                loose,
            ),
        ]
    return specs


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The testbed's figures, statements of the sources, and hypotheses."""
    gain, harm = -k.change(q.time, scheme="IW 10"), k.change(q.other, scheme="IW 10")
    notice = "A user may notice 5%."
    burst = 100 * (1 - q.burst_time.sel(start="at once") / q.burst_time.sel(start="paced"))
    homes = at_home(q)
    return (
        *testbed(q),
        SUSS.says(
            "suss-is-a-fifth-faster",
            "SUSS is over 20% faster below 5 MB and above 50 ms (least of LTE and GEO, mean of 100 kB to 2 MB).",
            gain.sel(scheme="SUSS", network=["LTE", "GEO"], size=["100kB", "500kB", "2MB"]).mean("size").min("network"),
            k.above(20, "percent"),
            "The authors give this number.",
        ),
        k.Source("RFC 9406").says(
            "hystart-plus-plus-halves-retransmissions",
            "HyStart++ retransmits half as much as slow start without an exit (5 MB, mean of the networks).",
            q.again.sel(scheme="HyStart++", size="5MB").mean("network")
            / q.again.sel(scheme="no HyStart", size="5MB").mean("network"),
            k.at_most(0.5, "ratio"),
            "The RFC's number, which the testbed's values above do not confirm.",
        ),
        k.Source("RFC 6928 section 4 (VH97)").says(
            "ten-need-no-pacing",
            "Pacing is unnecessary for moderate bursts: ten segments back to back are no slower than paced (least "
            "gain).",
            burst.sel(iw=10).min("queue"),
            k.at_least(0, "percent"),
        ),
        k.OURS.says(
            "large-bursts-need-it",
            "64 segments back to back into 20 packets are slower than paced.",
            burst.sel(iw=64, queue=20),
            k.below(0, "percent"),
            "A direction only: half of them are dropped.",
        ),
        k.Source("RFC 6928 section 11 (Sch08, Sch11)").says(
            "ten-is-fair",
            "IW 10 is fair: next to it others are at most 5% slower than next to IW 3 (largest difference).",
            k.change(q.other, scheme="IW 3").sel(scheme="IW 10").max(["network", "size"]),
            k.at_most(5, "percent"),
            notice,
        ),
        *(
            k.OURS.says(
                f"{scheme.lower().replace(' ', '-')}-spares-others",
                f"Next to {scheme} others are at most 5% slower than next to IW 10 (largest, any network and size).",
                harm.sel(scheme=scheme).max(["network", "size"]),
                k.at_most(5, "percent"),
                notice,
            )
            for scheme in FAST
        ),
        k.OURS.says(
            "jump-start-harms-where-it-guesses-wrong",
            "On the congested network Jump-Start retransmits at least 10% of 500 kB.",
            q.again.sel(scheme="Jump-Start", network="congested", size="500kB"),
            k.at_least(10, "percent"),
            "500 kB are 345 segments; link and queue hold 50.",
        ),
        k.OURS.says(
            "memory-beats-guessing",
            "Careful Resume is faster than Rapid Start and SUSS for 500 kB (least gain over the better, LTE and GEO).",
            (gain.sel(scheme="Careful Resume") - gain.sel(scheme=["Rapid Start", "SUSS"]).max("scheme"))
            .sel(size="500kB", network=["LTE", "GEO"])
            .min("network"),
            k.above(0, "pp of IW 10's time"),
            "Careful Resume knows the path; half of the window is sent in the second round trip.",
        ),
        k.OURS.says(
            "short-responses-gain-little",
            "Of 20 kB no scheme that begins with ten segments saves 10% of IW 10's time (largest, any network).",
            gain.sel(scheme=["paced", "SUSS", "Careful Resume"], size="20kB").max(["scheme", "network"]),
            k.at_most(10, "percent"),
            "14 segments: ten in the first round trip, and the rest in the second with or without.",
        ),
        k.OURS.says(
            "rapid-start-pays-in-homes",
            "In British homes of 2023 Rapid Start makes 100 kB at least 10% faster than IW 10.",
            homes.sel(scheme="Rapid Start"),
            k.at_least(10, "percent"),
            "One round trip of five.",
        ),
        k.OURS.says(
            "at-little-cost",
            "In British homes of 2023 Rapid Start retransmits at most 0.5 points more of 100 kB than IW 10.",
            q.home_again.sel(scheme="Rapid Start") - q.home_again.sel(scheme="IW 10"),
            k.at_most(0.5, "pp"),
            "The limit that RFC 6928 took.",
        ),
        *beginning.claims(q),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Who is fast, and who pays."""
    gain, harm = (-k.change(q.time, scheme="IW 10")).isel(draw=0), k.change(q.other, scheme="IW 10").isel(draw=0)
    of = gain.sel(scheme=FAST, size="500kB").mean("network")
    worst = harm.sel(scheme=FAST).max(["network", "size"])
    savings = ", ".join(f"{name} {float(of.sel(scheme=name)):.0f}%" for name in FAST)
    paid = ", ".join(f"{name} {float(worst.sel(scheme=name)):+.0f}%" for name in FAST)
    call = beginning.call_cost(q).isel(draw=0).max("network")
    lost = ", ".join(f"{name} {float(call.sel(scheme=name)):.1f} MOS" for name in FAST)
    return (
        f"Time saved over IW 10 (500 kB, mean of seven networks): {savings}.",
        f"Concurrent responses of 20 kB of others change by at most: {paid}.",
        f"A call next to responses of 2 MB loses at most, against IW 10: {lost}.",
    )


def saved(q: k.Quantities) -> xr.DataArray:
    """Time saved since IW 10."""
    return k.named(-k.change(q.time, scheme="IW 10"), "saved", "Time saved since IW 10", "percent", 0)


def harmed(q: k.Quantities) -> xr.DataArray:
    """Others' time."""
    return k.named(
        k.change(q.other, scheme="IW 10"), "harm", "Others' time compared with that next to IW 10", "percent", 0
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("saved", "Time saved since IW 10", "Means.", [saved(q)], across="size"),
        k.table("harm", "Cost to others", "Change of the time of 20 kB.", [harmed(q)], across="size"),
        k.table("queues", "Longest queue", "", [q.queue], across="size"),
        k.table("testbed", "The testbed", "", [q.testbed_time, q.testbed_lost], across="size"),
        k.table("homes", "British homes of 2023", "", [at_home(q), q.home_again], across="scheme"),
        k.table("bursts", "Back to back or paced", "100 kB.", [q.burst_time, q.burst_again], across="queue"),
        *beginning.tables(q),
    ],
    lambda q: [
        k.intervals(
            saved(q).sel(scheme=["IW 3", "IW 32", *FAST], size=["20kB", "500kB", "5MB"], network=["LTE", "GEO"]),
            "Time saved by each scheme, by network and size",
            "Compared with ten segments back to back; slower to the left.",
            "scheme",
            "size",
            "network",
        ),
        k.lines(
            q.burst_time.sel(iw=[10, 32, 64]),
            "A window back to back or paced, by queue length",
            "100 kB over 30 Mbit/s, 30 ms away.",
            "queue",
            "start",
            "iw",
        ),
        beginning.figure(q),
    ],
    answer,
    build,
)
