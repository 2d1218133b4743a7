"""The processes of a testbed and their network namespaces. One that must not end and does, ends the testbed; none
outlives it.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from firstflight.engines.emulate.start import ENVIRONMENT, MARK, PROGRAM_ID, search_path
from firstflight.errors import MachineError

P = ParamSpec("P")
T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


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


class Watched:
    """A process that must live as long as the testbed does, unless a command stops it."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], on_death: Callable[[str], None], said: int | None = None
    ) -> None:
        """`name` for messages ("the link box"); `on_death` is called, in a thread, with a sentence; `said`: a file that
        the process wrote its errors to, whose last line gives the reason; it is closed when the process has ended.
        """
        self.name = name
        self.process = process
        self._on_death = on_death
        self._said = said
        self._expected = threading.Event()
        threading.Thread(target=self._watch, name=f"watch {name}", daemon=True).start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask it to end, and make it end."""
        self.let_go()
        self.process.terminate()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def let_go(self) -> None:
        """From now on it may end."""
        self._expected.set()

    def _watch(self) -> None:
        status = self.process.wait()
        lines: list[str] = []
        if self._said is not None:
            lines = os.pread(self._said, 1 << 16, 0).decode(errors="replace").splitlines()
            os.close(self._said)
        if not self._expected.is_set():
            self._on_death(": ".join([f"{self.name} ended unasked", ending(status), *lines[-1:]]))


def ending(status: int) -> str:
    """The end of a process, in words, from the status that `subprocess` gives."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


@cache
def find(name: str, package: str) -> str:
    """The absolute path of a program; MachineError with the package that provides it."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise MachineError(f"there is no {name} on this machine", f"apt-get install {package}")
    return found


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
