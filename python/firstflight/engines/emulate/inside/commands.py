"""The commands of the runner to a testbed. A command is a function of the testbed and of the runner's arguments.

It returns values that JSON can hold. RequestError and MachineError reach the runner as they are.
"""

import ctypes
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.inside import processes, settings
from firstflight.engines.emulate.inside.applications import Client, StreamClient, clock, run_at_once
from firstflight.engines.emulate.inside.clients import Fetcher, KernelClient, OurClient, QuicClient, TimedClient
from firstflight.engines.emulate.inside.exchange import HEADER_BYTES, arrivals, opened
from firstflight.engines.emulate.inside.processes import Capture, Namespace, reason
from firstflight.engines.emulate.inside.servers import KernelServer, OurServer, QuicServer, Server, listening
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError

# Files of a testbed (a server's documents, for one) live in memory, in a file system that is invisible outside.
FILES = Path("/dev/shm")
_NAMES = Path("/etc/hosts")
_MS_BIND = 0x1000
# By host; from `start_captures` on.
_CAPTURES: dict[str, Capture] = {}
# By host; of the last call of `start_servers`.
_SERVERS: dict[str, Server] = {}
# By host and kind of `timed`, empty for others; each begins when it is needed first.
_CLIENTS: dict[tuple[str, str], Fetcher] = {}

_PORT = 9
UDP_SEGMENT = 103

Command = Callable[..., Any]
COMMANDS: dict[str, Command] = {"build": Testbed.build, "configure": Testbed.set}


def command(function: Command) -> Command:
    """Let the runner call the function by its name."""
    COMMANDS[function.__name__] = function
    return function


def kernel() -> str:
    """The kernel that runs here."""
    system = os.uname()
    return f"{system.sysname} {system.release} {system.version}"


@command
def examine(testbed: Testbed) -> dict[str, Any]:
    """The machine, and its permissions here."""
    return {
        "kernel": kernel(),
        "congestion_controls": settings.sysctl(settings.TCP / "tcp_available_congestion_control").split(),
        "cubic": settings.cubic(),
        "tun_refusal": settings.tun_refusal(),
    }


@command
def surroundings(testbed: Testbed) -> dict[str, str]:
    """The environment of a result, in addition to scenario and code: the kernel, CUBIC's parameters, and the settings
    that a new host begins with. Left out: the congestion controls, whose modules come when they are asked for, and
    the Fast Open key, which only root can read.
    """
    begun = Namespace("begun").call(settings.dump)
    kept = {name: value for name, value in begun.items() if not name.endswith(("_congestion_control", "_key"))}
    cubic = {f"tcp_cubic.{name}": value for name, value in settings.cubic().items()}
    return {"kernel": kernel()} | cubic | kept


@command
def abilities(testbed: Testbed) -> dict[str, Any]:
    """The features that work within a testbed's namespaces, each tested, and the congestion controls of a route."""
    tried = Namespace("tried")
    refusals = {"tun_refusal": settings.tun_refusal(), "packet_refusal": None}
    end = Namespace("the other end")
    try:
        end.call(settings.open_pair, tried, "end", "02:00:00:00:00:01")
        tried.call(settings.set_sysctls, "tried", settings.everywhere())
    except MachineError as error:
        refusals["packet_refusal"] = str(error)
    available = settings.sysctl(settings.TCP / "tcp_available_congestion_control").split()
    return refusals | {"usable_on_a_route": [name for name in available if tried.call(settings.route_takes, name)]}


@command
def box(testbed: Testbed, do: str, **parameters: Any) -> dict[str, Any]:
    """The link box's answer."""
    return testbed.box.ask(do, **parameters)


@command
def dump(testbed: Testbed) -> list[dict[str, Any]]:
    """Every net.ipv4.tcp_* of the hosts with their own kernel, hosts that agree in all of them together."""
    groups: list[dict[str, Any]] = []
    asked = [(host, host.namespace.begin(settings.dump)) for host in testbed.hosts.values() if host.stack == "kernel"]
    for host, answer in asked:
        sysctls = answer.result()
        for group in groups:
            if group["sysctls"] == sysctls:
                group["hosts"].append(host.name)
                break
        else:
            groups.append({"hosts": [host.name], "sysctls": sysctls})
    return groups


@command
def run(testbed: Testbed, host: str, program: list[str], within_s: float) -> str:
    """The output of a program that runs on a host, as nginx and curl do, until it has ended.

    MachineError with the last line of its complaints if it cannot be started, does not end with status 0, or takes
    longer.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        process = processes.spawn(testbed.host(host).namespace, program, **pipes)
    except OSError as error:
        raise MachineError(f"{program[0]} cannot be run on host {host}: {error.strerror}") from None
    try:
        printed, complaints = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise MachineError(f"{program[0]} on host {host} did not end within {within_s:g} s") from None
    if process.returncode != 0:
        raise MachineError(f"{program[0]} on host {host} failed: {reason(process.returncode, complaints)}")
    return printed.decode(errors="replace")


# The commands with which programs of the user's get into a testbed.


@command
def open_doors(testbed: Testbed, names: dict[str, list[str]]) -> dict[str, int]:
    """Give the hosts the names that programs find in /etc/hosts. Answers the descriptor of each host's network
    namespace, by host, in this process.
    """
    lines = [f"{testbed.host(host).address} {' '.join(called)}" for host, called in names.items()]
    file = FILES / "hosts"
    file.write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *lines, ""]), encoding="ascii")
    if ctypes.CDLL(None, use_errno=True).mount(bytes(file), bytes(_NAMES), None, _MS_BIND, None) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"{_NAMES} cannot be replaced inside the testbed: {reason}")
    return {host.name: host.namespace.fd for host in testbed.hosts.values()}


@command
def keep_file(testbed: Testbed, name: str, content: str) -> str:
    """Keep a file that vanishes with the testbed; its path, for programs of the user's."""
    file = FILES / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return str(file)


@command
def ports(testbed: Testbed, host: str) -> list[int]:
    """The ports at which programs on a host accept connections."""
    return sorted(testbed.host(host).namespace.call(listening))


@command
def start_captures(testbed: Testbed, hosts: list[str]) -> None:
    """Keep the headers of packets at the devices of these hosts, from now on."""
    for host in hosts:
        _CAPTURES[host] = Capture(testbed.host(host).namespace, testbed.mtu)


@command
def write_packets(testbed: Testbed, host: str, path: str) -> dict[str, Any]:
    """Write the packets kept by a host's capture as pcapng; returns `packets`, their number."""
    return _CAPTURES[host].ask("pcapng", path=path)


@command
def captured(testbed: Testbed, origin_ns: int) -> dict[str, Any]:
    """The answers of `Capture.take`, by host."""
    return {host: capture.take(origin_ns, 0) for host, capture in _CAPTURES.items()}


# The commands with which a campaign drives a testbed: programs started once, then replicate after replicate.


@command
def start_servers(testbed: Testbed, hosts: dict[str, dict[str, Any]]) -> None:
    """Start the servers, in place of those before. `hosts`: by name, the plan of `servers.KernelServer`, for hosts
    of our own TCP of `servers.OurServer`, and where there is "quic" of `servers.QuicServer`.
    """
    ours = {name: server for name, server in _SERVERS.items() if isinstance(server, OurServer) and name in hosts}
    for name, before in _SERVERS.items():
        if name not in ours:
            before.stop()
    _SERVERS.clear()
    for number, (name, server_plan) in enumerate(hosts.items()):
        if "quic" in server_plan:
            _SERVERS[name] = QuicServer(testbed, name, server_plan["quic"])
        elif testbed.host(name).stack == "kernel":
            _SERVERS[name] = KernelServer(testbed, name, FILES / f"nginx{number}", server_plan)
        else:
            # To listen again takes no time, to start does.
            server = ours.get(name) or OurServer(testbed, name)
            server.listen(server_plan)
            _SERVERS[name] = server
    for host in testbed.hosts.values():
        # An idle one costs nothing, and to start one takes its time.
        if host.stack != "kernel" and host.name not in _SERVERS:
            _client(testbed, host.name)


@command
def run_replicate(
    testbed: Testbed,
    seed: int,
    replicate: int,
    duration_s: float,
    applications: list[dict[str, Any]],
    close_s: float,
    empty_s: float,
) -> dict[str, Any]:
    """One replicate of all applications. `close_s`: how long connections may take to close after it; `empty_s`: how
    long full queues take to drain.

    Each of `applications` is its plan, with its "number", its "clients" as [number, host], its "servers", and the
    settings of `clients.Fetcher` or, for datagrams, its "flows". Returns the clients' results, the kernel's data on
    closed sockets, and the captures.
    """
    for server in _SERVERS.values():
        server.reset()
    of_datagrams = [application for application in applications if "flows" in application]
    streams = [
        StreamClient(testbed, application, index, host, Draws(seed, replicate, application["number"], index))
        for application in of_datagrams
        for index, host in application["clients"]
    ]
    for stream in streams:
        stream.ready()
    seen = clock(duration_s)
    clients: list[Callable[[], None]] = [partial(stream.run, seen, close_s + empty_s) for stream in streams]
    for application in (item for item in applications if "flows" not in item):
        offered = tuple((name, testbed.host(name).in_url, _SERVERS[name]) for name in application["servers"])
        for index, host in application["clients"]:
            draws = Draws(seed, replicate, application["number"], index)
            if "quic" in application:
                fetcher: Fetcher = QuicClient(testbed.host(host).namespace)
            else:
                kind = "plain" if application["kind"] == "request_response" else ""
                if "handshakes" in application:
                    kind = "real" if application["is_real"] else "padded"
                fetcher = _client(testbed, host, kind)
            clients.append(Client(application, index, host, fetcher, draws, offered, seen).run)
    run_at_once(clients, max(len(clients), 1))
    deadline = time.monotonic() + close_s
    infos = []
    for name, server in _SERVERS.items():
        ends = {
            (testbed.host(row["host"]).address, row["port"])
            for row in seen.transfers
            if row["server"] == name and row["port"]
        }
        closed = server.closed(ends, max(0.0, deadline - time.monotonic()))
        infos += [{"server": name, "address": end[0], "port": end[1], "info": info} for end, info in closed.items()]
    origin_ns = round(seen.origin_s * 1e9)
    captured = {name: server.segments(origin_ns, replicate) for name, server in _SERVERS.items()}
    return {
        "origin_ns": origin_ns,
        "transfers": seen.transfers,
        "pages": seen.pages,
        "streams": seen.streams,
        "sockets": infos,
        "captures": {name: capture for name, capture in captured.items() if capture is not None},
        "device_drops": device_drops(testbed),
    }


def _client(testbed: Testbed, host: str, kind: str = "") -> Fetcher:
    if (host, kind) not in _CLIENTS:
        target = testbed.host(host)
        if kind:
            client: Fetcher = TimedClient(target.namespace, kind)
        elif target.stack == "kernel":
            client = KernelClient(target.namespace)
        else:
            client = OurClient(testbed, host)
        _CLIENTS[host, kind] = client
    return _CLIENTS[host, kind]


# UDP packets that measure the link box: how long one takes, how far apart those of a burst come, how many pass.


@command
def probe_packets(
    testbed: Testbed,
    client: str,
    server: str,
    packet_bytes: int,
    burst: int,
    bursts: int,
    interval_s: float,
    patience_s: float = 2.0,
    at_once: bool = False,
) -> dict[str, Any]:
    """Send bursts from one host to another, one every `interval_s`, packets of `packet_bytes` at IP level, and wait
    `patience_s` for the last. `at_once`: a burst by one system call (at most 64 kB), for lines on which a packet takes
    less time than a call.

    Answers when each was sent and when the other kernel received it, both in ns since 1970: {"sent": [...],
    "received": [...]}, null for one that did not arrive.
    """
    sender, receiver = sockets(testbed, client, server)
    payload_bytes = packet_bytes - HEADER_BYTES[testbed.host(server).family]
    sent: list[int] = []
    received: list[int | None] = [None] * (burst * bursts)
    padding = bytes(payload_bytes - 4)
    with sender, receiver:
        if at_once:
            sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload_bytes)
        due = time.monotonic()
        for _ in range(bursts):
            due += interval_s
            time.sleep(max(0.0, due - time.monotonic()))
            payloads = [struct.pack("<I", len(sent) + number) + padding for number in range(burst)]
            for payload in [b"".join(payloads)] if at_once else payloads:
                sent.extend([time.time_ns()] * (len(payload) // len(payloads[0])))
                sender.send(payload)
            _collect(receiver, received)
        deadline = time.monotonic() + patience_s
        while received[-1] is None and time.monotonic() < deadline:
            time.sleep(0.01)
            _collect(receiver, received)
    return {"sent": sent, "received": received}


@command
def device_drops(testbed: Testbed) -> dict[str, int]:
    """Packets that each host's device dropped, either way, since it was made."""
    return {name: host.namespace.call(_drops) for name, host in testbed.hosts.items()}


def sockets(testbed: Testbed, client: str, server: str) -> tuple[socket.socket, socket.socket]:
    """UDP sockets for packets from one host to another: the sender's, and the receiver's with time stamps."""

    def listening() -> socket.socket:
        receiver = opened(testbed.host(server).family)
        receiver.bind((testbed.host(server).address, _PORT))
        return receiver

    def sending() -> socket.socket:
        sender = opened(testbed.host(server).family)
        sender.connect((testbed.host(server).address, _PORT))
        return sender

    receiver = testbed.host(server).namespace.call(listening)
    return testbed.host(client).namespace.call(sending), receiver


def _collect(receiver: socket.socket, received: list[int | None]) -> None:
    for payload, stamp in arrivals(receiver):
        received[struct.unpack_from("<I", payload)[0]] = stamp


def _drops() -> int:
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == processes.DEVICE:
            columns = numbers.split()
            return int(columns[3]) + int(columns[11])
    return 0
