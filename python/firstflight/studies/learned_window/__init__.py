"""Learned initial windows: six rules, three keys, aging, and the times of a published campaign."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
import xarray as xr

from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

DOWNLOAD, OTHERS, CLIENT = k.of("download"), k.of("others"), pl.col("client")
HOSTS = {"fast": CLIENT >= 5, "slow": CLIENT.is_between(3, 4), "radio": CLIENT <= 2}
IW, TIME = pl.col("initial_window_segments").cast(pl.Float64), 1e3 * pl.col("completion_time_s")
# Of 900 s: the first learning phase is over. Behind the change of a path: the first minute.
LATE, CHANGED = pl.col("start_s") > 450, pl.col("start_s").is_between(600, 660)
LOST = 100 * (pl.col("first_flight_lost_segments") > 0).mean()
SHARED = {"/32": 1, "/24": 4, "AS": 8}
STATIC = ("static 10", "static 24", "All10")


def of_hosts(kind: str, where: pl.Expr) -> list[k.Quantity]:
    """The quantities of one kind of hosts."""
    mine, late = DOWNLOAD & where, DOWNLOAD & LATE & where
    return [
        k.Quantity(f"time_{kind}", f"Time, {kind}", "ms", TIME.mean(), k.DONE & mine, grid="hosts"),
        k.Quantity(f"iw_{kind}", f"IW, {kind}", "segments", IW.mean(), late, grid="hosts"),
        k.Quantity(f"spread_{kind}", f"Spread of IW, {kind}", "", IW.std() / IW.mean(), late, grid="hosts", digits=2),
        k.Quantity(f"lost_{kind}", f"Loss in the first flight, {kind}", "percent", LOST, late, grid="hosts"),
        k.Quantity(
            f"others_{kind}", f"Time of others, {kind}", "ms", TIME.mean(), k.DONE & OTHERS & where, grid="hosts"
        ),
    ]


QUANTITIES = (
    k.Quantity("median", "Median time", "ms", TIME.median(), k.DONE, grid="campaign"),
    *(quantity for kind, where in HOSTS.items() for quantity in of_hosts(kind, where)),
    k.Quantity(
        "before", "Time before the change", "ms", TIME.mean(), k.DONE & (pl.col("start_s") < 600), grid="change"
    ),
    k.Quantity("iw_after", "IW after the change", "segments", IW.mean(), CHANGED, grid="change"),
    k.Quantity("lost_after", "Loss in the first flight after the change", "percent", LOST, CHANGED, grid="change"),
)
CAMPAIGN = k.Source("SashaLuna/tesi-ebpf-initcwnd, 50 Mbit/s", needs="value")
LEARNED = ["ewma", "loss-aware", "loss-aware 150%", "RFC 9040"]
# Against the window of today, percent.
change = partial(k.change, policy="static 10")


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The users who share a memory, and its duration, for the policies that have one."""
    window = "application.download.server_tcp.initial_window"
    if grid == "campaign" or labels["policy"] in STATIC:
        return scenario
    if grid == "hosts":
        return scenario.replace(f"{window}.hosts", SHARED[labels["key"]])
    return scenario.replace(f"{window}.lifetime", f"{labels['lifetime_s']}s")


def saved(q: k.Quantities, policy: str, size_kb: int) -> xr.DataArray:
    """Part of static 10's median time in the campaign; the pooled median is that of the middle RTT."""
    median = q.median.sel(rtt=28.2, size_kb=size_kb)
    return 100 * (1 - median.sel(policy=policy) / median.sel(policy="static 10"))


def campaign(q: k.Quantities) -> list[k.ClaimSpec]:
    """The campaign's measurements where nothing was lost."""
    times = {("static 10", 30): 86.2, ("static 24", 30): 59.3, ("static 10", 200): 152.9, ("static 24", 200): 123.5}
    savings = {("static 24", 30): 31, ("ewma", 30): 31, ("static 24", 200): 19}
    return [
        CAMPAIGN.says(
            f"campaign-time-{policy.replace(' ', '-')}-{size}",
            f"{size} kB take {time} ms with {policy} (median).",
            q.median.sel(rtt=28.2, size_kb=size, policy=policy),
            k.near(time, "ms", 0.05 * time),
            "5%: netem's timers are late by up to 1 ms per packet and direction.",
        )
        for (policy, size), time in times.items()
    ] + [
        CAMPAIGN.says(
            f"campaign-saves-{policy.replace(' ', '-')}-{size}",
            f"{policy} saves {part}% of static 10's median time at {size} kB.",
            saved(q, policy, size),
            k.near(part, "percent", 3),
            "Three points: a tenth of the larger saving.",
        )
        for (policy, size), part in savings.items()
    ]


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The campaign's times, and hypotheses."""
    per_address = {"key": "/32"}
    ewma, aware = {"policy": "ewma"}, {"policy": "loss-aware"}
    disc = {"policy": "loss-aware 150%"}
    slow, radio = q.lost_slow.sel(per_address), q.iw_radio.sel(per_address)
    gain = change(q.time_fast)
    return (
        *campaign(q),
        k.OURS.says(
            "learning-gains-on-fast-hosts",
            "With a key of one address each learning rule saves at least 10% of the time on fast hosts (worst rule).",
            gain.sel(per_address).sel(policy=LEARNED).max("policy"),
            k.at_most(-10, "percent"),
            "One round trip of three or four.",
        ),
        k.OURS.says(
            "ewma-harms-slow-hosts",
            "The average of the largest cwnd loses in at least 5 pp more first flights on slow hosts than IW 10.",
            slow.sel(ewma) - slow.sel(policy="static 10"),
            k.at_least(5, "pp"),
            "cwnd overshoots a queue of 15 packets before it is reduced.",
        ),
        k.OURS.says(
            "a-loss-rule-halves-the-harm",
            "The loss-aware rule has at most half of ewma's first-flight losses on slow hosts.",
            slow.sel(aware) / slow.sel(ewma),
            k.at_most(0.5),
            k.FIXED,
        ),
        k.OURS.says(
            "fallbacks-are-wrong-on-radio",
            "With 0.3% random loss the loss-aware rule keeps less than 70% of ewma's window (wrong fallbacks).",
            radio.sel(aware) / radio.sel(ewma),
            k.at_most(0.7),
            "A fifth of the connections lose something at random; each halves the estimate.",
        ),
        k.Source("SashaLuna/tesi-ebpf-initcwnd, on 1 MB: 85 against 47 segments").says(
            "the-discriminant-keeps-the-window",
            "With the discriminant the window on radio hosts is larger than with the plain loss rule (difference).",
            radio.sel(disc) - radio.sel(aware),
            k.above(0, "segments"),
        ),
        k.OURS.says(
            "nat-harms-slow-hosts",
            "Behind one NAT with fast hosts (/24) ewma's first-flight losses on slow hosts rise.",
            q.lost_slow.sel(ewma).sel(key="/24") - slow.sel(ewma),
            k.above(0, "pp"),
        ),
        k.OURS.says(
            "one-as-loses-the-gain",
            "With one memory for all the loss-aware rule keeps at most half of its gain on fast hosts.",
            gain.sel(aware).sel(key="AS") / gain.sel(aware).sel(per_address),
            k.at_most(0.5),
            "Slow and radio hosts halve the window for all.",
        ),
        k.OURS.says(
            "ewma-settles",
            "On fast hosts ewma's window converges: in the second half its spread is less than 20% of its mean.",
            q.spread_fast.sel(per_address).sel(ewma),
            k.at_most(0.2),
            "Objects differ in size, and the sample is capped by it; this may fail.",
        ),
        k.OURS.says(
            "the-loss-rule-oscillates",
            "On radio hosts the loss-aware window spreads more than ewma's (difference).",
            q.spread_radio.sel(per_address).sel(aware) - q.spread_radio.sel(per_address).sel(ewma),
            k.above(0),
        ),
        k.OURS.says(
            "one-window-for-all-hurts-fast-hosts",
            "All10's single window, driven down by slow hosts, makes fast hosts slower than IW 10 (change of time).",
            gain.sel(per_address).sel(policy="All10"),
            k.above(0, "percent"),
            "A direction only: more than 5% of all first flights lose.",
        ),
        k.OURS.says(
            "others-hardly-suffer",
            "Others on slow hosts are at most 5% slower next to the loss-aware rule than next to IW 10.",
            change(q.others_slow).sel(per_address).sel(aware),
            k.at_most(5, "percent"),
            k.FIXED,
        ),
        k.OURS.says(
            "a-short-lifetime-forgets-the-old-path",
            "A lifetime of 5 s has fewer first-flight losses than one of an hour in the minute after a path slowed "
            "down (ewma, difference).",
            q.lost_after.sel(ewma).sel(lifetime_s=5) - q.lost_after.sel(ewma).sel(lifetime_s=3600),
            k.below(0, "pp"),
            "A direction only; connections arrive every 10 s on average, so most find no entry.",
        ),
        k.OURS.says(
            "and-forgets-the-gain",
            "A lifetime of 5 s costs at least half of the gain before the change.",
            change(q.before).sel(ewma).sel(lifetime_s=5) / change(q.before).sel(ewma).sel(lifetime_s=3600),
            k.at_most(0.5),
            "60% of the gaps are longer than 5 s.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Gain, harm, keys."""
    per_address = {"key": "/32", "draw": 0}
    gain, lost, iw = change(q.time_fast).sel(per_address), q.lost_slow.sel(per_address), q.iw_radio.sel(per_address)

    def of(array: xr.DataArray, policy: str) -> float:
        return float(array.sel(policy=policy))

    def part(key: str) -> str:
        return f"{float(change(q.time_fast).sel(policy='loss-aware', draw=0, key=key)):+.0f}"

    return (
        f"With a memory per address, downloads on fast hosts change by {of(gain, 'ewma'):+.0f}% with ewma, "
        f"{of(gain, 'loss-aware'):+.0f}% with the loss-aware rule and {of(gain, 'static 24'):+.0f}% with a static IW "
        f"24, against IW 10; first flights to slow hosts lose segments in {of(lost, 'ewma'):.0f}, "
        f"{of(lost, 'loss-aware'):.0f} and {of(lost, 'static 24'):.0f}% of connections "
        f"({of(lost, 'static 10'):.0f}% with IW 10).",
        f"With 0.3% random loss the loss-aware rule falls back to {of(iw, 'loss-aware'):.0f} segments, "
        f"{of(iw, 'loss-aware 150%'):.0f} with the discriminant; ewma has {of(iw, 'ewma'):.0f}.",
        f"A memory for four neighboring hosts changes the loss-aware rule's gain from {part('/32')} to "
        f"{part('/24')}%, one for all to {part('AS')}%.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("campaign", "The campaign's path", "Medians, 15 downloads.", [q.median], across="policy"),
        *(
            k.table(
                kind,
                f"{kind.capitalize()} hosts",
                "Means; IW, its spread and losses in the second half.",
                [getattr(q, f"{name}_{kind}") for name in ("time", "iw", "spread", "lost", "others")],
                across="key",
            )
            for kind in HOSTS
        ),
        k.table(
            "change", "A path that slows down", "Means.", [q.before, q.iw_after, q.lost_after], across="lifetime_s"
        ),
    ],
    lambda q: [
        k.scatter(
            q.lost_slow,
            q.time_fast,
            "Time on fast hosts against losses of slow ones",
            "By policy and key of the memory: who shares a learned window. Left is gain, up is harm.",
            color="policy",
            columns="key",
            base=0,
            linear_within=1,
        )
    ],
    answer,
    build,
)
