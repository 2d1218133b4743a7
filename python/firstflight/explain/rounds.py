"""One transfer as its segments in flight, and the rounds in which they were sent."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Literal

import polars as pl

from firstflight.errors import RequestError
from firstflight.tracing import Trace

_SENT, _RECEIVED = 0, 1
_SYN = 2
Kind = Literal["handshake", "request", "data", "retransmission", "ack"]


@dataclass(frozen=True)
class Crossing:
    """A segment between the endpoints. `arrives_s` is None if it was dropped by a queue or lost on a link."""

    kind: Kind
    from_sender: bool
    sent_s: float
    arrives_s: float | None

    @property
    def carries_data(self) -> bool:
        """Whether it carries data of the sender."""
        return self.kind in ("data", "retransmission")


@dataclass(frozen=True)
class Round:
    """The data that is sent until the first answer to a round's first segment is there: `segments` that had not been
    sent before, and `retransmissions`, from `began_s` on. `is_handshake`: it carries the TLS handshake.
    """

    number: int
    segments: int
    retransmissions: int
    began_s: float
    is_handshake: bool = False


@dataclass(frozen=True)
class Transfer:
    """One transfer. `label` names it; `completion_s` is None if it did not complete. `sender_is_server`
    says who sends the data.
    """

    label: str
    completion_s: float | None
    crossings: tuple[Crossing, ...]
    rounds: tuple[Round, ...]
    sender_is_server: bool

    @property
    def longest_wait_s(self) -> float:
        """The longest time that a segment with data waited in queues: its way compared with the fastest one's."""
        ways = [c.arrives_s - c.sent_s for c in self.crossings if c.carries_data and c.arrives_s is not None]
        return max(ways, default=0.0) - min(ways, default=0.0)

    @property
    def dropped(self) -> int:
        """Segments with data that did not arrive."""
        return sum(c.carries_data and c.arrives_s is None for c in self.crossings)


def transfer(trace: Trace) -> Transfer:
    """The connection of a trace. RequestError where no connection starts or it sends no data."""
    scenario = trace.scenario
    events = trace.events
    carried = events.filter(pl.col("event") == _SENT).group_by("from_server").agg(pl.col("length").sum())
    sums = dict(carried.iter_rows())
    if not any(sums.values()):
        raise RequestError(f"{scenario.name}: no data is sent within {scenario.duration}; make the duration longer")
    sender = max(sums, key=lambda side: int(sums[side]))
    crossings = _crossings(events, sender)
    outcome = trace.outcome
    secured_s = float(outcome["start_s"]) + float(outcome["tls_handshake_time_s"] or math.nan)
    return Transfer(
        label=trace.label,
        completion_s=float(outcome["completion_time_s"]) if outcome["completed"] else None,
        crossings=tuple(crossings),
        rounds=tuple(_rounds(crossings, secured_s)),
        sender_is_server=bool(sender),
    )


def _crossings(events: pl.DataFrame, sender: int) -> list[Crossing]:
    """Each segment sent with the event that ended its way, the first of its kind for the first sent."""
    columns = ("time_ns", "event", "from_server", "seq", "ack", "length", "flags")
    rows = list(events.select(columns).iter_rows())
    ends: dict[tuple[int, ...], deque[tuple[int, int]]] = defaultdict(deque)
    for time_ns, event, *segment in rows:
        if event != _SENT:
            ends[tuple(segment)].append((time_ns, event))
    crossings, highest = [], 0
    for time_ns, event, *segment in rows:
        if event != _SENT:
            continue
        side, seq, _, length, flags = segment
        ended_ns, how = ends[tuple(segment)].popleft() if ends[tuple(segment)] else (0, None)
        kind: Kind = "handshake" if flags & _SYN else "request" if length else "ack"
        if side == sender and length > 0:
            kind = "retransmission" if seq < highest else "data"
            highest = max(highest, seq + length)
        arrives_s = ended_ns / 1e9 if how == _RECEIVED else None
        crossings.append(Crossing(kind, side == sender, time_ns / 1e9, arrives_s))
    return crossings


def _rounds(crossings: list[Crossing], secured_s: float) -> list[Round]:
    """A round ends when the answer to its first segment that arrived is there; the next segment sent begins the next
    round. `secured_s`: when the TLS handshake was complete at the client; NaN without one.
    """
    answers = [c for c in crossings if not c.from_sender and c.arrives_s is not None]
    rounds: list[list[Crossing]] = []
    ends_s = 0.0
    for crossing in crossings:
        if not crossing.carries_data:
            continue
        if not rounds or crossing.sent_s >= ends_s:
            rounds.append([])
            ends_s = math.inf
        rounds[-1].append(crossing)
        if ends_s == math.inf and crossing.arrives_s is not None:
            after = [c.arrives_s for c in answers if c.arrives_s is not None and c.sent_s >= crossing.arrives_s]
            ends_s = min(after, default=math.inf)
    return [
        Round(
            number,
            sum(crossing.kind == "data" for crossing in sent),
            sum(crossing.kind == "retransmission" for crossing in sent),
            sent[0].sent_s,
            sent[0].sent_s < secured_s,
        )
        for number, sent in enumerate(rounds, start=1)
    ]
