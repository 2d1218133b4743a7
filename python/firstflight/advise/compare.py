"""Two observed data sets compared: before and after a change, or two arms that were served at the same time.

Nothing is simulated. The statistics, buckets and harm budget are those of an advice; users of the arms are drawn apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic_core import to_jsonable_python

from firstflight import observe
from firstflight._native import chi_squared_tail
from firstflight.advise.budget import Check, Term, judged_check, parse
from firstflight.advise.fit import CurrentWindow, current_window, first_responses
from firstflight.advise.measure import DIMENSIONS, RESAMPLES, STATISTICS, grouped, placed, worst
from firstflight.advise.outliers import described, hinging
from firstflight.analysis.ab import Comparison, Design, least_units
from firstflight.analysis.ab.compare import Pair, compared
from firstflight.analysis.ab.contrast import LEAST_BLOCKS
from firstflight.analysis.ab.sample import ComparedRows
from firstflight.analysis.intervals import Estimate
from firstflight.counted import counted, listed
from firstflight.errors import RequestError
from firstflight.input_files import check_is_file, or_packaged
from firstflight.observe import Observation
from firstflight.observe.observation import TLS
from firstflight.observe.plain import IGNORED
from firstflight.observe.tables import HELD_BYTES

SCHEMA = 3
"""Of comparison.json; raised when a name in it comes, goes or changes its meaning."""
BEFORE, AFTER = "before", "after"
RETRANSMISSIONS = "retransmissions"
CONFOUNDED = (
    "before and after are not concurrent: load, time of day, routes, content and users may have changed too. Only "
    "the mix of RTTs and sizes is evened out. For a clean answer serve both windows at the same time to users "
    "split at random, and compare these with --concurrent"
)
"""The doubt of each comparison of before and after."""
LOGGED = (
    "times are the log's, until the kernel had taken the last byte, up to 4 MiB before the user had it. Responses of "
    "up to 256 KiB show nothing of the network and are left out. A larger window also lets the kernel take more, so "
    "the change may be overstated. Compare captures of both, which have the users' times"
)
"""The doubt where both have no other times."""
LEAST_IN_CELL = 20
"""Connections of each arm in a cell of RTT and size. A thinner cell would put much weight on few connections."""
_CHANCE = 0.001
"""p-value of a random split below which the arms count as different users."""
_EVENED = ("rtt_s", "segments")

Conclusion = Literal["faster", "faster, budget inconclusive", "slower", "over the budget", "inconclusive"]


@dataclass(frozen=True)
class Side:
    """One data set. `source`: name of its file; `connections`: with a first response; `compared`: those left after
    cells that the other lacks; `began_s`, `ended_s`: Unix times of the first and the last response, None where the file
    has no times.
    """

    source: str
    connections: int
    compared: int
    current: CurrentWindow
    median_rtt_s: float | None
    median_bytes: float | None
    began_s: float | None
    ended_s: float | None
    unfinished: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One statistic: `before` and `after` in seconds (percent of segments for retransmissions), `change` in percent
    (percentage points), negative where `after` is better. `as_seen`: the change before the mix was evened out.
    """

    statistic: str
    before: Estimate
    after: Estimate
    change: Estimate
    as_seen: Estimate


@dataclass(frozen=True)
class ArmsCompared:
    """The comparison of two data sets. `mix_p_value`: of a random split into arms with such mixes of RTT and size."""

    before: Side
    after: Side
    concurrent: bool
    outcome: Conclusion
    changes: tuple[Change, ...]
    checks: tuple[Check, ...]
    mix_p_value: float
    doubts: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Every number, for `comparison.json`; null where there is none."""
        return {"schema": SCHEMA, **to_jsonable_python(self, inf_nan_mode="null")}


def compare_arms(
    before: Path, after: Path, *, harm: str, kind: str | None = None, concurrent: bool = False, seed: int = 1
) -> ArmsCompared:
    """`after` compared with `before`. `concurrent`: both were served at the same time to users split at random. Without
    it both arms are weighted to the same mix of RTT and size.

    RequestError for files that cannot be read, are one file, or have neither times nor retransmissions.
    """
    budget = parse(harm)
    _check_two_files(before, after)
    read = [observe.read(path, kind) for path in (before, after)]
    every_row = [_rows(observation) for observation in read]
    arms, logged = _timed(every_row)
    spans = [_span(observation) for observation in read]
    if concurrent and _overlap(*spans) == 0:
        raise RequestError("--concurrent: the two data sets do not overlap in time; leave it out")
    every = _cells(
        pl.concat([rows.with_columns(arm=pl.lit(name)) for rows, name in zip(arms, (BEFORE, AFTER), strict=True)])
    )
    every = every.with_row_index("connection")
    p_value = _mix_p_value(every)
    rows = every if concurrent else _evened(every)
    if rows.is_empty():
        first, second = (counted(arm.height, "connection") for arm in arms)
        raise RequestError(
            f"no cell of RTT and size has {LEAST_IN_CELL} connections of each: {before} has {first}, {after} {second}; "
            "compare more data, or data of similar users"
        )
    sides = [
        Side(
            observation.source.path.name,
            whole.height,
            rows.filter(pl.col("arm") == name).height,
            current_window(arm),
            _median(arm, "rtt_s"),
            _median(arm, "bytes"),
            *span,
            int(arm["time_s"].is_nan().sum()),
            tuple(map(str, observation.problems)),
        )
        for observation, whole, arm, name, span in zip(read, every_row, arms, (BEFORE, AFTER), spans, strict=True)
    ]
    measured = _Measured(rows, every, seed)
    changes = tuple(measured.changes())
    if not changes:
        raise RequestError(
            f"{before} and {after} have neither completion times nor retransmissions in common; the time of a log line "
            "counts for responses above 256 KiB only; compare captures: tcpdump -i any -s 96 -w flows.pcap 'tcp "
            "port 443'"
        )
    checks = tuple(check for term in budget for check in measured.checks(term, sides[1].current.window))
    doubts = list(_doubts(sides[0], sides[1], concurrent, logged, p_value, every.height - rows.height))
    if changes[0].statistic == RETRANSMISSIONS:
        # The times that are missing may stand in a column of another name.
        notes = [f"{observation.source.path.name}: {note}" for observation in read for note in observation.source.notes]
        doubts = [*(note for note in notes if IGNORED in note), *doubts]
    outcome = _outcome(changes, checks)
    doubts += _hinging(rows, seed, budget, sides[1].current.window)
    return ArmsCompared(sides[0], sides[1], concurrent, outcome, changes, checks, p_value, tuple(doubts))


def _hinging(rows: pl.DataFrame, seed: int, budget: Sequence[Term], window: int) -> Iterator[str]:
    """The responses whose time outweighs that of many others in their arm, and the outcome without them."""
    places, shares = [], []
    for name in (BEFORE, AFTER):
        arm_rows = rows.filter(pl.col("arm") == name)
        times = (arm_rows["time_s"] * arm_rows["weight"]).cast(pl.Float64).fill_null(math.nan).to_numpy()
        far = hinging(times)
        if len(far):
            places += arm_rows["connection"].gather(far).to_list()
            share = 100 * times[far].sum() / np.nansum(times)
            records = [
                f"{described(arm_rows.row(at, named=True))} in {arm_rows['time_s'][at]:,.3g} s" for at in far.tolist()
            ]
            makes = "makes" if len(far) == 1 else "make"
            of = f"{counted(len(far), 'response')} of {name} {makes} up {share:.0f}% of its time"
            shares.append(f"{of} ({listed(records)})")
    if not places:
        return
    rest = rows.filter(~pl.col("connection").is_in(places))
    measured = _Measured(rest, rest, seed)
    changes = tuple(measured.changes())
    outcome = _outcome(changes, tuple(check for term in budget for check in measured.checks(term, window)))
    mean = changes[0].change
    what, rest_of = ("outlier", "it") if len(places) == 1 else ("outliers", "them")
    yield (
        f"{what}: {listed(shares)}; without {rest_of} the outcome is: {outcome}, with a mean change of "
        f"{mean.value:+.3g}% ({mean.low:+.3g} to {mean.high:+.3g})"
    )


def _check_two_files(before: Path, after: Path) -> None:
    before, after = or_packaged(before), or_packaged(after)
    for path in (before, after):
        check_is_file(path)
        if not path.exists():
            raise RequestError(f'there is no file "{path}"')
    if before.samefile(after):
        raise RequestError(f"compare: both are {before}; name two data sets")


def _rows(observed: Observation) -> pl.DataFrame:
    """The first response of each connection, on which the initial window acts; NaN seconds where it did not finish."""
    frame = (
        first_responses(observed)
        .filter(pl.col("object").fill_null(0) == 0, pl.col("bytes").is_not_null())
        .join(observed.bounds, on="client", how="left", maintain_order="left")
    )
    unfinished = pl.col("completed").fill_null(1) == 0
    rtt = pl.col("rtt_s").fill_nan(None)
    return frame.select(
        *("bytes", "subnet", "down_bps", "segments_sent", "retransmissions", "first_flight_segments"),
        *("initial_window_segments", *TLS),
        pl.col("weight").fill_null(1.0),
        rtt.alias("rtt_s"),
        (pl.col("bytes") / 1448).ceil().alias("segments"),
        (rtt * pl.col("down_bps") / 8).alias("bdp_bytes"),
        *(
            pl.when(unfinished).then(float("nan")).otherwise(column).alias(name)
            for name, column in (("time_s", "completion_time_s"), ("logged_s", "min_completion_time_s"))
            if frame[column].count()
        ),
    )


def _timed(arms: list[pl.DataFrame]) -> tuple[list[pl.DataFrame], bool]:
    """The arms with `time_s`, and whether that is the log's time: of long responses alone, and if both have no other
    time and no retransmissions. Null if they have none in common.
    """
    if all("time_s" in arm.columns for arm in arms):
        return [arm.drop("logged_s", strict=False) for arm in arms], False
    if all("logged_s" in arm.columns and not arm["retransmissions"].count() for arm in arms):
        long = [arm.filter(pl.col("bytes") > HELD_BYTES) for arm in arms]
        return [arm.drop("time_s", strict=False).rename({"logged_s": "time_s"}) for arm in long], True
    unknown = pl.lit(None, dtype=pl.Float64)
    return [arm.drop("logged_s", strict=False).with_columns(time_s=unknown) for arm in arms], False


def _span(observed: Observation) -> tuple[float | None, float | None]:
    starts, began = observed.transfers["start_s"].drop_nulls().to_numpy(), observed.source.began_s
    if began is None or not len(starts):
        return None, None
    return began + float(starts.min()), began + float(starts.max())


def _overlap(span: tuple[float | None, float | None], other: tuple[float | None, float | None]) -> float | None:
    """The part of the shorter span that both cover, 0 to 1; None where times are unknown."""
    if span[0] is None or span[1] is None or other[0] is None or other[1] is None:
        return None
    together = min(span[1], other[1]) - max(span[0], other[0])
    if together < 0:
        return 0.0
    shorter = min(span[1] - span[0], other[1] - other[0])
    return 1.0 if shorter == 0 else together / shorter


def _cells(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `cell`, which RTT and size a connection has; an unknown one is a separate value."""
    return placed(rows).with_columns(
        cell=pl.concat_str([f"{name}_place" for name in _EVENED], separator="/", ignore_nulls=False).fill_null("?")
    )


def _counts(rows: pl.DataFrame) -> pl.DataFrame:
    """Connections and weight of each cell, in each arm."""
    in_arm = {name: pl.col("arm") == name for name in (BEFORE, AFTER)}
    return rows.group_by("cell", maintain_order=True).agg(
        *(mine.sum().alias(f"{name}_count") for name, mine in in_arm.items()),
        *(pl.col("weight").filter(mine).sum().alias(f"{name}_weight") for name, mine in in_arm.items()),
    )


def _mix_p_value(rows: pl.DataFrame) -> float:
    """Pearson's chi-squared test that the cells do not depend on the arm."""
    counts = _counts(rows)
    table = counts.select(f"{BEFORE}_count", f"{AFTER}_count").to_numpy().astype(float)
    if len(table) < 2 or not table.sum(axis=0).all():
        return math.nan
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return chi_squared_tail(len(table) - 1, float(((table - expected) ** 2 / expected).sum()))


def _evened(rows: pl.DataFrame) -> pl.DataFrame:
    """Both arms weighted to the mean of their mixes; cells that one of them hardly has are left out."""
    thick = _counts(rows).filter(pl.min_horizontal(f"{BEFORE}_count", f"{AFTER}_count") >= LEAST_IN_CELL)
    share = {name: pl.col(f"{name}_weight") / pl.col(f"{name}_weight").sum() for name in (BEFORE, AFTER)}
    together = (share[BEFORE] + share[AFTER]) / 2
    factors = thick.select("cell", *((together / share[name]).alias(name) for name in share))
    joined = rows.join(factors, on="cell", how="inner", maintain_order="left")
    factor = pl.when(pl.col("arm") == BEFORE).then(BEFORE).otherwise(AFTER)
    return joined.with_columns(weight=pl.col("weight") * factor).drop(BEFORE, AFTER)


def _median(rows: pl.DataFrame, column: str) -> float | None:
    median = rows[column].drop_nulls().median()
    return None if median is None else float(median)  # type: ignore[arg-type]


class _Measured:
    """Comparisons of `rows`, and of `every` row as seen."""

    def __init__(self, rows: pl.DataFrame, every: pl.DataFrame, seed: int) -> None:
        self._rows = rows
        subnets = [rows.filter(pl.col("arm") == name)["subnet"] for name in (BEFORE, AFTER)]
        enough = all(not column.null_count() and column.n_unique() >= LEAST_BLOCKS for column in subnets)
        design = Design(
            arm="arm",
            baseline=BEFORE,
            treatment=AFTER,
            unit=["connection"],
            weight="weight",
            paired=False,
            cluster="subnet" if enough else None,
            resamples=RESAMPLES,
            seed=seed,
        )
        self._evened = Pair(ComparedRows(rows, rows.columns, design), design)
        self._seen = self._evened if rows is every else Pair(ComparedRows(every, every.columns, design), design)
        self._timed = self._has("time_s")
        self._counted = self._has("segments_sent") and self._has("retransmissions")

    def _has(self, column: str) -> bool:
        known = self._rows.filter(pl.col(column).is_not_null())["arm"]
        return known.n_unique() == 2

    def changes(self) -> Iterator[Change]:
        """Each statistic that both data sets have."""
        for statistic in (*(STATISTICS if self._timed else ()), *([RETRANSMISSIONS] if self._counted else ())):
            adjusted, seen = (_compared(pair, statistic) for pair in (self._evened, self._seen))
            scale = 100 if statistic == RETRANSMISSIONS else 1
            yield Change(
                statistic,
                adjusted.baseline.times(scale),
                adjusted.treatment.times(scale),
                *(_change(comparison, statistic) for comparison in (adjusted, seen)),
            )

    def checks(self, term: Term, window: int) -> list[Check]:
        """`term` compared with the result; "no data" where the data is not sufficient."""
        nothing = Estimate(math.nan)
        lacking = ""
        if term.name in ("others", "others_p99"):
            lacking = "logs do not show which connections kept their window"
        elif term.name == RETRANSMISSIONS and not self._counted:
            lacking = "the data does not count retransmissions"
        elif term.name != RETRANSMISSIONS and not self._timed:
            lacking = "the data has no completion times"
        if lacking:
            return [judged_check(term, window, "observed", nothing, self._rows.height, reason=lacking)]
        if term.name == "groups":
            return self._worst_buckets(term, window)
        comparison = _compared(self._evened, term.name)
        statistic = "rate" if term.name == RETRANSMISSIONS else term.name
        lacks = 2 * least_units(statistic) if comparison.evidence is None else None
        return [
            judged_check(
                term,
                window,
                "observed",
                _change(comparison, term.name),
                self._rows.height,
                there=comparison.units,
                reason=comparison.reason,
                lacks=lacks,
            )
        ]

    def _worst_buckets(self, term: Term, window: int) -> list[Check]:
        """The bucket of each dimension that reaches furthest up, one over the limit before the others."""
        known = [dimension for dimension in DIMENSIONS if self._has(dimension.column)]
        groups = {dimension.title: grouped([self._evened], dimension)[0] for dimension in known}
        return [
            judged_check(term, window, "observed", change, self._rows.height, there=units, where=where)
            for where, units, change in worst(groups, term.limit)
        ]


def _compared(pair: Pair, statistic: str) -> Comparison:
    if statistic == RETRANSMISSIONS:
        return compared([pair], ["retransmissions", "segments_sent"], "rate")[0]
    return compared([pair], ["time_s"], statistic)[0]


def _change(comparison: Comparison, statistic: str) -> Estimate:
    return comparison.difference.times(100) if statistic == RETRANSMISSIONS else comparison.percent


def _outcome(changes: tuple[Change, ...], checks: tuple[Check, ...]) -> Conclusion:
    """Over the budget before all else; faster or slower by the interval of the mean."""
    if any(check.verdict == "over" for check in checks):
        return "over the budget"
    mean = next((change.change for change in changes if change.statistic == "mean"), Estimate(math.nan))
    if mean.low > 0:
        return "slower"
    if mean.high < 0:
        return "faster, budget inconclusive" if any(check.verdict == "inconclusive" for check in checks) else "faster"
    return "inconclusive"


def _doubts(before: Side, after: Side, concurrent: bool, logged: bool, p_value: float, left_out: int) -> Iterator[str]:
    if logged:
        yield LOGGED
    if before.current.known and after.current.known and before.current.window == after.current.window:
        yield f"both data sets show an initial window of {before.current.window}: check that the change took effect"
    if before.unfinished or after.unfinished:
        yield (
            f"unfinished responses: {before.unfinished:,} before, {after.unfinished:,} after; they are the slowest in "
            "percentiles and left out of the mean"
        )
    for side in (before, after):
        for text in side.problems:
            yield f"{side.source}: could not be read: {text}"
    if concurrent:
        if p_value < _CHANCE:
            yield (
                f"the arms differ in RTTs and sizes more than a random split does (p = {p_value:.1g}): check how "
                "users were assigned; until then the comparison may be biased"
            )
        return
    yield CONFOUNDED
    if before.median_rtt_s is None or after.median_rtt_s is None:
        yield "a data set without RTTs: their mix is not evened out"
    if p_value < _CHANCE:
        yield f"the mix of RTTs and sizes changed between the data sets (p = {p_value:.1g}); see the change as seen"
    if left_out:
        yield f"left out, because the other data set has hardly any with such RTT and size: {left_out:,} connections"
    if (_overlap((before.began_s, before.ended_s), (after.began_s, after.ended_s)) or 0) > 0.5:
        yield "the data sets overlap in time; if users were split at random, add --concurrent"
