"""A scenario's network as a testbed: hosts with addresses, links, and the path of links between each two hosts.

Links have the names that the simulator's records have, and a pair of hosts the same links in the same order.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import chain, takewhile
from typing import Any

from firstflight import _native
from firstflight.engines import APPLICATION, OF_KIND, PLAN, check_named
from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.scenario import LARGEST_MTU

# Every host has one address in it, by the scenario's `ip`, and a route to all of it over its only device.
NETWORKS: dict[str, IPv4Network | IPv6Network] = {"ipv4": ip_network("10.77.0.0/16"), "ipv6": ip_network("fd77::/64")}
# Of every host's device, where it has one: each is alone in its namespace.
HOST_MAC = "02:66:66:00:00:01"
# The last stretch before a deadline that the link emulator does not sleep: a processor takes about 33 µs to wake. It
# spends at most a quarter of its time so.
SPIN_NS = 60_000
# A thread and a network namespace a host; the addresses would last for 65,000.
MOST_HOSTS = 4000

Crossing = tuple[str, str]
Ends = tuple[str, str, int]
"""Of a connection: the server's address, the client's, and the client's port. A client may have one port towards two
servers."""
_OPPOSITE = {"forward": "reverse", "reverse": "forward"}
# What laws of a tree can set, also by way of the rate: the limit of a queue in time.
_DRAWN = ("rate_bps", "delay_ns", "loss", "queue")


@dataclass(frozen=True)
class HostPlan:
    """One machine of the testbed. `name` is the scenario's ("left[0]"); `stack` "kernel" or "firstflight": whose TCP
    answers at `address`. The kernel of a host that is not its own gets no address, so that it keeps silent.
    """

    name: str
    address: str
    stack: str = "kernel"


@dataclass(frozen=True)
class Placement:
    """The hosts of an application: `clients[i]` is the host of its client i, `servers` those it may ask; `priority`:
    the class of its packets.
    """

    name: str
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    by_client: bool
    priority: int = 0

    def servers_of(self, client: int) -> tuple[str, ...]:
        """The hosts that client i may ask."""
        return (self.servers[client % len(self.servers)],) if self.by_client else self.servers


@dataclass(frozen=True)
class Layout:
    """All that a testbed is made of. `links` and `routes` are as the link emulator reads them, which calls its ports by
    the hosts' names. `drawn_from`: the plan by which each replicate draws its links; none: they are the same in all.
    """

    hosts: tuple[HostPlan, ...]
    links: tuple[dict[str, Any], ...]
    routes: tuple[dict[str, Any], ...]
    placements: tuple[Placement, ...]
    duration_ns: int
    meter_interval_ns: int | None
    ip: str = "ipv4"
    mtu: int = 1500
    drawn_from: str | None = None

    def of_replicate(self, seed: int, replicate: int) -> "Layout":
        """With the links that the simulator draws for this replicate. RequestError if no link can be as drawn."""
        if self.drawn_from is None:
            return self
        try:
            drawn = dict(json.loads(_native.draw_links(self.drawn_from, seed, replicate)))
        except ValueError as error:
            raise RequestError(str(error)) from None
        links = [
            {"name": link["name"]}
            | {way: link[way] | {key: drawn[name][key] for key in _DRAWN} for name, way in _both_ways(link)}
            for link in self.links
        ]
        return replace(self, links=tuple(links))

    def host(self, name: str) -> HostPlan:
        """The host of that name; KeyError if the testbed has none."""
        return next(host for host in self.hosts if host.name == name)

    def directions(self) -> dict[str, dict[str, Any]]:
        """Both directions of each link, by their names in the records, in their order there."""
        return {name: link[way] for link in self.links for name, way in _both_ways(link)}

    def path(self, source: str, destination: str) -> list[str]:
        """The links from one host to another, named as in the records."""
        ends = (source, destination)
        route = next(route for route in self.routes if (route["from"], route["to"]) == ends)
        return [name if way == "forward" else f"{name}.reverse" for name, way in route["path"]]

    def box_plan(self, seed: int = 0, log: bool = False, spin_ns: int = SPIN_NS) -> dict[str, Any]:
        """Settings of the link emulator. `seed`: of its random losses; `log`: a row for each packet at each link;
        `spin_ns`: how long before a deadline it stops sleeping.
        """
        return {
            "links": list(self.links),
            "ports": [{"name": host.name, "address": host.address, "peer_mac": HOST_MAC} for host in self.hosts],
            "routes": list(self.routes),
            "duration_ns": self.duration_ns,
            "meter_interval_ns": self.meter_interval_ns or self.duration_ns,
            "seed": seed,
            "log": log,
            "spin_ns": spin_ns,
            "mtu": self.mtu,
        }


def lay_out(scenario: Scenario) -> Layout:
    """The testbed for a scenario: the hosts that its applications use and every link of its network.

    RequestError for a client that shares a host with its server, for a host that both TCPs would have to answer for,
    for more hosts than MOST_HOSTS, for a population, and for segments longer than a packet.
    """
    groups = scenario.one_network("The engine emulate").hosts()
    plan = scenario.to_plan()
    check_named("emulate", "plan", plan, PLAN)
    for application in plan["applications"]:
        if command := OF_KIND.get(application["kind"]):
            check_named("emulate", f"application.{application['name']}", application, f"{APPLICATION} {command}")
    network = plan["network"]
    known = {group: [f"{group}[{index}]" for index in range(count)] for group, count in groups.items()}
    if "users" in known:
        # All users of a tree, by the names of their own groups.
        users = [name for group, names in known.items() if group not in ("server", "users") for name in names]
        known["users"] = users
    placements = [_placement(application, known) for application in plan["applications"]]
    stacks: dict[str, str] = {}
    for index, placement in enumerate(placements):
        client, server = scenario.stacks(index)
        for stack, names in ((client, placement.clients), (server, placement.servers)):
            for name in names:
                if stacks.setdefault(name, stack) != stack:
                    raise RequestError(
                        f'application.{placement.name}: host "{name}" has stack = "{stacks[name]}" in another use; '
                        f"give the two uses different hosts"
                    )
    if len(stacks) > MOST_HOSTS:
        raise RequestError(f"the applications use {len(stacks)} hosts; a testbed has at most {MOST_HOSTS}")
    used = [name for name in dict.fromkeys(chain.from_iterable(known.values())) if name in stacks]
    if (mtu := scenario.mtu_bytes()) > LARGEST_MTU:
        raise RequestError(
            f"tcp.mss: its packets have {mtu}B, and a device carries at most {LARGEST_MTU}B; write a smaller one"
        )
    network_of = NETWORKS[scenario.ip]
    hosts = tuple(HostPlan(name, str(network_of[at]), stacks[name]) for at, name in enumerate(used, start=1))
    return Layout(
        hosts=hosts,
        links=tuple(map(_without_wake, _links(network))),
        routes=tuple(_routes(network, placements)),
        placements=tuple(placements),
        duration_ns=plan["duration_ns"],
        meter_interval_ns=plan["meter_interval_ns"],
        ip=scenario.ip,
        mtu=mtu,
        drawn_from=json.dumps(plan) if any(any(group["draw"]) for group in network.get("group", [])) else None,
    )


def _both_ways(link: dict[str, Any]) -> list[Crossing]:
    return [(link["name"], "forward"), (f"{link['name']}.reverse", "reverse")]


def _placement(application: dict[str, Any], known: dict[str, list[str]]) -> Placement:
    clients = _selected(application["client_hosts"], known)
    return Placement(
        name=application["name"],
        clients=tuple(clients[index % len(clients)] for index in range(application["clients"])),
        servers=tuple(_selected(application["server_hosts"], known)),
        by_client=application["server_choice"] == "by_client",
        priority=application["class"],
    )


def _selected(selection: str, known: dict[str, list[str]]) -> list[str]:
    group, _, index = selection.removesuffix("]").partition("[")
    return [known[group][int(index)]] if index else known[group]


def _links(network: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for group in ("bottleneck", "hub"):
        if group in network:
            yield {"name": group} | network[group]
    for group in ("left", "right", "spokes", "links", "server"):
        for index, pair in enumerate(network.get(group, [])):
            yield {"name": f"{group}[{index}]"} | pair
    totals: dict[str | None, int] = {None: 1}
    for group in network.get("group", []):
        totals[group["name"]] = totals[group["behind"]] * group["count"]
        for index in range(totals[group["name"]]):
            yield {"name": f"{group['name']}[{index}]"} | group["link"]


def _without_wake(link: dict[str, Any]) -> dict[str, Any]:
    """Real hosts wake as they do: the link emulator does not add the simulator's `wake` to it."""
    for way in (link[name] for name in _OPPOSITE):
        if kept := [impairment for impairment in way.pop("impairments", []) if impairment["kind"] != "wake"]:
            way["impairments"] = kept
    return link


def _routes(network: dict[str, Any], placements: list[Placement]) -> Iterator[dict[str, Any]]:
    seen: dict[Crossing, Placement] = {}
    for placement in placements:
        for index, client in enumerate(placement.clients):
            for server in placement.servers_of(index):
                if client == server:
                    raise RequestError(
                        f'application.{placement.name}: a client and its server sit on one host, "{client}", with no '
                        f"link between them; name other client_hosts or server_hosts"
                    )
                before = seen.get((server, client))
                if before is not None and before.priority != placement.priority:
                    raise RequestError(
                        f"application.{placement.name}.priority: the link emulator knows classes by pairs of hosts, "
                        f"and application.{before.name} has {before.priority} between {client} and {server}, not "
                        f"{placement.priority}; give the two different client_hosts or server_hosts"
                    )
                for source, destination in ((server, client), (client, server)):
                    if (source, destination) not in seen:
                        seen[source, destination] = placement
                        path = list(_path(network, source, destination))
                        yield {"from": source, "to": destination, "path": path, "class": placement.priority}


def _path(network: dict[str, Any], source: str, destination: str) -> Iterator[Crossing]:
    """The links from one host to another, each with the direction in which it is crossed."""
    topology = network["topology"]
    if topology == "chain":
        first, last = _index(source), _index(destination)
        if first < last:
            yield from ((f"links[{index}]", "forward") for index in range(first, last))
        else:
            yield from ((f"links[{index}]", "reverse") for index in range(first - 1, last - 1, -1))
    elif topology == "star":
        yield _star_link(source, to_router=True)
        yield _star_link(destination, to_router=False)
    elif topology == "tree":
        ways = [list(_from_root(network["group"], host)) for host in (source, destination)]
        shared = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(*ways, strict=False)))
        yield from ((name, _OPPOSITE[way]) for name, way in reversed(ways[0][shared:]))
        yield from ways[1][shared:]
    else:
        yield source, "forward" if source.startswith("left") else "reverse"
        sides = source.startswith("left"), destination.startswith("left")
        if sides[0] != sides[1]:
            yield "bottleneck", "forward" if sides[0] else "reverse"
        yield destination, "reverse" if destination.startswith("left") else "forward"


def _star_link(host: str, to_router: bool) -> Crossing:
    """The hub's forward direction leads to the users, as do the spokes'."""
    is_hub = host == "hub[0]"
    return "hub" if is_hub else host, "forward" if is_hub == to_router else "reverse"


def _from_root(groups: list[dict[str, Any]], host: str) -> Iterator[Crossing]:
    """The links from a tree's root to a host. Forward is towards the users, from the servers on."""
    name, _, index = host.removesuffix("]").partition("[")
    if name == "server":
        yield host, "reverse"
        return
    group = next(group for group in groups if group["name"] == name)
    if group["behind"] is not None:
        yield from _from_root(groups, f"{group['behind']}[{int(index) // group['count']}]")
    yield host, "forward"


def _index(node: str) -> int:
    return int(node.removeprefix("node[").removesuffix("]"))


def refuse_links(layout: Layout, scenario: Scenario) -> None:
    """GSO packets."""
    for link in layout.links:
        for direction in ("forward", "reverse"):
            if "gso" in link[direction]:
                raise RequestError(
                    f'scenario "{scenario.name}": gso of {link["name"]} is set, but the link emulator gets the '
                    "segments of a GSO packet one by one; leave it out, or use simulate"
                )
