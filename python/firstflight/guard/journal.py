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

LOCK = "lock"


class Journal:
    """Routes of ours, intended or set, in `DIR/routes.sqlite`; one process at a time holds it.

    Raises MachineError if another guard holds it, it cannot be written, or another user could write there.
    """

    def __init__(self, directory: Path) -> None:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(directory)
            self._lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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

    def forget(self, *settings: tuple[Network, int]) -> None:
        """After routes of ours were removed or replaced, or were taken over by another program."""
        rows = [(self._place, str(prefix), segments) for prefix, segments in settings]
        self._base.execute("BEGIN")
        self._base.executemany("DELETE FROM route WHERE place = ? AND prefix = ? AND segments = ?", rows)
        self._base.execute("COMMIT")

    def intended(self) -> list[tuple[Network, int, Route]]:
        """The settings allowed in this network namespace. Raises MachineError if the file is damaged."""
        try:
            rows = self._base.execute("SELECT prefix, segments, message FROM route WHERE place = ?", (self._place,))
            return [(ip_network(prefix), int(segments), Route.read(packed)) for prefix, segments, packed in rows]
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise MachineError(f"the journal is damaged ({error}); look at `ip route show proto 71`") from None

    def close(self) -> None:
        """Release it for another process."""
        self._base.close()
        os.close(self._lock)


def is_held(directory: Path) -> bool:
    """Whether a guard runs with this state. Raises OSError if that cannot be looked up."""
    try:
        lock = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _check_owner(directory: Path) -> None:
    """Nobody else may put links in the place of our files, least of all where the guard runs as root."""
    user, state = os.geteuid(), directory.stat()
    if state.st_uid != user:
        raise MachineError(
            f"{directory}: belongs to user {state.st_uid}, not to the guard's ({user}); run as that user or name "
            "another directory with --state"
        )
    if state.st_mode & 0o022:
        raise MachineError(
            f"{directory}: other users can write there (mode {state.st_mode & 0o777:o}); `chmod 700` it or name "
            "another directory with --state"
        )
    # systemd's DynamicUser makes the directory a link of root's.
    linked = directory.is_symlink() and (user == 0 or directory.lstat().st_uid != 0)
    for path in [directory] if linked else [path for path in directory.iterdir() if path.is_symlink()]:
        raise MachineError(f"{path}: is a link; remove it or name another directory with --state")


def undo(journal: Journal, routes: Routes) -> tuple[list[Network], list[Network]]:
    """Remove every route of ours; returns the prefixes that were removed, and those that others have changed.

    Raises MachineError, after all were tried, if the kernel kept one; it stays in the journal.
    """
    intended = journal.intended()
    there = routes.ours()
    if any(prefix not in there for prefix, _, _ in intended):
        there |= routes.ours()
    removed, over, kept = [], [], None
    for prefix, segments, route in intended:
        # The kernel's list lacks routes while others change some, so one that is not in it is tried, too. One with
        # another window was changed by another process: IPv6 would remove it as ours.
        present = there.get(prefix)
        try:
            if (present is None or present.initial_window == segments) and routes.remove(route):
                removed.append(prefix)
            over.append((prefix, segments))
        except OSError as error:
            kept = f"the route to {prefix} cannot be removed: {os.strerror(error.errno or 0)}"
    # Last, since a full disk must not keep routes in place; entries left in the journal then do no harm.
    with suppress(sqlite3.OperationalError):
        journal.forget(*over)
    if kept is not None:
        raise MachineError(
            f"{kept}; {len(intended) - len(over)} stay in the journal: run `firstflight guard undo` again"
        )
    return removed, sorted(routes.ours(), key=str)


def _place() -> str:
    """Boot and network namespace: routes last as long as both."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/net').stat().st_ino}"
