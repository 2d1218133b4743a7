"""Trees: users at the ends of groups of links behind one another, servers at the root."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, TypeAdapter, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from firstflight.counted import nearest
from firstflight.scenario.laws import Constant, ProbabilityLaw, RateLaw, TimeLaw, law_plan
from firstflight.scenario.network import MOST_LINKS, Direction, Link, LinkGroups, Topology, capacity
from firstflight.scenario.parts import Part, Rate, RoundTrips, is_changing
from firstflight.scenario.table import ScenarioTable
from firstflight.scenario.units import Duration

# The native module's names for the hosts at the root and for all those at the ends.
_SERVER, _USERS = "server", "users"
# The native module numbers them in 8 bits.
_MOST_GROUPS = 256

# The keys that a link of a group can draw: the plan's name, and the value used in its place to check the link.
_DRAWN = {"rate": ("rate_bps", "1Mbit"), "delay": ("delay_ns", "1ms"), "loss": ("loss", 0.0)}


_RATE: TypeAdapter[Any] = TypeAdapter(Rate)


def _drawn_rate(data: Any, law: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if data == "unlimited" or is_changing(data):
        return _RATE.validate_python(data, context=info.context)
    return law(data)


# A law of rates, or another form of a link's rate.
DrawnRate = Annotated[RateLaw, WrapValidator(_drawn_rate)]


class GroupDirection(Direction):
    """The reverse path of a group's links, where it differs: towards the root. Rate, delay and loss can be laws."""

    rate: DrawnRate | None = None  # type: ignore[assignment]
    delay: TimeLaw | None = None  # type: ignore[assignment]
    loss: ProbabilityLaw | None = None  # type: ignore[assignment]


class GroupLink(Link):
    """A link of a group, with the keys of every link; rate, delay and loss can be laws, drawn for each link.

    Forward is away from the root. Both directions of a link are drawn at the same quantile, each from its own law: the
    link with the fastest downlink has the fastest uplink.
    """

    rate: DrawnRate  # type: ignore[assignment]
    delay: TimeLaw  # type: ignore[assignment]
    loss: ProbabilityLaw = Field(default=0.0, validate_default=True)  # type: ignore[assignment]
    reverse: GroupDirection | None = None

    def group_plan(self) -> dict[str, Any]:
        """The link as the native module reads it, and the values drawn for either direction."""
        # Checks and plan are those of a link; laws leave a quantity in their place.
        document = self.model_dump(exclude_none=True)
        forward = self._laws(self, document)
        reverse = dict(forward)
        if self.reverse is not None:
            # A value given for the reverse path replaces the one drawn for the forward path.
            given = {_DRAWN[key][0] for key in _DRAWN if getattr(self.reverse, key) is not None}
            reverse = {name: law for name, law in forward.items() if name not in given}
            reverse |= self._laws(self.reverse, document["reverse"])
        drawn = {"rate_bps", "delay_ns"} & (forward.keys() | reverse.keys())
        for queue, laws in ((self.queue, forward), ((self.reverse and self.reverse.queue) or self.queue, reverse)):
            limit = getattr(queue, "limit", None)
            if isinstance(limit, Duration) and "rate_bps" in laws:
                laws["limit"] = {"time_ns": int(limit)}
            elif isinstance(limit, RoundTrips) and drawn:
                laws["limit"] = {"bdp_thousandths": int(limit)}
        return {"link": Link.model_validate(document).plan(), "draw": [forward, reverse]}

    @staticmethod
    def _laws(of: Link | Direction, document: dict[str, Any]) -> dict[str, Any]:
        laws = {}
        for key, (name, placeholder) in _DRAWN.items():
            law = getattr(of, key)
            if isinstance(law, ScenarioTable) and not isinstance(law, Constant | Part):
                laws[name] = law_plan(law, "ns")
                document[key] = placeholder
        return laws


class Group(ScenarioTable):
    """So many links alike behind each link of the group that it is `behind`, or behind the root.

    A group with nothing behind it has a user's host at each end, `name[i]`.
    """

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_-]*$",
        description="name of the group's links, and of its users if no group is behind it",
    )
    behind: str | None = Field(
        default=None, description="name of the parent group; default: the root, where the servers are"
    )
    count: int = Field(
        default=1, ge=1, le=MOST_LINKS, description="links per link of the parent group; at most 32,767 links in total"
    )
    link: GroupLink = Field(
        description="a link; `rate`, `delay` and `loss`, also in `reverse`, can be distributions. Both directions "
        "of a link are drawn at the same quantile, so the fastest downlink has the fastest uplink"
    )

    def plan(self) -> dict[str, Any]:
        """The group as the native module reads it."""
        return {"name": self.name, "behind": self.behind, "count": self.count, **self.link.group_plan()}


class Tree(Topology):
    """Servers at the root, one behind each link of `server`; forward is towards the users.

    Each `[[network.group]]` is behind the root or behind a group before it.
    """

    topology: Literal["tree"] = "tree"
    server: LinkGroups
    group: list[Group] = Field(min_length=1, max_length=_MOST_GROUPS)

    default_hosts: ClassVar[tuple[str, str]] = (_USERS, _SERVER)

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        known: list[str] = []
        for group in self.group:
            if group.name in (_SERVER, _USERS, *known):
                raise ValueError(f'two groups of hosts are called "{group.name}"; give this one another name')
            if group.behind is not None and group.behind not in known:
                raise ValueError(
                    f'group "{group.name}" is behind "{group.behind}", and no group before it is called so; '
                    f"{nearest(group.behind, known)}"
                )
            known.append(group.name)
        if self.link_count() > MOST_LINKS:
            raise ValueError(
                f"the tree has {self.link_count()} links; write fewer or smaller groups, at most {MOST_LINKS}"
            )
        return self

    def _totals(self) -> dict[str, int]:
        """Links of each group, behind all links of the group before it."""
        totals: dict[str, int] = {}
        for group in self.group:
            totals[group.name] = group.count * (1 if group.behind is None else totals[group.behind])
        return totals

    def link_count(self) -> int:
        """Those of the servers and of all groups."""
        return sum(g.count for g in self.server) + sum(self._totals().values())

    def hosts(self) -> dict[str, int]:
        """The servers, the users of each group with nothing behind it, and all users."""
        inner = {group.behind for group in self.group}
        users = {name: total for name, total in self._totals().items() if name not in inner}
        return {_SERVER: sum(g.count for g in self.server), **users, _USERS: sum(users.values())}

    def capacity_bps(self) -> float:
        """That of the servers' links together, or of a level whose rates are not drawn, whichever is least."""
        totals = self._totals()
        fixed = [
            float(group.link.rate.value) * totals[group.name]
            for group in self.group
            if isinstance(group.link.rate, Constant)
        ]
        return min([capacity([g for g in self.server for _ in range(g.count)]), *fixed])
