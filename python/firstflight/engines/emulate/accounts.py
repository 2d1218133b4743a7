"""The link box's counters: added up over several answers, and refused where a packet went astray."""

from collections.abc import Mapping
from typing import Any

from firstflight.errors import MachineError

# Counters that must be zero at every port.
_ASTRAY = ("foreign", "unroutable", "oversized", "unchecksummed", "write_errors", "read_errors", "socket_drops")
# Counters of an answer of the link box since the last one.
_COUNTERS = {"packets", "bytes", "fragments", "belated", "more_stalls", "log_missed", *_ASTRAY}
# Of a capture: packets that it could not keep or should not have seen.
_UNCAPTURED = ("malformed", "foreign", "oversized", "unchecksummed", "socket_drops", "missed")


def added(before: Any, after: Any) -> Any:
    """Two answers of the link box as one: counters added up, stalls and logs joined, the rest from the later."""
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
        raise MachineError(f"the link box cannot account for {box['unaccounted']} packets; nothing is recorded")
    if box.get("log_missed"):
        raise MachineError(f"the link box's log missed {box['log_missed']} packets; nothing is recorded")
    for port in box["ports"]:
        for what in _ASTRAY:
            if port.get(what):
                reason = f": {port['last_error']}" if port.get("last_error") else ""
                raise MachineError(
                    f"the link box counts {port[what]} {what.replace('_', ' ')} packets of host {port['name']}; "
                    f"nothing is recorded{reason}"
                )
    for host, dropped in facts["device_drops"].items():
        if dropped:
            raise MachineError(f"the device of host {host} dropped {dropped} packets by itself; nothing is recorded")
    for host, capture in facts["captures"].items():
        for what in _UNCAPTURED:
            if capture["counts"].get(what):
                raise MachineError(
                    f"the capture on host {host} counts {capture['counts'][what]} {what.replace('_', ' ')} packets; "
                    "nothing is recorded"
                )
