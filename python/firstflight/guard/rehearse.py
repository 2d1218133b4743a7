"""A log of connections through the guard's own decisions, in virtual time.

A log shows the results of the window that was in use. The rehearsal assumes that a larger one changes nothing,
except for the losses that a bad link adds from a chosen moment.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, ip_network
from random import Random

import polars as pl

from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.guard.brain import Brain, WindowDecision
from firstflight.guard.outcome import Arm, Network, Outcome
from firstflight.guard.policy import RFC6928_SEGMENTS
from firstflight.guard.stop_rule import StopVerdict
from firstflight.observe.observation import Observation
from firstflight.observe.tables import MSS_BYTES

# Connections that are further than this from all others, or last longer, are left out if they are few.
_OUTLIER_S = 30 * 86400.0
_MOST_OUTLIERS = 0.01


@dataclass(frozen=True, slots=True)
class LoggedConnection:
    """A connection of a log. Times are in seconds from the beginning of the log."""

    opened: float
    closed: float
    prefix: Network
    bytes: int
    retransmissions: int
    lost: bool | None
    """Whether a segment of the first flight was retransmitted; None if the log does not show it."""
    timeouts: int
    rtt: float | None
    window: int = RFC6928_SEGMENTS
    """Initial window in segments at the time of the log."""


@dataclass(frozen=True, slots=True)
class BadLink:
    """From `at` (seconds) on, a raised connection loses in its first flight with probability `rate` in addition."""

    at: float
    rate: float


@dataclass(frozen=True, slots=True)
class Stop:
    """A group that fell back."""

    group: str
    at: float
    raised_since_bad: int | None
    """Raised connections of the group that closed between the bad link's beginning and the stop."""
    harmed: int | None
    """Of these, connections that the bad link made lose."""
    evidence: dict[str, object]


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at the end of a period or at a stop."""

    at: float
    raised_prefixes: int
    e_values: dict[str, float]


@dataclass(slots=True)
class Rehearsal:
    """The guard's simulated actions."""

    connections: int = 0
    raised: int = 0
    """Connections that would have had a larger window."""
    span_s: float = 0.0
    first_raised_at: float | None = None
    largest_window: int = RFC6928_SEGMENTS
    stops: list[Stop] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    verdicts: dict[str, StopVerdict] = field(default_factory=dict)
    """The state at the end, by group."""
    missed: list[str] = field(default_factory=list)
    """Groups that the bad link harmed and that were not stopped."""
    harmed: int = 0
    """Connections that the bad link made lose."""


def connections(log: Observation, loss: float | None, seed: int) -> tuple[list[LoggedConnection], list[str]]:
    """The connections of a log in the order in which they were opened, and notes on assumptions.

    `loss` is the share of connections with a loss in the first flight, for logs without it. Raises RequestError
    for a log without times.
    """
    if log.transfers["start_s"].null_count() == log.transfers.height:
        raise RequestError(f"{log.source.path} has no times; rehearse needs a log with times")
    rows = (
        log.transfers.sort("start_s")
        .group_by("client")
        .agg(
            opened=pl.col("start_s").min(),
            closed=(pl.col("start_s") + pl.col("completion_time_s").fill_null(0.0)).max(),
            bytes=pl.col("bytes").sum(),
            segments=_sum("segments_sent"),
            retransmissions=_sum("retransmissions"),
            timeouts=_sum("timeouts"),
            lost=pl.col("first_flight_lost_segments").first(),
            window=pl.col("initial_window_segments").first(),
        )
        .join(log.users.select("client", "subnet", "rtt_s"), on="client", how="left")
        .drop_nulls("opened")
        .sort("opened", "client")
    )
    rows, left_out = _without_outliers(rows, log.source.began_s or 0.0)
    random, networks = Random(seed), [_network(name) for name in log.source.networks]
    logged = [_connection(row, loss, random, networks) for row in rows.iter_rows(named=True)]
    return logged, [*left_out, *_notes(rows, loss, logged, named=None not in networks)]


def _without_outliers(rows: pl.DataFrame, began_s: float) -> tuple[pl.DataFrame, list[str]]:
    """The connections with times from the first of them, and a note on those that are left out.

    One line with another clock would make decades of a log.
    """
    part = (pl.col("opened").diff().fill_null(0.0) > _OUTLIER_S).cum_sum()
    rows = rows.with_columns(part=part, long=pl.col("closed") - pl.col("opened") > _OUTLIER_S)
    largest = rows["part"].mode().min()
    is_out = (pl.col("part") != largest) | pl.col("long")
    out = rows.filter(is_out)
    if out.height > _MOST_OUTLIERS * rows.height and out.height > 1:
        out, rows = out.clear(), rows.filter(~pl.col("long"))
    else:
        rows = rows.filter(~is_out)
    notes = []
    if out.height:
        days = {_day(began_s + opened) for opened in out["opened"]}
        shown = ", ".join(sorted(days)[:3]) + (" and others" if len(days) > 3 else "")
        many = counted(out.height, "connection")
        notes.append(f"left out: {many} ({shown}) more than 30 days from all others or longer than that")
    first = pl.col("opened").min()
    return rows.with_columns(opened=pl.col("opened") - first, closed=pl.col("closed") - first), notes


def _day(unix: float) -> str:
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(unix))
    except (OverflowError, ValueError, OSError):
        return f"{unix:g} s"


def _network(name: str) -> Network | None:
    try:
        return ip_network(name)
    except ValueError:
        return None


def _sum(column: str) -> pl.Expr:
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum())


def _connection(
    row: dict[str, object], loss: float | None, random: Random, networks: Sequence[Network | None]
) -> LoggedConnection:
    def number(name: str) -> int | None:
        value = row[name]
        return None if value is None else int(value)  # type: ignore[call-overload]

    window, drawn = number("window") or RFC6928_SEGMENTS, random.random()
    lost, again, segments = number("lost"), number("retransmissions"), number("segments")
    if lost is not None:
        bad: bool | None = lost > 0
    elif again == 0:
        bad = False
    elif again is not None and segments is not None and segments - again <= window:
        # All of it was the first flight.
        bad = True
    else:
        bad = None if loss is None else drawn < loss
    return LoggedConnection(
        row["opened"],  # type: ignore[arg-type]
        row["closed"],  # type: ignore[arg-type]
        _prefix(number("subnet"), number("client") or 0, networks),
        number("bytes") or 0,
        int(bool(bad)) if again is None else again,
        bad,
        number("timeouts") or 0,
        row["rtt_s"],  # type: ignore[arg-type]
        window,
    )


def _prefix(subnet: int | None, client: int, networks: Sequence[Network | None]) -> Network:
    """A stand-in for the client's address: a host (IPv6: a /56) of its network; of the /24 with the subnet's number
    where networks have no name; or of any /24.
    """
    if subnet is not None and subnet < len(networks) and (network := networks[subnet]) is not None:
        length = max(32 if network.version == 4 else 56, network.prefixlen)
        step = client % min(256, 1 << length - network.prefixlen)
        return ip_network((int(network.network_address) + (step << network.max_prefixlen - length), length))
    number = client % (1 << 16) if subnet is None else (subnet << 8 | client % 256) % (1 << 24)
    return IPv4Network((0x0A000000 + number, 32))


def _notes(rows: pl.DataFrame, loss: float | None, logged: Sequence[LoggedConnection], *, named: bool) -> list[str]:
    notes = ["a larger window is assumed to change only the losses of the bad link"]
    untold = sum(connection.lost is None for connection in logged)
    if rows["lost"].null_count() == rows.height and rows["retransmissions"].null_count() == rows.height:
        notes.append(
            "no losses in the log: the rule sees none; give --loss, such as 2%"
            if loss is None
            else f"no losses in the log: {100 * loss:g}% of connections drawn to lose in the first flight"
        )
    elif untold:
        notes.append(f"{counted(untold, 'connection')} without a first flight in the log are not judged")
    if rows["timeouts"].null_count() == rows.height:
        notes.append("no timeouts in the log: taken as none")
    if rows["window"].null_count() == rows.height:
        notes.append(f"no initial windows in the log: taken as {RFC6928_SEGMENTS} segments")
    notes.append("no cwnd in the log: taken as the initial window plus the segments delivered (slow start)")
    if rows["subnet"].null_count() == rows.height:
        notes.append("no addresses in the log: every connection counts as a separate client, all in one network")
    else:
        number = "" if named else ", and these are numbered as they appear, so a /20 or /16 holds 16 or 256 of them"
        notes.append(f"addresses are not kept: connections are dealt to 256 hosts of each network{number}")
    return notes


class _Replay:
    def __init__(self, brain: Brain, bad: BadLink | None, seed: int) -> None:
        self.brain, self.bad, self.random = brain, bad, Random(seed)
        self.windows: dict[Network, int] = {}
        self.rehearsal = Rehearsal()
        self.since_bad: dict[str, list[int]] = {}
        self.stopped: set[str] = set()

    def opened(self, connection: LoggedConnection) -> tuple[Outcome, bool]:
        """How the connection will end, given the window that it begins with; and whether the bad link harmed it."""
        window = self.windows.get(connection.prefix, RFC6928_SEGMENTS)
        # A prefix on RFC 3390's window is no arm of a trial, so it is reported as control.
        arm: Arm = "raised" if window > RFC6928_SEGMENTS else "control"
        self.rehearsal.connections += 1
        self.rehearsal.largest_window = max(self.rehearsal.largest_window, window)
        harmed = False
        if arm == "raised":
            self.rehearsal.raised += 1
            if self.rehearsal.first_raised_at is None:
                self.rehearsal.first_raised_at = connection.opened
            if self.bad is not None and connection.opened >= self.bad.at:
                harmed = self.random.random() < self.bad.rate
        delivered = -(-connection.bytes // MSS_BYTES)
        outcome = Outcome(
            connection.closed,
            connection.prefix,
            arm,
            window,
            connection.bytes,
            window + delivered,
            connection.retransmissions + harmed,
            harmed or connection.lost,
            connection.timeouts,
            connection.rtt,
            None,
            None,
        )
        return outcome, harmed

    def closed(self, outcome: Outcome, harmed: bool) -> None:
        """Pass a finished connection to the brain and carry out its decision."""
        self.rehearsal.harmed += harmed
        if self.bad is not None and outcome.at >= self.bad.at and outcome.arm == "raised":
            group = self.brain.group_of(outcome.prefix)
            if group is not None:
                counts = self.since_bad.setdefault(group, [0, 0])
                counts[0] += 1
                counts[1] += harmed
        self.take(self.brain.decide([outcome]), outcome.at)

    def take(self, decisions: Iterable[WindowDecision], at: float) -> None:
        """Set windows, and note a stop at its own time."""
        stopped_now = False
        for decision in decisions:
            if decision.initial_window is None:
                self.windows.pop(decision.prefix, None)
            else:
                self.windows[decision.prefix] = decision.initial_window
            group = str(decision.evidence["group"])
            if decision.reason.startswith("stopped") and group not in self.stopped:
                self.stopped.add(group)
                raised, harmed = self.since_bad.get(group, (0, 0)) if self.bad is not None else (None, None)
                self.rehearsal.stops.append(Stop(group, at, raised, harmed, decision.evidence))
                stopped_now = True
            elif not decision.reason.startswith(("stopped", "held")):
                self.stopped.discard(group)
        if stopped_now:
            self.note(at)

    def note(self, at: float) -> None:
        """Keep the state for the timeline."""
        raised = sum(window > RFC6928_SEGMENTS for window in self.windows.values())
        self.rehearsal.moments.append(Moment(at, raised, self.brain.e_values()))


def rehearse(
    log: Sequence[LoggedConnection],
    brain: Brain,
    period_s: float,
    bad: BadLink | None = None,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Rehearsal:
    """The decisions of `brain` on these connections, ordered by their opening. `progress` is called with the number of
    those that have opened.
    """
    replay = _Replay(brain, bad, seed)
    open_now: list[tuple[float, int, Outcome, bool]] = []
    next_note = period_s
    for number, connection in enumerate(log):
        while open_now and open_now[0][0] <= connection.opened:
            _, _, outcome, harmed = heapq.heappop(open_now)
            replay.closed(outcome, harmed)
        while connection.opened >= next_note:
            replay.take(brain.decide([], now=next_note), next_note)
            replay.note(next_note)
            next_note += period_s
            if not replay.windows:
                # Until the next connection nothing changes any more.
                next_note = max(next_note, connection.opened // period_s * period_s)
        progress(number)
        outcome, harmed = replay.opened(connection)
        heapq.heappush(open_now, (outcome.at, number, outcome, harmed))
    while open_now:
        at, _, outcome, harmed = heapq.heappop(open_now)
        replay.closed(outcome, harmed)
        replay.rehearsal.span_s = at
    replay.note(replay.rehearsal.span_s)
    rehearsal = replay.rehearsal
    rehearsal.verdicts = brain.verdicts()
    caught = {stop.group for stop in rehearsal.stops}
    rehearsal.missed = [name for name, (_, harmed) in replay.since_bad.items() if harmed and name not in caught]
    return rehearsal
