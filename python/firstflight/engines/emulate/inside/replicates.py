"""The commands with which a campaign drives a testbed: programs started once, then replicate after replicate."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.draws import Draws
from firstflight.engines.emulate.inside.applications import Client, clock, run_at_once
from firstflight.engines.emulate.inside.clients import Fetcher, KernelClient, OurClient, TimedClient
from firstflight.engines.emulate.inside.commands import command
from firstflight.engines.emulate.inside.datagrams import StreamClient
from firstflight.engines.emulate.inside.probing import device_drops
from firstflight.engines.emulate.inside.quic import QuicClient, QuicServer
from firstflight.engines.emulate.inside.servers import KernelServer, OurServer, Server
from firstflight.engines.emulate.inside.testbed import Testbed

_FILES = Path("/dev/shm")


# By host; of the last call of `start_servers`.
_SERVERS: dict[str, Server] = {}
# By host and kind of `timed`, empty for others; each begins when it is needed first.
_CLIENTS: dict[tuple[str, str], Fetcher] = {}


@command
def start_servers(testbed: Testbed, hosts: dict[str, dict[str, Any]]) -> None:
    """Start the servers, in place of those before. `hosts`: by name, the settings of `servers.KernelServer`, for hosts
    of our own TCP of `servers.OurServer`, and where there is "quic" of `quic.QuicServer`.
    """
    ours = {name: server for name, server in _SERVERS.items() if isinstance(server, OurServer) and name in hosts}
    for name, before in _SERVERS.items():
        if name not in ours:
            before.stop()
    _SERVERS.clear()
    for number, (name, told) in enumerate(hosts.items()):
        if "quic" in told:
            _SERVERS[name] = QuicServer(testbed, name, told["quic"])
        elif testbed.host(name).stack == "kernel":
            _SERVERS[name] = KernelServer(testbed, name, _FILES / f"nginx{number}", told)
        else:
            # To listen again takes no time, to start does.
            server = ours.get(name) or OurServer(testbed, name)
            server.listen(told)
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
    for application in (one for one in applications if one not in of_datagrams):
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
    run_at_once(clients)
    ran_s = time.monotonic() - seen.origin_s
    deadline = time.monotonic() + close_s
    infos = []
    for name, server in _SERVERS.items():
        ends = {
            (testbed.host(row["host"]).address, row["port"])
            for row in seen.transfers
            if row["server"] == name and row["port"]
        }
        found = server.closed(ends, max(0.0, deadline - time.monotonic()))
        infos += [{"server": name, "address": end[0], "port": end[1], "info": info} for end, info in found.items()]
    origin_ns = round(seen.origin_s * 1e9)
    captured = {name: server.segments(origin_ns, replicate) for name, server in _SERVERS.items()}
    return {
        "origin_ns": origin_ns,
        "ran_s": ran_s,
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
            client: Fetcher = TimedClient(target.namespace, kind, testbed.on_death)
        elif target.stack == "kernel":
            client = KernelClient(target.namespace)
        else:
            client = OurClient(testbed, host)
        _CLIENTS[host, kind] = client
    return _CLIENTS[host, kind]
