"""The link box's counters: added up over several answers, and refused where a packet went astray."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from firstflight import _native
from firstflight.engines.emulate.layout import Layout
from firstflight.errors import MachineError

# Counters that must be zero at every port.
_ASTRAY = ("foreign", "unroutable", "oversized", "unchecksummed", "write_errors", "read_errors", "socket_drops")
# Counters of an answer of the link emulator since the last one.
_COUNTERS = {"packets", "bytes", "fragments", "belated", "more_stalls", "log_missed", *_ASTRAY}
# The event of a packet that the queue dropped.
_DROPPED = 2
# Of a capture: packets that it could not keep or should not have seen.
_UNCAPTURED = ("malformed", "foreign", "oversized", "unchecksummed", "socket_drops", "missed")


def added(before: Any, after: Any) -> Any:
    """Two answers of the link emulator as one: counters added up, stalls and logs joined, the rest from the later."""
    return {key: _added(key, before.get(key), value) for key, value in after.items()}


def _added(key: str, before: Any, after: Any) -> Any:
    if key in ("links", "ports"):
        return [added(old, new) for old, new in zip(before, after, strict=True)]
    if key == "stalls":
        return before + after
    if key == "tables":
        logs = {name: (kind, before["crossings"][name][1] + more) for name, (kind, more) in after["crossings"].items()}
        return after | {"crossings": logs}
    if isinstance(after, dict):
        return added(before, after)
    return before + after if key in _COUNTERS else after


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
    log = {name: np.frombuffer(*_column(box, name)) for name in ("link", "bytes", "event", "end_ns")}
    found = []
    for index, (name, link) in enumerate(layout.directions()):
        changing = "rate_schedule" in link
        if not changing and (link["rate_bps"] or 0) <= _native.CALIBRATED_BPS:
            continue
        sent = (log["link"] == index) & (log["event"] != _DROPPED)
        seconds = log["end_ns"][sent] // 10**9
        if not seconds.size:
            continue
        each = np.bincount(seconds - seconds.min(), weights=8 * log["bytes"][sent].astype(float))
        is_trace = changing and link["rate_schedule"]["kind"] == "trace"
        bps = each.mean() if is_trace else each.max()
        if bps > _native.CALIBRATED_BPS:
            found.append(
                f"{name} carried {bps / 1e6:.0f} Mbit/s, and the link emulator is accurate up to "
                f"{_native.CALIBRATED_BPS / 1e6:g} Mbit/s"
            )
    return found


def _column(box: Mapping[str, Any], name: str) -> tuple[bytes, np.dtype[Any]]:
    kind, content = box["tables"]["crossings"][name]
    return content, np.dtype(kind)
