"""The ways into a testbed's namespaces, as a program that becomes or runs another.

    python -I -S namespaces.py begin SOCKET COMMAND...
    python -I -S namespaces.py enter FIRST NETWORK PROGRAM...

`begin` makes the user namespace of a testbed that root starts, and becomes the command that makes the others. Only root
may say that a namespace knows more than one id, and only from outside. So this asks over the socket, and goes on when
the runner has written which ids there are: 0, which builds the testbed, and one for the programs in it.

`enter` runs a program under the caller's ids, and ends as it does. FIRST is the testbed's first process, NETWORK its
descriptor of a host's network namespace. The exit status is the program's, or 128 and the signal that ended it. A
signal from the parent process ends the program, by force after 2 s. One from elsewhere has reached the program too, as
a terminal's Ctrl-C does: what it does then is its own affair.
"""

import ctypes
import os
import signal
import socket
import sys
import time
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_ENDING = (*_OF_THE_TERMINAL, signal.SIGTERM, signal.SIGHUP)
_ENDS_WITHIN_S = 2.0
# In this time a Ctrl-C and what the parent sends for it are one signal; the parent of a busy machine is late.
_ONE_S = 3.0
_libc = ctypes.CDLL(None, use_errno=True)


def _begin(its: str, command: list[str]) -> None:
    line = socket.socket(fileno=os.dup(int(its)))
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        # In the words of util-linux, which the runner explains.
        sys.exit(f"unshare: unshare failed: {os.strerror(ctypes.get_errno())}")
    line.sendall(b"?")
    if not line.recv(1):
        sys.exit(1)
    os.setgroups([])
    os.execv(command[0], command)


def _enter(first: str, network: str, program: list[str]) -> int:
    uid, gid, directory = os.geteuid(), os.getegid(), Path.cwd()
    ways = [f"/proc/{first}/ns/{kind}" for kind in ("user", "mnt", "pid")]
    try:
        entrances = [os.open(way, os.O_RDONLY) for way in (*ways, f"/proc/{first}/fd/{network}")]
    except FileNotFoundError:
        sys.exit(f"firstflight: the testbed ended before {program[0]} began")
    for fd in entrances:
        _check(_libc.setns(fd, 0))
        os.close(fd)
    os.chdir(directory)
    heard = {number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, heard | {signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        _become(program, uid, gid)
    return _wait(child, heard)


def _become(program: list[str], uid: int, gid: int) -> None:
    inside = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER))
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {inside[0]} 1"),
        ("gid_map", f"{gid} {inside[1]} 1"),
    ):
        Path("/proc/self", name).write_text(content, "ascii")
    # Python ignores these, and the program would do so too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"firstflight: {program[0]} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _wait(child: int, heard: set[signal.Signals]) -> int:
    """Wait until the child has ended; its exit status."""
    ended_by, force_at, shared_at = 0, float("inf"), float("-inf")
    while True:
        pid, status = os.waitpid(child, os.WUNTRACED | os.WNOHANG)
        if pid and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(child, signal.SIGCONT)
        elif pid:
            code = os.waitstatus_to_exitcode(status)
            return 128 + ended_by if ended_by else code if code >= 0 else 128 - code
        came = signal.sigtimedwait(heard | {signal.SIGCHLD}, min(max(force_at - time.monotonic(), 0.0), 3600.0))
        now = time.monotonic()
        if came is None:
            if now >= force_at:
                os.kill(child, signal.SIGKILL)
                force_at = float("inf")
        elif came.si_signo == signal.SIGCHLD:
            continue
        elif came.si_pid != os.getppid():
            shared_at = now
        elif came.si_signo not in _OF_THE_TERMINAL or now - shared_at > _ONE_S:
            ended_by = ended_by or came.si_signo
            os.kill(child, came.si_signo)
            force_at = min(force_at, now + _ENDS_WITHIN_S)


def _check(answer: int) -> None:
    if answer != 0:
        sys.exit(f"firstflight: the testbed cannot be entered: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    if sys.argv[1] == "begin":
        _begin(sys.argv[2], sys.argv[3:])
    sys.exit(_enter(sys.argv[2], sys.argv[3], sys.argv[4:]))
