"""The advice as data: the contents of the page, the terminal and advice.json, with nothing left to compute there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import polars as pl

from firstflight.advise import deploy
from firstflight.advise.budget import Check, Term
from firstflight.advise.certificates import Certificates
from firstflight.advise.decide import Decision, choose, decide
from firstflight.advise.experiment import OTHERS, Experiment
from firstflight.advise.first_look import is_elsewhere
from firstflight.advise.fit import CurrentWindow, FittedPopulation
from firstflight.advise.measure import DIMENSIONS, STATISTICS, Measurements
from firstflight.advise.missing import Missing, missing
from firstflight.advise.outliers import Outliers, outliers
from firstflight.advise.sensitivity import Assumption, SensitivityCase, assumptions
from firstflight.advise.words import Confidence, confidence, sentences
from firstflight.analysis.ab import Comparison
from firstflight.analysis.intervals import Estimate
from firstflight.observe import Observation

Compared = Callable[[int, int], None]
SCHEMA = 7
"""Of advice.json; raised when a name in it comes, goes or changes its meaning."""
OTHER_SEEDS = (2, 3, 4, 5)
"""Seeds with which the decision is repeated; the advice itself is resampled with seed 1."""
MATTERS_PERCENT = 5.0
"""A change of a user's own time that is counted as faster or slower."""


@dataclass(frozen=True)
class Gain:
    """The time of a response, seconds in both arms, and its change: negative where the candidate is faster."""

    case: str
    initial_window: int
    statistic: str
    current_s: Estimate
    candidate_s: Estimate
    change_percent: Estimate
    unfinished: tuple[int, int]
    reason: str


@dataclass(frozen=True)
class UserGroup:
    """The mean time of one bucket of users. `change_percent` holds in all buckets of the dimension simultaneously."""

    dimension: str
    bucket: str
    initial_window: int
    share_percent: float
    users: int
    change_percent: Estimate
    verdict: str
    reason: str


@dataclass(frozen=True)
class Cost:
    """One cost, in percent of the amount that `of` names, with both windows, and the change in percentage points."""

    case: str
    initial_window: int
    name: str
    current_percent: Estimate
    candidate_percent: Estimate
    change_points: Estimate


@dataclass(frozen=True)
class OtherConnections:
    """The mean time of other connections, whose window stays; positive change: they are slower."""

    case: str
    initial_window: int
    who: str
    connections: int
    change_percent: Estimate
    reason: str


@dataclass(frozen=True)
class UserShares:
    """The share of users who are faster or slower by more than `MATTERS_PERCENT` with a window, in percent."""

    initial_window: int
    faster_percent: float
    slower_percent: float


@dataclass(frozen=True)
class Flows:
    """The data that was read. `left_out`, `problems`, `doubts` (whether these are users) and `notes` (with them):
    sentences; `handshake_bytes`: median of a server's TLS handshake, 0 if none was seen; `assumed`: the assumed parts
    of path and size, for how many; `unit`: what is counted, "response" where the log does not show connections.
    """

    source: str
    kind: str
    unit: str
    read: int
    usable: int
    simulated: int
    replicates: int
    left_out: tuple[str, ...]
    problems: tuple[str, ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    assumed: tuple[str, ...]
    cut: int
    loss_seen_percent: float | None
    handshake_bytes: int
    quantiles: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Advice:
    """A recommendation with its evidence. `answer`: three to five sentences; `confidence` (`words.Confidence`) and
    `confidence_reason`; `missing`: the unknowns that prevent a better recommendation; `outliers`: users with a large
    share of all response time, and the result without them; `deploy`: empty unless a change is recommended with
    sufficient data; `certificates`: the users with those of `--certificates`.
    """

    schema: int
    flows: Flows
    current: CurrentWindow
    candidates: tuple[int, ...]
    budget: tuple[Term, ...]
    cases: tuple[SensitivityCase, ...]
    assumptions: tuple[Assumption, ...]
    decision: Decision
    answer: tuple[str, ...]
    missing: Missing | None
    outliers: Outliers | None
    confidence: Confidence
    confidence_reason: str
    gains: tuple[Gain, ...]
    users: tuple[UserShares, ...]
    groups: tuple[UserGroup, ...]
    costs: tuple[Cost, ...]
    harm: tuple[OtherConnections, ...]
    checks: tuple[Check, ...]
    deploy: tuple[deploy.Step, ...]
    watch: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    seed: int
    method: str
    certificates: Certificates | None = None

    @property
    def command(self) -> str:
        """The command for a Linux host; empty if none is advised."""
        return self.deploy[1].lines[0] if len(self.deploy) > 1 else ""

    @property
    def shown_window(self) -> int:
        """The window shown in detail: the recommended one or, if that is the current one, the candidate with the best
        mean in the reference case.
        """
        if self.decision.outcome == "change":
            return self.decision.initial_window
        reference = self.cases[0].name
        means = [gain for gain in self.gains if (gain.case, gain.statistic) == (reference, "mean")]
        return min(means, key=lambda gain: gain.change_percent.value).initial_window

    def as_dict(self) -> dict[str, Any]:
        """The contents of advice.json; missing numbers are null."""
        made = _plain(self)
        assert isinstance(made, dict)
        return made


def advise(
    observed: Observation,
    population: FittedPopulation,
    experiment: Experiment,
    measured: Measurements,
    budget: Sequence[Term],
    doubts: Sequence[str] = (),
    compared: Compared = lambda done, of: None,
) -> Advice:
    """Everything from the finished experiment. `doubts`: on the flows themselves; `compared(done, of)` is called as the
    comparisons are made.
    """
    pairs = len(measured.cases) * len(measured.candidates)
    steps = pairs + len(OTHER_SEEDS) + 1
    evidence = measured.evidence(tuple(budget), lambda done: compared(done, steps))
    others = []
    for place, seed in enumerate(OTHER_SEEDS, 1):
        others.append(choose(measured.redrawn(evidence, seed), evidence.cases)[0])
        compared(pairs + place, steps)
    decision = replace(decide(evidence), other_seeds=tuple(others))
    reference = measured.cases[0]
    gains = tuple(_gains(measured))
    costs = tuple(_costs(measured))
    harm = tuple(_harm(measured, experiment))
    users = tuple(_users(measured.responses(reference), measured.current, window) for window in measured.candidates)
    checks = tuple(check for pair_checks in evidence.checks.values() for check in pair_checks)
    needed = missing(decision, evidence, experiment, measured, tuple(budget))
    far_out = outliers(measured, evidence, decision, budget, population.rows)
    compared(steps, steps)
    sure, why = confidence(decision, evidence, doubts, far_out)
    groups = tuple(_groups(measured, reference))
    window = decision.initial_window
    steps_there: list[deploy.Step] = []
    if decision.outcome == "change" and sure != "insufficient data":
        linux = deploy.steps(window, population.current.window, population.current.known)
        steps_there = [deploy.elsewhere()] if is_elsewhere(observed) else linux
    return Advice(
        schema=SCHEMA,
        flows=_flows(observed, population, experiment, doubts),
        current=population.current,
        candidates=tuple(measured.candidates),
        budget=tuple(budget),
        cases=tuple(experiment.sensitivity_cases),
        assumptions=tuple(assumptions(population)),
        decision=decision,
        answer=tuple(
            sentences(
                decision, evidence, gains, costs, harm, users, groups, needed, doubts, far_out, population.first_flight
            )
        ),
        missing=needed,
        outliers=far_out,
        confidence=sure,
        confidence_reason=why,
        gains=gains,
        users=users,
        groups=groups,
        costs=costs,
        harm=harm,
        checks=checks,
        deploy=tuple(steps_there),
        watch=tuple(deploy.watch(window)),
        limits=LIMITS,
        seed=experiment.seed,
        method=measured.time(reference, measured.candidates[0]).method,
    )


def _gains(measured: Measurements) -> Iterator[Gain]:
    for place, case in enumerate(measured.cases):
        for window in measured.candidates:
            for statistic in STATISTICS if place == 0 else ("mean", "p99"):
                made = measured.time(case, window, statistic)
                yield Gain(
                    case, window, statistic, made.baseline, made.treatment, made.percent, made.unfinished, made.reason
                )


def _groups(measured: Measurements, case: str) -> Iterator[UserGroup]:
    for window in measured.candidates:
        for dimension in DIMENSIONS:
            for bucket in measured.groups(case, window, dimension):
                yield UserGroup(
                    measured.title(dimension),
                    str(bucket.bucket),
                    window,
                    bucket.share_percent,
                    bucket.units,
                    bucket.percent,
                    bucket.verdict,
                    bucket.reason,
                )


RETRANSMITTED, LOST_FIRST, TIMED_OUT = (
    "retransmitted segments",
    "responses that lose in the first flight",
    "responses with a timeout",
)


def _costs(measured: Measurements) -> Iterator[Cost]:
    """Retransmitted segments in every case, the others in the reference."""
    for place, case in enumerate(measured.cases):
        for window in measured.candidates:
            again = measured.rate(case, window, "retransmissions", "segments_sent")
            yield Cost(case, window, RETRANSMITTED, *_percents(again))
            if place == 0:
                for name, flag in ((LOST_FIRST, "lost_in_first_flight"), (TIMED_OUT, "timed_out")):
                    yield Cost(case, window, name, *_percents(measured.share(case, window, flag)))


def _percents(made: Comparison) -> tuple[Estimate, Estimate, Estimate]:
    return made.baseline.times(100), made.treatment.times(100), made.difference.times(100)


def _harm(measured: Measurements, experiment: Experiment) -> Iterator[OtherConnections]:
    for case in experiment.sensitivity_cases:
        if case.cross_traffic:
            for window in measured.candidates:
                for application, who in OTHERS.items():
                    made = measured.other(case.name, window, application)
                    yield OtherConnections(case.name, window, who, made.units, made.percent, made.reason)


def _users(responses: pl.DataFrame, current: int, window: int) -> UserShares:
    """Each user's own mean time over the replicates, with both windows."""
    times = (
        responses.filter(pl.col("iw").is_in([current, window]))
        .group_by("client", "iw", maintain_order=True)
        .agg(pl.col("time_s").fill_nan(float("inf")).mean(), pl.col("weight").first())
        .pivot("iw", index=["client", "weight"], values="time_s")
    )
    before, after, weight = (times[name].to_numpy() for name in (str(current), str(window), "weight"))
    change = 100 * (after / before - 1)
    share = 100 / weight.sum()
    faster, slower = change < -MATTERS_PERCENT, change > MATTERS_PERCENT
    return UserShares(window, share * float(weight[faster].sum()), share * float(weight[slower].sum()))


def _flows(observed: Observation, population: FittedPopulation, experiment: Experiment, doubts: Sequence[str]) -> Flows:
    source = observed.source
    return Flows(
        source=source.path.name,
        kind=source.kind,
        unit="response" if source.lines_apart else "connection",
        read=population.read,
        usable=population.usable,
        simulated=population.rows.height,
        replicates=experiment.replicates,
        left_out=tuple(f"{count:,} {why}" for count, why in population.left_out),
        problems=tuple(str(problem) for problem in observed.problems),
        doubts=tuple(doubts),
        notes=(*doubts, *source.notes),
        assumed=population.assumed,
        cut=experiment.users[experiment.sensitivity_cases[0].name].cut,
        loss_seen_percent=population.loss_seen_percent,
        handshake_bytes=round(float(population.rows["tls_bytes"].median() or 0.0)),  # type: ignore[arg-type]
        quantiles=tuple(_quantiles(population)),
    )


def _quantiles(population: FittedPopulation) -> Iterator[Mapping[str, Any]]:
    """The observed data on the users, for the page's table."""
    rows = population.rows
    bdp = (pl.col("rtt_s") * pl.col("down_bps") / 8).alias("bdp_bytes")
    shown = rows.with_columns(bdp)
    for column, title, unit, scale in (
        ("rtt_s", "RTT", "ms", 1e-3),
        ("down_bps", "link rate", "Mbit/s", 1e6),
        ("tls_bytes", "TLS handshake, server's bytes", "kB", 1e3),
        ("bytes", "response size", "kB", 1e3),
        ("bdp_bytes", "bandwidth-delay product", "kB", 1e3),
        ("loss", "loss", "%", 1e-2),
    ):
        if column == "tls_bytes" and population.assumed_percent(column):
            continue
        known = shown[column].drop_nulls() / scale
        if known.len() and not (column in ("rtt_s", "down_bps", "bytes") and population.assumed_percent(column) == 100):
            percentiles = {
                f"p{100 * p:g}": float(known.quantile(p, "linear") or 0.0) for p in (0.05, 0.25, 0.5, 0.75, 0.95)
            }
            yield {"what": title, "unit": unit, "known": known.len()} | percentiles


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return {"value": _plain(value.value), "low": _plain(value.low), "high": _plain(value.high)}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


LIMITS = (
    "The data has only users who completed a connection: users who gave up on a slow link are missing, and faster "
    "transfers may change who connects and what they fetch.",
    "The simulated server runs Linux's TCP with CUBIC (profile linux). Under BBR, or with fq pacing, bursts are paced "
    "and the costs differ.",
    "A user's access link is one queue with one rate. Wireless links have variable rates and burst losses, and several "
    "users may share a queue; both raise the cost of bursts.",
    "Only the first response of a connection is simulated. Later ones start with the cwnd that the connection has "
    "reached, unless tcp_slow_start_after_idle resets it.",
    "Times are those of TCP: without DNS lookup, without TLS unless its handshakes were observed, and without "
    "processing of server or browser. The gain in ms applies to users; the gain in percent of their waiting time is "
    "smaller.",
    "Where the data's RTTs or rates are means over a connection, they include queueing: RTTs are then too long and "
    "rates too low, which makes gains larger and losses rarer.",
)
