"""A scenario's network as a testbed: hosts with addresses, links, and the path of links between each two hosts.

Links have the names that the simulator's records have, and a pair of hosts the same links in the same order.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from firstflight import _native
from firstflight.engines import APPLICATION, OF_KIND, PLAN, check_named
from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.scenario import LARGEST_MTU
from firstflight.scenario.tree import Tree

# Every host has one address in it, by the scenario's `ip`, and a route to all of it over its only device.
NETWORKS: dict[str, IPv4Network | IPv6Network] = {"ipv4": ip_network("10.77.0.0/16"), "ipv6": ip_network("fd77::/64")}
# Of every host's device, where it has one: each is alone in its namespace.
HOST_MAC = "02:66:66:00:00:01"
# The last stretch before a deadline that the link emulator does not sleep: a processor takes about 33 µs to wake. It
# spends at most a quarter of its time so.
SPIN_NS = 60_000
# A thread and a network namespace a host; the addresses would last for 65,000.
MOST_HOSTS = 4000
_REVERSE = ".reverse"

Ends = tuple[str, str, int]
"""Of a connection: the server's address, the client's, and the client's port. A client may have one port towards two
servers."""
Links = dict[str, dict[str, Any]]
"""Of each direction, as the link emulator reads it, by its name in the records and in their order."""


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
    """All that a testbed is made of. `paths`: the names of the links from one host to another, and its packets' class.
    `drawn_from`: the plan by which each replicate draws its links; none: they are the same in all.
    """

    hosts: tuple[HostPlan, ...]
    links: Links
    paths: dict[tuple[str, str], tuple[list[str], int]]
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
        return replace(self, links=_links(_topology(self.drawn_from, seed, replicate)))

    def host(self, name: str) -> HostPlan:
        """The host of that name; KeyError if the testbed has none."""
        return next(host for host in self.hosts if host.name == name)

    def path(self, source: str, destination: str) -> list[str]:
        """The links from one host to another, named as in the records."""
        return self.paths[source, destination][0]

    def patience_s(self, size: int) -> float:
        """A time in which this number of bytes has certainly crossed the slowest link, losses included."""
        slowest = min((way["rate_bps"] for way in self.links.values() if way["rate_bps"]), default=1e9)
        return 10.0 + 3 * 8 * size / slowest + 20 * self.round_trip_s()

    def round_trip_s(self) -> float:
        """The longest of the layout's round trips, without queues."""
        links = self.links
        paths = [path for path, _ in self.paths.values()]
        return float(2 * max(sum(links[name]["delay_ns"] / 1e9 for name in path) for path in paths))

    def emptying_s(self) -> float:
        """The time that every link takes, one after the other, to carry off a full queue."""
        ways = self.links.values()
        return float(sum(way["delay_ns"] / 1e9 + _queue_s(way["queue"], way["rate_bps"], self.mtu) for way in ways))

    def both_ways(self) -> list[dict[str, Any]]:
        """The links as the link emulator reads them."""
        names = [name for name in self.links if not name.endswith(_REVERSE)]
        return [{"name": name, "forward": self.links[name], "reverse": self.links[name + _REVERSE]} for name in names]

    def box_plan(self, seed: int = 0, log: bool = False, spin_ns: int = SPIN_NS) -> dict[str, Any]:
        """Settings of the link emulator. `seed`: of its random losses; `log`: a row for each packet at each link;
        `spin_ns`: how long before a deadline it stops sleeping.
        """
        routes = []
        for (source, destination), (path, priority) in self.paths.items():
            steps = [
                (name.removesuffix(_REVERSE), "reverse" if name.endswith(_REVERSE) else "forward") for name in path
            ]
            routes.append({"from": source, "to": destination, "path": steps, "class": priority})
        return {
            "links": self.both_ways(),
            "ports": [{"name": host.name, "address": host.address, "peer_mac": HOST_MAC} for host in self.hosts],
            "routes": routes,
            "duration_ns": self.duration_ns,
            "meter_interval_ns": self.meter_interval_ns or self.duration_ns,
            "seed": seed,
            "log": log,
            "spin_ns": spin_ns,
            "mtu": self.mtu,
        }


def _queue_s(queue: Mapping[str, Any], rate_bps: float | None, packet_bytes: int) -> float:
    packets, size = queue_limit(queue)
    # One more is in service.
    content = size + packet_bytes if packets is None else (packets + 1) * packet_bytes
    return 8 * content / rate_bps if rate_bps else 0.0


def queue_limit(queue: Mapping[str, Any]) -> tuple[int | None, int]:
    """The limit of a queue: packets, or none and bytes."""
    limit = queue.get("limit") or {"packets": queue["limit_packets"]}
    return limit.get("packets"), limit.get("bytes") or 0


def lay_out(scenario: Scenario, seed: int = 0, replicate: int = 0) -> Layout:
    """The testbed for a scenario: the hosts that its applications use and every link of its network, as drawn for this
    replicate.

    RequestError for a client that shares a host with its server, for a host that both TCPs would have to answer for,
    for more hosts than MOST_HOSTS, for a population, for segments longer than a packet, and if no link can be as drawn.
    """
    network = scenario.one_network("The engine emulate")
    plan = scenario.to_plan()
    check_named("emulate", "plan", plan, PLAN)
    for application in plan["applications"]:
        if command := OF_KIND.get(application["kind"]):
            check_named("emulate", f"application.{application['name']}", application, f"{APPLICATION} {command}")
    topology = _topology(written := json.dumps(plan), seed, replicate)
    placements = [_placement(application, topology) for application in plan["applications"]]
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
    groups = ["server", "users"] if isinstance(network, Tree) else network.hosts()
    used = [name for group in groups for name in topology.hosts(group) if name in stacks]
    if (mtu := scenario.mtu_bytes()) > LARGEST_MTU:
        raise RequestError(
            f"tcp.mss: its packets have {mtu}B, and a device carries at most {LARGEST_MTU}B; write a smaller one"
        )
    addresses = NETWORKS[scenario.ip]
    hosts = tuple(HostPlan(name, str(addresses[at]), stacks[name]) for at, name in enumerate(used, start=1))
    return Layout(
        hosts=hosts,
        links=_links(topology),
        paths=_paths(topology, placements),
        placements=tuple(placements),
        duration_ns=plan["duration_ns"],
        meter_interval_ns=plan["meter_interval_ns"],
        ip=scenario.ip,
        mtu=mtu,
        drawn_from=written if any(any(group["draw"]) for group in plan["network"].get("group", [])) else None,
    )


def _topology(plan: str, seed: int, replicate: int) -> _native.Topology:
    try:
        return _native.Topology(plan, seed, replicate)
    except ValueError as error:
        raise RequestError(str(error)) from None


def _links(topology: _native.Topology) -> Links:
    links: Links = dict(json.loads(topology.links()))
    for link in links.values():
        # Real hosts wake as they do: the link emulator does not add the simulator's `wake` to it.
        if kept := [impairment for impairment in link.pop("impairments", []) if impairment["kind"] != "wake"]:
            link["impairments"] = kept
    return links


def _placement(application: dict[str, Any], topology: _native.Topology) -> Placement:
    clients = topology.hosts(application["client_hosts"])
    return Placement(
        name=application["name"],
        clients=tuple(clients[index % len(clients)] for index in range(application["clients"])),
        servers=tuple(topology.hosts(application["server_hosts"])),
        by_client=application["server_choice"] == "by_client",
        priority=application["class"],
    )


def _paths(topology: _native.Topology, placements: list[Placement]) -> dict[tuple[str, str], tuple[list[str], int]]:
    paths: dict[tuple[str, str], tuple[list[str], int]] = {}
    first: dict[tuple[str, str], Placement] = {}
    for placement in placements:
        for index, client in enumerate(placement.clients):
            for server in placement.servers_of(index):
                if client == server:
                    raise RequestError(
                        f'application.{placement.name}: a client and its server sit on one host, "{client}", with no '
                        f"link between them; name other client_hosts or server_hosts"
                    )
                for source, destination in ((server, client), (client, server)):
                    before = first.setdefault((source, destination), placement)
                    if before.priority != placement.priority:
                        raise RequestError(
                            f"application.{placement.name}.priority: the link emulator knows classes by pairs of "
                            f"hosts, and application.{before.name} has {before.priority} between {client} and "
                            f"{server}, not {placement.priority}; give the two different client_hosts or server_hosts"
                        )
                    if before is placement:
                        paths[source, destination] = topology.path(source, destination), placement.priority
    return paths


def refuse_links(layout: Layout, scenario: Scenario) -> None:
    """GSO packets."""
    for name, link in layout.links.items():
        if "gso" in link:
            raise RequestError(
                f'scenario "{scenario.name}": gso of {name.removesuffix(_REVERSE)} is set, but the link emulator gets '
                "the segments of a GSO packet one by one; leave it out, or use simulate"
            )
