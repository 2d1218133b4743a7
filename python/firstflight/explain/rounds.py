"""One transfer as its segments in flight, and the rounds in which they were sent."""

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from firstflight.errors import RequestError
from firstflight.tracing import Trace

_SENT, _RECEIVED = 0, 1
_SYN = 2
Kind = Literal["handshake", "tls", "request", "data", "retransmission", "ack"]


@dataclass(frozen=True)
class Crossing:
    """A segment between the endpoints. `arrives_s` is None if it was dropped by a queue or lost on a link. `is_tls`: it
    carries data of the TLS handshake.
    """

    kind: Kind
    from_sender: bool
    sent_s: float
    arrives_s: float | None
    is_tls: bool = False

    @property
    def carries_data(self) -> bool:
        """Whether it carries data of the sender."""
        return self.from_sender and self.kind in ("tls", "data", "retransmission")


@dataclass(frozen=True)
class Round:
    """The data that is sent until the first answer to a round's first segment is there: `segments` that had not been
    sent before, and `retransmissions`, from `began_s` on; `tls` of them carry data of the TLS handshake. The other end
    than the data's sender has rounds of its part of the TLS handshake: without a number unless another one of its own
    follows, since the answer to the last one is a round of the sender.
    """

    number: int | None
    segments: int
    retransmissions: int
    began_s: float
    tls: int
    from_sender: bool


@dataclass(frozen=True)
class Transfer:
    """One transfer. `label` names it; `completion_s` is None if it did not complete. `sender_is_server`
    says who sends the data; `marks` and `slow_start_end` are those of the trace.
    """

    label: str
    completion_s: float | None
    crossings: tuple[Crossing, ...]
    rounds: tuple[Round, ...]
    sender_is_server: bool
    marks: Mapping[str, float]
    slow_start_end: Mapping[str, float]

    @property
    def round_trips(self) -> int:
        """How many rounds have a number: each takes an RTT."""
        return sum(round_.number is not None for round_ in self.rounds)

    def end(self, is_sender: bool) -> str:
        """The role of an end: the data's sender or the other."""
        return "server" if is_sender == self.sender_is_server else "client"

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
    sent = events.filter((pl.col("event") == _SENT) & (pl.col("length") > 0))
    if sent.is_empty():
        raise RequestError(f"{scenario.name}: no data is sent within {scenario.duration}; make the duration longer")
    sender = trace.data_from
    crossings = _crossings(events, sender)
    outcome = trace.outcome
    return Transfer(
        label=trace.label,
        completion_s=float(outcome["completion_time_s"]) if outcome["completed"] else None,
        crossings=tuple(crossings),
        rounds=tuple(_rounds(crossings)),
        sender_is_server=bool(sender),
        marks=trace.marks,
        slow_start_end=trace.slow_start_end,
    )


def _crossings(events: pl.DataFrame, sender: int) -> list[Crossing]:
    """Each segment sent with the event that ended its way, the first of its kind for the first sent."""
    columns = ("is_tls", "time_ns", "event", "from_server", "seq", "ack", "length", "flags")
    rows = list(events.select(columns).iter_rows())
    ends: dict[tuple[int, ...], deque[tuple[int, int]]] = defaultdict(deque)
    for _, time_ns, event, *segment in rows:
        if event != _SENT:
            ends[tuple(segment)].append((time_ns, event))
    crossings, highest = [], [0, 0]
    for is_tls, time_ns, event, *segment in rows:
        if event != _SENT:
            continue
        side, seq, _, length, flags = segment
        ended_ns, how = ends[tuple(segment)].popleft() if ends[tuple(segment)] else (0, None)
        kind: Kind = "handshake" if flags & _SYN else "ack"
        if length > 0:
            kind = "tls" if is_tls else "data" if side == sender else "request"
            kind = "retransmission" if seq < highest[side] else kind
            highest[side] = max(highest[side], seq + length)
        arrives_s = ended_ns / 1e9 if how == _RECEIVED else None
        crossings.append(Crossing(kind, side == sender, time_ns / 1e9, arrives_s, is_tls))
    return crossings


def _rounds(crossings: list[Crossing]) -> list[Round]:
    """The rounds of the data's sender, and those in which the other end sends its part of the TLS handshake."""
    data = _batches([c for c in crossings if c.carries_data], [c for c in crossings if not c.from_sender])
    others = [c for c in crossings if not c.from_sender and c.is_tls]
    ordered = sorted(data + _batches(others, [c for c in crossings if c.from_sender]), key=lambda sent: sent[0].sent_s)
    rounds: list[Round] = []
    number = 0
    for sent, after in zip(ordered, [*ordered[1:], None], strict=True):
        from_sender = sent[0].from_sender
        counts = from_sender or (after is not None and not after[0].from_sender)
        number += counts
        again = sum(crossing.kind == "retransmission" for crossing in sent)
        tls = sum(crossing.is_tls for crossing in sent)
        began_s = sent[0].sent_s
        rounds.append(Round(number if counts else None, len(sent) - again, again, began_s, tls, from_sender))
    return rounds


def _batches(sent: Sequence[Crossing], answers: Sequence[Crossing]) -> list[list[Crossing]]:
    """A round ends with the answer to its first segment that arrived; the next segment sent begins the next."""
    batches: list[list[Crossing]] = []
    ends_s = 0.0
    for crossing in sent:
        if not batches or crossing.sent_s >= ends_s:
            batches.append([])
            ends_s = math.inf
        batches[-1].append(crossing)
        if ends_s == math.inf and crossing.arrives_s is not None:
            after = [c.arrives_s for c in answers if c.arrives_s is not None and c.sent_s >= crossing.arrives_s]
            ends_s = min(after, default=math.inf)
    return batches
