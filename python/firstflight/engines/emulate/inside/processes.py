"""The processes of a testbed and their network namespaces. One that must not end and does, ends the testbed; none
outlives it. Those of the native module, which work in real time, are driven over a socket, one line per command.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, ParamSpec, TypeVar

from firstflight.engines.emulate.start import ENVIRONMENT, MARK, PROGRAM_ID, search_path
from firstflight.errors import FirstflightError, MachineError, RequestError

P = ParamSpec("P")
T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

# The device of each host.
DEVICE = "ff0"
# Of one answer; these processes answer between two packets.
_PATIENCE_S = 20.0
_HEAD = "import sys, json; from firstflight import _native; start = json.load(sys.stdin); "

Spawn = Callable[..., "subprocess.Popen[bytes]"]

Columns = dict[str, tuple[str, bytes]]


class Namespace:
    """A new network namespace. The kernel frees it when the process is gone.

    `setns` and `unshare` act on a thread, so a namespace is a thread: sockets that it opens, files of /proc/sys/net
    that it reads or writes and processes that it starts belong to the namespace, in whichever thread they are used
    later.
    """

    def __init__(self, name: str) -> None:
        """MachineError if the kernel makes no further namespace."""
        self.name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.fd = self.call(_enter_new)

    def begin(self, function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> "Future[T]":
        """Let the namespace's thread call the function, after the functions given before."""
        return self._thread.submit(function, *args, **keywords)

    def call(self, function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """The function's result, from the namespace's thread. Nothing that waits for long belongs here."""
        return self.begin(function, *args, **keywords).result()

    def spawn(self, command: Sequence[str], **keywords: Any) -> subprocess.Popen[bytes]:
        """Start a process in the namespace, as `subprocess.Popen` does."""
        return self.call(lambda: subprocess.Popen(command, **keywords))


def _enter_new() -> int:
    if _libc.unshare(_CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"the kernel makes no further network namespace: {reason}; see user.max_net_namespaces")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _report(_: subprocess.Popen[bytes], sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


class Watched:
    """A process that must live as long as the testbed does, unless a command stops it."""

    on_death: ClassVar[Callable[[subprocess.Popen[bytes], str], None]] = _report
    """Called, in a thread, with a process that ended and a sentence about it: a testbed has itself ended by it."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], said: int | None = None) -> None:
        """`name` for messages ("the link box"); `said`: a file that the process wrote its errors to, whose last line
        gives the reason; it is closed when the process has ended.
        """
        self.name = name
        self.process = process
        self._said = said
        self._expected = threading.Event()
        threading.Thread(target=self._watch, name=f"watch {name}", daemon=True).start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the process: by a request, then by force."""
        self.let_go()
        self.process.terminate()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def let_go(self) -> None:
        """Allow the process to end from now on."""
        self._expected.set()

    def _watch(self) -> None:
        status = self.process.wait()
        said = b""
        if self._said is not None:
            said = os.pread(self._said, 1 << 16, 0)
            os.close(self._said)
        if not self._expected.is_set():
            Watched.on_death(self.process, f"{self.name} ended unasked: {reason(status, said)}")


def serving(name: str, namespace: Namespace, command: Sequence[str]) -> Watched:
    """A server of ours in a namespace, which writes a line to stdout when it listens. MachineError if it does not."""
    said = os.memfd_create("said")
    # Ours end with their stdin.
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
    process = namespace.spawn(command, **pipes)
    assert process.stdout is not None
    if not process.stdout.readline():
        try:
            status = process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        with os.fdopen(said, "rb") as complaints:
            complaints.seek(0)
            raise MachineError(f"{name} does not start: {reason(status, complaints.read())}")
    return Watched(name, process, said)


def ending(status: int) -> str:
    """The end of a process, in words, from the status that `subprocess` gives."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def reason(status: int, said: bytes) -> str:
    """Why a process ended: how, and the last line of its complaints."""
    return ": ".join([ending(status), *said.decode(errors="replace").strip().splitlines()[-1:]])


@cache
def find(name: str, package: str) -> str:
    """The absolute path of a program; MachineError with the package that provides it."""
    path = shutil.which(name, path=search_path())
    if path is None:
        raise MachineError(f"there is no {name} on this machine", f"apt-get install {package}")
    return path


def spawn(namespace: Namespace, command: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
    """Start a program in a host's namespace: with an environment of only the variables that a testbed needs, and as a
    user who owns nothing outside if root has started the testbed. OSError if it cannot be started.
    """
    return namespace.spawn(command, env=ENVIRONMENT | {MARK: os.environ[MARK]}, **_identity(), **pipes)


def give(directory: Path) -> None:
    """Let the programs write in a directory."""
    if _identity():
        os.chown(directory, PROGRAM_ID, PROGRAM_ID)


@cache
def _identity() -> dict[str, Any]:
    """The user a program runs as. One that an ordinary user has started keeps that user's id: there is no other."""
    known = [line.split()[0] for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    if str(PROGRAM_ID) not in known:
        return {}
    return {"user": PROGRAM_ID, "group": PROGRAM_ID, "extra_groups": []}


class Driven:
    """A running function of the native module. Tables of an answer are {table: {column: (NumPy type, bytes)}}."""

    _refusal: type[FirstflightError] = MachineError

    def __init__(self, name: str, call: str, start: dict[str, Any], fds: Sequence[int], spawn: Spawn) -> None:
        """Start it. `name` for messages; `call`: the call into the native module, as Python, where `start` holds the
        arguments given here and `start['control']` its end of the socket; `fds` are left to it; `spawn` starts it
        where it belongs, as `subprocess.Popen` does.
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
        self._watched = Watched(name, process, said)
        self._lock = threading.Lock()
        ours.settimeout(_PATIENCE_S)
        self._control = ours
        self._stream = ours.makefile("rb")
        with process.stdin as stream:
            stream.write(content)

    def ask(self, command: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command. MachineError if it does not come, `_refusal` if it is refused."""
        with self._lock:
            try:
                self._control.sendall(json.dumps({"do": command, **parameters}).encode() + b"\n")
                answer = self._answer()
            except (OSError, Empty) as error:
                raise MachineError(
                    f"{self._name} does not answer to {command}: {error or 'no answer in time'}"
                ) from None
        if not answer.pop("ok"):
            raise self._refusal(f"{self._name} does not {command}: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, Any]:
        """A line of JSON, and the columns behind it in their places."""
        line = self._stream.readline()
        if not line:
            raise OSError("it has ended")
        answer: dict[str, Any] = json.loads(line)
        payload = self._stream.read(answer.pop("payload_bytes", 0))
        at = 0
        tables: dict[str, Columns] = {}
        for name, columns in answer.get("tables", {}).items():
            tables[name] = {}
            for column, dtype, length in columns:
                tables[name][column] = dtype, payload[at : at + length]
                at += length
        return answer | ({"tables": tables} if "tables" in answer else {})

    def stop(self) -> None:
        """End it, and free its resources."""
        self._watched.let_go()
        self._control.close()
        self._watched.stop()


class Box(Driven):
    """A running link box. Its commands are those of the native module: take, look, reset, watch, pcapng, stop."""

    def __init__(self, plan: dict[str, Any], fds: list[tuple[str, int]]) -> None:
        """Start it on these descriptors, (kind, descriptor) in the order of the plan's ports; it owns them then.

        MachineError if it does not come up.
        """
        start = {"plan": plan, "fds": fds}
        call = "_native.run_box(json.dumps(start['plan']), [tuple(port) for port in start['fds']], start['control'])"
        super().__init__("the link emulator", call, start, [fd for _, fd in fds], subprocess.Popen)
        self.ask("take")


class Capture(Driven):
    """A capture on a host: every segment that its device carries, with the kernel's time stamps. Its commands are those
    of the native module: take, reset, pcapng, stop.
    """

    def __init__(self, namespace: Namespace, mtu: int) -> None:
        """Start it on the host's device, for packets of up to `mtu` bytes. MachineError if it does not come up."""
        start = {"interface": DEVICE, "mtu": mtu}
        call = "_native.run_capture(start['interface'], start['control'], start['mtu'])"
        super().__init__(f"the capture on host {namespace.name}", call, start, [], namespace.spawn)
        self.ask("reset")

    def take(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """The packets since the last reset: `tables` with `segments`, whose times count from `origin_ns` of
        CLOCK_MONOTONIC, `connections` with the ends of each by number, and `counts`.
        """
        return self.ask("take", origin_ns=origin_ns, replicate=replicate)


class WireHost(Driven):
    """Our TCP on a host whose kernel keeps silent: it serves files over HTTP and fetches them. Its plan, commands and
    reports are those of the native module's `run_wire`; a refused command is a RequestError.
    """

    _refusal = RequestError

    def __init__(self, plan: dict[str, Any], spawn: Spawn, device: str = DEVICE) -> None:
        """Start it: `spawn`, as `subprocess.Popen`, in the namespace of `device`. MachineError if that fails."""
        self.reports: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        call = "_native.run_wire(json.dumps(start['plan']), start['device'], start['control'])"
        start = {"plan": plan, "device": device}
        super().__init__(f"firstflight's TCP on {plan['address']}", call, start, [], spawn)
        self._control.settimeout(None)
        threading.Thread(target=self._read, name="our TCP", daemon=True).start()
        self.ask("take")

    def stop(self) -> None:
        """End it: open connections are reset, and its capture file, if there is one, complete."""
        self._watched.let_go()
        with contextlib.suppress(MachineError):
            self.ask("stop")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE_S)
        super().stop()

    def _answer(self) -> dict[str, Any]:
        answer = self._answers.get(timeout=_PATIENCE_S)
        if answer is None:
            raise OSError("it has ended")
        return answer

    def _read(self) -> None:
        """Tell reports from answers until the process ends."""
        with contextlib.suppress(OSError):
            while True:
                message = super()._answer()
                (self.reports if "report" in message else self._answers).put(message)
        self._answers.put(None)
