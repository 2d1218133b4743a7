"""A cell with all settings of a replicate prepared. What programs, kernels and our own TCP cannot do is refused here,
before anything runs.
"""

import importlib.metadata
import json
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from firstflight import _native
from firstflight.engines.emulate import quic
from firstflight.engines.emulate.draws import Draws, arm_of_user
from firstflight.engines.emulate.kernel import KernelSettings, initial_window_segments, kernel_settings
from firstflight.engines.emulate.layout import Layout, Placement
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.scenario import IP_HEADER_BYTES
from firstflight.scenario.tls import Tls

# Of TCP, without options.
_TCP_HEADER_BYTES = 20
_TLS = {
    False: f"certificates of Ed25519, padded, by {ssl.OPENSSL_VERSION}",
    True: "chains of ML-DSA by pyOpenSSL's OpenSSL",
}
# The extra `pq`: packages and their first versions that can.
_ML_DSA_BY = {"cryptography": 50, "pyOpenSSL": 26}
_ML_DSA = ("ml-dsa-44", "ml-dsa-65", "ml-dsa-87")
# Of OpenSSL, for a connection that is not resumed.
_TICKETS = 2
_UDP_HEADER_BYTES = 8
_OPENSSL_WRITES_BYTES = 4096

HostEnds = dict[str, dict[str, KernelSettings]]
"""Settings by host and peer."""


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
        self._ends: HostEnds = {}
        for index, (application, placement) in enumerate(
            zip(self.plan["applications"], layout.placements, strict=True)
        ):
            where = f'scenario "{scenario.name}": application.{application["name"]}'
            if flows[index]:
                _refuse_datagrams(application, flows[index], layout.ip, where)
            elif not _is_over_quic(scenario, index):
                asked = scenario.application[index]
                _refuse_what_programs_cannot(application, asked.response_header, where)
                if asked.tls is not None:
                    _refuse_handshakes(asked.tls, scenario.stacks(index), where)
                    application["is_real"] = is_real(asked.tls)
            by_arm: dict[int, list[tuple[int, str]]] = {}
            for number, host in enumerate(placement.clients):
                by_arm.setdefault(arm_of_user(shares, seed, replicate, number), []).append((number, host))
            for arm, clients in sorted(by_arm.items()):
                in_arm = _in_arm(application, arm, self.plan)
                pairs = [(host, server) for number, host in clients for server in placement.servers_of(number)]
                if flows[index]:
                    more = {"flows": flows[index], "arm": arm}
                elif _is_over_quic(scenario, index):
                    more = self._quic(index, in_arm, pairs)
                else:
                    more = self._tcp(index, in_arm, pairs)
                running = [
                    (number, host)
                    for number, host in clients
                    if Draws(seed, replicate, index, number).uniform("share", 0) < application["share"]
                ]
                self.applications += [_settings(index, in_arm | more, running, placement)] if running else []
        kinds = {application["is_real"] for application in self.applications if "is_real" in application}
        self.tls = {"tls": " and ".join(_TLS[kind] for kind in sorted(kinds))} if kinds else {}
        self.hosts = {host: _host_settings(host, peers, scenario) for host, peers in self._ends.items()}

    def _quic(self, index: int, application: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """As `_tcp`, for an application over QUIC. Its hosts have the kernel settings of TCP, which it does not use."""
        name = application["name"]
        where = f'scenario "{self.cell.scenario.name}": application.{name}'
        over_tcp = self.cell.scenario.application[index]
        assert isinstance(over_tcp, FileTransfer)
        settings = {"quic": quic.settings(application, over_tcp, where)}
        servers = {server for _, server in pairs}
        for server in servers:
            if self.servers.pop(server, settings) != settings:
                raise _two_servers(where, server)
        without_tls = {key: value for key, value in application.items() if key != "handshakes"}
        more = self._tcp(index, without_tls, pairs)
        del self.profiles[name]
        self.servers |= dict.fromkeys(servers, settings)
        return more | settings

    def _tcp(self, index: int, application: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """The settings of both endpoints of application `index`, for its clients in one arm: `pairs` of hosts, each of
        a client and a server of its. Returns the TCP settings for the clients.
        """
        scenario, name = self.cell.scenario, application["name"]
        where = f'scenario "{scenario.name}": application.{name}'
        client_stack, server_stack = scenario.stacks(index)
        client = _client_settings(application, client_stack, where)
        server, window = _server_settings(application["server_tcp"], server_stack, f"{where}.server_tcp")
        self.windows[name] = window
        self.profiles[name] = application["client_tcp"], application["server_tcp"]
        for client_host, server_host in pairs:
            if client is not None:
                _join(self._ends, client_host, server_host, client, where)
            settings = self.servers.setdefault(server_host, {"headers": []})
            if "quic" in settings:
                raise _two_servers(where, server_host)
            if server is None:
                _join_ours(settings, application["server_tcp"], where)
            else:
                _join(self._ends, server_host, client_host, server, where)
                no_delay = application["server_tcp"]["nagle"] == "off"
                if settings.setdefault("no_delay", no_delay) != no_delay:
                    raise RequestError(
                        f"{where}.server_tcp.nagle: a server has one value for all; give the applications "
                        "different server_hosts"
                    )
            if "handshakes" in application:
                _join_tls(settings, application, scenario.application[index].tls, where)
            if application["response_header_bytes"] not in settings["headers"]:
                settings["headers"].append(application["response_header_bytes"])
            if server is None and len(settings["headers"]) > 1:
                raise RequestError(f"{where}.response_header: firstflight's server has one value for all; set the same")
        profile = application["client_tcp"]
        return {"client_profile": profile} if client is None else {"no_delay": profile["nagle"] == "off"}


def _settings(
    index: int, application: dict[str, Any], clients: Sequence[tuple[int, str]], placement: Placement
) -> dict[str, Any]:
    """The plan of application `index` for `run_replicate`."""
    left_out = ["client_tcp", "server_tcp", "client_hosts", "server_hosts", "arms"]
    if "quic" in application:
        # It is the stack's own.
        left_out.append("handshakes")
    settings = {key: value for key, value in application.items() if key not in left_out}
    return settings | {"number": index, "clients": clients, "servers": placement.servers}


def prepare(cell: Cell, layout: Layout, seed: int, replicates: range) -> list[Prepared]:
    """A cell for each replicate; it is the same for all if nothing is drawn."""
    _refuse_arms(cell.scenario)
    if not cell.scenario.arm and all(plan["share"] == 1 for plan in cell.scenario.to_plan()["applications"]):
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


def _client_settings(application: Mapping[str, Any], stack: str, where: str) -> KernelSettings | None:
    """Settings of the client's kernel, None for our own TCP."""
    if stack == "kernel":
        return kernel_settings(application["client_tcp"], f"{where}.client_tcp")
    _refuse_one_way_delays(application["client_tcp"], f"{where}.client_tcp")
    if application["kind"] == "request_response":
        raise RequestError(
            f"{where}.client_tcp.stack: firstflight's TCP fetches files and pages, but does not wait between requests; "
            'set "kernel" for the client'
        )
    return None


def _server_settings(profile: dict[str, Any], stack: str, where: str) -> tuple[KernelSettings | None, int]:
    """Settings of the server's kernel, None for our own TCP, and its initial window in segments."""
    if stack == "kernel":
        return kernel_settings(profile, where), initial_window_segments(profile, where)
    _refuse_one_way_delays(profile, where)
    policy = profile["initial_window"]
    # These have no number beforehand; they begin with this one.
    first = {"remembered": policy.get("start_segments"), "adaptive": policy.get("max_segments")}.get(policy["policy"])
    return None, initial_window_segments(profile, where) if first is None else int(first)


def _join_ours(settings: dict[str, Any], profile: dict[str, Any], where: str) -> None:
    if settings.setdefault("profile", profile) != profile:
        raise RequestError(
            f"{where}: a server of firstflight's TCP has one profile for all; give the applications different hosts"
        )


def _join_tls(settings: dict[str, Any], application: Mapping[str, Any], asked: Tls | None, where: str) -> None:
    """A server's TLS: what nginx is told, or the chains of ML-DSA."""
    handshakes = application["handshakes"]
    if application["is_real"]:
        assert asked is not None
        tls = {"record_bytes": handshakes["record_bytes"]}
        chains = settings.setdefault("real", tls | {"chains": []})["chains"]
        flight = handshakes["kinds"][0]["flights"][1]
        size = int(flight["bytes"]["value"]) + flight.get("more_bytes", 0)
        chain = [asked.chain, 1 if asked.intermediates is None else asked.intermediates, size]
        chains += [] if chain in chains else [chain]
        first = {"record_bytes": settings["real"]["record_bytes"]}
    else:
        has_tickets = any(kind["tickets_bytes"] for kind in handshakes["kinds"])
        tls = {"record_bytes": handshakes["record_bytes"], "tickets": _TICKETS if has_tickets else 0}
        first = settings.setdefault("tls", tls)
    if first != tls:
        raise RequestError(
            f"{where}.tls: a server has one record_size and tickets or none for all; give the applications different "
            "server_hosts"
        )


@cache
def has_ml_dsa() -> bool:
    """Whether the extra `pq` is installed."""
    try:
        return all(int(importlib.metadata.version(name).split(".")[0]) >= least for name, least in _ML_DSA_BY.items())
    except importlib.metadata.PackageNotFoundError:
        return False


def is_real(tls: Tls) -> bool:
    """Whether handshakes have a real chain of ML-DSA, and not a padded certificate: the extra `pq` is installed, and
    its share of keys, full handshakes and tickets are asked for.
    """
    is_asked = tls.key_share == "x25519mlkem768" and not tls.resumption and tls.tickets is None
    return is_asked and tls.chain in _ML_DSA and has_ml_dsa()


def _join(ends: HostEnds, host: str, peer: str, settings: KernelSettings, where: str) -> None:
    if ends.setdefault(host, {}).setdefault(peer, settings) != settings:
        raise RequestError(
            f"{where}: two applications or arms set different TCP between {host} and {peer}, but the kernel has one "
            "configuration per pair of hosts; give the applications different client_hosts or server_hosts, and each "
            "user a host"
        )


def _host_settings(host: str, peers: Mapping[str, KernelSettings], scenario: Scenario) -> KernelSettings:
    first = next(iter(peers.values()))
    for settings in peers.values():
        if settings.sysctls != first.sysctls:
            differing = [name for name in first.sysctls if settings.sysctls.get(name) != first.sysctls[name]]
            raise RequestError(
                f'scenario "{scenario.name}": applications or arms on host {host} want different TCP '
                f"({', '.join(differing)}), and a kernel has one for all its connections; give the applications "
                "different hosts"
            )
    if all(settings.route == first.route for settings in peers.values()):
        peers = {}
    routes = {peer: settings.route for peer, settings in peers.items()}
    return KernelSettings(first.sysctls, first.route, routes, first.missing)


def host_settings(scenario: Scenario, layout: Layout, seed: int) -> dict[str, KernelSettings]:
    """Settings of the hosts' kernels for the scenario's TCP, for any applications. Users are in the arms of the first
    replicate. RequestError for arms of connections, for our own TCP, and for settings that a kernel does not have.
    """
    _refuse_arms(scenario)
    ends: HostEnds = {}
    plan = scenario.to_plan()
    shares = [arm.share for arm in scenario.arm or []]
    for item, placement in zip(plan["applications"], layout.placements, strict=True):
        where = f'scenario "{scenario.name}": application.{item["name"]}'
        for index, client in enumerate(placement.clients):
            application = _in_arm(item, arm_of_user(shares, seed, 0, index), plan)
            for server in placement.servers_of(index):
                for host, peer, end in ((client, server, "client_tcp"), (server, client, "server_tcp")):
                    if layout.host(host).stack != "kernel":
                        raise RequestError(f'{where}: programs use the kernel\'s TCP; write stack = "kernel"')
                    _join(ends, host, peer, kernel_settings(application[end], f"{where}.{end}"), where)
    return {host: _host_settings(host, peers, scenario) for host, peers in ends.items()}


def _refuse_one_way_delays(profile: Mapping[str, Any], where: str) -> None:
    """RTT samples of our own TCP that need one clock at both ends."""
    if profile["rto"]["samples"] == "ack_one_way":
        raise RequestError(
            f'{where}.rto.samples: "ack_one_way" needs one clock at both ends, which only --engine simulate has; set '
            'rto.samples = "round_trip"'
        )


def _refuse_what_programs_cannot(application: Mapping[str, Any], header: int | None, where: str) -> None:
    """Of an application over TCP; `header`: bytes of its response header."""
    if header == 0:
        raise RequestError(f"{where}.response_header: nginx sends a header; leave it out, or write its length")
    if application.get("direction") == "upload":
        raise RequestError(f'{where}.direction: the emulator does downloads only; write "download", or use simulate')
    if application["kind"] in ("video", "arrivals"):
        raise RequestError(f"{where}.kind: the emulator has no {application['kind']}; use simulate")
    if application["kind"] == "web_page":
        _refuse_pages(application, where)


def _refuse_handshakes(tls: Tls, stacks: tuple[str, str], where: str) -> None:
    """What OpenSSL, or a certificate that is padded, cannot do."""
    if stacks != ("kernel", "kernel"):
        raise RequestError(f'{where}.tls: firstflight\'s TCP has no TLS; set stack = "kernel", or use simulate')
    for key, is_odd, reason in (
        ("flights", tls.flights is not None, "real TLS 1.3 has its own flights; name a chain"),
        ("client_certificate", tls.client_certificate is not None, "the emulator's clients have none; leave it out"),
        ("early_data", tls.early_data > 0, "the emulator's clients send none; leave it out"),
        ("tickets", tls.tickets not in (None, 0), "OpenSSL's are as long as they are; leave it out, or write 0B"),
        ("write_size", tls.write_size != _OPENSSL_WRITES_BYTES, "OpenSSL writes 4096 B at once; leave it out"),
        (
            "resumption",
            tls.resumption > 0 and tls.key_share != "x25519",
            'a flight without certificate cannot be padded to a share of X25519MLKEM768; set key_share = "x25519"',
        ),
        (
            "resumption",
            tls.resumption > 0 and tls.tickets == 0,
            "a connection is resumed by tickets; leave out tickets",
        ),
    ):
        if is_odd:
            raise RequestError(f"{where}.tls.{key}: {reason}, or use simulate")


def _refuse_pages(application: Mapping[str, Any], where: str) -> None:
    if application["version"] == "2":
        raise RequestError(
            f'{where}.http_version: the emulator fetches pages by "1.0" or "1.1"; set one, or use simulate'
        )
    # Over HTTP/1.0 each object has its own connection.
    if application["version"] == "1.1" and (persistent := application["persistent"]) != "joined":
        raise RequestError(
            f'{where}.persistent: the emulator does not fetch pages with "{persistent}"; set "single_response", or '
            'http_version = "1.0" for one connection per object, or use simulate'
        )
    for key, name in (("then", "then"), ("dns", "dns"), ("think_from_start", "load")):
        if key in application:
            raise RequestError(f"{where}.{name}: the emulator fetches pages without it; leave it out, or use simulate")


def _refuse_datagrams(application: Mapping[str, Any], flows: Sequence[Mapping[str, Any]], ip: str, where: str) -> None:
    """Look-ups of names, and headers shorter than real ones."""
    if application["kind"] == "dns":
        raise RequestError(f"{where}.kind: the emulator looks no names up; use simulate")
    real = _UDP_HEADER_BYTES + IP_HEADER_BYTES[ip]
    for flow in flows:
        if flow["header_bytes"] < real:
            raise RequestError(
                f"{where}.header_size: real datagrams have {real} B of IP and UDP, and this has "
                f"{flow['header_bytes']} B"
            )
