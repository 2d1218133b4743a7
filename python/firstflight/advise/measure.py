"""From the experiment's records to comparisons: each candidate against the current window, on the same users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.advise.budget import Check, Term, judged_check
from firstflight.advise.decide import Evidence, gains, passes
from firstflight.advise.experiment import OTHERS, RESPONSE, Experiment
from firstflight.analysis.ab import Bucket, Comparison, Design, bucketed, least_units
from firstflight.analysis.ab.buckets import judged, of_buckets
from firstflight.analysis.ab.compare import Pair, compared
from firstflight.analysis.ab.contrast import LEAST_BLOCKS
from firstflight.analysis.ab.sample import ComparedRows
from firstflight.analysis.intervals import Estimate
from firstflight.records import Run

STATISTICS = ("mean", "p50", "p75", "p90", "p95", "p99")
RESAMPLES = 1000
"""Of each comparison; buckets draw more, as many as their simultaneous intervals need."""
_NEAR = 0.25
"""Of an interval's width. Another seed moves an end by less, mostly by less than 0.1."""
LEAST_IN_BUCKET = 200
"""Users a bucket must have for an interval of its mean: fewer than `analysis.ab` asks for, where very skewed times make
the interval a little too short. Leaving out small groups would be worse: the purpose is to find harm to them."""


@dataclass(frozen=True)
class Dimension:
    """The columns that users are grouped by. `edges`: upper ends, each in its bucket; `scale`: the value of one
    `unit`; `seen`: the population's column that must be observed for it.
    """

    column: str
    title: str
    unit: str
    scale: float
    edges: tuple[float, ...]
    seen: str

    @property
    def place(self) -> str:
        """The column of the index of its bucket."""
        return f"{self.column}_place"

    def labels(self) -> list[str]:
        """One label per bucket, in order."""
        shown = [f"{edge / self.scale:g}" for edge in self.edges]
        inner = [f"{low} to {high}" for low, high in pairwise(shown)]
        return [
            f"up to {shown[0]} {self.unit}",
            *(f"{span} {self.unit}" for span in inner),
            f"above {shown[-1]} {self.unit}",
        ]


def in_a_sentence(title: str) -> str:
    """The title of a dimension as it stands within a sentence."""
    return title if title.startswith("RTT") else title[0].lower() + title[1:]


DIMENSIONS = (
    Dimension("rtt_s", "RTT", "ms", 1e-3, (0.02, 0.05, 0.1, 0.2, 0.5), "rtt_s"),
    Dimension("down_bps", "Link rate", "Mbit/s", 1e6, (0.256e6, 1e6, 3e6, 10e6, 30e6, 100e6), "down_bps"),
    Dimension("segments", "Response size", "segments", 1, (3, 10, 16, 32, 64, 128), "bytes"),
    Dimension("bdp_bytes", "Bandwidth-delay product", "kB", 1e3, (5e3, 15e3, 50e3, 150e3, 500e3), "down_bps"),
)


class Measurements:
    """The results of a finished experiment; each comparison is made once."""

    def __init__(self, run: Run, experiment: Experiment) -> None:
        """`run` holds every cell of `experiment`."""
        self._run = run
        self._experiment = experiment
        self._seed = 1
        self.current = experiment.population.current.window
        self.candidates = [window for window in experiment.windows if window != self.current]
        self.cases = [case.name for case in experiment.sensitivity_cases]
        self._with_others = [case.name for case in experiment.sensitivity_cases if case.cross_traffic]
        self._rows: dict[tuple[str, str], ComparedRows] = {}
        self._among: npt.NDArray[np.bool_] | None = None

    @property
    def flows(self) -> int:
        """Independent connections of the data that everything rests on; replicates add none."""
        return self._experiment.population.rows.height

    @cached_property
    def _transfers(self) -> pl.DataFrame:
        # At once: a case alone takes as long as all of them.
        return self._run.transfers.select(
            "case",
            pl.col("application").cast(pl.String),
            "iw",
            "client",
            pl.when(pl.col("completed") == 1).then("completion_time_s").otherwise(float("nan")).alias("time_s"),
            "segments_sent",
            "retransmissions",
            (pl.col("first_flight_lost_segments") > 0).cast(pl.Float64).alias("lost_in_first_flight"),
            (pl.col("timeouts") > 0).cast(pl.Float64).alias("timed_out"),
        ).collect()

    @cached_property
    def _cluster(self) -> str | None:
        """Users of a subnet are alike, where the data shows the members of each and has enough subnets."""
        subnets = self._experiment.population.rows["subnet"]
        return "subnet" if not subnets.null_count() and subnets.n_unique() >= LEAST_BLOCKS else None

    def responses(self, case: str) -> pl.DataFrame:
        """The observed connections as simulated in a case: a row each, replicate and window (`iw`).

        `time_s` from the opening of the connection to the last byte, NaN where it did not come within the time of a
        simulation; with the user's properties.
        """
        return self._compared(case).frame

    def among(self, clients: pl.Series) -> Measurements:
        """The measurements of these users alone."""
        other = copy(self)
        other._among = np.zeros(self.flows, dtype=np.bool_)
        other._among[clients.to_numpy()] = True
        return other

    def _compared(self, case: str, application: str = RESPONSE) -> ComparedRows:
        """The connections of a case whose application's name starts with this: `responses`, or the concurrent ones,
        whose window is the same for every `iw`.
        """
        key = (case, application)
        if key not in self._rows:
            here = pl.col("case") == case, pl.col("application").str.starts_with(application)
            rows = self._transfers.lazy().filter(*here).drop("case", "application")
            rows = rows.join(self._users(case).lazy(), on="client", how="left", maintain_order="left")
            if application == RESPONSE:
                rows = rows.with_columns(pl.col("time_s") + pl.col("rest_s"))
            frame = rows.collect()
            design = self._design(self.current, self.candidates[0])
            self._rows[key] = ComparedRows(frame, frame.columns, design, [self.current, *self.candidates])
        return self._rows[key]

    def _users(self, case: str) -> pl.DataFrame:
        columns = self._experiment.users[case].columns
        seen = self._experiment.population.rows
        users = pl.DataFrame(
            {
                "client": pl.Series(range(seen.height), dtype=pl.UInt32),
                "rtt_s": columns["rtt_s"],
                "down_bps": columns["down_bps"],
                "weight": seen["weight"],
                "rest_s": self._experiment.users[case].rest_s,
                "segments": seen["segments"],
                "subnet": seen["subnet"],
            }
        )
        return placed(users.with_columns((pl.col("rtt_s") * pl.col("down_bps") / 8).alias("bdp_bytes")))

    def time(self, case: str, window: int, statistic: str = "mean", against: int | None = None) -> Comparison:
        """The time of a response in seconds with `window`, and with the current one (or `against`)."""
        return compared([self._pair(case, window, against)], ["time_s"], statistic)[0]

    def rate(self, case: str, window: int, numerator: str, denominator: str) -> Comparison:
        """A ratio of sums over all responses, such as retransmitted segments of segments sent."""
        return compared([self._pair(case, window)], [numerator, denominator], "rate")[0]

    def share(self, case: str, window: int, flag: str) -> Comparison:
        """The share of responses with a flag (`lost_in_first_flight`, `timed_out`)."""
        return compared([self._pair(case, window)], [flag], "mean")[0]

    def other(self, case: str, window: int, application: str, statistic: str = "mean") -> Comparison:
        """The time of other connections when the responses have `window`."""
        return compared([self._pair(case, window, application=application)], ["time_s"], statistic)[0]

    def _pair(self, case: str, window: int, against: int | None = None, application: str = RESPONSE) -> Pair:
        rows = self._compared(case, application)
        among = None if self._among is None else self._among[rows.frame["client"].to_numpy()]
        return Pair(rows, self._design(self.current if against is None else against, window), among)

    def groups(self, case: str, window: int, dimension: Dimension) -> list[Bucket]:
        """The mean time by bucket of a dimension, corrected for multiple comparisons; empty buckets say so."""
        return grouped([self._pair(case, window)], dimension)[0]

    def group(self, pairs: Sequence[tuple[str, int]]) -> None:
        """Compares for `groups` all `pairs` of case and candidate at once: one after the other takes longer."""
        for dimension in DIMENSIONS:
            grouped([self._pair(*pair) for pair in pairs], dimension)

    def title(self, dimension: Dimension) -> str:
        """Its title, which says so where the users' places in it are assumed."""
        percent = self._experiment.population.assumed_percent(dimension.seen)
        share = "" if percent == 100 else f" of {percent:.3g}%"
        return f"{dimension.title} (assumed{share})" if percent else dimension.title

    def _design(self, baseline: int, window: int) -> Design:
        return Design(
            arm="iw",
            baseline=baseline,
            treatment=window,
            unit=["client"],
            weight="weight",
            cluster=self._cluster,
            resamples=RESAMPLES,
            seed=self._seed,
        )

    def evidence(self, budget: tuple[Term, ...], done: Callable[[int], None] = lambda pairs: None) -> Evidence:
        """The basis of the decision. `done` is called with the number of finished pairs of case and candidate."""
        by_pair: dict[tuple[str, int], tuple[Estimate, list[Check]]] = {}
        if any(term.name == "groups" for term in budget):
            self.group(list(product(self.cases, self.candidates)))
        for case, window in product(self.cases, self.candidates):
            checks = [check for term in budget for check in self.checks(term, case, window)]
            by_pair[case, window] = self.time(case, window).percent, checks
            done(len(by_pair))
        return Evidence(
            current=self.current,
            candidates=self.candidates,
            cases=self.cases,
            changes={pair: change for pair, (change, _) in by_pair.items()},
            step=lambda case, smaller, larger: self.time(case, larger, against=smaller).percent,
            checks={pair: checks for pair, (_, checks) in by_pair.items()},
            flows=self.flows,
            usable=self._experiment.population.usable,
            assumed=self._experiment.population.assumed_shares,
            given=[case.name for case in self._experiment.sensitivity_cases if case.about == "given"],
        )

    def redrawn(self, evidence: Evidence, seed: int) -> Evidence:
        """The same with another seed of the resampling; only results near a limit are drawn again."""
        other = copy(self)
        other._seed = seed
        changes, checks = dict(evidence.changes), dict(evidence.checks)
        out = {check.initial_window for pair_checks in checks.values() for check in pair_checks if _is_far_over(check)}
        for pair, change in evidence.changes.items():
            # Whatever else is drawn of it, it is out.
            if pair[1] in out:
                continue
            if _is_near(change, 0):
                changes[pair] = other.time(*pair).percent
            terms = dict.fromkeys(term_check.term for term_check in checks[pair])
            again = [term for term in terms if self._is_near(term, *pair, checks[pair])]
            kept = [term_check for term_check in checks[pair] if term_check.term not in again]
            checks[pair] = kept + [term_check for term in again for term_check in other.checks(term, *pair)]
        return replace(
            evidence,
            changes=changes,
            checks=checks,
            step=lambda case, smaller, larger: other.time(case, larger, against=smaller).percent,
        )

    def _is_near(self, term: Term, case: str, window: int, checks: Sequence[Check]) -> bool:
        """Whether another seed may turn the verdict; of buckets any, and not only the one that reaches furthest."""
        changes = [check.found for check in checks if check.term == term]
        if term.name == "groups":
            buckets = [bucket for dimension in DIMENSIONS for bucket in self.groups(case, window, dimension)]
            changes = [bucket.percent for bucket in buckets]
        return any(_is_near(change, term.limit) for change in changes)

    def checks(self, term: Term, case: str, window: int) -> list[Check]:
        """A term compared with the result. A term on others has none in a case without others."""
        if term.name == "retransmissions":
            comparison = self.rate(case, window, "retransmissions", "segments_sent")
            return [self._check(term, case, window, comparison, comparison.difference.times(100), "rate")]
        if term.name == "groups":
            return self._worst_groups(term, case, window)
        if term.name in ("others", "others_p99"):
            statistic = "p99" if term.name == "others_p99" else "mean"
            if case not in self._with_others:
                return []
            made = {name: self.other(case, window, name, statistic) for name in OTHERS}
            return [
                self._check(term, case, window, comparison, comparison.percent, statistic, OTHERS[name])
                for name, comparison in made.items()
            ]
        comparison = self.time(case, window, term.name)
        return [self._check(term, case, window, comparison, comparison.percent, term.name)]

    def _check(
        self, term: Term, case: str, window: int, made: Comparison, change: Estimate, statistic: str, where: str = ""
    ) -> Check:
        return judged_check(
            term,
            window,
            case,
            change,
            self.flows,
            there=made.units,
            where=where,
            reason=made.reason,
            lacks=least_units(statistic) if made.evidence is None else None,
        )

    def _worst_groups(self, term: Term, case: str, window: int) -> list[Check]:
        """The bucket of each dimension whose simultaneous interval reaches furthest up, one over the limit before the
        others; those without enough users are not judged, and the page lists them.
        """
        groups = {self.title(dimension): self.groups(case, window, dimension) for dimension in DIMENSIONS}
        return [
            judged_check(term, window, case, change, self.flows, there=units, where=where)
            for where, units, change in worst(groups, term.limit)
        ]


def holds(measured: Measurements, budget: Sequence[Term], window: int, cases: Sequence[str]) -> bool:
    """Whether a candidate gains and stays within the budget in each of `cases`. Groups come last: they take the longest
    to compare.
    """

    def passed(term: Term) -> bool:
        if term.name == "groups":
            measured.group([(case, window) for case in cases])
        return all(passes(check) for case in cases for check in measured.checks(term, case, window))

    terms = sorted(budget, key=lambda term: term.name == "groups")
    return all(gains(measured.time(case, window).percent) for case in cases) and all(map(passed, terms))


def placed(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with the index of the bucket in a column `place`, of each dimension that it has."""
    for dimension in DIMENSIONS:
        if dimension.column in frame.columns:
            frame = bucketed(frame, dimension.column, dimension.edges, dimension.place)
    return frame


def grouped(pairs: Sequence[Pair], dimension: Dimension) -> list[list[Bucket]]:
    """The mean of `time_s` of each pair of arms by bucket of a dimension, corrected for multiple comparisons. The rows
    are those of a frame that is `placed`; the designs differ in nothing but their arms.
    """
    labels = dimension.labels()
    least = [replace(pair, design=replace(pair.design, least=LEAST_IN_BUCKET)) for pair in pairs]
    return [
        judged([(name, *of) for name, of in zip(labels, found, strict=True)], "bonferroni", pair.design.confidence)
        for pair, found in zip(pairs, of_buckets(least, ["time_s"], dimension.place, range(len(labels))), strict=True)
    ]


def worst(groups: Mapping[str, Sequence[Bucket]], limit: float) -> Iterator[tuple[str, int, Estimate]]:
    """Of each dimension, by its title, the bucket whose simultaneous interval reaches furthest up, one over the limit
    before the others: its name, units and change in percent. Skips a dimension without enough units in any bucket.
    """
    for title, buckets in groups.items():
        judged = [bucket for bucket in buckets if bucket.verdict in ("better", "worse", "no significant difference")]
        if judged:
            bucket = max(judged, key=lambda bucket: (bucket.percent_low > limit, bucket.percent_high))
            yield f"{in_a_sentence(title)} {bucket.bucket}", bucket.units, bucket.percent


def _is_near(change: Estimate, limit: float) -> bool:
    return abs(change.high - limit) <= _NEAR * (change.high - change.low)


def _is_far_over(check: Check) -> bool:
    change = check.found
    return change.low - check.term.limit > _NEAR * (change.high - change.low)
