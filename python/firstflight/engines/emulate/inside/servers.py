"""The server on a host: nginx over the host's kernel, our own TCP, or a QUIC stack, with the source of its data.

A real nginx has files of any size, a response header of any length, and a private file system.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from queue import Empty
from typing import Any

from firstflight.engines.emulate.inside import processes, timed
from firstflight.engines.emulate.inside.processes import Capture, Namespace, Watched, WireHost, serving
from firstflight.engines.emulate.inside.sockets import ClosingSockets, End, end_of
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.engines.emulate.start import ENVIRONMENT
from firstflight.errors import MachineError, RequestError

PORT, SECURE_PORT, REAL_PORT = 80, 443, 444
_NOBODY = "0.0.0.0:0"
_STARTED_WITHIN_S = 10.0
_LARGEST_DIGITS = 13
# "X: " and the end of the line, with one letter at least between.
_SHORTEST_PAD = 6
# A certificate's lengths take one byte more or less, so that not every length of a flight exists.
NEAR_BYTES = 4
_MOST_TRIES, _MOST_PADDING = 5, 100_000

# One process, so that order is order, and that it is seen to end if any of it does; sendfile with tcp_nopush, so that
# the header rides with the body; nothing is logged, checked or cut into pieces on the way. The user is the only one of
# this user namespace.
_CONFIG = """\
daemon off;
user root root;
master_process off;
pid {directory}/nginx.pid;
error_log {directory}/error.log error;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; multi_accept on; }}
http {{
    access_log off;
    sendfile on;
    sendfile_max_chunk 0;
    tcp_nopush on;
    tcp_nodelay {no_delay};
    keepalive_timeout 1d;
    keepalive_requests 100000000;
    client_header_timeout 1d;
    send_timeout 1d;
    lingering_close off;
    etag off;
    server_tokens off;
    default_type application/octet-stream;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen {listen} backlog=4096;
        listen unix:{directory}/socket;
{tls}
{locations}
    }}
}}
"""
# A certificate for each name, which makes the server's flight as long as the name says.
_TLS = """\
        listen {listen} ssl backlog=4096;
        listen unix:{directory}/tls ssl;
        ssl_protocols TLSv1.3;
        ssl_certificate {directory}/certificates/$ssl_server_name.pem;
        ssl_certificate_key {directory}/certificates/key.pem;
        ssl_buffer_size {record_bytes};
        ssl_session_ticket_key {directory}/certificates/tickets;
        ssl_session_timeout 1d;
        ssl_conf_command NumTickets {tickets};"""
_LOCATION = """\
        location ~ "^/{header}/(\\d{{{digits}}})$" {{
            alias {directory}/files/$1;{pad}
        }}"""


class Server(ABC):
    """One server, for the whole of a campaign. This one has no TLS to choose from, and nothing is known of it."""

    @abstractmethod
    def path(self, size: int, header: int) -> str:
        """The path of a file of `size` bytes behind a response header of `header` bytes (0: the server's own)."""

    @abstractmethod
    def stop(self) -> None:
        """End it and wait."""

    def named(self, flight_bytes: int, is_real: bool) -> tuple[str, int]:
        """The name of the server in a ClientHello that makes its flight so long, and its port; `is_real`: with a chain
        of ML-DSA. RequestError if it cannot be.
        """
        raise RequestError("only nginx has certificates by name; let it be the server")

    def reset(self) -> None:  # noqa: B027 - nothing to reset
        """Reset all state."""

    def closed(self, ends: set[End], within_s: float) -> dict[End, dict[str, Any]]:
        """The data on connections by the client's endpoint. Waits until all of `ends` have ended, or until the
        timeout.
        """
        return {}

    def segments(self, origin_ns: int, replicate: int) -> dict[str, Any] | None:
        """Table `segments` since the last reset, the `connections` in it by number, and `counts` of errors; None if
        it has none.
        """
        return None


class Nginx(Server):
    """One nginx, in a host's namespace. `headers`: the response headers' lengths in bytes that will be asked for; 0 is
    nginx's own, as long as it happens to be. `no_delay`: TCP_NODELAY.
    """

    def __init__(
        self,
        namespace: Namespace,
        directory: Path,
        headers: Iterable[int],
        no_delay: bool,
        family: socket.AddressFamily = socket.AF_INET,
        tls: Mapping[str, int] | None = None,
    ) -> None:
        """Start it, for clients of this address family. `tls`: how many "tickets" a connection gets and the
        "record_bytes", if it is asked over TLS.
        MachineError where it does not start, RequestError for a header that it cannot make.
        """
        self._namespace = namespace
        self._directory = directory
        self._no_delay = no_delay
        self._any = "[::]:" if family == socket.AF_INET6 else ""
        (directory / "files").mkdir(parents=True, exist_ok=True)
        self._tls, self._certificates = "", PaddedCertificates(directory)
        if tls is not None:
            self._certificates.begin()
            self._tls = _TLS.format(directory=directory, listen=f"{self._any}{SECURE_PORT}", **tls)
        processes.give(directory)
        self._program = processes.find("nginx", "nginx-light")
        self._watched = self._start({0: [""] * _LARGEST_DIGITS})
        sizes = {header for header in headers if header}
        if sizes:
            lengths = [self._own_header(digits) for digits in range(1, _LARGEST_DIGITS + 1)]
            pads = {header: [_pad(header, length) for length in lengths] for header in sizes}
            self._watched.stop()
            self._watched = self._start(pads | {0: [""] * _LARGEST_DIGITS})

    def path(self, size: int, header: int) -> str:
        """As Server."""
        file = self._directory / "files" / str(size)
        if not file.exists():
            # A hole reads as zeros and takes no memory.
            with file.open("wb") as made:
                made.truncate(size)
        return f"/{header}/{size}"

    def named(self, flight_bytes: int, is_real: bool) -> tuple[str, int]:
        """As Server; here no chain is of ML-DSA."""
        return self._certificates.named(flight_bytes), SECURE_PORT

    def stop(self) -> None:
        """As Server."""
        self._watched.stop()

    def _start(self, pads: dict[int, list[str]]) -> Watched:
        locations = [
            _LOCATION.format(header=header, digits=digits, directory=self._directory, pad=pad)
            for header, by_digits in pads.items()
            for digits, pad in enumerate(by_digits, start=1)
        ]
        config = self._directory / "nginx.conf"
        config.write_text(
            _CONFIG.format(
                directory=self._directory,
                no_delay="on" if self._no_delay else "off",
                listen=f"{self._any}{PORT}",
                tls=self._tls,
                locations="\n".join(locations),
            ),
            encoding="ascii",
        )
        for name in ("socket", "tls"):
            (self._directory / name).unlink(missing_ok=True)
        command = [
            self._program,
            "-p",
            str(self._directory),
            "-c",
            str(config),
            "-e",
            str(self._directory / "error.log"),
        ]
        quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = processes.spawn(self._namespace, command, **quiet)
        deadline = time.monotonic() + _STARTED_WITHIN_S
        # It listens at the port first and then at its own socket.
        while PORT not in self._namespace.call(listening) or not _accepts(self._directory / "socket"):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise MachineError(f"nginx on {self._namespace.name} does not start: {self._complaint()}")
            time.sleep(0.005)
        return Watched(f"nginx on host {self._namespace.name}", process)

    def _complaint(self) -> str:
        """The last of its complaints that is not about the one user of the namespace."""
        try:
            lines = (self._directory / "error.log").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        lines = [line for line in lines if "initgroups" not in line]
        return lines[-1] if lines else "it says nothing"

    def _own_header(self, digits: int) -> int:
        """Bytes of the response header for a file whose size has this number of digits, asked over a socket."""
        path = self.path(10 ** (digits - 1), 0)
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(_STARTED_WITHIN_S)
            asked.connect(str(self._directory / "socket"))
            asked.sendall(f"HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                more = asked.recv(65536)
                if not more:
                    break
                answer += more
        if not re.match(rb"HTTP/1.1 200 ", answer):
            raise MachineError(f"nginx answers {answer[:60]!r} to a request for {path}")
        return len(answer)


class KernelServer(Nginx):
    """Nginx, with the kernel's word on each socket that closes and a capture of the device."""

    def __init__(self, testbed: Testbed, host: str, directory: Path, plan: dict[str, Any]) -> None:
        """`plan`: "headers", bytes of each response header that will be asked for, "no_delay" and, if it is asked over
        TLS, "tls"; "real" with "record_bytes" and "chains" for chains of ML-DSA.
        """
        namespace, family = testbed.host(host).namespace, testbed.host(host).family
        super().__init__(namespace, directory, plan["headers"], plan["no_delay"], family, plan.get("tls"))
        self._real = _real(testbed, host, plan["no_delay"], **plan["real"]) if "real" in plan else None
        try:
            self._sockets = namespace.call(ClosingSockets, (PORT, SECURE_PORT, REAL_PORT), family)
        except OSError as error:
            raise MachineError(
                f"host {host}: the kernel does not report closed sockets (sock_diag): {error.strerror}"
            ) from None
        self._capture = Capture(namespace, testbed.mtu)

    def named(self, flight_bytes: int, is_real: bool) -> tuple[str, int]:
        """As Server."""
        return (called(flight_bytes), REAL_PORT) if is_real else super().named(flight_bytes, is_real)

    def reset(self) -> None:
        """As Server."""
        self._capture.ask("reset")
        self._sockets.take(set(), 0.0)

    def closed(self, ends: set[End], within_s: float) -> dict[End, dict[str, Any]]:
        """As Server, by the names of the kernel's `struct tcp_info`."""
        return {**self._sockets.take(ends, within_s)}

    def segments(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """As Server."""
        return self._capture.take(origin_ns, replicate)

    def stop(self) -> None:
        """As Server."""
        super().stop()
        if self._real is not None:
            self._real.stop()
        self._sockets.close()
        self._capture.stop()


class OurServer(Server):
    """Our own TCP with its own HTTP: it keeps every segment, and reports each finished connection."""

    def __init__(self, testbed: Testbed, host: str) -> None:
        """Start it; `listen` comes next."""
        target = testbed.host(host)
        plan = {"address": target.address, "mtu": testbed.mtu, "segments": True}
        self._wire = WireHost(plan, target.namespace.spawn)
        testbed.raise_priority(self._wire.process.pid)
        self._listening: dict[str, Any] = {}
        self._over: dict[int, dict[str, Any]] = {}

    def listen(self, plan: dict[str, Any]) -> None:
        """Serve by this plan from now on: "profile", complete, and "headers", one length at most."""
        header = next((length for length in plan["headers"] if length), None)
        self._listening = {"port": PORT, "profile": plan["profile"], "header_bytes": header}
        self._wire.ask("listen", **self._listening)

    def path(self, size: int, header: int) -> str:
        """As Server."""
        return f"/{size}"

    def reset(self) -> None:
        """As Server, with the initial windows learned from earlier connections."""
        self._wire.ask("listen", **self._listening)
        self._read(0.0)
        self._over.clear()
        self._wire.ask("take")

    def closed(self, ends: set[End], within_s: float) -> dict[End, dict[str, Any]]:
        """As Server, by the names of the records."""
        deadline = time.monotonic() + within_s
        self._read(0.0)
        while not ends <= {end_of(facts["peer"]) for facts in self._over.values()}:
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._read(left)
        return {end_of(facts["peer"]): facts | {"total_rto": facts["timeouts"]} for facts in self._over.values()}

    def segments(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """As Server; its times count from the beginning of CLOCK_MONOTONIC, so `since_ns` comes with them."""
        tables = self._wire.ask("take")["tables"]
        names = [_NOBODY] * (max(self._over, default=-1) + 1)
        for number, facts in self._over.items():
            names[number] = facts["peer"]
        return {"tables": tables, "connections": [[name, name] for name in names], "counts": {}, "since_ns": origin_ns}

    def stop(self) -> None:
        """As Server."""
        self._wire.stop()

    def _read(self, within_s: float) -> None:
        """Take up reports: all that are there, or the next one within a time."""
        try:
            while True:
                report = self._wire.reports.get(timeout=within_s) if within_s else self._wire.reports.get_nowait()
                within_s = 0.0
                if report["report"] == "connection":
                    self._over[report["connection"]] = report
        except Empty:
            return


class QuicServer(Server):
    """A QUIC stack's. The kernel has no data on its connections, and the link's packets are the only capture."""

    def __init__(self, testbed: Testbed, host: str, plan: Mapping[str, Any]) -> None:
        """`plan`: "command" of the program, and its "server" settings. MachineError if it does not start."""
        target = testbed.host(host)
        command = [*plan["command"], "serve", f"{target.in_url}:{SECURE_PORT}", json.dumps(plan["server"])]
        self._program = serving(f"the QUIC server on host {host}", target.namespace, command)

    def path(self, size: int, header: int) -> str:
        """As Server: a request is the size of its response, header included."""
        return str(size + header)

    def stop(self) -> None:
        """As Server."""
        self._program.stop()


class PaddedCertificates:
    """Ordinary certificates of one key, each padded by a comment so that the server's flight has so many bytes.

    The key is Ed25519's, whose signatures all have one length.
    """

    def __init__(self, directory: Path) -> None:
        """`directory` is nginx's, which need not run."""
        self._directory = directory / "certificates"
        self._socket = directory / "tls"
        self._made: dict[int, str] = {}
        self._lock = threading.Lock()

    def begin(self) -> None:
        """The key, a key of tickets, and nothing else. MachineError without openssl."""
        self._directory.mkdir(exist_ok=True)
        processes.give(self._directory)
        self._openssl("genpkey", "-algorithm", "ed25519", "-out", str(self._directory / "key.pem"))
        # Nginx reads it as another user; nobody outside sees these files.
        (self._directory / "key.pem").chmod(0o644)
        (self._directory / "tickets").write_bytes(os.urandom(80))

    def named(self, flight_bytes: int) -> str:
        """The name of the server in a ClientHello that makes its flight so long. What nginx sends is measured over a
        socket of its own, and the padding mended. RequestError if it cannot be.
        """
        with self._lock:
            if flight_bytes in self._made:
                return self._made[flight_bytes]
            name = called(flight_bytes)
            padding, smallest = 0, 0
            for _ in range(_MOST_TRIES):
                flight = self._flight(name, padding)
                smallest = smallest or flight
                padding += flight_bytes - flight
                if abs(flight - flight_bytes) <= NEAR_BYTES:
                    self._made[flight_bytes] = name
                    return name
                if not 0 <= padding <= _MOST_PADDING:
                    break
        raise RequestError(
            f"tls: the server's flight should have {flight_bytes} bytes, but nginx sends {smallest} with the shortest "
            f"certificate, and at most {_MOST_PADDING} more; choose another chain, or use simulate"
        )

    def _flight(self, name: str, padding: int) -> int:
        """Bytes of the server's flight with a new certificate of that name."""
        comment = ["-addext", f"nsComment={'x' * padding}"] if padding else []
        place = self._directory / f"{name}.pem"
        self._openssl(
            "req", "-x509", "-key", str(self._directory / "key.pem"), "-days", "30", "-subj", "/CN=server", *comment,
            "-out", str(place),
        )  # fmt: skip
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(_STARTED_WITHIN_S)
            end.connect(str(self._socket))
            return timed.shaken(timed.opened("padded", name, 0), end)[1]

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(
            [processes.find("openssl", "openssl"), *arguments], capture_output=True, env=ENVIRONMENT, check=False
        )
        if done.returncode != 0:
            raise MachineError(f"openssl makes no certificate: {done.stderr.decode(errors='replace').strip()[-200:]}")


def called(flight_bytes: int) -> str:
    """A server's name for a ClientHello. All have one length, so that flights do not depend on them."""
    return f"s{flight_bytes:09d}"


def _accepts(place: Path) -> bool:
    """Whether a program listens at the Unix socket `place`."""
    with socket.socket(socket.AF_UNIX) as asked:
        return asked.connect_ex(str(place)) == 0


def _pad(header: int, unpadded: int) -> str:
    """The directive that makes a header of `unpadded` bytes one of `header`."""
    missing = header - unpadded
    if missing == 0:
        return ""
    if missing < _SHORTEST_PAD:
        raise RequestError(
            f"response_header: nginx cannot make a header of {header} bytes; its own has {unpadded}, and the next it "
            f"can make has {unpadded + _SHORTEST_PAD}"
        )
    return f'\n            add_header X "{"x" * (missing - _SHORTEST_PAD + 1)}";'


def listening() -> set[int]:
    """The ports at which something accepts connections, in the calling thread's namespace."""
    files = [path for name in ("tcp", "tcp6") if (path := Path("/proc/thread-self/net") / name).exists()]
    lines = [line.split() for path in files for line in path.read_text(encoding="ascii").splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A"}


def _real(testbed: Testbed, host: str, no_delay: bool, record_bytes: int, chains: list[Any]) -> Watched:
    """`real` in a host's namespace, running."""
    target = testbed.host(host)
    anyone = "::" if target.family == socket.AF_INET6 else "0.0.0.0"
    numbers = map(str, (REAL_PORT, int(no_delay), record_bytes))
    command = [sys.executable, "-I", str(Path(__file__).with_name("real.py")), anyone, *numbers, json.dumps(chains)]
    return serving(f"the server with ML-DSA on host {host}", target.namespace, command)
