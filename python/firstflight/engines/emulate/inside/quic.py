"""A QUIC stack on a host: a server for the campaign, and a client a connection, which has its own clock."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from firstflight.engines.emulate.inside.curl import Fetched, Target
from firstflight.engines.emulate.inside.processes import Namespace, Watched, ending
from firstflight.engines.emulate.inside.sockets import End
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError, RequestError

PORT = 443
# A client's program ends by itself at its timeout; the additional time that this may take.
_PATIENCE_S = 20.0


class QuicServer:
    """A `servers.Server`. The kernel has no data on its connections, and the link's packets are the only capture."""

    def __init__(self, testbed: Testbed, host: str, told: Mapping[str, Any]) -> None:
        """`told`: "command" of the program, and its "server" settings. MachineError if it does not start."""
        target = testbed.host(host)
        command = [*told["command"], "serve", f"{target.in_url}:{PORT}", json.dumps(told["server"])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = target.namespace.spawn(command, **pipes)
        assert process.stdout is not None
        # It writes the line when it listens.
        if not process.stdout.readline():
            _, said = process.communicate()
            last = said.decode(errors="replace").strip().splitlines()[-1:] or [ending(process.returncode)]
            raise MachineError(f"the QUIC server on host {host} does not start: {last[0]}")
        self._watched = Watched(f"the QUIC server on host {host}", process, testbed.on_death)

    def path(self, size: int, header: int) -> str:
        """As Server: a request is the size of its response, header included."""
        return str(size + header)

    def named(self, flight_bytes: int, is_real: bool) -> tuple[str, int]:
        """As Server: it has one certificate, and needs no name."""
        raise RequestError("a server over QUIC has one certificate")

    def reset(self) -> None:
        """As Server: nothing is kept."""

    def closed(self, ends: set[End], within_s: float) -> dict[End, dict[str, Any]]:
        """As Server: nothing is known."""
        return {}

    def segments(self, origin_ns: int, replicate: int) -> None:
        """As Server: there are none."""

    def stop(self) -> None:
        """As Server."""
        self._watched.stop()


class QuicClient:
    """A `clients.Fetcher`: a program a connection, as with curl."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def fetch(self, plan: Mapping[str, Any], targets: Sequence[Target], within_s: float) -> Iterator[Fetched]:
        """As Fetcher; of the plan "quic": "command" of the program, and its "client" settings."""
        for number, (address, size) in enumerate(targets):
            asked = plan["quic"]["client"] | {"response_bytes": int(size), "within_s": within_s}
            command = [*plan["quic"]["command"], "fetch", f"{address}:{PORT}", json.dumps(asked)]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with self._namespace.spawn(command, **pipes) as process:
                assert process.stdout is not None
                line = process.stdout.readline()
                ended_at = time.monotonic()
                _, said = process.communicate(timeout=_PATIENCE_S)
            if not line:
                last = said.decode(errors="replace").strip().splitlines()[-1:] or [ending(process.returncode)]
                raise MachineError(f"the QUIC client on host {self._namespace.name} failed: {last[0]}")
            yield _fetched(number, json.loads(line), ended_at)


def _fetched(number: int, told: Mapping[str, Any], ended_at: float) -> Fetched:
    return Fetched(
        number=number,
        start_s=ended_at - told["total_s"],
        port=told["port"],
        connect_s=told["connect_s"],
        first_byte_s=told["first_byte_s"],
        total_s=told["total_s"],
        body_bytes=told["body_bytes"],
        header_bytes=0,
        completed=told["completed"],
        # The handshake is that of TLS, and no byte waits for the end of a record.
        secured_s=told["connect_s"],
        usable_s=told["first_byte_s"],
    )
