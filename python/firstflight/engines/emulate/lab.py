"""A testbed from the runner's side: started, controlled by commands, and gone when the runner is."""

import errno
import getpass
import os
import queue
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from firstflight.engines.emulate.kernel import KernelSettings
from firstflight.engines.emulate.layout import HOST_MAC, NETWORKS, SPIN_NS, Layout
from firstflight.engines.emulate.start import Inside
from firstflight.errors import MachineError

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


Backend = Literal["auto", "tun", "packet"]

TUN_FIX = "chmod 0666 /dev/net/tun"
# To make a testbed, and each of its hosts; a busy machine takes that long.
_BUILD_S, _HOST_S = 120.0, 0.25
# How often to look whether packets are in flight.
_LOOK_S = 0.005


class Lab:
    """A running testbed, to be used in a `with` statement.

        with Lab(lay_out(scenario)) as lab:
            lab.set("node[0]", KernelSettings(route={"initcwnd": 3, "congctl": "reno"}))
            ...
            counters = lab.box()

    Entering it and every call raise MachineError, one sentence, where the machine refuses or a process of the testbed
    that must not end did. Calls may come from several threads concurrently. However the runner ends, nothing is left.

    `facts` holds what results depend on in addition to the scenario: `kernel`, `backend` and `backend_reason`,
    `realtime` (true or false) and `realtime_refusal`, `congestion_controls` and `cubic` (parameters that are the whole
    machine's).
    """

    programs: tuple[str, ...] = ()
    """Files with further commands of the testbed."""

    def __init__(
        self,
        layout: Layout,
        backend: Backend = "auto",
        realtime: bool = True,
        seed: int = 0,
        log: bool = False,
        spin_ns: int = SPIN_NS,
    ) -> None:
        """`backend`: "tun" and "packet" are taken or refused, "auto" is TUN where it can be had. `realtime`: ask for
        the real-time class for the box and our own TCP; where that is refused the testbed runs without and `facts` says
        so. The rest is the box's (`Layout.box_plan`).
        """
        self.layout = layout
        self.facts: dict[str, Any] = {}
        self._asked: Backend = backend
        self._realtime = realtime
        self._plan = layout.box_plan(seed=seed, log=log, spin_ns=spin_ns)
        self._inside: Inside | None = None
        self._refusal: str | None = "not asked for"

    def __enter__(self) -> Self:
        self._inside = Inside(*self.programs)
        try:
            self._build(self._inside)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def mark(self) -> str:
        """The value of the environment variable `start.MARK` in every process of this testbed and in no other."""
        return self._running("be identified").mark

    def first_process(self) -> int:
        """The number of the testbed's first process, as it is outside: the way to its namespaces."""
        return self._running("be entered").first_process()

    def set(self, host: str, settings: KernelSettings) -> None:
        """Set and read back. MachineError names the host, the setting, the requested and the found value."""
        self.call("configure", host=host, **asdict(settings))

    def box(self, do: str = "take", **parameters: Any) -> dict[str, Any]:
        """The link box's answer to a command: by default its counters since the last take. In `tables`
        each column is (NumPy's name of the type, bytes), as in the simulator's answers.
        """
        answer: dict[str, Any] = self.call("box", do=do, **parameters)
        return answer

    def is_quiet(self, within_s: float) -> bool:
        """Whether no packet is in flight, or none is left within a time."""
        deadline = time.monotonic() + within_s
        while self.box("look")["under_way"]:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def kernel_dump(self) -> list[dict[str, Any]]:
        """Every net.ipv4.tcp_* of every host: [{"hosts": names, "sysctls": {name: value}}], equal hosts together."""
        dump: list[dict[str, Any]] = self.call("dump")
        return dump

    def call(self, command: str, timeout_s: float = 30.0, **parameters: Any) -> Any:
        """The answer of a command inside (`inside.commands`). RequestError and MachineError as raised there;
        MachineError after `timeout_s` without an answer, or if the testbed has ended.
        """
        inside = self._running(command)
        answer = inside.connection.call(command, parameters, timeout_s)
        self._give_realtime(inside)
        return answer

    def close(self) -> None:
        """End the testbed and wait until its processes are gone. May be called twice."""
        if self._inside is not None:
            self._inside.close()
            self._inside = None

    def _running(self, command: str) -> Inside:
        if self._inside is None:
            raise MachineError(f"the testbed is not running and cannot {command}; use it in a with statement")
        return self._inside

    def _build(self, inside: Inside) -> None:
        facts = self.call("examine")
        backend, reason = self._choose(facts.pop("tun_refusal"))
        hosts = [asdict(host) for host in self.layout.hosts]
        network = {"hosts": hosts, "mac": HOST_MAC, "network": str(NETWORKS[self.layout.ip])}
        patience_s = _BUILD_S + _HOST_S * len(hosts)
        self.call("build", timeout_s=patience_s, backend=backend, plan=self._plan, **network)
        self.facts = facts | {
            "backend": backend,
            "backend_reason": reason,
            "realtime": self._refusal is None,
            "realtime_refusal": self._refusal,
        }

    def _give_realtime(self, inside: Inside) -> None:
        """The processes that came as descriptors with an answer keep time for packets: the link box, our own TCP."""
        while True:
            try:
                pidfd = inside.connection.fds.get_nowait()
            except queue.Empty:
                return
            try:
                self._refusal = make_realtime(pidfd) if self._realtime else "not asked for"
            finally:
                os.close(pidfd)

    def _choose(self, tun_refusal: str | None) -> tuple[str, str]:
        """The back end, and the reason for it."""
        if self._asked == "tun" and tun_refusal is not None:
            raise MachineError(f"there is no TUN device ({tun_refusal})", f"{TUN_FIX}, or leave the choice to auto")
        if self._asked != "auto":
            return self._asked, "asked for"
        return ("tun", "it can be had") if tun_refusal is None else ("packet", tun_refusal)
