"""The guard on a host: connections in, decisions out, windows set and written down, everything undone at the end."""

import json
import os
import signal
import socket
import sqlite3
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from firstflight.errors import FirstflightError, MachineError
from firstflight.guard.brain import Brain, Settings
from firstflight.guard.closed import Closed, outcome, unfinished_handshake
from firstflight.guard.groups import Groups
from firstflight.guard.journal import Journal
from firstflight.guard.memory import Memory
from firstflight.guard.metrics import Metrics
from firstflight.guard.outcome import Network, Outcome
from firstflight.guard.routes import RoutedClient, Routes
from firstflight.guard.watchdog import STATUS, ending_signals, watched
from firstflight.guard.windows import RandomWindows, Windows
from firstflight.netlink import Asking, attributes

_SOCK_DIAG, _BY_FAMILY = 4, 20
# linux/inet_diag.h: attributes, asked for by a bit each; states as bits.
_TOS, _MARK = 5, 15
_ESTABLISHED, _SYN_RECV = 1 << 1, 1 << 3
# So that a host with very many connections is read within some milliseconds.
_MOST_CONNECTED, _MOST_UNFINISHED = 2000, 4000
_MAPPED = bytes(10) + b"\xff\xff"


class Sockets:
    """Connections of some local ports, of all without any."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._seen: dict[bytes, int] = {}
        """Looks at each unfinished handshake."""

    def look(self, network: Callable[[bytes], Network]) -> tuple[dict[Network, list[RoutedClient]], list[Network]]:
        """Some of the connected clients by prefix, and the prefixes of handshakes that are unfinished for longer than
        since the last look. A client that does not answer the SYN/ACK within that time counts once.
        """
        clients: defaultdict[Network, list[RoutedClient]] = defaultdict(list)
        waiting: dict[bytes, bytes] = {}
        for family in (socket.AF_INET, socket.AF_INET6):
            for port in self._ports or [0]:
                for client, _ in _sockets(family, port, _ESTABLISHED, _MOST_CONNECTED):
                    clients[network(client.remote)].append(client)
                for client, name in _sockets(family, port, _SYN_RECV, _MOST_UNFINISHED):
                    waiting[name] = client.remote
        # Each is old at its second look and is reported then; at later ones it is known.
        late = [network(remote) for name, remote in waiting.items() if self._seen.get(name) == 1]
        self._seen = {name: self._seen.get(name, 0) + 1 for name in waiting}
        return clients, late


def _sockets(family: int, port: int, states: int, most: int) -> list[tuple[RoutedClient, bytes]]:
    """The sockets in these states, and a name for each handshake."""
    # struct inet_diag_req_v2, its inet_diag_sockid with the local port alone.
    body = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << _TOS - 1, 0, states)
    body += struct.pack(">H", port) + bytes(46)
    sockets = []
    asking = Asking(_SOCK_DIAG)
    with closing(asking.socket):
        for message in islice(asking.dump(_BY_FAMILY, body), most):
            size = 4 if family == socket.AF_INET else 16
            # Of an IPv4 client at a socket of IPv6 the last four bytes are its address.
            local, remote = (message[place : place + size].removeprefix(_MAPPED) for place in (8, 24))
            if remote[:1] == b"\x7f" or remote == bytes(15) + b"\1":
                continue
            values = dict(attributes(message[72:]))
            mark = struct.unpack("=I", values.get(_MARK, bytes(4)))[0]
            ports = struct.unpack_from(">HH", message, 4)
            sockets.append((RoutedClient(remote, local, mark, values.get(_TOS, b"\0")[0], ports), message[4:40]))
    return sockets


# Windows are removed within a second after a change of rules: a look, and what is decided in it.
_LOOK_S = 0.5
_SHOW_S = 1.0
_SOCKETS_S = 3.0
_LOG_BYTES = 16 << 20
_GROUPS_SHOWN = 50
# linux/capability.h
_CAP_NET_ADMIN = 12
DECISIONS = "decisions.jsonl"


@dataclass(frozen=True, slots=True)
class GuardedHost:
    """The guard's work on this host."""

    settings: Settings
    groups: Groups
    state: Path
    acts: bool
    """False: decisions are written down and nothing is set (`watch`, `--dry-run`)."""
    ports: list[int] = field(default_factory=list)
    prefix_lengths: tuple[int, int] = (28, 56)
    metrics_port: int | None = None
    cgroup: Path | None = None
    """Windows are drawn for each connection of its processes; without it, routes set them by prefix."""


class Log:
    """Events as JSON, one line each, in two files of bounded size."""

    def __init__(self, path: Path, dry_run: bool) -> None:
        self._path, self._dry_run = path, dry_run
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def write(self, event: str, **values: Any) -> None:
        """One line."""
        line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, "dry_run": self._dry_run}
        self._file.write(json.dumps(line | values, default=str) + "\n")
        if self._file.tell() > _LOG_BYTES:
            self._file.close()
            self._path.replace(self._path.with_suffix(".jsonl.1"))
            self._file = self._path.open("a", encoding="utf-8", buffering=1)

    def note(self, event: str, prefix: Network | None, reason: str) -> None:
        """An event of a prefix."""
        self.write(event, prefix=prefix, reason=reason)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Stop(BaseException):
    """A signal came that ends a process."""


def guard(host: GuardedHost, started: Callable[[str | None], None] = lambda barred: None) -> None:
    """Run until a signal, then undo. `started` is called when it watches, with the reason if it must not set routes.

    Raises MachineError without CAP_NET_ADMIN, where another guard has the state, or when connections are no longer
    reported. Then, too, everything is undone first.
    """
    _check_capability()
    before = {kind: signal.getsignal(kind) for kind in ending_signals()}
    # Who connects is private.
    umask = os.umask(0o077)
    try:
        with watched(host.state):
            _guard(host, started, before.keys())
    finally:
        os.umask(umask)
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _guard(host: GuardedHost, started: Callable[[str | None], None], kinds: Iterable[int]) -> None:
    journal = Journal(host.state)
    log = Log(host.state / DECISIONS, not host.acts)
    routes = Routes()
    windows = Windows(routes, journal, log.note)
    try:
        closed = Closed(host.ports, host.prefix_lengths)
        # Routes left by a guard that was killed.
        windows.undo()
        means: Windows | RandomWindows = windows
        if host.cgroup is not None:
            means = RandomWindows(host.cgroup, host.ports, host.settings.policy.ceiling)
        log.write(
            "started", acts=host.acts, policy=asdict(host.settings.policy), pid=os.getpid(), barred=windows.barred
        )
        with _signals(kinds), Metrics.served(host.metrics_port) as metrics:
            watch = _Watch(host, closed, means, log, metrics)
            try:
                started(windows.barred if host.acts and host.cgroup is None else None)
                watch.run()
            finally:
                watch.close()
    except _Stop:
        log.write("stopped")
    except FirstflightError as error:
        log.write("failed", reason=str(error))
        raise
    except (OSError, sqlite3.Error) as error:
        raise MachineError(
            f"{getattr(error, 'filename', None) or host.state}: {error}; the guard ends and removes its routes"
        ) from None
    finally:
        try:
            windows.undo()
        finally:
            (host.state / STATUS).unlink(missing_ok=True)
            routes.close()
            log.close()
            journal.close()


def _check_capability() -> None:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    if not effective >> _CAP_NET_ADMIN & 1:
        raise MachineError(
            "this process has no CAP_NET_ADMIN, which routes take; run it with sudo or as examples/guard does"
        )


@contextmanager
def _signals(kinds: Iterable[int]) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _Stop

    for kind in kinds:
        signal.signal(kind, stop)
    try:
        yield
    finally:
        # A second signal must not interrupt the undoing.
        for kind in kinds:
            signal.signal(kind, signal.SIG_IGN)


class _Watch:
    def __init__(
        self, host: GuardedHost, closed: Closed, windows: Windows | RandomWindows, log: Log, metrics: Metrics
    ) -> None:
        self._host, self._closed, self._windows, self._log, self._metrics = host, closed, windows, log, metrics
        self._brain = Brain(host.settings, host.groups)
        self._decided: dict[Network, int] = {}
        self._uncertain = 0
        self._timeouts_unknown = 0
        self._started = self._shown = self._looked = time.monotonic()
        self._sockets = Sockets(host.ports) if host.acts and host.cgroup is None else None
        self._unfinished = 0
        self._memory = Memory(host.state, host.settings, host.groups, self._brain, self._started)

    def run(self) -> None:
        self._show(self._started)
        while True:
            try:
                rows = self._closed.take(_LOOK_S)
            except OSError as error:
                raise MachineError(f"closed connections (sock_diag): {error.strerror}; nothing stays raised") from None
            now = time.monotonic()
            self._windows.follow()
            outcomes = self._unfinished_handshakes(now)
            for prefix, row in rows:
                self._timeouts_unknown += row.timeouts is None
                began = self._windows.began(prefix, row)
                if began is None:
                    self._uncertain += 1
                    continue
                result = outcome(now, prefix, row, began, self._host.settings.policy.ceiling)
                self._metrics.count(result)
                if not (self._host.acts and began.judged):
                    # Learned from, and not judged: it has not the window that was drawn.
                    result = replace(result, first_flight_lost=None, timeouts=0)
                outcomes.append(result)
            for decision in self._brain.decide(outcomes, now):
                if decision.initial_window is None:
                    self._decided.pop(decision.prefix, None)
                else:
                    self._decided[decision.prefix] = decision.initial_window
                self._log.write("decided", **asdict(decision))
                if self._host.acts:
                    self._windows.want(decision)
            self._memory.keep(now)
            if now - self._shown >= _SHOW_S:
                self._shown = now
                self._show(now)

    def close(self) -> None:
        """Store the learned state."""
        self._memory.save(time.monotonic())
        self._memory.close()

    def _unfinished_handshakes(self, now: float) -> list[Outcome]:
        """Clients whose SYN was answered and who were not heard of again, as timeouts of their prefixes' arms."""
        if self._sockets is None or not isinstance(self._windows, Windows) or now - self._looked < _SOCKETS_S:
            return []
        self._looked = now
        clients, unfinished = self._sockets.look(self._closed.network)
        self._windows.connected(clients)
        outcomes = []
        for prefix in unfinished:
            began = self._windows.began(prefix)
            if began is not None and began.judged:
                self._unfinished += 1
                outcomes.append(unfinished_handshake(now, prefix, began))
        return outcomes

    def _show(self, now: float) -> None:
        counts = self._closed.counts()
        verdicts = sorted(self._brain.verdicts().items(), key=lambda item: -item[1].connections)
        status = {
            "pid": os.getpid(),
            "written_at": time.time(),
            "running_s": round(now - self._started, 1),
            "acts": self._host.acts,
            "policy": asdict(self._host.settings.policy),
            "windows_decided": len(self._decided),
            **self._windows.status(),
            "connections": counts._asdict(),
            "uncertain": self._uncertain,
            "unfinished_handshakes": self._unfinished,
            "timeouts_unknown": self._timeouts_unknown,
            "groups": [{"group": name} | asdict(verdict) for name, verdict in verdicts[:_GROUPS_SHOWN]],
            "groups_in_all": len(verdicts),
        }
        self._metrics.show(status, counts)
        new = self._host.state / (STATUS + ".new")
        new.write_text(json.dumps(status, default=str), encoding="utf-8")
        new.replace(self._host.state / STATUS)
