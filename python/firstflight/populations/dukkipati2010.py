"""The published data on the users of Google's two data centers of 2010, AvgDC and SlowDC, and its implications.

Sources: N. Dukkipati et al., "An Argument for Increasing TCP's Initial Congestion Window", 2010, Figure 5 (shares of
AvgDC's responses by round trip, bandwidth and bandwidth-delay product; `dukkipati2010_shares.csv`, read from the copy
in GitHub's jdubie/mininet-tcp-initial-cwnd, where they are printed above the bars); RFC 6928 section 10; CS244 2014.

The dependence of RTT and bandwidth is not published. The shares of their product are, and the product depends on
it: `bdp_shares` gives those of a Gaussian copula of the two marginals.
"""

import math
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight._native import normal_cdf

Points = list[list[float]]
"""A law's points: `[cumulative probability, value]`, the logarithm of the value straight between."""

SHARES = Path(__file__).parent / "dukkipati2010_shares.csv"
LEAST_RTT_S, MOST_RTT_S = 0.005, 6.0
"""Ends of the round trips, ours: nothing is nearer than 5 ms; the open bucket ends at twice its lower edge."""
LEAST_DOWN_BPS, MOST_DOWN_BPS = 28_800.0, 10_000_000.0
"""Ends of the bandwidths, ours: a telephone modem; the open bucket ends at twice its lower edge."""
DEPENDENCE = -0.63
"""Correlation of the normal scores of round trip and bandwidth, fitted to the shares of their product alone.

    python research/rfc6928_cluster_fit.py dependence
"""

# Tiers that were sold: a modem's 33.6 kbit/s, ADSL 256/64 and on to 10 Mbit/s with 1 up.
_UP_BPS = (
    (28_800, 28_800),
    (56_000, 33_600),
    (256_000, 64_000),
    (512_000, 128_000),
    (1_000_000, 256_000),
    (3_000_000, 512_000),
    (10_000_000, 1_000_000),
)


@cache
def edges(by: str) -> tuple[float, ...]:
    """Upper edges of Figure 5's buckets without the open one: `by` "rtt" (s), "down" (bits/s) or "bdp" (bytes)."""
    return tuple(_bars(by)["upper_edge"].to_list()[:-1])


@cache
def shares(by: str) -> tuple[float, ...]:
    """Shares of AvgDC's responses in the buckets of `by`, percent as printed (they add up to 99.99 or 100)."""
    return tuple(_bars(by)["share_percent"].to_list())


def _bars(by: str) -> pl.DataFrame:
    return pl.read_csv(SHARES.read_bytes(), schema_overrides={"upper_edge": pl.Float64}).filter(pl.col("by") == by)


def law(by: str, least: float, most: float) -> Points:
    """The distribution that has just the published shares of `by`; its ends are the caller's."""
    cumulated = np.cumsum(shares(by)) / sum(shares(by))
    values = [least, *edges(by), most]
    return [[0.0, least], *([float(p), v] for p, v in zip(cumulated[:-1], values[1:-1], strict=True)), [1.0, most]]


def rtt() -> Points:
    """AvgDC's round trips, s."""
    return law("rtt", LEAST_RTT_S, MOST_RTT_S)


def down() -> Points:
    """AvgDC's bandwidths, bits/s."""
    return law("down", LEAST_DOWN_BPS, MOST_DOWN_BPS)


def up(points: Points) -> Points:
    """The uplink of users whose downlink is `points`: as sold with it (bits/s); not published."""
    here, there = np.log(np.array(_UP_BPS, dtype=np.float64).T)
    return [[p, float(np.exp(np.interp(math.log(value), here, there)))] for p, value in points]


def quantile(points: Points, probability: float) -> float:
    """The value that a share `probability` of the users stays below."""
    p, values = np.array(points).T
    return float(np.exp(np.interp(probability, p, np.log(values))))


def share_below(points: Points, value: float) -> float:
    """The share of the users below `value`."""
    p, values = np.array(points).T
    return float(np.interp(math.log(value), np.log(values), p))


def bdp_shares(rtts: Points, downs: Points, correlation: float) -> tuple[float, ...]:
    """Shares of users (percent) in the buckets of the bandwidth-delay product, joined by a Gaussian copula.

    `correlation` is that of the normal scores, above -1 and below 1. Integrated numerically; no draw is made.
    """
    normal = NormalDist()
    score = np.linspace(-8, 8, 16_001)
    weight = np.exp(-score * score / 2)
    weight /= weight.sum()
    log_rtt = np.interp(np.frombuffer(normal_cdf(score)), *_logarithmic(rtts))
    p, log_down = _logarithmic(downs)
    below = [0.0]
    for edge in edges("bdp"):
        share = np.clip(np.interp(math.log(8 * edge) - log_rtt, log_down, p), 1e-300, 1 - 1e-16)
        scores = np.array([normal.inv_cdf(level) for level in share])
        given = np.frombuffer(normal_cdf((scores - correlation * score) / math.sqrt(1 - correlation**2)))
        below.append(float((weight * given).sum()))
    return tuple(float(100 * step) for step in np.diff([*below, 1.0]))


def _logarithmic(points: Points) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    p, values = np.array(points).T
    return p, np.log(values)


def distance(sampled: tuple[float, ...], published: tuple[float, ...]) -> float:
    """Share of the users, percent, that stand in another bucket: half the sum of the differences."""
    scale = 100 / sum(published)
    return sum(abs(ours - scale * theirs) for ours, theirs in zip(sampled, published, strict=True)) / 2


def empirical(points: Points) -> dict[str, Any]:
    """The points as a scenario's law."""
    return {"distribution": "empirical", "points": points}
