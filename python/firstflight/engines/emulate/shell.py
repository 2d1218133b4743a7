"""Any program inside a scenario's network: on its hosts, over its links, with its TCP, as the user who asks.

A program enters the testbed's namespaces and, in them, its own user namespace, where it has the caller's ids and
no capability outside. It belongs to the testbed's PID namespace, so it cannot outlive it.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from firstflight.engines.emulate.disturbance import beyond_calibration
from firstflight.engines.emulate.inside.sockets import end_of
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import Layout, lay_out
from firstflight.engines.emulate.prepared import host_settings
from firstflight.engines.emulate.records import Replicate
from firstflight.engines.emulate.start import MARK, NAMESPACES, search_path, without_proxies
from firstflight.errors import MachineError, RequestError
from firstflight.scenario import Scenario

_LISTENS_WITHIN_S = 10.0
_QUIET_S = 1.0
_SERVED = (80, 443)
_ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

# Files of the user's: over HTTP/1.1 at port 80, over TLS with HTTP/2 at 443. Nothing is logged.
_NGINX = """\
daemon off;
{user}
master_process off;
pid {at}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    autoindex on;
    include /etc/nginx/mime.types;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
    server {{
        listen {any}80 backlog=4096;
        listen {any}443 ssl http2 backlog=4096;
        ssl_certificate {at}/certificate.pem;
        ssl_certificate_key {at}/key.pem;
        root "{root}";
    }}
}}
"""
_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=server "
    "-addext subjectAltName=DNS:server -keyout {at}/key.pem -out {at}/certificate.pem 2>/dev/null"
)


class Shell:
    """A scenario's network with programs of the user's on its hosts, to be used in a `with` statement.

    Entering it and every call raise MachineError or RequestError, one sentence, where the machine refuses or a host is
    not there. Hosts are called as in the scenario ("node[0]"), without brackets ("node0"), or "server" and "client",
    which are the first application's first ones. The last two kinds are host names for programs.
    """

    def __init__(self, scenario: Scenario, seed: int = 0, watch_links: bool = False) -> None:
        """`seed`: of the links' losses and other draws. `watch_links`: keep the headers of packets on them."""
        self.layout: Layout = lay_out(scenario, seed)
        self._settings = host_settings(scenario, self.layout, seed)
        self._lab = Lab(self.layout, seed=seed, log=True)
        self._watch_links = watch_links
        self._namespaces: dict[str, int] = {}
        self._first = 0
        self._background: list[tuple[str, subprocess.Popen[bytes]]] = []
        placement = self.layout.placements[0]
        self._roles = {"server": placement.servers_of(0)[0], "client": placement.clients[0]}

    def __enter__(self) -> Self:
        lab = self._lab.__enter__()
        try:
            for host, settings in self._settings.items():
                lab.set(host, settings)
            self._namespaces = lab.call("open_doors", names=self.names())
            self._first = lab.first_process()
            lab.call("start_captures", hosts=self._servers())
            lab.box("reset")
            if self._watch_links:
                lab.box("watch", links=None)
        except BaseException:
            lab.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lab.close()

    def names(self) -> dict[str, list[str]]:
        """The names by which programs find each host."""
        called = {host.name: [_plain(host.name)] for host in self.layout.hosts}
        for role, host in self._roles.items():
            called[host].append(role)
        return called

    def host(self, called: str) -> str:
        """The scenario's name of a host. RequestError if there is none so called."""
        for host, names in self.names().items():
            if called in (host, *names):
                return host
        known = ", ".join(_plain(host.name) for host in self.layout.hosts)
        raise RequestError(f'there is no host "{called}"; there are server, client, {known}')

    def _servers(self) -> list[str]:
        return list(dict.fromkeys(name for placement in self.layout.placements for name in placement.servers))

    def observed(self, pcap: Path | None = None, links: Path | None = None) -> "ShellResult":
        """Counters of the servers' devices and the links since the start, when nothing is in flight or after a second.
        `pcap`: write the packets at the first server's device to it, as pcapng; `links`: the packets at the far ends of
        links that were watched.
        """
        self._lab.is_quiet(_QUIET_S)
        box = self._lab.box(intervals=True)
        if pcap is not None:
            self._lab.call("write_packets", host=self._roles["server"], path=str(pcap.resolve()))
        if links is not None:
            self._lab.box("pcapng", links=None, path=str(links.resolve()))
        captures = self._lab.call("captured", origin_ns=box["links"][0]["epoch_ns"])
        return ShellResult(self.layout, box, captures)

    def run(self, called: str, program: Sequence[str]) -> int:
        """Run a program on a host, with the caller's terminal and directory, until it ends; its exit status, or 128 and
        the signal that ended it. A signal to this process ends the program too, by force after 2 s; but what the
        program does at a Ctrl-C, which reaches them both, is its own affair.
        """
        with subprocess.Popen(self._enter(called, program), env=self._environment(called)) as process:
            before = {}
            if threading.current_thread() is threading.main_thread():
                handled = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
                before = {number: signal.signal(number, lambda got, _: process.send_signal(got)) for number in handled}
            try:
                return process.wait()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def start(self, called: str, program: Sequence[str]) -> None:
        """Start a program on a host in addition to `run`'s; it ends with the testbed. What it prints goes to the
        caller's standard error.
        """
        process = subprocess.Popen(
            self._enter(called, program),
            env=self._environment(called),
            stdin=subprocess.DEVNULL,
            stdout=2,
            start_new_session=True,
        )
        self._background.append((f"{program[0]} on {called}", process))

    def serve(self, directory: Path) -> list[str]:
        """Serve a directory's files by nginx from each server host, over HTTP/1.1 and, with its own certificate,
        over TLS and HTTP/2; the URLs. MachineError if nginx or openssl is missing or does not start.
        """
        root = directory.resolve(strict=True)
        for program, package in (("nginx", "nginx-light"), ("openssl", "openssl")):
            if shutil.which(program, path=search_path()) is None:
                raise MachineError(f"there is no {program} on this machine", f"apt-get install {package}")
        hosts = self._servers()
        for name in hosts:
            at = f"/dev/shm/{_plain(name)}"
            anyone = "[::]:" if self.layout.ip == "ipv6" else ""
            content = _NGINX.format(at=at, root=root, any=anyone, user="user root root;" if os.geteuid() == 0 else "")
            config = self._lab.call("keep_file", name=f"{_plain(name)}/nginx.conf", content=content)
            command = f"{_CERTIFICATE.format(at=at)} && exec nginx -p {at} -c {config} -e stderr"
            self.start(name, ["sh", "-c", command])
        self._wait_until_they_listen(hosts)
        return [f"{scheme}://{self.names()[name][-1]}/" for name in hosts for scheme in ("http", "https")]

    def _wait_until_they_listen(self, hosts: list[str]) -> None:
        deadline = time.monotonic() + _LISTENS_WITHIN_S
        for name in hosts:
            while not all(port in self._lab.call("ports", host=name) for port in _SERVED):
                for what, process in self._background:
                    if process.poll() is not None:
                        raise MachineError(f"{what} ended immediately with status {process.returncode}")
                if time.monotonic() > deadline:
                    raise MachineError(f"nginx on {name} does not listen after {_LISTENS_WITHIN_S:g} s")
                time.sleep(0.02)

    def _enter(self, called: str, program: Sequence[str]) -> list[str]:
        """The command that runs a program on a host."""
        network = self._namespaces[self.host(called)]
        return [sys.executable, "-I", "-S", NAMESPACES, "enter", str(self._first), str(network), *program]

    def _environment(self, called: str) -> Mapping[str, str]:
        addresses = {
            f"FIRSTFLIGHT_{role.upper()}": self.layout.host(host).address for role, host in self._roles.items()
        }
        return without_proxies() | addresses | {"FIRSTFLIGHT_HOST": _plain(self.host(called)), MARK: self._lab.mark}


class ShellResult:
    """The results of a shell's programs: `segments` and `crossings`, the records' tables of these names, of all
    connections to servers; `links` the link box's counters, one per direction; `missed`: packets beyond what its log
    holds; `too_fast`: a sentence for each link that carried more than the link emulator is calibrated for.
    """

    def __init__(self, layout: Layout, box: Mapping[str, Any], captures: Mapping[str, Any]) -> None:
        address = {host.address: host.name for host in layout.hosts}
        ends = [
            (server, *end_of(client)) for server, capture in captures.items() for client, _ in capture["connections"]
        ]
        transfers = [
            {
                "server": server,
                "host": address[client],
                "port": port,
                "start_s": 0,
                "application": "",
                "client": at,
            }
            for at, (server, client, port) in enumerate(ends)
        ]
        facts = {"origin_ns": box["links"][0]["epoch_ns"], "transfers": transfers, "sockets": [], "captures": captures}
        joined = Replicate(0, layout, facts, box)
        self.segments = joined.segments()
        self.crossings = joined.crossings()
        self.links: list[dict[str, Any]] = box["links"]
        self.missed: int = box["log_missed"]
        self.too_fast = beyond_calibration(layout, box)


def _plain(host: str) -> str:
    """A host's name as the name of a machine: node[0] is node0."""
    return host.replace("[", "").replace("]", "")
