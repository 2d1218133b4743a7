"""The real-time class for a process of a testbed, given from outside: within a user namespace even root may not."""

import errno
import getpass
import os
from pathlib import Path

# Above all that is not real time; the kernel's own threads of that kind stay above it.
PRIORITY = 10


def fix() -> str:
    """The command that lets the user of this process give the class away."""
    user = getpass.getuser()
    return f"echo '{user} - rtprio {PRIORITY}' > /etc/security/limits.d/firstflight.conf, and log in again"


def make_realtime(pidfd: int) -> str | None:
    """SCHED_FIFO for every thread of the process that the descriptor stands for; the reason if not, else None."""
    try:
        pid = _process(pidfd)
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(PRIORITY))
        if os.sched_getscheduler(pid) != os.SCHED_FIFO:
            return "the kernel did not keep SCHED_FIFO"
    except OSError as error:
        return f"SCHED_FIFO is refused: {error.strerror}"
    return None


def _process(pidfd: int) -> int:
    """The number that the descriptor's process has where this one runs. ProcessLookupError if it has gone."""
    entries = Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines()
    pid = next(int(line.split()[1]) for line in entries if line.startswith("Pid:"))
    if pid <= 0:
        raise ProcessLookupError(errno.ESRCH, "the process has gone")
    return pid
