"""Our TCP on a host whose kernel keeps silent: one process that serves files over HTTP and fetches them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from firstflight.engines.emulate.inside.commands import command
from firstflight.engines.emulate.inside.devices import DEVICE
from firstflight.engines.emulate.inside.driven import Spawn, placed
from firstflight.engines.emulate.inside.processes import Watched
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import MachineError, RequestError

# Of one answer; the process answers between two packets.
_PATIENCE_S = 20.0
_PROGRAM = (
    "import sys, json; from firstflight import _native; start = json.load(sys.stdin); "
    "_native.run_wire(json.dumps(start['plan']), start['device'], start['control'])"
)


class WireHost:
    """A host of our TCP, running. Its plan, commands and reports are those of the native module's `run_wire`."""

    def __init__(
        self, plan: dict[str, Any], spawn: Spawn, on_death: Callable[[str], None], device: str = DEVICE
    ) -> None:
        """Start it: `spawn`, as `subprocess.Popen`, in the namespace of `device`. MachineError if that fails."""
        ours, its = socket.socketpair()
        said = os.memfd_create("wire")
        process = spawn(
            [sys.executable, "-P", "-c", _PROGRAM], stdin=subprocess.PIPE, stderr=said, pass_fds=[its.fileno()]
        )
        control = its.fileno()
        assert process.stdin is not None
        with process.stdin as stream:
            stream.write(json.dumps({"plan": plan, "device": device, "control": control}).encode())
        its.close()
        self.reports: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._watched = Watched(f"firstflight's TCP on {plan['address']}", process, on_death, said)
        self.pid = process.pid
        self._process = process
        self._control = ours
        self._lock = threading.Lock()
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._read, name="our TCP", daemon=True).start()
        self.ask("take")

    def ask(self, do: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command. RequestError if it is refused, MachineError if none comes."""
        with self._lock:
            try:
                self._control.sendall(json.dumps({"do": do, **parameters}).encode() + b"\n")
                answer = self._answers.get(timeout=_PATIENCE_S)
            except (OSError, Empty) as error:
                raise MachineError(f"firstflight's TCP does not answer to {do}: {error}") from None
        if answer is None:
            raise MachineError(f"firstflight's TCP ended before it answered to {do}")
        if not answer.pop("ok"):
            raise RequestError(f"firstflight's TCP does not {do}: {answer['error']}")
        return answer

    def stop(self) -> None:
        """End it: open connections are reset, and its capture file, if there is one, complete."""
        self._watched.let_go()
        with contextlib.suppress(MachineError):
            self.ask("stop")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S)
        self._watched.stop()
        self._control.close()

    def _read(self) -> None:
        """Tell reports from answers until the process ends."""
        with self._control.makefile("rb") as stream:
            while line := stream.readline():
                message: dict[str, Any] = json.loads(line)
                payload = stream.read(message.pop("payload_bytes"))
                message["tables"] = placed(message["tables"], payload)
                (self.reports if "report" in message else self._answers).put(message)
        self._answers.put(None)


@command
def wire(testbed: Testbed, host: str, do: str, plan: dict[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    """The answer of our TCP on a host to a command; the first one starts it, with the parts that `plan` adds to the
    address.
    """
    target = testbed.host(host)
    if target.stack != "firstflight":
        raise RequestError(f'host "{host}" has the kernel\'s TCP: its stack is "{target.stack}"')
    if host not in testbed.wires:
        told = {"address": target.address, "mtu": testbed.mtu, **(plan or {})}
        testbed.wires[host] = WireHost(told, target.namespace.spawn, testbed.on_death)
        testbed.raise_priority(testbed.wires[host].pid)
    answer: dict[str, Any] = testbed.wires[host].ask(do, **parameters)
    return answer


@command
def wire_reports(testbed: Testbed, host: str, count: int = 0, within_s: float = 0.0) -> list[dict[str, Any]]:
    """The reports of our TCP on a host since the last call; waits for `count` reports, `within_s` seconds for each.

    MachineError if they do not come.
    """
    found: list[dict[str, Any]] = []
    while True:
        try:
            found.append(testbed.wires[host].reports.get(timeout=within_s if len(found) < count else 0))
        except Empty:
            if len(found) < count:
                raise MachineError(f"firstflight's TCP on {host} told {len(found)} things of {count} in time") from None
            return found
