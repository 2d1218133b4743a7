"""Windows drawn for each connection, by a BPF program on a cgroup that ends with the guard."""

from pathlib import Path
from typing import Any

from firstflight import _native
from firstflight.errors import MachineError
from firstflight.guard.brain import Decision
from firstflight.guard.closed import Began, Row
from firstflight.guard.outcome import Network
from firstflight.guard.policy import RFC6928_SEGMENTS


class Draws:
    """Windows as `windows.Windows` sets them by routes, but by connection. The kernel removes it when the process ends.

    Raises MachineError where the program cannot be attached to `cgroup`. `compared` is the largest window under trial.
    """

    def __init__(self, cgroup: Path, ports: list[int], compared: int) -> None:
        self._set: dict[Network, tuple[int, float]] = {}
        try:
            self._program = _native.DrawnWindows(cgroup, ports, compared)
        except OSError as error:
            raise MachineError(
                f"{cgroup}: a BPF program cannot be attached: {error.strerror}; name a directory of cgroup "
                "version 2, as root or with CAP_BPF and CAP_NET_ADMIN, on Linux 5.15 or later"
            ) from None

    def status(self) -> dict[str, Any]:
        """The state for `status.json`. The program leaves connections alone that a route gave another window."""
        return {"windows_set": len(self._set), "hands_off": 0}

    def want(self, decision: Decision) -> None:
        """Carry out a decision."""
        prefix, segments = decision.prefix, decision.initial_window
        place = (prefix.network_address.packed, prefix.prefixlen)
        if segments is None:
            if self._set.pop(prefix, None) is not None:
                self._program.remove(*place)
            return
        self._program.set(*place, segments, decision.share)
        self._set[prefix] = segments, decision.share

    def began(self, prefix: Network, row: Row) -> Began:
        """How a connection that has closed began: not judged if nothing was drawn for it."""
        drawn = self._program.take(row.cookie)
        if drawn is None:
            return Began(RFC6928_SEGMENTS, judged=False)
        segments, lost = drawn
        # As without a record of the flight: segments that a DSACK explains had arrived.
        return Began(segments, judged=True, lost=lost and row.retransmissions > row.dsacks)

    def follow(self) -> None:
        """Nobody else changes these windows, and no packet takes another way."""

    def undo(self) -> None:
        """Draw nothing any more; windows of open connections stay."""
        for prefix in list(self._set):
            self._program.remove(prefix.network_address.packed, prefix.prefixlen)
        self._set.clear()
