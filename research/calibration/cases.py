"""The cases of the calibration: a sample with a known truth, drawn each time, and the question put to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.analysis.ab.aggregates import of_aggregates
from firstflight.analysis.ab.buckets import by_bucket
from firstflight.analysis.ab.compare import compare, compare_rate
from firstflight.analysis.ab.comparison import Comparison
from firstflight.analysis.ab.contrast import of_samples
from firstflight.analysis.ab.planning import minimum_detectable_effect, pilot_of_one_arm
from firstflight.analysis.ab.resampling import Blocks
from firstflight.analysis.ab.sample import ArmRows, Design, TwoArms
from firstflight.analysis.ab.statistic import Quantile, Ratio, Statistic, share_of
from firstflight.analysis.intervals import CONFIDENCE, Estimate
from firstflight.records.schema import GAMMA
from research.calibration.laws import Latency

Values = npt.NDArray[np.float64]
Kind = Literal["coverage", "false alarms", "power"]
RESAMPLES = 399
NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Two-sided 95% quantile of the normal law, in standard deviations."""
LAW = Latency()
DESIGN = Design(arm="iw", baseline=3, treatment=10, unit=["user"], resamples=RESAMPLES)


@dataclass(frozen=True)
class Case:
    """`once` draws a sample by its seed and says of each figure whether its interval covers the truth (coverage),
    whether the arms were distinguished (false alarms: in truth they are alike; power: they differ). `units`: of each
    arm.
    """

    name: str
    kind: Kind
    units: int
    once: Callable[[int], dict[str, bool]]


def frame(base: Values, treat: Values, **columns: Values) -> pl.DataFrame:
    """Both arms, one row a unit; `columns` are the same in both."""
    return pl.concat(
        pl.DataFrame({"iw": np.full(len(times), iw), "user": np.arange(len(times)), "time_s": times, **columns})
        for iw, times in ((3, base), (10, treat))
    )


def compared(base: Values, treat: Values, statistic: str, paired: bool, seed: int) -> Comparison:
    """`compare` of one row a unit, without the tables: most of a repetition's time would go there.

    `seed` draws the resamples, others for each repetition: the same few hundred would be off in the same way each time.
    """
    p = share_of(statistic)
    count = len(base)
    one, other = (
        ArmRows(
            np.where(np.isnan(times), np.inf, times)[:, None],
            np.ones(count),
            np.arange(count),
            np.zeros(count, int),
            count,
            0,
            0,
            0,
        )
        for times in (base, treat)
    )

    def make(rows: ArmRows, blocks: Blocks, weight: Values) -> Statistic:
        return Ratio(rows, blocks, weight) if p is None else Quantile(rows, blocks, weight, p)

    sample = TwoArms(one, other, paired, ("",), "user", "user", ("iw 3", "iw 10"))
    return of_samples([sample], make, statistic, replace(DESIGN, paired=paired, seed=seed))[0]


def covered(found: Comparison, base: float, treat: float) -> dict[str, bool]:
    """Whether each interval covers the truth; an interval that is missing does not."""
    truth = {"baseline": base, "difference": treat - base, "percent": 100 * (treat / base - 1)}
    return {name: _within(getattr(found, name), value) for name, value in truth.items()}


def _within(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def apart(found: Comparison) -> dict[str, bool]:
    """Whether the interval of the difference leaves 0 out; ValueError without one, which would look like no alarm."""
    if math.isnan(found.difference.low):
        raise ValueError(f"no interval: {found.reason}")
    return {"difference": not _within(found.difference, 0.0)}


@lru_cache
def truths(statistic: str) -> tuple[float, float]:
    """Of `LAW`: baseline and treatment."""
    if statistic == "mean":
        return LAW.mean, LAW.treated_mean
    p = float(statistic[1:]) / 100
    return LAW.quantile(p), LAW.treated_quantile(p)


def latencies(statistic: str, units: int, paired: bool) -> Case:
    """One statistic of latencies; the same flows in both arms, or others."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, paired])
        base = LAW.baseline(units, draw)
        treat = LAW.treatment(base if paired else LAW.baseline(units, draw), draw)
        return covered(compared(base, treat, statistic, paired, seed), *truths(statistic))

    return Case(f"{statistic}, {'paired' if paired else 'unpaired'}", "coverage", units, once)


def unfinished(units: int) -> Case:
    """p95 where one flow in fifty does not finish."""
    lost = 0.02

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 2])
        times = [LAW.baseline(units, draw), LAW.treatment(LAW.baseline(units, draw), draw)]
        base, treat = (np.where(draw.random(units) < lost, np.nan, arm) for arm in times)
        return covered(compared(base, treat, "p95", False, seed), *_truth_of_finished(0.95 / (1 - lost)))

    return Case("p95, unpaired, 2% unfinished", "coverage", units, once)


@lru_cache
def _truth_of_finished(p: float) -> tuple[float, float]:
    return LAW.quantile(p), LAW.treated_quantile(p)


def rate(units: int, paired: bool) -> Case:
    """Retransmitted segments of segments sent; responses of lognormal size, of which the larger lose more."""

    def arm(draw: np.random.Generator, sent: Values, more: float) -> Values:
        return draw.binomial(sent.astype(np.int64), more * _loss(sent)).astype(np.float64)

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, paired, 3])
        sent = [_sizes(units, draw)]
        sent.append(sent[0] if paired else _sizes(units, draw))
        again = [arm(draw, sizes, more) for sizes, more in zip(sent, (1.0, 1.3), strict=True)]
        rows = frame(*again).with_columns(pl.Series("sent", np.concatenate(sent)))
        truth = _true_loss()
        return covered(
            compare_rate(rows, "time_s", "sent", replace(DESIGN, seed=seed, paired=paired)), truth, 1.3 * truth
        )

    return Case(f"ratio of sums, {'paired' if paired else 'unpaired'}", "coverage", units, once)


def _sizes(count: int, draw: np.random.Generator) -> Values:
    return np.asarray(np.ceil(np.exp(2 + 0.8 * draw.standard_normal(count))), dtype=np.float64)


def _loss(sent: Values) -> Values:
    return np.where(sent > 10, 0.06, 0.03)


@lru_cache
def _true_loss() -> float:
    from scipy.special import ndtr

    sizes = np.arange(1, 4000, dtype=np.float64)
    below = ndtr((np.log(np.concatenate([[1e-300], sizes])) - 2) / 0.8)
    share = np.diff(below)
    return float((share * sizes * _loss(sizes)).sum() / (share * sizes).sum())


_CLASSES = (Latency(median_s=0.2), Latency(median_s=0.35), Latency(median_s=0.8, timeouts=0.08))
_SHARES = (0.6, 0.3, 0.1)


def _mixed(arms: str) -> float:
    return sum(share * float(getattr(law, arms)) for share, law in zip(_SHARES, _CLASSES, strict=True))


def weighted(units: int) -> Case:
    """The mean of a survey that takes a third of each class of users, though one in ten is of the last."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 4])
        of = draw.integers(0, 3, units)
        base = np.choose(of, [law.baseline(units, draw) for law in _CLASSES])
        weight = 3 * np.array(_SHARES)[of]
        rows = frame(base, LAW.treatment(base, draw), weight=weight)
        found = compare(rows, "time_s", replace(DESIGN, seed=seed, weight="weight"))
        return covered(found, _mixed("mean"), _mixed("treated_mean"))

    return Case("mean, paired, weighted", "coverage", units, once)


def stratified(units: int) -> Case:
    """The mean over strata of which the arms hold different numbers, brought to the true shares."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 5])
        arms, strata = [], []
        for split in ((0.5, 0.3, 0.2), (0.3, 0.3, 0.4)):
            counts = [round(units * share) for share in split]
            arms.append(np.concatenate([law.baseline(n, draw) for law, n in zip(_CLASSES, counts, strict=True)]))
            strata.append(np.repeat(["fast", "middle", "slow"], counts))
        rows = frame(arms[0], LAW.treatment(arms[1], draw)).with_columns(pl.Series("stratum", np.concatenate(strata)))
        shares = dict(zip(("fast", "middle", "slow"), _SHARES, strict=True))
        found = compare(rows, "time_s", replace(DESIGN, seed=seed, strata="stratum", shares=shares, paired=False))
        return covered(found, _mixed("mean"), _mixed("treated_mean"))

    return Case("mean, unpaired, stratified", "coverage", units, once)


def clustered(users: int, statistic: str = "mean") -> Case:
    """Connections of users who are slow or fast as a whole: the user is drawn. The same number of connections each."""
    connections = 8

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, users, 6])
        own = Latency(sigma=_WITHIN)
        count = users * connections
        speed = np.repeat(np.exp(_BETWEEN * draw.standard_normal(users)), connections)
        base = own.median_s * speed * np.exp(own.sigma * draw.standard_normal(count))
        base += own.timeout_s * (draw.random(count) < own.timeouts)
        rows = frame(base, LAW.treatment(base, draw), user_of=np.repeat(np.arange(users), connections))
        found = compare(rows, "time_s", replace(DESIGN, seed=seed, cluster="user_of"), statistic=statistic)
        return covered(found, *truths(statistic))

    return Case(f"{statistic}, paired, clustered", "coverage", users, once)


# Users and connections together spread as `LAW` does, so that its truths hold.
_BETWEEN = 0.5
_WITHIN = math.sqrt(LAW.sigma**2 - _BETWEEN**2)


def aggregates(statistic: str, replicates: int, connections: int = 1000) -> Case:
    """From sums and log bins of replicates; of quantiles without the width of the bins, which makes it wider still."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, replicates, 7])
        of = np.repeat(np.arange(replicates, dtype=np.uint32), connections)
        base = LAW.baseline(len(of), draw)
        parts = [(3, base), (10, LAW.treatment(base, draw))]
        sums, bins = zip(*(_aggregated(iw, of, times) for iw, times in parts), strict=True)
        found = of_aggregates(
            pl.concat(sums),
            pl.concat(bins),
            arm="iw",
            baseline=3,
            treatment=10,
            statistic=statistic,
            add_bins=False,
        )
        return covered(found, *truths(statistic))

    return Case(f"{statistic}, aggregates of {replicates} replicates", "coverage", replicates, once)


def _aggregated(iw: int, of: npt.NDArray[np.uint32], times: Values) -> tuple[pl.DataFrame, pl.DataFrame]:
    keys = [pl.lit(iw).alias("iw"), pl.lit("all").alias("dimension"), pl.lit("transfer").alias("unit")]
    keys += [pl.lit("web").alias("application"), pl.lit(0).alias("bucket")]
    nanoseconds = np.round(times * 1e9)
    bins = np.ceil(np.log(nanoseconds) / math.log(GAMMA)).astype(np.int32)
    rows = pl.DataFrame({"replicate": of, "ns": nanoseconds.astype(np.int64), "bin": bins})
    total = pl.col("ns").sum().alias("completion_ns_sum")
    sums = rows.group_by("replicate").agg(total, pl.len().alias("count"), pl.len().alias("completed"))
    return sums.with_columns(keys), rows.group_by("replicate", "bin").agg(pl.len().alias("count")).with_columns(keys)


def alike(statistic: str, units: int) -> Case:
    """Two samples of the same law."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 8])
        return apart(compared(LAW.baseline(units, draw), LAW.baseline(units, draw), statistic, False, seed))

    return Case(f"{statistic}, same law", "false alarms", units, once)


def alike_in_pairs(statistic: str, units: int) -> Case:
    """Pairs that differ by chance alone: noise of the same law on each arm."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 9])
        path = LAW.baseline(units, draw)
        base, treat = (path * np.exp(0.2 * draw.standard_normal(units)) for _ in range(2))
        return apart(compared(base, treat, statistic, True, seed))

    return Case(f"{statistic}, pairs of the same law", "false alarms", units, once)


def alike_by_bucket(buckets: int, units: int) -> Case:
    """The median bucket by bucket, the law the same in both arms: any bucket called better or worse is an alarm."""

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 10])
        count = buckets * units
        of = np.tile(np.arange(buckets), units)
        rows = frame(LAW.baseline(count, draw), LAW.baseline(count, draw), bucket=of.astype(np.float64))
        unpaired = replace(DESIGN, seed=seed, paired=False)
        found = by_bucket(rows, "time_s", "bucket", unpaired, buckets=range(buckets), statistic="p50")
        return {"any verdict": any(one.verdict in ("better", "worse") for one in found)}

    return Case(f"p50 in {buckets} buckets, same law", "false alarms", units, once)


def detectable(statistic: str, units: int) -> Case:
    """How often an effect of exactly the size with a promised power of 80% is found. Every flow is faster by as
    much: the plan takes both arms to spread alike.
    """

    def once(seed: int) -> dict[str, bool]:
        draw = np.random.default_rng([seed, units, 11])
        base, treat = (LAW.baseline(units, draw) for _ in range(2))
        sooner = truths(statistic)[0] * _promised(statistic, units) / 100
        return apart(compared(base, treat - sooner, statistic, False, seed))

    return Case(f"{statistic}, effect planned for", "power", units, once)


@lru_cache
def _promised(statistic: str, units: int) -> float:
    pilot = pl.DataFrame({"user": np.arange(20_000), "time_s": LAW.baseline(20_000, np.random.default_rng(12))})
    known = pilot_of_one_arm(pilot, "time_s", unit=["user"], statistic=statistic)
    return minimum_detectable_effect(known, units).percent
