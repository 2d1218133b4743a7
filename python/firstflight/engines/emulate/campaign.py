"""The engine: a scenario's cells on a testbed, replicate after replicate, cells that differ in TCP only in turn.

Compared cells must have the same background load, so a group of such cells shares one testbed, and its
replicates are interleaved (A B A B). Every measurement follows the same order: settings (set and read back), metrics
forgotten, links as new, applications, connections closed, nothing in flight, counters taken.
"""

import copy
import json
import ssl
import tempfile
import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from firstflight import _native
from firstflight.engines.emulate import probe, quic, selfcheck
from firstflight.engines.emulate.disturbance import STALL_RULE_S, added, beyond_calibration, refuse_losses
from firstflight.engines.emulate.draws import Draws, arm_of_user
from firstflight.engines.emulate.kernel import EndSettings, initial_window_segments, kernel_settings
from firstflight.engines.emulate.lab import KernelSettings, Lab
from firstflight.engines.emulate.layout import (
    Layout,
    Placement,
    lay_out,
    refuse_datagrams,
    refuse_handshakes,
    refuse_links,
    refuse_one_way_delays,
    refuse_what_programs_cannot,
)
from firstflight.engines.emulate.records import CellRecords, environment
from firstflight.engines.emulate.start import search_path
from firstflight.errors import MachineError, RequestError
from firstflight.records.machine import usable_cpus
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.scenario import IP_HEADER_BYTES
from firstflight.scenario.tls import Tls

# A connection's last packets: FIN, its ACK, and a retransmission of either.
_CLOSING_S = 4.0
_QUIET_S = 10.0
# Of TCP, without options.
_TCP_HEADER_BYTES = 20
_TLS = {
    False: f"certificates of Ed25519, padded, by {ssl.OPENSSL_VERSION}",
    True: "chains of ML-DSA by pyOpenSSL's OpenSSL",
}
_ML_DSA = ("ml-dsa-44", "ml-dsa-65", "ml-dsa-87")
# Of OpenSSL, for a connection that is not resumed.
_TICKETS = 2
# See `jobs`.
_BEARS_NEIGHBOURS_BPS = 10e6

OnReplicates = Callable[[Cell, int], None]


def run_cell(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
    """Replicates `first_replicate` and on of one cell, on a separate testbed: `transfers`, `pages`, `links`,
    `streams`, `counts` and `environment`, and `segments` if the cell captures.

    RequestError for a scenario whose settings a kernel lacks, MachineError for a machine that cannot do it.
    """
    (tables,) = _run([cell], seed, [replicates], first_replicate, lambda cell, replicates: None)
    return tables


def run_together(
    cells: Sequence[Cell], seed: int, replicates: Sequence[int], on_replicates: OnReplicates
) -> list[dict[str, pl.DataFrame]]:
    """The tables of `run_cell` for each cell of a group, from one testbed and in turn."""
    return _run(cells, seed, replicates, 0, on_replicates)


def together(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that differ in TCP only, in groups; their order within a group is the order of their turns. MachineError
    for a missing QUIC stack: no group has run yet.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        for application in cell.scenario.application:
            if isinstance(application, FileTransfer) and application.transport == "quic":
                quic.command(application)
        groups.setdefault(_without_tcp(cell.scenario), []).append(cell)
    return list(groups.values())


def surroundings() -> dict[str, str]:
    """The environment of the records, in addition to scenario and code: kernel, programs, and the settings of a new
    host.
    """
    return _found_on(search_path())


@cache
def _found_on(path: str) -> dict[str, str]:
    # Another search path may lead to other programs.
    return probe.surroundings()


def jobs(group: Sequence[Cell]) -> int:
    """Concurrent testbeds: two per CPU, and one where the network carries more than 10 Mbit/s or pages are fetched.

    A transfer waits most of its time: on two idle CPUs 16 concurrent testbeds, each with a download over 10 Mbit/s,
    moved no median by more than 0.7 ms. At 100 Mbit/s programs want a CPU more often than there are two: four at once
    lengthened 500 kB by 14%, and the link box saw none of it. A page is a curl an object: with four testbeds at once
    pages of 13 objects over 10 Mbit/s took 80% longer.
    """
    if any(application.kind == "web_page" for cell in group for application in cell.scenario.application):
        return 1
    fastest = max(cell.scenario.one_network("The engine emulate").capacity_bps() for cell in group)
    return 1 if fastest > _BEARS_NEIGHBOURS_BPS else 2 * usable_cpus()


def _without_tcp(scenario: Scenario) -> str:
    document = copy.deepcopy(scenario.to_dict())
    document.pop("description", None)
    document.pop("name")
    document.pop("tcp")
    document.pop("arm", None)
    for application in document["application"]:
        for key in ("tcp", "client_tcp", "server_tcp"):
            application.pop(key, None)
    # Cells with another TCP need another testbed.
    stacks = [scenario.stacks(index) for index in range(len(scenario.application))]
    return json.dumps([document, stacks], sort_keys=True, default=str)


def _two_servers(where: str, host: str) -> RequestError:
    return RequestError(f"{where}: a server over QUIC shares host {host} with another; give it other server_hosts")


def _is_over_quic(scenario: Scenario, index: int) -> bool:
    application = scenario.application[index]
    return isinstance(application, FileTransfer) and application.transport == "quic"


class Prepared:
    """A cell with all settings of a replicate prepared: a cell that cannot be run is refused before anything runs.

    User i, client i of every application, is in the arm and runs the applications that the simulator draws for them.
    An application is one of its own for each arm, called as in the simulator's records.
    """

    def __init__(self, cell: Cell, layout: Layout, seed: int = 0, replicate: int = 0) -> None:
        self.cell = cell
        scenario = cell.scenario
        self.plan = json.loads(cell.plan)
        real = _TCP_HEADER_BYTES + IP_HEADER_BYTES[layout.ip]
        if self.plan["header_bytes"] != real:
            raise RequestError(
                f'scenario "{scenario.name}": header_size is {self.plan["header_bytes"]} B, but real packets have '
                f"{real} B of IP and TCP; leave it out"
            )
        # By the name of an application in the records.
        self.windows: dict[str, int] = {}
        self.profiles: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.hosts: dict[str, KernelSettings] = {}
        self.servers: dict[str, dict[str, Any]] = {}
        self.applications: list[dict[str, Any]] = []
        flows = json.loads(_native.datagram_flows(cell.plan))
        shares = [arm.share for arm in scenario.arm or []]
        ends: dict[str, dict[str, EndSettings]] = {}
        for index, (application, placement) in enumerate(
            zip(self.plan["applications"], layout.placements, strict=True)
        ):
            where = f'scenario "{scenario.name}": application.{application["name"]}'
            if flows[index]:
                refuse_datagrams(application, flows[index], layout.ip, where)
            elif not _is_over_quic(scenario, index):
                asked = scenario.application[index]
                refuse_what_programs_cannot(application, asked.response_header, where)
                if asked.tls is not None:
                    refuse_handshakes(asked.tls, scenario.stacks(index), where)
                    application["is_real"] = is_real(asked.tls)
            by_arm: dict[int, list[tuple[int, str]]] = {}
            for number, host in enumerate(placement.clients):
                by_arm.setdefault(arm_of_user(shares, seed, replicate, number), []).append((number, host))
            for arm, clients in sorted(by_arm.items()):
                in_arm = _in_arm(application, arm, self.plan)
                if flows[index]:
                    more = {"flows": flows[index], "arm": arm}
                elif _is_over_quic(scenario, index):
                    more = self._quic(index, in_arm, clients, placement, ends)
                else:
                    more = self._tcp(index, in_arm, clients, placement, ends)
                running = [
                    (number, host)
                    for number, host in clients
                    if Draws(seed, replicate, index, number).uniform("share", 0) < application["share"]
                ]
                self.applications += [_told(index, in_arm | more, running, placement)] if running else []
        kinds = {application["is_real"] for application in self.applications if "is_real" in application}
        self.tls = {"tls": " and ".join(_TLS[kind] for kind in sorted(kinds))} if kinds else {}
        self.hosts = {host: _host_settings(host, peers, scenario) for host, peers in ends.items()}
        self.missing = {name for peers in ends.values() for settings in peers.values() for name in settings.missing}

    def _quic(
        self,
        index: int,
        application: dict[str, Any],
        clients: Sequence[tuple[int, str]],
        placement: Placement,
        ends: dict[str, dict[str, EndSettings]],
    ) -> dict[str, Any]:
        """As `_tcp`, for an application over QUIC. Its hosts have the kernel settings of TCP, which it does not use."""
        name = application["name"]
        where = f'scenario "{self.cell.scenario.name}": application.{name}'
        over_tcp = self.cell.scenario.application[index]
        assert isinstance(over_tcp, FileTransfer)
        told = {"quic": quic.settings(application, over_tcp, where)}
        servers = {server for number, _ in clients for server in placement.servers_of(number)}
        for server in servers:
            if self.servers.pop(server, told) != told:
                raise _two_servers(where, server)
        without_tls = {key: value for key, value in application.items() if key != "handshakes"}
        more = self._tcp(index, without_tls, clients, placement, ends)
        del self.profiles[name]
        self.servers |= dict.fromkeys(servers, told)
        return more | told

    def _tcp(
        self,
        index: int,
        application: dict[str, Any],
        clients: Sequence[tuple[int, str]],
        placement: Placement,
        ends: dict[str, dict[str, EndSettings]],
    ) -> dict[str, Any]:
        """The settings of both endpoints of application `index`, for its clients in one arm, (number, host) of each;
        returns the TCP settings for its clients.
        """
        scenario, name = self.cell.scenario, application["name"]
        where = f'scenario "{scenario.name}": application.{name}'
        client_stack, server_stack = scenario.stacks(index)
        client = _client_settings(application, client_stack, where)
        server, window = _server_settings(application["server_tcp"], server_stack, f"{where}.server_tcp")
        self.windows[name] = window
        self.profiles[name] = application["client_tcp"], application["server_tcp"]
        for number, client_host in clients:
            for server_host in placement.servers_of(number):
                if client is not None:
                    _join(ends, client_host, server_host, client, where)
                told = self.servers.setdefault(server_host, {"headers": []})
                if "quic" in told:
                    raise _two_servers(where, server_host)
                if server is None:
                    _join_ours(told, application["server_tcp"], where)
                else:
                    _join(ends, server_host, client_host, server, where)
                    told["no_delay"] = server.no_delay
                if "handshakes" in application:
                    _join_tls(told, application, scenario.application[index].tls, where)
                if application["response_header_bytes"] not in told["headers"]:
                    told["headers"].append(application["response_header_bytes"])
                if server is None and len(told["headers"]) > 1:
                    raise RequestError(
                        f"{where}.response_header: firstflight's server has one value for all; set the same"
                    )
        return {"client_profile": application["client_tcp"]} if client is None else {"no_delay": client.no_delay}


def _told(
    index: int, application: dict[str, Any], clients: Sequence[tuple[int, str]], placement: Placement
) -> dict[str, Any]:
    """The plan of application `index` for `run_replicate`."""
    left_out = ["client_tcp", "server_tcp", "client_hosts", "server_hosts", "arms"]
    if "quic" in application:
        # It is the stack's own.
        left_out.append("handshakes")
    told = {key: value for key, value in application.items() if key not in left_out}
    return told | {"number": index, "clients": clients, "servers": placement.servers}


def prepare(cell: Cell, layout: Layout, seed: int, replicates: range) -> list[Prepared]:
    """A cell for each replicate; it is the same for all if nothing is drawn."""
    _refuse_arms(cell.scenario)
    if not cell.scenario.arm and all(one["share"] == 1 for one in cell.scenario.to_plan()["applications"]):
        return [Prepared(cell, layout)] * len(replicates)
    return [Prepared(cell, layout, seed, replicate) for replicate in replicates]


def _refuse_arms(scenario: Scenario) -> None:
    for arm in scenario.arm or []:
        if arm.of == "connections":
            raise RequestError(
                f"arm.{arm.name}.of: the kernel has one TCP configuration per pair of hosts, not per connection; set "
                '"users"'
            )
        if any(tcp is not None and tcp.stack is not None for tcp in (arm.tcp, arm.client_tcp, arm.server_tcp)):
            raise RequestError(f"arm.{arm.name}: the stack is a host's; write it in tcp or in the application")


def _in_arm(application: dict[str, Any], arm: int, plan: Mapping[str, Any]) -> dict[str, Any]:
    if not arm:
        return application
    name = f"{application['name']}.{plan['arms'][arm - 1]['name']}"
    ends: dict[str, Any] = application["arms"][arm - 1]
    return application | ends | {"name": name}


def _client_settings(application: Mapping[str, Any], stack: str, where: str) -> EndSettings | None:
    """Settings of the client's kernel, None for our own TCP."""
    if stack == "kernel":
        return kernel_settings(application["client_tcp"], f"{where}.client_tcp")
    refuse_one_way_delays(application["client_tcp"], f"{where}.client_tcp")
    if application["kind"] == "request_response":
        raise RequestError(
            f"{where}.client_tcp.stack: firstflight's TCP fetches files and pages, but does not wait between requests; "
            'set "kernel" for the client'
        )
    return None


def _server_settings(profile: dict[str, Any], stack: str, where: str) -> tuple[EndSettings | None, int]:
    """Settings of the server's kernel, None for our own TCP, and its initial window in segments."""
    if stack == "kernel":
        return kernel_settings(profile, where), initial_window_segments(profile, where)
    refuse_one_way_delays(profile, where)
    policy = profile["initial_window"]
    # These have no number beforehand; they begin with this one.
    first = {"remembered": policy.get("start_segments"), "adaptive": policy.get("max_segments")}.get(policy["policy"])
    return None, initial_window_segments(profile, where) if first is None else int(first)


def _join_ours(told: dict[str, Any], profile: dict[str, Any], where: str) -> None:
    if told.setdefault("profile", profile) != profile:
        raise RequestError(
            f"{where}: a server of firstflight's TCP has one profile for all; give the applications different hosts"
        )


def _join_tls(told: dict[str, Any], application: Mapping[str, Any], asked: Tls | None, where: str) -> None:
    """A server's TLS: what nginx is told, or the chains of ML-DSA."""
    handshakes = application["handshakes"]
    if application["is_real"]:
        assert asked is not None
        tls = {"record_bytes": handshakes["record_bytes"]}
        chains = told.setdefault("real", tls | {"chains": []})["chains"]
        flight = handshakes["kinds"][0]["flights"][1]
        size = int(flight["bytes"]["value"]) + flight.get("more_bytes", 0)
        chain = [asked.chain, 1 if asked.intermediates is None else asked.intermediates, size]
        chains += [] if chain in chains else [chain]
        found = {"record_bytes": told["real"]["record_bytes"]}
    else:
        has_tickets = any(kind["tickets_bytes"] for kind in handshakes["kinds"])
        tls = {"record_bytes": handshakes["record_bytes"], "tickets": _TICKETS if has_tickets else 0}
        found = told.setdefault("tls", tls)
    if found != tls:
        raise RequestError(
            f"{where}.tls: a server has one record_size and tickets or none for all; give the applications different "
            "server_hosts"
        )


def is_real(tls: Tls) -> bool:
    """Whether handshakes have a real chain of ML-DSA, and not a padded certificate: the extra `pq` is installed, and
    its share of keys, full handshakes and tickets are asked for.
    """
    is_asked = tls.key_share == "x25519mlkem768" and not tls.resumption and tls.tickets is None
    return is_asked and tls.chain in _ML_DSA and probe.has_ml_dsa()


def _join(ends: dict[str, dict[str, EndSettings]], host: str, peer: str, settings: EndSettings, where: str) -> None:
    if ends.setdefault(host, {}).setdefault(peer, settings) != settings:
        raise RequestError(
            f"{where}: two applications or arms set different TCP between {host} and {peer}, but the kernel has one "
            "configuration per pair of hosts; give the applications different client_hosts or server_hosts, and each "
            "user a host"
        )


def _host_settings(host: str, peers: Mapping[str, EndSettings], scenario: Scenario) -> KernelSettings:
    first = next(iter(peers.values()))
    for settings in peers.values():
        if (settings.sysctls, settings.no_delay) != (first.sysctls, first.no_delay):
            differing = [name for name in first.sysctls if settings.sysctls.get(name) != first.sysctls[name]]
            raise RequestError(
                f'scenario "{scenario.name}": applications or arms on host {host} want different TCP '
                f"({', '.join(differing)}), and a kernel has one for all its connections; give the applications "
                "different hosts"
            )
    if all(settings.route == first.route for settings in peers.values()):
        return KernelSettings(sysctls=first.sysctls, route=first.route)
    return KernelSettings(
        sysctls=first.sysctls, route=first.route, peers={peer: settings.route for peer, settings in peers.items()}
    )


def host_settings(scenario: Scenario, layout: Layout, seed: int) -> tuple[dict[str, KernelSettings], set[str]]:
    """Settings of the hosts' kernels for the scenario's TCP, for any applications; and the sysctls among them that
    a kernel may lack. Users are in the arms of the first replicate. RequestError for arms of connections, for our own
    TCP, and for settings that a kernel does not have.
    """
    _refuse_arms(scenario)
    ends: dict[str, dict[str, EndSettings]] = {}
    plan = scenario.to_plan()
    shares = [arm.share for arm in scenario.arm or []]
    for told, placement in zip(plan["applications"], layout.placements, strict=True):
        where = f'scenario "{scenario.name}": application.{told["name"]}'
        for index, client in enumerate(placement.clients):
            application = _in_arm(told, arm_of_user(shares, seed, 0, index), plan)
            for server in placement.servers_of(index):
                for host, peer, end in ((client, server, "client_tcp"), (server, client, "server_tcp")):
                    if layout.host(host).stack != "kernel":
                        raise RequestError(f'{where}: programs use the kernel\'s TCP; write stack = "kernel"')
                    _join(ends, host, peer, kernel_settings(application[end], f"{where}.{end}"), where)
    missing = {name for peers in ends.values() for settings in peers.values() for name in settings.missing}
    return {host: _host_settings(host, peers, scenario) for host, peers in ends.items()}, missing


def known_sysctls(lab: Lab) -> set[str]:
    """The net.ipv4.tcp_* of the kernel that runs here."""
    return {name for group in lab.kernel_dump() for name in group["sysctls"]}


def present(settings: KernelSettings, known: Container[str], missing: Container[str]) -> KernelSettings:
    """Without the sysctls that an older kernel lacks and does not need."""
    sysctls = {name: value for name, value in settings.sysctls.items() if name in known or name not in missing}
    return KernelSettings(sysctls=sysctls, route=settings.route, peers=settings.peers)


def _run(
    cells: Sequence[Cell], seed: int, replicates: Sequence[int], first: int, on_replicates: OnReplicates
) -> list[dict[str, pl.DataFrame]]:
    scenario = cells[0].scenario
    layout = lay_out(scenario)
    refuse_links(layout, scenario)
    prepared = [
        prepare(cell, layout, seed, range(first, first + wanted))
        for cell, wanted in zip(cells, replicates, strict=True)
    ]
    records = [CellRecords(cell) for cell in cells]
    with Lab(layout, seed=seed, log=True) as lab:
        campaign = Campaign(lab, layout, seed)
        campaign.configure(prepared[0][0])
        campaign.warm_up(prepared[0][0])
        checked = selfcheck.check(campaign, [by_turn[0] for by_turn in prepared])
        for turn in range(max(replicates)):
            for by_turn, kept in zip(prepared, records, strict=True):
                if turn < len(by_turn):
                    cell = by_turn[turn]
                    campaign.configure(cell)
                    facts, box = campaign.replicate(cell, first + turn)
                    kept.add(first + turn, campaign.layout, facts, box, cell.windows)
                    on_replicates(cell.cell, 1)
        tables = []
        for by_turn, kept in zip(prepared, records, strict=True):
            campaign.configure(by_turn[-1])
            facts = lab.facts | checked | by_turn[-1].tls | {"hosts": lab.kernel_dump(), "stall_rule_s": STALL_RULE_S}
            tables.append(kept.finished(environment(facts)))
    return tables


class Campaign:
    """A testbed in use, with the settings last sent to it, so that only changes are sent. `layout` has the links of the
    last replicate.
    """

    def __init__(self, lab: Lab, layout: Layout, seed: int) -> None:
        self.lab = lab
        self.layout = layout.of_replicate(seed, 0)
        self.seed = seed
        self._laid_out = layout
        self._known = known_sysctls(lab)
        self._hosts: dict[str, KernelSettings] = {}
        self._servers: dict[str, dict[str, Any]] | None = None

    def configure(self, cell: Prepared) -> None:
        """Apply this cell's TCP settings to the kernels, and start its servers."""
        for host, settings in cell.hosts.items():
            if self._hosts.get(host) != settings:
                self.lab.set(host, present(settings, self._known, cell.missing))
                self._hosts[host] = settings
        if self._servers != cell.servers:
            self.lab.call("start_servers", hosts=cell.servers)
            self._servers = cell.servers

    def warm_up(self, cell: Prepared) -> None:
        """Everything once, unrecorded: programs and pages of theirs are in memory then."""
        self.replicate(cell, 0, duration_s=min(2.0, cell.plan["duration_ns"] / 1e9), once=True)

    def replicate(
        self, cell: Prepared, replicate: int, duration_s: float | None = None, once: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data from clients, kernel and capture, and the link box's counters. `once`: each client asks once."""
        applications = [application | ({"count": 1} if once else {}) for application in cell.applications]
        return self.run(applications, replicate, cell.plan["duration_ns"] / 1e9 if duration_s is None else duration_s)

    def run(
        self, applications: list[dict[str, Any]], replicate: int, duration_s: float
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same for any applications."""
        self.quiet()
        self.layout = self._laid_out.of_replicate(self.seed, replicate)
        changed = [] if self.layout is self._laid_out else self.layout.links
        self.lab.box("reset", replicate=replicate, changed=changed)
        over_quic = self._server_ends(applications)
        if over_quic:
            self.lab.box("watch", links=over_quic)
        close_s, empty_s = _CLOSING_S + self.round_trip_s() * 4, self.emptying_s()
        facts: dict[str, Any] = self.lab.call(
            "run_replicate",
            timeout_s=duration_s + 2 * close_s + empty_s + 30.0,
            seed=self.seed,
            replicate=replicate,
            duration_s=duration_s,
            applications=applications,
            close_s=close_s,
            empty_s=empty_s,
        )
        box = self.quiet()
        # Too much traffic is why packets go astray, where both are found.
        if fast := beyond_calibration(self.layout, box):
            raise MachineError(f"{fast[0]}; nothing is recorded: lower its rate or the traffic, or use simulate")
        refuse_losses(box, facts)
        if over_quic:
            with tempfile.TemporaryDirectory(prefix="firstflight-") as directory:
                path = Path(directory, "packets")
                self.lab.box("pcapng", links=over_quic, path=str(path))
                facts["datagrams"] = path.read_bytes()
        return facts, box

    def _server_ends(self, applications: Sequence[Mapping[str, Any]]) -> list[str]:
        """The last links, in the direction of the server, on the paths of applications over QUIC."""
        asked = {
            (host, server)
            for application in applications
            if "quic" in application
            for number, host in application["clients"]
            for server in self.layout.placements[application["number"]].servers_of(number)
        }
        ends = [route["path"][-1] for route in self.layout.routes if (route["from"], route["to"]) in asked]
        return list(dict.fromkeys(name if way == "forward" else f"{name}.reverse" for name, way in ends))

    def patience_s(self, size: int) -> float:
        """A time in which this number of bytes has certainly crossed the slowest link, losses included."""
        rates = [link[way]["rate_bps"] for link in self.layout.links for way in ("forward", "reverse")]
        slowest = min((rate for rate in rates if rate), default=1e9)
        return 10.0 + 3 * 8 * size / slowest + 20 * self.round_trip_s()

    def round_trip_s(self) -> float:
        """The longest of the layout's round trips, without queues."""
        delays = {
            (link["name"], direction): link[direction]["delay_ns"] / 1e9
            for link in self.layout.links
            for direction in ("forward", "reverse")
        }
        ways = [sum(delays[(name, direction)] for name, direction in route["path"]) for route in self.layout.routes]
        return float(2 * max(ways))

    def emptying_s(self) -> float:
        """The time that every link takes, one after the other, to carry off a full queue."""
        ways = [link[direction] for link in self.layout.links for direction in ("forward", "reverse")]
        return float(
            sum(way["delay_ns"] / 1e9 + _queue_s(way["queue"], way["rate_bps"], self.layout.mtu) for way in ways)
        )

    def quiet(self) -> dict[str, Any]:
        """Wait until nothing is in flight; the box's counters since they were taken last."""
        patience_s = _QUIET_S + self.emptying_s()
        deadline = time.monotonic() + patience_s
        counters = self.lab.box("take", intervals=True)
        while counters["under_way"]:
            if time.monotonic() > deadline:
                raise MachineError(f"packets are still in flight {patience_s:g} s after the last transfer")
            time.sleep(0.005)
            counters = added(counters, self.lab.box("take", intervals=True))
        return counters


def _queue_s(queue: Mapping[str, Any], rate_bps: float | None, packet_bytes: int) -> float:
    packets, size = selfcheck.held(queue)
    # One more is in service.
    content = size + packet_bytes if packets is None else (packets + 1) * packet_bytes
    return 8 * content / rate_bps if rate_bps else 0.0
