"""Queues that a link can have; a queue more is a class here and its name in `AnyQueue`."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from firstflight.errors import RequestError
from firstflight.scenario.explain import shown
from firstflight.scenario.table import Table, choose
from firstflight.scenario.units import Bytes, Duration, Packets, Quantity


class RoundTrips(Quantity):
    """A multiple of the link's own bandwidth-delay product (rate times propagation there and back), in thousandths of a
    bdp.
    """

    noun = "multiple of the bandwidth-delay product"
    example = "2bdp"
    units: ClassVar[dict[str, int]] = {"bdp": 1000}

    def __str__(self) -> str:
        return f"{int(self) / 1000:g}bdp"


_LIMITS: dict[str, type[Quantity]] = {"bdp": RoundTrips, "p": Packets, "B": Bytes, "s": Duration}


def _queue_limit(data: Any) -> Any:
    """A limit in packets ("25p"), bytes ("32kB"), time at the link's rate ("50ms") or bdp ("2bdp"), above zero."""
    kind = next(
        (kind for unit, kind in _LIMITS.items() if isinstance(data, str) and data.rstrip().endswith(unit)), None
    )
    if isinstance(data, tuple(_LIMITS.values())):
        limit: Any = data
    elif kind is not None:
        limit = kind(data)
    else:
        raise ValueError(
            f'{shown(data)} is not a queue limit: write packets, such as "25p", bytes, such as "32kB", time, such as '
            '"50ms", or "2bdp"'
        )
    if limit < 1:
        raise ValueError(f'a queue of "{limit}" drops everything: write at least "1p"')
    return limit


Limit = Annotated[Packets | Bytes | Duration | RoundTrips, BeforeValidator(_queue_limit)]


@dataclass(frozen=True)
class Before:
    """The link before which a queue is: its rate (None: unlimited), and its propagation there and back."""

    rate_bps: int | None
    round_trip_ns: int


def _limit_plan(limit: Quantity, link: Before) -> dict[str, int]:
    """{"packets": n} or {"bytes": n}. RequestError for a time at an unlimited rate, or one in which nothing fits."""
    if isinstance(limit, Packets | Bytes):
        return {"packets" if isinstance(limit, Packets) else "bytes": int(limit)}
    if link.rate_bps is None:
        raise RequestError(f'queue: a limit of "{limit}" needs a rate; write packets or bytes, such as "25p"')
    time_ns = int(limit) if isinstance(limit, Duration) else int(limit) * link.round_trip_ns // 1000
    size = link.rate_bps * time_ns // 8_000_000_000
    if size < 1:
        raise RequestError(f'queue: a limit of "{limit}" is less than a byte on this link; write at least "1p"')
    return {"bytes": size}


class DropTail(Table):
    """First in, first out; arrivals at a full queue are dropped.

    `counts_packet_in_service`: whether the packet being transmitted takes a place. It does for ns-2 (measured with
    ns-2.35); it does not for ns-3 and Linux.
    """

    kind: Literal["drop_tail"] = "drop_tail"
    limit: Limit
    counts_packet_in_service: bool = False

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        ((unit, limit),) = _limit_plan(self.limit, link).items()
        return {
            "kind": self.kind,
            f"limit_{unit}": limit,
            "counts_packet_in_service": self.counts_packet_in_service,
        }


class Red(Table):
    """Random Early Detection (Floyd and Jacobson 1993); defaults are ns-2's `Queue/RED`.

    Drops at random between the thresholds of the averaged queue, up to `max_probability`; `gentle` goes on rising
    to 1 at twice the upper threshold. `mean_packet` sets how the average decays while the link is idle. With `ecn`,
    packets of ECN-capable connections are marked where they would be dropped at random (RFC 3168).
    """

    kind: Literal["red"] = "red"
    limit: Packets = Field(description="hard limit, in packets")
    min_threshold_packets: float = Field(
        default=5.0, gt=0, description="average queue above which packets are dropped at random"
    )
    max_threshold_packets: float = Field(
        default=15.0, gt=0, description="average queue at which the drop probability is `max_probability`"
    )
    max_probability: float = Field(default=0.1, gt=0, le=1, description="drop probability at `max_threshold_packets`")
    weight: float = Field(default=0.002, gt=0, le=1, description="weight of a new sample in the average")
    gentle: bool = Field(
        default=True,
        description="gentle RED: the drop probability rises to 1 at twice `max_threshold_packets`, instead of "
        "dropping all packets above it",
    )
    mean_packet: Bytes = Field(default=Bytes("500B"), description="packet size used to decay the average in idle times")
    counts_packet_in_service: bool = Field(default=False, description="count the packet in service against `limit`")
    ecn: bool = Field(
        default=False,
        description="CE-mark packets of ECN-capable connections instead of dropping them at random (RFC 3168); `ecn` "
        "in `[tcp]` makes connections capable",
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Red":
        if self.limit < 1:
            raise ValueError('a queue of "0p" drops everything: write at least "1p"')
        if self.min_threshold_packets >= self.max_threshold_packets:
            raise ValueError(
                f"min_threshold_packets ({self.min_threshold_packets:g}) is not below "
                f"max_threshold_packets ({self.max_threshold_packets:g})"
            )
        return self

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        plan = self.model_dump(exclude={"limit", "mean_packet"})
        return plan | {"limit_packets": int(self.limit), "mean_packet_bytes": int(self.mean_packet)}


class Codel(Table):
    """Controlled Delay (RFC 8289), which decides as packets leave.

    Once the delay in the queue has been above `target` for an `interval`, packets are dropped, faster and faster, until
    it is below. With `ecn`, packets of ECN-capable connections are marked instead. Beyond `limit` arrivals are dropped.
    """

    kind: Literal["codel"] = "codel"
    limit: Limit = Field(default=Packets("1000p"), description="limit; arriving packets beyond it are dropped")
    target: Duration = Field(default=Duration("5ms"), description="target queueing delay")
    interval: Duration = Field(
        default=Duration("100ms"),
        description="time above `target` before the first drop; later intervals shrink with the square root of the "
        "number of drops (RFC 8289)",
    )
    ecn: bool = Field(default=False, description="CE-mark packets of ECN-capable connections instead of dropping them")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.target <= self.interval:
            raise ValueError(f'target ("{self.target}") must be above 0s and at most interval ("{self.interval}")')
        return self

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        return {"kind": self.kind} | self.law(link)

    def law(self, link: Before) -> dict[str, Any]:
        """CoDel's part of the plan."""
        return {
            "limit": _limit_plan(self.limit, link),
            "target_ns": int(self.target),
            "interval_ns": int(self.interval),
            "ecn": self.ecn,
        }


class FqCodel(Codel):
    """Flow queues with CoDel (RFC 8290).

    Connections hash into `flows` queues, each with CoDel, which send `quantum` bytes in turn; those of connections that
    have just begun or send little come first. All together hold `limit`: beyond it the longest queue loses half.
    """

    kind: Literal["fq_codel"] = "fq_codel"  # type: ignore[assignment]
    limit: Limit = Field(
        default=Packets("10240p"),
        description="limit; beyond it packets are dropped from the longest flow queue, up to half of it, 64 at most",
    )
    flows: int = Field(
        default=1024, ge=1, le=65536, description="number of flow queues, chosen by a hash of the connection"
    )
    quantum: Bytes = Field(default=Bytes("1514B"), description="bytes that a flow queue sends per round")

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        own = {"flows": self.flows, "quantum_bytes": int(self.quantum)}
        return {"kind": self.kind, "codel": self.law(link)} | own


class Priority(Table):
    """Strict priority: a packet leaves when none of a higher class waits. An application's `priority` is its class.

    Each class holds `limit`, first in, first out, or with `codel` by CoDel.
    """

    kind: Literal["priority"] = "priority"
    limit: Limit = Packets("1000p")
    codel: Codel | None = None

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        codel = None if self.codel is None else self.codel.law(link)
        return {"kind": self.kind, "limit": _limit_plan(self.limit, link), "codel": codel}


class Pie(Table):
    """Proportional Integral controller Enhanced (RFC 8033), which drops at random on arrival.

    Every `update` the probability follows the delay in the queue, which is to be `target`; a burst of `max_burst` after
    the queue was empty passes. `derandomize` spreads the drops. With `ecn`, packets of ECN-capable connections are
    marked instead as long as the probability is below 0.1. Beyond `limit` arrivals are dropped.
    """

    kind: Literal["pie"] = "pie"
    limit: Limit = Field(default=Packets("1000p"), description="limit; arriving packets beyond it are dropped")
    target: Duration = Field(default=Duration("15ms"), description="target queueing delay")
    update: Duration = Field(default=Duration("15ms"), description="time between updates of the drop probability")
    max_burst: Duration = Field(
        default=Duration("150ms"), description="burst length that passes without drops after an empty queue"
    )
    derandomize: bool = Field(default=True, description="derandomize drops (RFC 8033 section 5.4)")
    ecn: bool = Field(
        default=False,
        description="CE-mark packets of ECN-capable connections instead of dropping them, while the drop probability "
        "is below 0.1",
    )

    @model_validator(mode="after")
    def _above_zero(self) -> "Pie":
        if not (self.target > 0 and self.update > 0):
            raise ValueError(f'target ("{self.target}") and update ("{self.update}") must be above 0s')
        return self

    def plan(self, link: Before) -> dict[str, Any]:
        """The queue as the native module reads it."""
        return {
            "kind": self.kind,
            "limit": _limit_plan(self.limit, link),
            "target_ns": int(self.target),
            "update_ns": int(self.update),
            "max_burst_ns": int(self.max_burst),
            "derandomize": self.derandomize,
            "ecn": self.ecn,
        }


AnyQueue = DropTail | Red | Pie | Codel | FqCodel | Priority
_QUEUES: dict[str, type[Table]] = {queue.model_fields["kind"].default: queue for queue in get_args(AnyQueue)}


def _queue(data: Any) -> Any:
    if isinstance(data, Table):
        return data
    if isinstance(data, dict):
        return choose(data, _QUEUES, "kind", "queue")
    return DropTail(limit=data)


def _written_queue(queue: Table) -> Any:
    if isinstance(queue, DropTail) and not queue.counts_packet_in_service:
        return str(queue.limit)
    return queue.model_dump()


Queue = Annotated[
    AnyQueue,
    BeforeValidator(_queue, json_schema_input_type=Limit | Annotated[AnyQueue, Field(discriminator="kind")]),
    PlainSerializer(_written_queue),
]
