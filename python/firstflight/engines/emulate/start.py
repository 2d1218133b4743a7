"""Starting and ending a testbed's first process, and the reason when that does not start."""

import base64
import contextlib
import errno
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from firstflight.errors import FirstflightError, MachineError, RequestError

_ERRORS: dict[str, type[FirstflightError]] = {"request": RequestError, "machine": MachineError}
_PIECE = 1 << 16
_MOST_FDS = 8

Answer = dict[str, Any]


class ControlConnection:
    """Many questions may be open at the same time, from many threads; each call waits for its own answer."""

    def __init__(self, line: socket.socket) -> None:
        self.fds: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._line = line
        self._numbers = count()
        self._waiting: dict[int, queue.SimpleQueue[Answer | None]] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._gone = False
        self._reason = ""
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, name="testbed", daemon=True)
        self._reader.start()

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Whether the other end said that it is; it may have ended instead, or not be heard of in time."""
        self._ready.wait(timeout_s)
        with self._lock:
            return self._ready.is_set() and not self._gone

    @property
    def reason(self) -> str:
        """Why the testbed ended, as it said itself; empty if it said nothing."""
        with self._lock:
            return self._reason

    def call(self, command: str, parameters: dict[str, Any], timeout_s: float) -> Any:
        """The command's answer. RequestError and MachineError as raised inside; MachineError after `timeout_s`
        without an answer, or if the testbed has ended.
        """
        number = next(self._numbers)
        mailbox: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self._lock:
            if self._gone:
                raise self._end(command)
            self._waiting[number] = mailbox
        try:
            with self._sending:
                message = {"id": number, "do": command, "with": parameters}
                self._line.sendall(json.dumps(message).encode() + b"\n")
            answer = mailbox.get(timeout=timeout_s)
        except queue.Empty:
            raise MachineError(f"the testbed did not answer to {command} within {timeout_s:g} s") from None
        except OSError:
            # The reader learns of the end, and of its reason, by itself.
            answer = mailbox.get(timeout=timeout_s)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise self._end(command)
        if "error" in answer:
            raise _ERRORS.get(answer["kind"], FirstflightError)(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """Hang up, which ends the testbed."""
        # The reader holds the descriptor: shut down, it reads the end and is done.
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._line.close()
        while not self.fds.empty():
            os.close(self.fds.get())

    def _end(self, command: str) -> MachineError:
        return MachineError(self._reason or f"the testbed was killed before it answered to {command}")

    def _read(self) -> None:
        # Joined when their line is complete: an answer with a capture of a minute has more than a thousand.
        pieces: list[bytes] = []
        while True:
            try:
                piece, fds, _, _ = socket.recv_fds(self._line, _PIECE, _MOST_FDS)
            except OSError:
                break
            for fd in fds:
                self.fds.put(fd)
            if not piece:
                break
            *ends, rest = piece.split(b"\n")
            for end in ends:
                self._take(json.loads(b"".join([*pieces, end]), object_hook=_text_as_bytes))
                pieces.clear()
            pieces.append(rest)
        with self._lock:
            self._gone = True
            for mailbox in self._waiting.values():
                mailbox.put(None)
        self._ready.set()

    def _take(self, message: dict[str, Any]) -> None:
        with self._lock:
            if "ended" in message:
                self._reason = message["ended"]
            elif "ready" in message:
                self._ready.set()
            elif message["id"] in self._waiting:
                self._waiting[message["id"]].put(message)


def _text_as_bytes(table: dict[str, Any]) -> Any:
    return base64.b64decode(table["base64"]) if table.keys() == {"base64"} else table


# In the environment of each process of a testbed, with a value that no other testbed has.
MARK = "FIRSTFLIGHT_TESTBED"
_OTHERS = ("--net", "--pid", "--fork", "--kill-child=KILL", "--mount", "--mount-proc")
# Always a user namespace, also as root: settings inside then affect nothing else.
UNSHARE = ("unshare", "--user", "--map-root-user", *_OTHERS)
# The id that programs have in a testbed that root starts, and the one that it is outside, which owns nothing.
PROGRAM_ID = 1
_NOBODY = 65534
# Programs get no settings of the user who runs them, neither a proxy nor those of TLS.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "OPENSSL_CONF": "/dev/null"}
NAMESPACES = str(Path(__file__).with_name("namespaces.py"))
_PACKAGES = Path(__file__).resolve().parents[3]
_START_S = 20.0
_END_S = 5.0

# Settings that forbid user namespaces to non-root users: file, forbidding value, reason, command that fixes it.
_SWITCHES = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor denies user namespaces to programs without a profile, as in Ubuntu since 24.04",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "only root may make user namespaces here",
        "sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    ("user/max_user_namespaces", "0", "user namespaces are switched off", "sysctl -w user.max_user_namespaces=15000"),
    ("user/max_net_namespaces", "0", "network namespaces are switched off", "sysctl -w user.max_net_namespaces=15000"),
    ("user/max_pid_namespaces", "0", "PID namespaces are switched off", "sysctl -w user.max_pid_namespaces=15000"),
)
OTHERWISE = "run as root, or in a container with --privileged"


class Inside:
    """The first process of a testbed, running in its own user, network, PID and mount namespaces."""

    def __init__(self, *programs: str) -> None:
        """Start it and wait until it answers. MachineError, with the fix, if it does not.

        `programs`: files with further commands.
        """
        self._programs = programs
        self.mark = uuid.uuid4().hex
        # The error output of unshare or Python when they cannot start, kept where no file is left behind.
        self._said = os.memfd_create("testbed")
        ours, its = socket.socketpair()
        try:
            with its:
                self.process = self._begin(its)
        except OSError as error:
            ours.close()
            os.close(self._said)
            raise MachineError(f"unshare cannot be run ({error.strerror})", "apt-get install util-linux") from None
        refused = _name_ids(self.process.pid, ours) if _is_root() else None
        self.connection = ControlConnection(ours)
        if not self.connection.wait_until_ready(_START_S):
            said = os.pread(self._said, 4096, 0).decode(errors="replace")
            reason = self.connection.reason
            self.close()
            raise refused or (MachineError(reason) if reason else explain(said))

    def first_process(self) -> int:
        """The number of the process that answers, as it is outside: the only child of `unshare`."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return int(children.split()[0])

    def close(self) -> None:
        """End it, and with it the testbed, and wait until its processes are gone."""
        self.connection.close()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self._said)

    def _begin(self, its: socket.socket) -> subprocess.Popen[bytes]:
        environment = without_proxies() | {MARK: self.mark, "PYTHONPATH": str(_PACKAGES), "LC_ALL": "C.UTF-8"}
        unshare = shutil.which(UNSHARE[0], path=search_path())
        if unshare is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        enter = [unshare, *UNSHARE[1:]]
        if _is_root():
            enter = [sys.executable, "-I", "-S", NAMESPACES, "begin", str(its.fileno()), unshare, *_OTHERS]
        return subprocess.Popen(
            [*enter, sys.executable, "-P", "-m", f"{__package__}.inside", str(its.fileno()), *self._programs],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=[its.fileno()],
            # A Ctrl-C is the runner's affair; the testbed ends with it.
            start_new_session=True,
            cwd="/",
            env=environment,
        )


def without_proxies() -> dict[str, str]:
    """The environment of this process; a proxy of the user's has no place between the hosts of a testbed."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def search_path() -> str:
    """The search path for programs: the user's path, and where Debian has servers; absolute directories only."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return ":".join(directory for directory in path.split(":") if Path(directory).is_absolute())


@cache
def _is_root() -> bool:
    """Whether this is root of a system with other users. In a namespace with only root, root is another user
    outside.
    """
    if os.geteuid() != 0:
        return False
    for of in ("uid_map", "gid_map"):
        known = [list(map(int, line.split())) for line in Path(f"/proc/self/{of}").read_text("ascii").splitlines()]
        if not any(first <= _NOBODY < first + count for first, _, count in known):
            return False
    return True


# And how each is asked for its version.
PROGRAMS = {"nginx": "-v", "curl": "--version"}


def answer_of(program: str, *arguments: str) -> str:
    """What a program prints that is only asked what it can: with no environment of the caller's, and not as root.
    MachineError if it is not there or fails.
    """
    path = shutil.which(program, path=search_path())
    if path is None:
        raise MachineError("not found")
    nobody: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if _is_root() else {}
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [path, *arguments],
            capture_output=True,
            text=True,
            timeout=_START_S,
            check=True,
            env=ENVIRONMENT,
            cwd="/",
            **nobody,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(str(error)) from None
    return (done.stdout or done.stderr).strip()


def version_of(program: str) -> tuple[str, bool]:
    """The line in which one of PROGRAMS gives its version, or why it does not; and whether it does."""
    try:
        return answer_of(program, PROGRAMS[program]).partition("\n")[0], True
    except MachineError as error:
        return error.reason, False


def _name_ids(pid: int, line: socket.socket) -> MachineError | None:
    """Map the ids that the namespace of `namespaces.py` asks for. Returns the error if the kernel refuses; if it never
    asks, it reports the reason itself.
    """
    line.settimeout(_START_S)
    try:
        if line.recv(1):
            for of in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{of}").write_text(f"0 0 1\n{PROGRAM_ID} {_NOBODY} 1\n", "ascii")
            line.sendall(b"!")
        line.settimeout(None)
    except OSError as error:
        line.shutdown(socket.SHUT_RDWR)
        return MachineError(f"no user ID can be mapped for a testbed's programs ({error.strerror or error})", OTHERWISE)
    return None


def explain(said: str, settings: Path = Path("/proc/sys")) -> MachineError:
    """The reason why no testbed starts, from the output of the programs that should start it, and the fix.

    `settings`: where the kernel's switches are read.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    if not last.startswith("unshare:"):
        return MachineError(f"the testbed's first process did not start: {last}")
    for name, forbidding, reason, fix in _SWITCHES:
        with contextlib.suppress(OSError):
            if (settings / name).read_text(encoding="ascii").strip() == forbidding:
                return MachineError(f"no testbed can start on this machine: {reason} ({last})", fix)
    return MachineError(f"no testbed can start on this machine ({last})", OTHERWISE)
