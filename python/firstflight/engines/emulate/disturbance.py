"""What the link box reports: counters, refused where a packet went astray, and stalls of the machine.

The rule for stalls was fixed before the first measurement. The box reports when it handed a packet over late, and when
it was not scheduled although nothing was due: then a packet that came meanwhile was read late. Its log shows whose
packets these were. A transfer is disturbed if one of its own packets was handed over, or may have been read, more than
STALL_RULE_S too late. Where there were more stalls than the link box lists, the rest cannot be assigned, so every
transfer that was in progress then counts as disturbed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from firstflight import _native
from firstflight.engines.emulate.layout import Layout
from firstflight.errors import MachineError

STALL_RULE_S = 1e-3

# A packet that waited for its reader is stamped when the box has woken and read those before it.
_READING_NS = 200_000
_ARRIVED = 1
# Stalls that the box lists in an answer.
_LISTED = 4096


class Stalls:
    """The stalls of one replicate. `epoch_ns`: the origin of the log's times, on CLOCK_MONOTONIC; `delays`: of each
    direction of a link, in ns.
    """

    def __init__(self, box: Mapping[str, Any], epoch_ns: int, delays: Mapping[str, int]) -> None:
        stalls = box["lateness"]["stalls"]
        self._late = sorted((s["due_ns"], s["late_ns"]) for s in stalls if s["port"] is not None)
        self._away = sorted((s["due_ns"], s["late_ns"]) for s in stalls if s["port"] is None)
        self._epoch = epoch_ns
        self._delays = delays
        # The time from which stalls are not listed, and their assumed value: the worst of the listed ones.
        self._unlisted: tuple[int, int] | None = None
        if box["lateness"].get("more_stalls"):
            self._unlisted = stalls[:_LISTED][-1]["due_ns"], max(s["late_ns"] for s in stalls)

    def worst_s(self, crossings: pl.DataFrame | None, paths: Sequence[Sequence[str]], window: tuple[int, int]) -> float:
        """The worst stall in seconds that met a packet of a connection within a window of time, in ns of
        CLOCK_MONOTONIC. `crossings`: the log of the connection; `paths`: the links there and those back.
        """
        if crossings is None or not (self._late or self._away):
            return 0.0
        worst = 0
        if self._unlisted and window[1] > self._unlisted[0]:
            worst = self._unlisted[1]
        for path in paths:
            first = crossings.filter(pl.col.link == path[0])["time_ns"].to_numpy() + self._epoch
            last = crossings.filter(pl.col.link == path[-1], pl.col.event == _ARRIVED)["end_ns"].to_numpy()
            due = last + self._epoch + self._delays[path[-1]]
            worst = max(
                worst,
                _worst(np.sort(first), self._away, window, _READING_NS),
                _worst(np.sort(due), self._late, window, None),
            )
        return worst / 1e9


def _worst(times: np.ndarray, stalls: list[tuple[int, int]], window: tuple[int, int], reading: int | None) -> int:
    """The longest of the stalls in which one of `times` lies: at their very beginning, or with `reading` anywhere until
    so long after their end.
    """
    worst = 0
    for due, late in stalls:
        if due > window[1] or due + late < window[0]:
            continue
        begin, end = (due, due) if reading is None else (due, due + late + reading)
        if np.searchsorted(times, begin, "left") < np.searchsorted(times, end, "right"):
            worst = max(worst, late)
    return worst


# Counters that must be zero at every port.
_ASTRAY = ("foreign", "unroutable", "oversized", "unchecksummed", "write_errors", "read_errors", "socket_drops")
# The event of a packet that the queue dropped.
_DROPPED = 2
# Of a capture: packets that it could not keep or should not have seen.
_UNCAPTURED = ("malformed", "foreign", "oversized", "unchecksummed", "socket_drops", "missed")


def refuse_losses(box: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """MachineError if packets went astray: in a device, in the box, or in a capture. Then nothing of it is a result."""
    if box["unaccounted"]:
        raise MachineError(f"the link emulator cannot account for {box['unaccounted']} packets; nothing is recorded")
    if box.get("log_missed"):
        raise MachineError(f"the link emulator's log missed {box['log_missed']} packets; nothing is recorded")
    for port in box["ports"]:
        for what in _ASTRAY:
            if port.get(what):
                reason = f": {port['last_error']}" if port.get("last_error") else ""
                raise MachineError(
                    f"the link emulator counts {port[what]} packets of host {port['name']} as "
                    f"{what.replace('_', ' ')}; nothing is recorded{reason}"
                )
    for host, dropped in facts["device_drops"].items():
        if dropped:
            raise MachineError(f"the device of host {host} dropped {dropped} packets by itself; nothing is recorded")
    for host, capture in facts["captures"].items():
        for what in _UNCAPTURED:
            if capture["counts"].get(what):
                raise MachineError(
                    f"the capture on host {host} counts {capture['counts'][what]} packets as "
                    f"{what.replace('_', ' ')}; nothing is recorded"
                )


def beyond_calibration(layout: Layout, box: Mapping[str, Any]) -> list[str]:
    """A sentence for each link that carried more than the link emulator is calibrated for, in a second of the log.

    The busiest second counts; of a trace the mean over its use, since its milliseconds, each with many packets or none,
    are far longer than a packet takes. Unlimited links have no rate to be late for.
    """
    columns = box["tables"]["crossings"]
    log = {}
    for name in ("link", "bytes", "event", "end_ns"):
        kind, content = columns[name]
        log[name] = np.frombuffer(content, kind)
    sentences = []
    for index, (name, link) in enumerate(layout.links.items()):
        changing = "rate_schedule" in link
        if not changing and (link["rate_bps"] or 0) <= _native.CALIBRATED_BPS:
            continue
        sent = (log["link"] == index) & (log["event"] != _DROPPED)
        seconds = log["end_ns"][sent] // 10**9
        if not seconds.size:
            continue
        by_second = np.bincount(seconds - seconds.min(), weights=8 * log["bytes"][sent].astype(float))
        is_trace = changing and link["rate_schedule"]["kind"] == "trace"
        bps = by_second.mean() if is_trace else by_second.max()
        if bps > _native.CALIBRATED_BPS:
            sentences.append(
                f"{name} carried {bps / 1e6:.0f} Mbit/s, and the link emulator is accurate up to "
                f"{_native.CALIBRATED_BPS / 1e6:g} Mbit/s"
            )
    return sentences
