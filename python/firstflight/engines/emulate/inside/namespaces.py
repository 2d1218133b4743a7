"""Network namespaces without names: each is kept by one thread, in which everything happens that must happen in it."""

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

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
