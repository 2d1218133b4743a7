"""The first users of a population as their own network, for engines and tools that need one."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from firstflight.errors import RequestError

if TYPE_CHECKING:
    from firstflight.scenario.applications import Application
    from firstflight.scenario.scenario import Scenario


def star_of_users(scenario: "Scenario", seed: int, replicate: int = 0, users: int = 10) -> "Scenario":
    """The first `users` of a replicate of a population, each at a spoke of a star with the path that was drawn for
    them; the hub adds nothing.

    User i sits at `spokes[i]`. An application that only some of them run, or whose sizes come from the table's rows, is
    there once for each user who runs it, called NAME.i. All users act at the same time, and end with the scenario's
    duration; random losses and the draws of such applications are others than in the population. RequestError for a
    scenario without a population, for more users than it has, and where none of them does anything.
    """
    from firstflight import _native

    population = scenario.population
    if population is None:
        raise RequestError(f'"{scenario.name}" has a [network] already, and no [population] to take users from')
    if not 1 <= users <= population.users:
        raise RequestError(f"users is {users}; the population has 1 to {population.users} to take")
    try:
        drawn = _native.draw_users(json.dumps(scenario.to_plan()), seed, replicate, users)
    except (ValueError, OverflowError) as error:
        raise RequestError(f'scenario "{scenario.name}": {error}') from None
    path = {name: np.frombuffer(content, np.dtype(dtype)) for name, (dtype, content) in drawn["users"].items()}
    spokes = []
    for user in range(users):
        rtt_ns = round(float(path["rtt_s"][user]) * 1e9)
        spokes.append(
            {
                "rate": f"{int(path['down_bps'][user])}bit",
                "delay": f"{rtt_ns // 2}ns",
                "queue": f"{int(path['buffer_bytes'][user])}B",
                "loss": float(path["loss"][user]),
                "reverse": {
                    "rate": f"{int(path['up_bps'][user])}bit",
                    "delay": f"{rtt_ns - rtt_ns // 2}ns",
                    "queue": f"{drawn['up_buffer_bytes'][user]}B",
                    "loss": 0.0,
                },
            }
        )
    document = scenario.to_dict()
    document.pop("population")
    document["name"] = f"{scenario.name}-star"
    document["network"] = {
        "topology": "star",
        "hub": {"rate": "unlimited", "delay": "0s", "queue": "1000p"},
        "spokes": spokes,
    }
    document["application"] = [
        application
        for index, item in enumerate(scenario.application)
        for application in _applications(
            item,
            item.model_dump(exclude_none=True) | {"name": scenario.names()[index], "user_fraction": 1.0},
            drawn["runs"][index],
            drawn["bytes"],
            drawn["handshakes"],
        )
    ]
    if not document["application"]:
        raise RequestError(f"none of the first {users} users runs an application; take more of them")
    return type(scenario).from_dict(document, source="")


def _applications(
    item: "Application",
    table: dict[str, Any],
    runs: list[bool],
    sizes: list[float],
    handshakes: list[tuple[float, int]],
) -> list[dict[str, Any]]:
    """The application for all users at once where it can be, else one for each who runs it."""
    from_row, tls = table.get("size") == "row", getattr(item, "tls", None)
    tls_from_row = tls is not None and tls.flights == "row"
    if all(runs) and not from_row and not tls_from_row:
        return [table | {"clients": len(runs), "client_hosts": "spokes"}]
    return [
        table
        | {"name": f"{table['name']}.{user}", "client_hosts": f"spokes[{user}]"}
        | ({"size": f"{round(sizes[user])}B"} if from_row else {})
        | ({"tls": tls.of_row(*handshakes[user])} if tls is not None and tls_from_row else {})
        for user, does in enumerate(runs)
        if does
    ]
