"""Arms: shares of the users that have their own TCP, so that adoption can be swept from none to all."""

from typing import Any, Literal

from pydantic import Field

from firstflight.scenario.table import ScenarioTable
from firstflight.scenario.tcp import Tcp


class Arm(ScenarioTable):
    """A share of the users, or of the connections, whose TCP differs from that of the rest.

    `of` "users": client *i* of every application is one user, and in an arm or not with all connections; "connections":
    each is drawn. A larger share holds all that are in a smaller one. `tcp` sets both ends, `client_tcp` and
    `server_tcp` one, over the application's settings.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$", description="suffix of the application's name in the records")
    share: float = Field(
        ge=0,
        le=1,
        description="fraction of users or connections in this arm; the fractions of all arms add up to at most 1",
    )
    of: Literal["users", "connections"] = Field(
        default="users",
        description='`"users"`: client *i* of every application is one user; `"connections"`: each connection is '
        "drawn separately",
    )
    tcp: Tcp | None = Field(
        default=None, description="TCP of both endpoints, where it differs from the application's; default: as there"
    )
    client_tcp: Tcp | None = Field(
        default=None, description="TCP of the clients in the arm, where it differs; default: as `tcp`"
    )
    server_tcp: Tcp | None = Field(
        default=None, description="TCP of the servers towards these clients, where it differs; default: as `tcp`"
    )


# Each has a number in the native module.
MOST_ARMS = 254


def check_arms(arms: list[Arm]) -> None:
    """ValueError for arms that cannot be together."""
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f'arm: two are called "{name}"; give each its own name')
    total = sum(arm.share for arm in arms)
    if total > 1 + 1e-9:
        raise ValueError(f"the shares of the arms add up to {total:g}; write shares of at most 1 together")
    if len({arm.of for arm in arms}) > 1:
        raise ValueError('some arms are of users and others of connections; write the same "of" in each')
    if len(arms) > MOST_ARMS:
        raise ValueError(f"there are {len(arms)} arms; write at most {MOST_ARMS}")


def arms_plan(arms: list[Arm] | None) -> dict[str, Any]:
    """The arms as the native module reads them; nothing without arms."""
    if not arms:
        return {}
    return {"arms": [{"name": arm.name, "share": arm.share} for arm in arms], "arms_of": arms[0].of}
