"""The guard's routes, stored before they are set, so that they can be undone after any end of the process."""

import fcntl
import os
import sqlite3
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path

from firstflight.errors import MachineError
from firstflight.guard.outcome import Network
from firstflight.guard.routes import Route, Routes


class Journal:
    """Routes of ours, intended or set, in `DIR/routes.sqlite`; one process at a time holds it.

    Raises MachineError if another guard holds it or it cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise MachineError(f"{directory}: {error.strerror}; name another directory with --state") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise MachineError(f"{directory}: a guard is running with this state; stop it first") from None
        try:
            self._base = sqlite3.connect(directory / "routes.sqlite", isolation_level=None)
            self._base.execute("PRAGMA journal_mode = WAL")
            # Routes end with the boot, as do entries that a power failure could take from the journal.
            self._base.execute("PRAGMA synchronous = NORMAL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS route"
                "(place TEXT, prefix TEXT, segments INTEGER, message BLOB, PRIMARY KEY (place, prefix, segments))"
            )
            self._place = _place()
            self._base.execute("DELETE FROM route WHERE place NOT LIKE ?", (self._place.partition(" ")[0] + " %",))
        except sqlite3.Error as error:
            os.close(self._lock)
            raise MachineError(
                f"{directory}: the journal cannot be used ({error}); look at `ip route show proto 71` and name another "
                "directory with --state"
            ) from None

    def intend(self, prefix: Network, segments: int, route: Route) -> None:
        """Before a route is set."""
        row = (self._place, str(prefix), segments, route.packed())
        self._base.execute("INSERT OR REPLACE INTO route VALUES (?, ?, ?, ?)", row)

    def forget(self, prefix: Network, segments: int) -> None:
        """After a route of ours was removed or replaced, or was taken over by another program."""
        row = (self._place, str(prefix), segments)
        self._base.execute("DELETE FROM route WHERE place = ? AND prefix = ? AND segments = ?", row)

    def intended(self) -> list[tuple[Network, int, Route]]:
        """The settings allowed in this network namespace."""
        rows = self._base.execute("SELECT prefix, segments, message FROM route WHERE place = ?", (self._place,))
        return [(ip_network(prefix), segments, Route.read(message)) for prefix, segments, message in rows.fetchall()]

    def close(self) -> None:
        """Release it for another process."""
        self._base.close()
        os.close(self._lock)


def undo(journal: Journal, routes: Routes) -> tuple[list[Network], list[Network]]:
    """Remove every route of ours; returns the prefixes that were removed, and those that others have changed."""
    there = routes.ours()
    removed = []
    intended = journal.intended()
    for prefix, segments, route in intended:
        found = there.get(prefix)
        if found is not None and found.initial_window == segments and routes.remove(route):
            removed.append(prefix)
    # Last, since a full disk must not keep routes in place; entries left in the journal then do no harm.
    with suppress(sqlite3.OperationalError):
        for prefix, segments, _ in intended:
            journal.forget(prefix, segments)
    return removed, sorted(routes.ours(), key=str)


def _place() -> str:
    """Boot and network namespace: routes last as long as both."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/net').stat().st_ino}"
