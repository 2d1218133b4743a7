"""The server on a host: nginx over the host's kernel, our own TCP, or a QUIC stack, with the source of its data."""

import json
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any

from firstflight.engines.emulate.inside.nginx import PORT, SECURE_PORT, Nginx, called
from firstflight.engines.emulate.inside.processes import Capture, Watched, WireHost, serving
from firstflight.engines.emulate.inside.sockets import ClosingSockets, End
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError, RequestError

REAL_PORT = 444
_NOBODY = "0.0.0.0:0"


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


class KernelServer(Server):
    """Nginx, with the kernel's word on each socket that closes and a capture of the device."""

    def __init__(self, testbed: Testbed, host: str, directory: Path, plan: dict[str, Any]) -> None:
        """`plan`: "headers", bytes of each response header that will be asked for, "no_delay" and, if it is asked over
        TLS, "tls"; "real" with "record_bytes" and "chains" for chains of ML-DSA.
        """
        namespace, family = testbed.host(host).namespace, testbed.host(host).family
        self._nginx = Nginx(
            namespace, directory, plan["headers"], plan["no_delay"], testbed.on_death, family, plan.get("tls")
        )
        self._real = _real(testbed, host, plan["no_delay"], **plan["real"]) if "real" in plan else None
        try:
            self._sockets = namespace.call(ClosingSockets, (PORT, SECURE_PORT, REAL_PORT), family)
        except OSError as error:
            raise MachineError(
                f"host {host}: the kernel does not report closed sockets (sock_diag): {error.strerror}"
            ) from None
        self._capture = Capture(namespace, testbed.mtu, testbed.on_death)

    def path(self, size: int, header: int) -> str:
        """As Server."""
        return self._nginx.path(size, header)

    def named(self, flight_bytes: int, is_real: bool) -> tuple[str, int]:
        """As Server."""
        return (called(flight_bytes), REAL_PORT) if is_real else (self._nginx.named(flight_bytes), SECURE_PORT)

    def reset(self) -> None:
        """As Server."""
        self._capture.ask("reset")
        self._sockets.take(set(), 0.0)

    def closed(self, ends: set[End], within_s: float) -> dict[End, dict[str, Any]]:
        """As Server, by the names of the kernel's `struct tcp_info`."""
        infos: dict[End, dict[str, Any]] = {**self._sockets.take(ends, within_s)}
        return infos

    def segments(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """As Server."""
        return self._capture.take(origin_ns, replicate)

    def stop(self) -> None:
        """As Server."""
        self._nginx.stop()
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
        self._wire = WireHost(plan, target.namespace.spawn, testbed.on_death)
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
        while not ends <= {_end(facts["peer"]) for facts in self._over.values()}:
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._read(left)
        return {_end(facts["peer"]): facts | {"total_rto": facts["timeouts"]} for facts in self._over.values()}

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
        self._program = serving(f"the QUIC server on host {host}", target.namespace, command, testbed.on_death)

    def path(self, size: int, header: int) -> str:
        """As Server: a request is the size of its response, header included."""
        return str(size + header)

    def stop(self) -> None:
        """As Server."""
        self._program.stop()


def _real(testbed: Testbed, host: str, no_delay: bool, record_bytes: int, chains: list[Any]) -> Watched:
    """`real` in a host's namespace, running."""
    target = testbed.host(host)
    anyone = "::" if target.family == socket.AF_INET6 else "0.0.0.0"
    numbers = map(str, (REAL_PORT, int(no_delay), record_bytes))
    command = [sys.executable, "-I", str(Path(__file__).with_name("real.py")), anyone, *numbers, json.dumps(chains)]
    return serving(f"the server with ML-DSA on host {host}", target.namespace, command, testbed.on_death)


def _end(text: str) -> End:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)
