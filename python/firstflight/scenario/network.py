"""Links, and the topologies that are not trees."""

import re
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from firstflight.errors import RequestError
from firstflight.scenario.laws import Planned
from firstflight.scenario.parts import IMPAIRMENTS, Before, Loss, Part, Queue, Rate, impairment, mean_bps
from firstflight.scenario.table import ScenarioTable, choose
from firstflight.scenario.units import BitsPerSecond, Bytes, Duration

# The native module numbers a network's links, each with two directions, in 16 bits.
MOST_LINKS = (2**16 - 1) // 2


class Grant(Planned):
    """A router that grants Quick-Start requests as long as the link stays below a limit (RFC 4782 appendix D);
    without a `limit` that is the link's rate.
    """

    policy: Literal["grant"] = "grant"
    limit: BitsPerSecond | None = None

    planned: ClassVar[str] = "policy limit_bps"


class Lower(Planned):
    """A router that lowers each Quick-Start request to at most `rate`."""

    policy: Literal["lower"] = "lower"
    rate: BitsPerSecond

    planned: ClassVar[str] = "policy rate_bps"


class Refuse(Planned):
    """A router that refuses each Quick-Start request."""

    policy: Literal["refuse"] = "refuse"

    planned: ClassVar[str] = "policy"


_ROUTERS: dict[str, type[ScenarioTable]] = {"grant": Grant, "lower": Lower, "refuse": Refuse}


def _router(data: Any) -> Any:
    if data is None or isinstance(data, ScenarioTable):
        return data
    return choose({"policy": data} if isinstance(data, str) else data, _ROUTERS, "policy", "quick_start")


def _written_router(router: ScenarioTable | None) -> Any:
    if router is None:
        return None
    written = router.model_dump(exclude_none=True)
    return written["policy"] if len(written) == 1 else written


# The answer of the router before a link to Quick-Start requests. Without it, the router does not know them.
QuickStart = Annotated[
    Grant | Lower | Refuse | None,
    BeforeValidator(_router, json_schema_input_type=Literal["grant", "refuse"] | Grant | Lower | Refuse | None),
    PlainSerializer(_written_router),
]


def _ascending(numbers: list[int]) -> list[int]:
    # The native module counts packets in 32 bits.
    if any(not 1 <= number < 2**32 for number in numbers) or any(b <= a for a, b in pairwise(numbers)):
        raise ValueError(f"{numbers} are not ascending numbers of data packets, such as [3, 14]; the first packet is 1")
    return numbers


Lost = Annotated[list[int], AfterValidator(_ascending)]


def _holds_something(burst: Bytes) -> Bytes:
    if not 1 <= burst < 2**32:
        raise ValueError(f'burst is "{burst}", and must be from 1 B to 4 GB; htb has at least "1600B"')
    return burst


# Linux's htb in place of a line that transmits packet after packet: a packet passes, all of it at one moment, as soon
# as the tokens are not negative, and takes its bytes from them; the rate fills them up to this number of bytes.
Burst = Annotated[Bytes, AfterValidator(_holds_something)]


def _packets(gso: Any) -> Any:
    if not isinstance(gso, bool) and (not isinstance(gso, int) or not 2 <= gso <= 65535):
        raise ValueError(f"gso is {gso!r}, and must be true, false or a number of segments from 2 to 65535")
    return gso


# Segments that take one place in the queue: true, those of a train of the sender; or so many of one connection at most.
Gso = Annotated[bool | Annotated[int, Field(ge=2, le=65535)], BeforeValidator(_packets)]


class Direction(ScenarioTable):
    """The keys that `reverse` may replace: the reverse path of a link, where it differs from the forward path."""

    rate: Rate | None = None
    delay: Duration | None = None
    queue: Queue | None = None
    loss: Loss | None = None
    loss_list: Lost | None = None
    quick_start: QuickStart = None
    burst: Burst | None = None
    gso: Gso | None = None
    jitter: Annotated[Part | None, impairment("jitter")] = None
    reordering: Annotated[Part | None, impairment("reordering")] = None
    duplication: Annotated[Part | None, impairment("duplication")] = None
    wake: Annotated[Part | None, impairment("wake")] = None


class Link(ScenarioTable):
    """A link with both its directions: rate, one-way delay, queue, losses after transmission, and the answers of the
    router before it to Quick-Start requests (RFC 4782). With `burst` a token bucket holds the rate.

    `loss` strikes every packet at random, with this probability; `loss_list` the data packets (those with payload) with
    these numbers, counted from 1 as the link transmits them in that direction, over all connections.
    """

    rate: Rate = Field(
        description='transmission rate, headers included; `"unlimited"`: no transmission time; or a table for a '
        "variable rate, see below"
    )
    delay: Duration = Field(description="one-way propagation delay")
    queue: Queue = Field(description="queue before the link: a limit or a table, see below")
    loss: Loss = Field(
        default=0.0,
        description="loss probability of a packet, independent per packet; the losses of a connection depend only on "
        "the seed and the packet's number in the connection; or a table for burst losses, see below",
    )
    loss_list: Lost = Field(
        default=[],
        description="data packets to lose in addition, by ascending number, such as `[3, 14]`: 1 is the first that "
        "the link transmits in this direction, over all connections",
    )
    quick_start: QuickStart = Field(
        default=None,
        description='how the router before the link handles Quick-Start requests (RFC 4782): `"grant"` up to the link '
        'rate, or `{ policy = "grant", limit = "5Mbit" }`; `{ policy = "lower", rate = "1Mbit" }`; `"refuse"`; '
        "default: ignored",
    )
    burst: Burst | None = Field(
        default=None, description="token bucket (as in Linux's htb) instead of serial transmission: its size, see below"
    )
    gso: Gso | None = Field(
        default=None,
        description="a queue entry is one GSO packet, as on a host whose interface has offloads on: `true`: a train of "
        "the sender; or up to this number of data packets of one connection that arrive together, see below",
    )
    jitter: Annotated[Part | None, impairment("jitter")] = Field(
        default=None,
        description='random delay per packet, added to `delay`: its mean, `"5ms"`, or `{ mean = "5ms", distribution = '
        '"exponential", keep_order = false }`. Default distribution: `"uniform"` from 0 to twice the mean. With '
        "`keep_order = true`, the default, packets stay in order, as with link-layer retransmission; with `false` "
        "they may overtake each other",
    )
    reordering: Annotated[Part | None, impairment("reordering")] = Field(
        default=None,
        description='`{ share = 0.01, delay = "5ms" }`: this fraction of packets is delayed by `delay`, so that '
        "others overtake them",
    )
    duplication: Annotated[Part | None, impairment("duplication")] = Field(
        default=None,
        description='`0.01`, or `{ share = 0.01, delay = "1ms" }`: this fraction of packets is duplicated, the copy '
        'delayed by `delay` (default `"0s"`)',
    )
    wake: Annotated[Part | None, impairment("wake")] = Field(
        default=None,
        description='wake-up delay of an idle receiver: `"80us"`, or `{ delay = "80us", after = "5ms" }`: the first '
        "packet after an idle time of `after` (default 5 ms) is delayed by `delay`, and the packets behind it wait",
    )
    reverse: Direction | None = Field(
        default=None,
        description="the reverse direction, where it differs: a table of "
        f"{', '.join(f'`{key}`' for key in Direction.model_fields)}; default: as forward",
    )

    @model_validator(mode="after")
    def _tokens_have_a_rate(self) -> "Link":
        back = self.reverse or Direction()
        for where, rate, burst in (
            ("burst", self.rate, self.burst),
            ("reverse.burst", back.rate or self.rate, back.burst or self.burst),
        ):
            if rate == "unlimited" and burst is not None:
                raise ValueError(f"{where}: a link of unlimited rate has no token bucket; set a rate, or leave it out")
            if isinstance(rate, Part) and burst is not None:
                raise ValueError(f"{where}: a token bucket has one rate, and this one changes; leave burst out")
        return self

    def plan(self) -> dict[str, Any]:
        """Both directions as the native module reads them."""
        there = {name: getattr(self, name) for name in Direction.model_fields}
        replaced = {} if self.reverse is None else {name: getattr(self.reverse, name) for name in there}
        back = there | {name: value for name, value in replaced.items() if value is not None}
        round_trip_ns = int(there["delay"]) + int(back["delay"])
        return {"forward": _direction_plan(there, round_trip_ns), "reverse": _direction_plan(back, round_trip_ns)}


def _direction_plan(way: dict[str, Any], round_trip_ns: int) -> dict[str, Any]:
    rate_bps = mean_bps(way["rate"])
    plan = {
        "rate_bps": rate_bps,
        "delay_ns": int(way["delay"]),
        "loss": way["loss"] if isinstance(way["loss"], float | int) else 0.0,
        "lose": way["loss_list"],
        "queue": way["queue"].plan(Before(rate_bps, round_trip_ns)),
    }
    if not isinstance(way["loss"], float | int):
        plan["loss_model"] = way["loss"].plan()
    if isinstance(way["rate"], Part):
        plan["rate_schedule"] = way["rate"].plan()
    if way["quick_start"] is not None:
        plan["quick_start"] = way["quick_start"].plan()
    if impairments := [way[key].plan() for key in IMPAIRMENTS if way[key] is not None]:
        plan["impairments"] = impairments
    if way["burst"] is not None:
        plan["burst"] = {"bytes": int(way["burst"])}
    if way["gso"]:
        plan["gso"] = {"max_segs": None if way["gso"] is True else way["gso"]}
    return plan


class Links(Link):
    """So many links alike."""

    count: int = Field(default=1, ge=1, le=MOST_LINKS, description="number of equal links (lists only)")


def _groups(data: Any) -> Any:
    return [data] if isinstance(data, dict | Links) else data


# One table ({ count = 4, ... }) or a list of them.
LinkGroups = Annotated[
    list[Links], BeforeValidator(_groups, json_schema_input_type=Links | list[Links]), Field(min_length=1)
]


class Topology(ScenarioTable, ABC):
    """The interface of every topology: its plan, its hosts, and the default places of clients and servers."""

    @property
    @abstractmethod
    def default_hosts(self) -> tuple[str, str]:
        """(client hosts, server hosts) for an application that does not say."""

    def plan(self) -> dict[str, Any]:
        """The topology as the native module reads it."""
        plan: dict[str, Any] = {}
        for key, value in self:
            plan[key] = value.plan() if isinstance(value, Link) else value
            if isinstance(value, list):
                plan[key] = [part.plan() for part in value for _ in range(part.count if isinstance(part, Links) else 1)]
        return plan

    def hosts(self) -> dict[str, int]:
        """Names of the host groups and how many hosts each has, one behind each link of a list; "name[i]" is one."""
        return {key: sum(group.count for group in value) for key, value in self if isinstance(value, list)}

    def link_count(self) -> int:
        """About how many links there are, each with two directions: one per host, unless overridden."""
        return sum(self.hosts().values())

    @abstractmethod
    def capacity_bps(self) -> float:
        """The rate that bounds how much work a second of this network is; for ordering cells, not a result."""


class Dumbbell(Topology):
    """Hosts on the left, hosts on the right, two routers and a bottleneck between; forward is left to right."""

    topology: Literal["dumbbell"] = "dumbbell"
    bottleneck: Link
    left: LinkGroups
    right: LinkGroups

    default_hosts: ClassVar[tuple[str, str]] = ("left", "right")

    def capacity_bps(self) -> float:
        """The bottleneck's."""
        return capacity([self.bottleneck])


class Star(Topology):
    """One server host behind the `hub` link, users behind the `spokes`; forward is from the server to the users."""

    topology: Literal["star"] = "star"
    hub: Link
    spokes: LinkGroups

    default_hosts: ClassVar[tuple[str, str]] = ("spokes", "hub")

    def hosts(self) -> dict[str, int]:
        """The one behind the hub, and the users."""
        return {"hub": 1} | super().hosts()

    def capacity_bps(self) -> float:
        """The lesser of the hub's and all spokes' together."""
        return min(capacity([self.hub]), capacity([g for g in self.spokes for _ in range(g.count)]))


class Chain(Topology):
    """Nodes in a row, node[0] to node[n] over n links; forward is from node[i] to node[i + 1]."""

    topology: Literal["chain"] = "chain"
    links: LinkGroups

    def hosts(self) -> dict[str, int]:
        """One node more than links."""
        return {"node": sum(g.count for g in self.links) + 1}

    @property
    def default_hosts(self) -> tuple[str, str]:
        """The server at node[0], the client at the far end, so that data go forward."""
        return f"node[{self.hosts()['node'] - 1}]", "node[0]"

    def capacity_bps(self) -> float:
        """The slowest link's."""
        return min(capacity([link]) for link in self.links)


# Stands in for an unlimited rate where cells are ordered by cost.
_UNLIMITED_BPS = 1e12


def capacity(links: list[Any]) -> float:
    """The rates of all links together, in bit/s."""
    return sum(mean_bps(link.rate) or _UNLIMITED_BPS for link in links)


_LINK = re.compile(r"([a-z][a-z0-9_-]*)(?:\[([0-9]{1,9})\])?(\.reverse)?")


def link_rate_bps(network: dict[str, Any], name: str) -> int:
    """Rate of a link of a plan's network by its name in the records; RequestError if it has none."""
    match = _LINK.fullmatch(name)
    pair = None
    if match is not None:
        group, index = match.group(1), int(match.group(2) or 0)
        links = network.get(group)
        trees = [item for item in network.get("group", []) if item["name"] == group]
        if isinstance(links, dict):
            pair = links
        elif isinstance(links, list) and group != "group" and index < len(links):
            pair = links[index]
        elif trees:
            if "rate_bps" in trees[0]["draw"][match.group(3) is not None]:
                raise RequestError(f'the rate of "{name}" is drawn from a law; name a link of one rate')
            pair = trees[0]["link"]
    if match is None or pair is None:
        raise RequestError(f'there is no link "{name}"; write its name as the table links of a run has it')
    rate = pair["reverse" if match.group(3) else "forward"]["rate_bps"]
    if rate is None:
        raise RequestError(f'the rate of "{name}" is unlimited; name a link that has one')
    return int(rate)
