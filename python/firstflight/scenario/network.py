"""Links, queues and the three topologies a scenario can name."""

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from .explain import shown
from .table import Table, choose
from .units import BitsPerSecond, Bytes, Duration, Packets, Quantity

Unlimited = Literal["unlimited"]
# The native module numbers a network's links, each with two directions, in 16 bits.
MOST_LINKS = (2**16 - 1) // 2


def _queue_limit(data: Any) -> Any:
    """A limit in packets ("25p") or in bytes ("32kB"), above zero."""
    if isinstance(data, Packets | Bytes):
        limit: Quantity = data
    elif isinstance(data, str) and data.rstrip().endswith("p"):
        limit = Packets(data)
    elif isinstance(data, str) and data.rstrip().endswith("B"):
        limit = Bytes(data)
    else:
        raise ValueError(f'{shown(data)} is not a queue limit: write packets, such as "25p", or bytes, such as "32kB"')
    if limit < 1:
        raise ValueError(f'a queue of "{limit}" drops everything: write at least "1p"')
    return limit


Limit = Annotated[Packets | Bytes, BeforeValidator(_queue_limit)]


class DropTail(Table):
    """First in, first out; what finds it full is dropped.

    `counts_packet_in_service`: whether the packet being transmitted takes a place. It does for ns-2 (measured with
    ns-2.35); it does not for ns-3 and Linux.
    """

    kind: Literal["drop_tail"] = "drop_tail"
    limit: Limit
    counts_packet_in_service: bool = False

    def plan(self) -> dict[str, Any]:
        """The queue as the native module reads it."""
        key = "limit_packets" if isinstance(self.limit, Packets) else "limit_bytes"
        return {
            "kind": self.kind,
            key: int(self.limit),
            "counts_packet_in_service": self.counts_packet_in_service,
        }


class Red(Table):
    """Random Early Detection (Floyd and Jacobson 1993); defaults are ns-2's `Queue/RED`.

    Drops at random between the thresholds of the averaged queue, up to `max_probability`; `gentle` goes on rising
    to 1 at twice the upper threshold. `mean_packet` sets how the average decays while the link is idle. With `ecn`,
    packets of ECN-capable connections are marked where they would be dropped at random (RFC 3168).
    """

    kind: Literal["red"] = "red"
    limit: Packets
    min_threshold_packets: float = Field(default=5.0, gt=0)
    max_threshold_packets: float = Field(default=15.0, gt=0)
    max_probability: float = Field(default=0.1, gt=0, le=1)
    weight: float = Field(default=0.002, gt=0, le=1)
    gentle: bool = True
    mean_packet: Bytes = Bytes("500B")
    counts_packet_in_service: bool = False
    ecn: bool = False

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

    def plan(self) -> dict[str, Any]:
        """The queue as the native module reads it."""
        plan = self.model_dump(exclude={"limit", "mean_packet"})
        return plan | {"limit_packets": int(self.limit), "mean_packet_bytes": int(self.mean_packet)}


_QUEUES: dict[str, type[Table]] = {"drop_tail": DropTail, "red": Red}


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
    DropTail | Red,
    BeforeValidator(_queue, json_schema_input_type=Packets | Bytes | DropTail | Red),
    PlainSerializer(_written_queue),
]


def _rate(data: Any) -> Any:
    if data == "unlimited":
        return data
    rate = BitsPerSecond(data)
    if rate < 1:
        raise ValueError(f'a rate of "{rate}" sends nothing: write at least "1bit", or "unlimited"')
    return rate


Rate = Annotated[BitsPerSecond | Unlimited, BeforeValidator(_rate)]
Loss = Annotated[float, Field(ge=0, lt=1)]


class Grant(Table):
    """A router that grants Quick-Start requests as long as the link stays below a limit (RFC 4782 appendix D);
    without a `limit` that is the link's rate.
    """

    policy: Literal["grant"] = "grant"
    limit: BitsPerSecond | None = None

    def plan(self) -> dict[str, Any]:
        """The policy as the native module reads it."""
        return {"policy": self.policy, "limit_bps": None if self.limit is None else int(self.limit)}


class Lower(Table):
    """A router that lowers each Quick-Start request to at most `rate`."""

    policy: Literal["lower"] = "lower"
    rate: BitsPerSecond

    def plan(self) -> dict[str, Any]:
        """The policy as the native module reads it."""
        return {"policy": self.policy, "rate_bps": int(self.rate)}


class Refuse(Table):
    """A router that refuses each Quick-Start request."""

    policy: Literal["refuse"] = "refuse"

    def plan(self) -> dict[str, Any]:
        """The policy as the native module reads it."""
        return {"policy": self.policy}


_ROUTERS: dict[str, type[Table]] = {"grant": Grant, "lower": Lower, "refuse": Refuse}


def _router(data: Any) -> Any:
    if data is None or isinstance(data, Table):
        return data
    return choose({"policy": data} if isinstance(data, str) else data, _ROUTERS, "policy", "quick_start")


def _written_router(router: Table | None) -> Any:
    if router is None:
        return None
    written = router.model_dump(exclude_none=True)
    return written["policy"] if len(written) == 1 else written


# What the router before a link makes of Quick-Start requests; without it, it does not know them.
QuickStart = Annotated[
    Grant | Lower | Refuse | None,
    BeforeValidator(_router, json_schema_input_type=Literal["grant", "refuse"] | Grant | Lower | Refuse | None),
    PlainSerializer(_written_router),
]


def _ascending(numbers: list[int]) -> list[int]:
    if any(number < 1 for number in numbers) or any(b <= a for a, b in pairwise(numbers)):
        raise ValueError(f"{numbers} are not ascending numbers of data packets, such as [3, 14]; the first packet is 1")
    return numbers


Lost = Annotated[list[int], AfterValidator(_ascending)]


class TokenBucket(Table):
    """Linux's htb in place of a line that transmits packet after packet (`burst`).

    A packet passes, all of it at one moment, as soon as the tokens are not negative, and takes its bytes from them;
    the rate fills them up to `bytes`. Up to `gso_max_segs` data packets of one connection that reach the link at the
    same moment pass as one: a GSO packet.
    """

    bytes: Bytes
    gso_max_segs: int = Field(default=1, ge=1, le=65535)

    @model_validator(mode="after")
    def _holds_something(self) -> "TokenBucket":
        if not 1 <= self.bytes < 2**32:
            raise ValueError(f'burst is "{self.bytes}", and must be from 1 B to 4 GB; htb has at least "1600B"')
        return self


def _burst(data: Any) -> Any:
    return data if data is None or isinstance(data, dict | Table) else {"bytes": data}


def _written_burst(burst: TokenBucket | None) -> Any:
    if burst is None:
        return None
    return str(burst.bytes) if burst.gso_max_segs == 1 else burst.model_dump()


# A size alone is a bucket of that size.
Burst = Annotated[TokenBucket | None, BeforeValidator(_burst), PlainSerializer(_written_burst)]


class Direction(Table):
    """What `reverse` may replace: the way back of a link, where it differs from the way out."""

    rate: Rate | None = None
    delay: Duration | None = None
    queue: Queue | None = None
    loss: Loss | None = None
    lose: Lost | None = None
    quick_start: QuickStart = None
    burst: Burst = None


class Link(Table):
    """A link with both its directions: rate, one-way delay, queue, losses after transmission, and what the router
    before it makes of Quick-Start requests (RFC 4782). With `burst` a token bucket holds the rate.

    `loss` strikes every packet at random, with this probability; `lose` the data packets (those with payload) with
    these numbers, counted from 1 as the link transmits them in that direction, whoever sent them.
    """

    rate: Rate
    delay: Duration
    queue: Queue
    loss: Loss = 0.0
    lose: Lost = Field(default=[])
    quick_start: QuickStart = None
    burst: Burst = None
    reverse: Direction | None = None

    @model_validator(mode="after")
    def _tokens_have_a_rate(self) -> "Link":
        back = self.reverse or Direction()
        for where, rate, burst in (
            ("burst", self.rate, self.burst),
            ("reverse.burst", back.rate or self.rate, back.burst or self.burst),
        ):
            if rate == "unlimited" and burst is not None:
                raise ValueError(f"{where}: a link of unlimited rate has no token bucket; set a rate, or leave it out")
        return self

    def plan(self) -> dict[str, Any]:
        """Both directions as the native module reads them."""
        forward = _direction_plan(self.rate, self.delay, self.loss, self.lose, self.queue, self.quick_start, self.burst)
        back = self.reverse or Direction()
        reverse = _direction_plan(
            self.rate if back.rate is None else back.rate,
            self.delay if back.delay is None else back.delay,
            self.loss if back.loss is None else back.loss,
            self.lose if back.lose is None else back.lose,
            self.queue if back.queue is None else back.queue,
            self.quick_start if back.quick_start is None else back.quick_start,
            self.burst if back.burst is None else back.burst,
        )
        return {"forward": forward, "reverse": reverse}


def _direction_plan(
    rate: BitsPerSecond | Unlimited,
    delay: Duration,
    loss: float,
    lose: list[int],
    queue: DropTail | Red,
    quick_start: Grant | Lower | Refuse | None,
    burst: TokenBucket | None,
) -> dict[str, Any]:
    plan = {
        "rate_bps": None if isinstance(rate, str) else int(rate),
        "delay_ns": int(delay),
        "loss": loss,
        "lose": lose,
        "queue": queue.plan(),
    }
    if quick_start is not None:
        plan["quick_start"] = quick_start.plan()
    if burst is not None:
        plan["burst"] = {"bytes": int(burst.bytes), "gso_max_segs": burst.gso_max_segs}
    return plan


class Links(Link):
    """So many links alike."""

    count: int = Field(default=1, ge=1, le=MOST_LINKS)


def _groups(data: Any) -> Any:
    return [data] if isinstance(data, dict | Links) else data


# One table ({ count = 4, ... }) or a list of them.
LinkGroups = Annotated[
    list[Links], BeforeValidator(_groups, json_schema_input_type=Links | list[Links]), Field(min_length=1)
]


def _expanded(groups: list[Links]) -> list[dict[str, Any]]:
    return [group.plan() for group in groups for _ in range(group.count)]


class Topology(Table, ABC):
    """What every topology answers: its plan, its hosts, and where clients and servers sit unless told."""

    @abstractmethod
    def plan(self) -> dict[str, Any]:
        """The topology as the native module reads it."""

    @abstractmethod
    def hosts(self) -> dict[str, int]:
        """Names of the host groups and how many hosts each has; "name[i]" is one of them."""

    @abstractmethod
    def default_hosts(self) -> tuple[str, str]:
        """(client hosts, server hosts) for an application that does not say."""

    @abstractmethod
    def capacity_bps(self) -> float:
        """The rate that bounds how much work a second of this network is; for ordering cells, not a result."""


class Dumbbell(Topology):
    """Hosts on the left, hosts on the right, two routers and a bottleneck between; forward is left to right."""

    topology: Literal["dumbbell"] = "dumbbell"
    bottleneck: Link
    left: LinkGroups
    right: LinkGroups

    def plan(self) -> dict[str, Any]:
        """The topology as the native module reads it."""
        return {
            "topology": "dumbbell",
            "bottleneck": self.bottleneck.plan(),
            "left": _expanded(self.left),
            "right": _expanded(self.right),
        }

    def hosts(self) -> dict[str, int]:
        """Hosts on either side."""
        return {"left": sum(g.count for g in self.left), "right": sum(g.count for g in self.right)}

    def default_hosts(self) -> tuple[str, str]:
        """Clients on the left, servers on the right."""
        return "left", "right"

    def capacity_bps(self) -> float:
        """The bottleneck's."""
        return _capacity([self.bottleneck])


class Star(Topology):
    """One server host behind the `hub` link, users behind the `spokes`; forward is from the server to the users."""

    topology: Literal["star"] = "star"
    hub: Link
    spokes: LinkGroups

    def plan(self) -> dict[str, Any]:
        """The topology as the native module reads it."""
        return {"topology": "star", "hub": self.hub.plan(), "spokes": _expanded(self.spokes)}

    def hosts(self) -> dict[str, int]:
        """The one behind the hub, and the users."""
        return {"hub": 1, "spokes": sum(g.count for g in self.spokes)}

    def default_hosts(self) -> tuple[str, str]:
        """Clients on the spokes, servers at the hub."""
        return "spokes", "hub"

    def capacity_bps(self) -> float:
        """The lesser of the hub's and all spokes' together."""
        return min(_capacity([self.hub]), _capacity([g for g in self.spokes for _ in range(g.count)]))


class Chain(Topology):
    """Nodes in a row, node[0] to node[n] over n links; forward is from node[i] to node[i + 1]."""

    topology: Literal["chain"] = "chain"
    links: LinkGroups

    def plan(self) -> dict[str, Any]:
        """The topology as the native module reads it."""
        return {"topology": "chain", "links": _expanded(self.links)}

    def hosts(self) -> dict[str, int]:
        """One node more than links."""
        return {"node": sum(g.count for g in self.links) + 1}

    def default_hosts(self) -> tuple[str, str]:
        """The server at node[0], the client at the far end, so that data go forward."""
        return f"node[{self.hosts()['node'] - 1}]", "node[0]"

    def capacity_bps(self) -> float:
        """The slowest link's."""
        return min(_capacity([link]) for link in self.links)


# Stands in for an unlimited rate where cells are ordered by cost.
_UNLIMITED_BPS = 1e12


def _capacity(links: list[Any]) -> float:
    return sum(_UNLIMITED_BPS if isinstance(link.rate, str) else float(int(link.rate)) for link in links)


_TOPOLOGIES: dict[str, type[Table]] = {"dumbbell": Dumbbell, "star": Star, "chain": Chain}

Network = Annotated[
    Dumbbell | Star | Chain, BeforeValidator(lambda data: choose(data, _TOPOLOGIES, "topology", "network"))
]
