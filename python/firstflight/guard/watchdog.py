"""A process that outlives the guard and removes its routes, where a signal that cannot be caught ended it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firstflight.errors import MachineError
from firstflight.guard.journal import Journal, undo
from firstflight.guard.routes import Routes

STATUS = "status.json"
_TRY_FOR_S = 10.0
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
_HARMLESS = {signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT}
_KEPT = {signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ}
_STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


def ending_signals() -> set[int]:
    """The signals that end a process and that it can catch, but for faults.

    SIGHUP stays ignored under nohup, SIGPIPE and SIGXFSZ as Python has them.
    """
    left_out: set[int] = {*_FAULTS, *_HARMLESS, *_STOPPING, signal.SIGKILL}
    left_out |= {kind for kind in _KEPT if signal.getsignal(kind) is signal.SIG_IGN}
    return {int(kind) for kind in signal.valid_signals()} - left_out


@contextmanager
def watched(state: Path) -> Iterator[None]:
    """While this process lives and until it leaves the context, another one waits; it undoes if the first ends within.

    To be entered before there are threads and open files.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(writer)
            _wait_and_undo(reader, state)
        finally:
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.write(writer, b"ended")
        os.close(writer)
        os.waitpid(child, 0)


def _wait_and_undo(reader: int, state: Path) -> None:
    # A closed terminal and `kill -- -GROUP` do not reach it, and no process waits for its output.
    os.setsid()
    for kind in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(kind, signal.SIG_IGN)
    os.dup2(reader, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for output in (1, 2):
        os.dup2(nowhere, output)
    os.closerange(3, 1024)
    if os.read(0, 16):
        return
    end = time.monotonic() + _TRY_FOR_S
    while time.monotonic() < end:
        # The kernel may close the pipe of a process that ends before it releases the lock. A guard that was started
        # since then holds it, too, and has undone by itself.
        with suppress(MachineError):
            undo(Journal(state), Routes())
            (state / STATUS).unlink(missing_ok=True)
            return
        time.sleep(0.02)
