"""RFC 6928's experiment as an ensemble: parameters that it leaves open are drawn, and AvgDC's latencies with IW 3
select.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.populations import applications, avgdc
from firstflight.records import Run
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k
from firstflight.studies import rfc6928_cluster
from firstflight.studies.rfc6928_cluster import measure as m

USERS = 12_000
# Ranges of the second wave; docs/evidence/rfc6928-cluster-ensemble.md has those of the first.
ENSEMBLE = k.Ensemble(
    {
        # RFC 6928: 35% of Chrome's requests were on new connections, about one in three.
        "turns": k.Parameter("responses per connection", 1, 4, 3, whole=True),
        # RFC 6928 quotes testbeds from 40 packets on; measured home routers are beyond 100.
        "queue": k.Parameter("least queue, packets", 10, 150, 100, log=True),
        "buffer": k.Parameter("queues in time, times the assumed", 0.5, 4, 1, log=True),
        "joint": k.Parameter("correlation of RTT and bandwidth", -0.8, -0.3, -0.63),
        "lossy": k.Parameter("users with losses, times those of the population", 0, 3, 1.41),
        "service": k.Parameter("time that a server works at an answer, ms", 20, 250, 125),
        # The paper's Figure 9 has 9 kB, as CS244 2014 reads it.
        "size": k.Parameter("median of a response, bytes", 5000, 12000, 9000, log=True),
        "downloads": k.Parameter("users with a concurrent download", 0.001, 0.03, 0.01, log=True),
        "rto_min": k.Parameter("shortest timeout, s", 0.2, 1, 0.2),
    },
    64,
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The cell of `rfc6928-cluster`, with the member's setting."""
    of = ENSEMBLE.member(labels[k.MEMBER])
    turns = int(of["turns"])
    cell = {"population": m.AVGDC, "service": m.SEARCH, "iw": labels["iw"]}
    scenario = rfc6928_cluster.build("new" if turns == 1 else "stated", cell, scenario)
    size = applications.preset(m.SEARCH)["size"] | {"median": f"{of['size']:.0f}B"}
    changes = {
        "population.users": USERS,
        "population.min_buffer": f"{of['queue']:.0f}p",
        "population.buffer": {
            "distribution": "empirical",
            "points": [[share, of["buffer"] * seconds] for share, seconds in avgdc.BUFFER_S],
        },
        "population.dependence": avgdc.dependence(of["joint"]),
        "population.loss": avgdc.losses(of["lossy"] * avgdc.LOSSY_SHARE, avgdc.MOST_LOSS) if of["lossy"] else 0,
        f"application.{m.SEARCH}.service_time": f"{of['service']}ms",
        f"application.{m.SEARCH}.{'size' if turns == 1 else 'response'}": size,
        f"application.{m.BACKGROUND}.user_fraction": of["downloads"],
        "tcp.rto.minimum": f"{of['rto_min']}s",
    }
    if turns > 1:
        changes[f"application.{m.SEARCH}.count"] = turns
    return scenario.replace_all(changes.items())


def measured(run: Run) -> pl.LazyFrame:
    """Responses of every member, with the latency of the same response with IW 3."""
    members = sorted({int(cell[k.MEMBER]) for cell in run.cells})
    return pl.concat(
        [m.responses(run, {k.MEMBER: of}).with_columns(pl.lit(of).alias(k.MEMBER)) for of in members]
    ).lazy()


def means(name: str, by: str | None = None) -> Sequence[k.Quantity]:
    """Mean latency, and that of the same responses with IW 3."""
    buckets: Mapping[str, Sequence[str]] = {by: m.labels(by)} if by else {}
    return [
        k.Quantity(f"{name}_{kind}", title, "ms", pl.col(column).mean(), m.BOTH, measured, buckets, 0, partial=True)
        for kind, title, column in (("latency", "Mean", "latency_ms"), ("few", "With IW 3", "few_ms"))
    ]


BUCKETS = ("rtt", "down", "bdp")
QUANTITIES = (
    *means("all"),
    *(quantity for by in BUCKETS for quantity in means(by, by)),
    k.Quantity("resent", "Retransmission rate", "percent", k.RETRANSMITTED, None, measured, digits=2, partial=True),
)
# Standard deviations, relative; study.toml says where they are from.
MODEL, READ_MS, READ_POINTS = 0.15, 0.05, 0.3
LEAST_SHARE = 1.0
RFC = k.Source("RFC 6928 section 10")
WAVE = k.Source("this study, before its first wave", needs="value")


def baseline(q: k.Quantities) -> list[k.Number]:
    """Latencies with IW 3, as Figure 5 implies them."""
    numbers = []
    for by in BUCKETS:
        columns = (m.figure5(by, column) for column in ("share_percent", "gain_percent", "iw3_latency_ms"))
        for label, share, percent, latency in zip(m.labels(by), *columns, strict=True):
            if share >= LEAST_SHARE:
                deviation = latency * math.hypot(MODEL, READ_MS, READ_POINTS / percent)
                latencies = getattr(q, f"{by}_latency").sel({by: label, "iw": m.FEW}, drop=True)
                numbers.append(k.Number(f"{by} {label}", latencies, latency, deviation))
    return numbers


def gain(q: k.Quantities, name: str) -> xr.DataArray:
    """Of IW 10 over IW 3, percent, along `member` and buckets."""
    latency: xr.DataArray = getattr(q, f"{name}_latency")
    few: xr.DataArray = getattr(q, f"{name}_few")
    return 100 * (1 - (latency / few).sel(iw=m.MANY, drop=True))


def matched(q: k.Quantities) -> k.Matched:
    """The ensemble next to Figure 5, with the mean gain as the effect."""
    effect = k.named(gain(q, "all").isel(draw=0, drop=True), "gain", "Gain of IW 10 over IW 3", "percent")
    return k.Matched(ENSEMBLE, baseline(q), effect, m.SEARCH_GAIN[m.AVGDC][1])


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Published statements about the gain, for the compatible members; then the expectations for the ensemble."""
    of = matched(q)
    rtt, down = gain(q, "rtt"), gain(q, "down")
    rise = q.resent.sel(iw=m.MANY) - q.resent.sel(iw=m.FEW)

    def said(id: str, text: str, statistic: xr.DataArray, expected: Expectation, why: str = "") -> k.ClaimSpec:
        return of.judged(RFC.says(id, text, statistic, expected, why))

    turns = float(of.influence(of.distance).sel(parameter="turns"))
    width = float(of.effects.max() - of.effects.min()) if of.effects.size else math.nan
    return (
        said("gain", "IW 10 cuts web search's mean latency by 11.7%.", of.effect,
             k.near(of.published, "percent", 3.5), "As `rfc6928-cluster` judges it."),
        said("low-rtt", "RTTs up to 100 ms gain about 5% (50 to 100 ms).", rtt.sel(rtt=m.labels("rtt")[2]),
             k.near(5, "percent", 2.5), "To the next whole five percent."),
        said("high-rtt", "RTTs of 200 to 500 ms gain more than those of 50 to 100 ms.",
             rtt.sel(rtt=m.labels("rtt")[4]) - rtt.sel(rtt=m.labels("rtt")[2]), k.above(0, "pp")),
        said("low-bandwidth", "Bandwidths of 56 to 256 kbit/s gain 10 to 20%.", down.sel(down=m.labels("down")[1]),
             k.between(10, 20, "percent", 0.5), "Whole tens in the text."),
        said("cost", "The retransmission rate of web search rises by less than 0.5 points.", rise,
             k.between(-1, 0.5, "pp"), "As printed."),
        WAVE.says("some-are-compatible", "A tenth of the members or more is compatible with IW 3's latencies.",
                  xr.DataArray(of.share), k.at_least(10, "percent"), "Fewer members do not show a spread."),
        WAVE.says("latencies-do-not-tell-the-gain",
                  "IW 3's latencies leave the gain open by 10 points or more (range of the compatible members).",
                  xr.DataArray(width), k.at_least(10, "pp"), "Ten points are about the gain itself."),
        WAVE.says("reuse-decides", "Responses per connection decide about the gain (less its rank correlation).",
                  xr.DataArray(-turns), k.at_least(0.5), "A quarter of the variance."),
    )  # fmt: skip


def answer(q: k.Quantities) -> Sequence[str]:
    """The prediction, the deciding parameters, and the data that rule members out."""
    return matched(q).answer(
        "RFC 6928's experiment leaves open", "AvgDC's latencies with IW 3", "IW 10 gains web search", "latency at "
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: matched(q).tables(),
    lambda q: [
        matched(q).figure(
            "RFC 6928: the gain by IW 10 in settings that do and do not reproduce IW 3",
            "Each point is one setting of the open parameters. To the right of the line it misses a latency with IW 3.",
        )
    ],
    answer,
    build,
)
