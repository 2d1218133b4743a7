"""Processes of the native module that work in real time and are driven over a socket, one line per command."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from firstflight.engines.emulate.inside.devices import DEVICE
from firstflight.engines.emulate.inside.processes import Namespace, Watched
from firstflight.errors import MachineError

# Of one answer; these processes answer between two packets.
_PATIENCE_S = 20.0
_HEAD = "import sys, json; from firstflight import _native; start = json.load(sys.stdin); "

Spawn = Callable[..., "subprocess.Popen[bytes]"]

Columns = dict[str, tuple[str, bytes]]


def placed(described: dict[str, Any], payload: bytes) -> dict[str, Columns]:
    """The tables behind a line: {table: {column: (NumPy's name of the type, bytes)}}."""
    tables: dict[str, Columns] = {}
    at = 0
    for name, columns in described.items():
        tables[name] = {}
        for column, dtype, length in columns:
            tables[name][column] = (dtype, payload[at : at + length])
            at += length
    return tables


class Driven:
    """A running function of the native module. The tables of an answer are {table: {column: (NumPy's name of the type,
    bytes)}}.
    """

    def __init__(
        self,
        name: str,
        call: str,
        start: dict[str, Any],
        fds: Sequence[int],
        spawn: Spawn,
        on_death: Callable[[str], None],
    ) -> None:
        """Start it. `name` for messages; `call`: the call into the native module, as Python, where `start` holds the
        arguments given here and `start['control']` its end of the socket; `fds` are left to it; `spawn` starts it
        where it belongs, as `subprocess.Popen` does; `on_death` is called if it ends without a command.
        """
        self._name = name
        ours, its = socket.socketpair()
        said = os.memfd_create("said")
        process = spawn(
            [sys.executable, "-P", "-c", _HEAD + call],
            stdin=subprocess.PIPE,
            stderr=said,
            pass_fds=[its.fileno(), *fds],
        )
        assert process.stdin is not None
        content = json.dumps(start | {"control": its.fileno()}).encode()
        its.close()
        for fd in fds:
            os.close(fd)
        self.process = process
        self._watched = Watched(name, process, on_death, said)
        self._lock = threading.Lock()
        ours.settimeout(_PATIENCE_S)
        self._control = ours
        self._stream = ours.makefile("rb")
        with process.stdin as stream:
            stream.write(content)

    def ask(self, command: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command. MachineError if it is refused or does not come."""
        with self._lock:
            try:
                self._control.sendall(json.dumps({"do": command, **parameters}).encode() + b"\n")
                answer = self._receive()
            except OSError as error:
                raise MachineError(f"{self._name} does not answer to {command}: {error}") from None
        if not answer.pop("ok"):
            raise MachineError(f"{self._name} does not {command}: {answer['error']}")
        return answer

    def _receive(self) -> dict[str, Any]:
        """A line of JSON, and the columns behind it in their places."""
        line = self._stream.readline()
        if not line:
            raise OSError("it has ended")
        answer: dict[str, Any] = json.loads(line)
        payload = self._stream.read(answer.pop("payload_bytes", 0))
        if "tables" in answer:
            answer["tables"] = placed(answer["tables"], payload)
        return answer

    def stop(self) -> None:
        """End it, and free its resources."""
        self._watched.let_go()
        self._control.close()
        self._watched.stop()


class Box(Driven):
    """A running link box. Its commands are those of the native module: take, reset, watch, pcapng, stop."""

    def __init__(self, plan: dict[str, Any], fds: list[tuple[str, int]], on_death: Callable[[str], None]) -> None:
        """Start it on these descriptors, (kind, descriptor) in the order of the plan's ports; it owns them then.

        MachineError if it does not come up.
        """
        start = {"plan": plan, "fds": fds}
        call = "_native.run_box(json.dumps(start['plan']), [tuple(port) for port in start['fds']], start['control'])"
        super().__init__("the link emulator", call, start, [fd for _, fd in fds], subprocess.Popen, on_death)
        self.ask("take")


class Capture(Driven):
    """A capture on a host: every segment that its device carries, with the kernel's time stamps. Its commands are those
    of the native module: take, reset, pcapng, stop.
    """

    def __init__(self, namespace: Namespace, mtu: int, on_death: Callable[[str], None]) -> None:
        """Start it on the host's device, for packets of up to `mtu` bytes. MachineError if it does not come up."""
        start = {"interface": DEVICE, "mtu": mtu}
        call = "_native.run_capture(start['interface'], start['control'], start['mtu'])"
        super().__init__(f"the capture on host {namespace.name}", call, start, [], namespace.spawn, on_death)
        self.ask("reset")

    def take(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """The packets since the last reset: `tables` with `segments`, whose times count from `origin_ns` of
        CLOCK_MONOTONIC, `connections` with the ends of each by number, and `counts`.
        """
        return self.ask("take", origin_ns=origin_ns, replicate=replicate)
