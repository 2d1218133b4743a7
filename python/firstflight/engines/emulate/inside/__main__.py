"""The first process of a testbed: it executes the runner's commands from a socket, and the testbed ends with it.

    python -m firstflight.engines.emulate.inside SOCKET [FILE...]

FILE: a program with further commands (`commands.command`).
Messages are JSON, one per line. Asked: {"id", "do", "with"}; answered: {"id", "answer"} or {"id", "error", "kind"}.
Bytes are {"base64"}. Unasked comes {"ended": SENTENCE} before the testbed ends on its own account. When the socket
ends, so does everything here: the kernel kills all processes of a PID namespace whose first one is gone, and frees the
resources that they held.
"""

import base64
import contextlib
import ctypes
import json
import os
import resource
import runpy
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from pyroute2.netlink.exceptions import NetlinkError

from firstflight.engines.emulate.inside.commands import COMMANDS, FILES
from firstflight.engines.emulate.inside.testbed import Testbed
from firstflight.errors import FirstflightError, MachineError, RequestError

_LAST_WORD_S = 0.5
_KINDS = {RequestError: "request", MachineError: "machine"}


class Runner:
    """The connection to the runner."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """One message; descriptors go with it."""
        content = json.dumps(message, default=_bytes_as_text).encode() + b"\n"
        with self._lock:
            try:
                if fds:
                    sent = socket.send_fds(self._line, [content], fds)
                    content = content[sent:]
                self._line.sendall(content)
            except OSError:
                os._exit(0)

    def end(self, sentence: str) -> NoReturn:
        """Send the runner the reason, and end the testbed."""
        # A runner that does not read must not keep it alive.
        if self._lock.acquire(timeout=_LAST_WORD_S):
            self._line.settimeout(_LAST_WORD_S)
            with contextlib.suppress(OSError):
                self._line.sendall(json.dumps({"ended": sentence}).encode() + b"\n")
        os._exit(1)


def main() -> NoReturn:
    """Serve until the runner is gone."""
    # nginx and curl have another user's id: they read the files written here, with any umask of the caller.
    os.umask(0o022)
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    runner = Runner(line)
    for file in sys.argv[2:]:
        runpy.run_path(file)
    try:
        _prepare()
    except FirstflightError as error:
        runner.end(str(error))
    testbed = Testbed(runner.end)
    runner.send({"ready": True})
    workers = ThreadPoolExecutor(16, thread_name_prefix="command")
    try:
        for text in line.makefile("r", encoding="utf-8"):
            workers.submit(_answer, runner, testbed, json.loads(text))
    finally:
        # However the line ends, and whatever the workers wait for.
        os._exit(0)


def _answer(runner: Runner, testbed: Testbed, message: dict[str, Any]) -> None:
    answer: dict[str, Any] = {"id": message["id"]}
    fds: list[int] = []
    try:
        answer["answer"] = COMMANDS[message["do"]](testbed, **message["with"])
        # Only the runner can give a process the real-time class, and it knows it by no other name.
        fds = [os.pidfd_open(pid) for pid in testbed.take_real_time()]
        runner.send(answer, fds)
    except FirstflightError as error:
        runner.send({"id": answer["id"], "error": str(error), "kind": _KINDS.get(type(error), "other")})
    except (OSError, NetlinkError) as error:
        # If a process of the testbed has just died, its watcher ends the testbed meanwhile, and says the reason.
        time.sleep(0.5)
        sentence = f"the kernel refuses a feature that {message['do']} needs: {error}"
        runner.send({"id": answer["id"], "error": sentence, "kind": _KINDS[MachineError]})
    except Exception as error:
        sentence = f"{message['do']} failed inside the testbed: {error!r}"
        runner.send({"id": answer["id"], "error": sentence, "kind": "other"})
    for fd in fds:
        os.close(fd)


def _bytes_as_text(content: Any) -> dict[str, str]:
    if isinstance(content, bytes):
        return {"base64": base64.b64encode(content).decode()}
    raise TypeError(f"{type(content).__name__} cannot be sent to the runner")


def _prepare() -> None:
    """Room for many hosts, and files that vanish with the testbed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", bytes(FILES), b"tmpfs", 0, b"mode=0755") != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"no file system in memory can be mounted on {FILES} inside the testbed: {reason}")


if __name__ == "__main__":
    main()
