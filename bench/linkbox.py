"""`python -m bench --linkbox`: how accurate the link box is and how much goes through it, by UDP packets.

Each figure is measured with both back ends, in the real-time class and in the normal one, sleeping until a deadline
and not sleeping for its last stretch; accuracy by rate only as the emulator runs it. Where all goals of a rate and of
those below are reached, `CALIBRATED_BPS` of `crates/linkbox/src/lib.rs` may be that rate. Errors are those of the whole
way: from just before the sender's system call until the receiving kernel's stamp.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.row import Goal, Row, as_json, as_text
from firstflight._native import CALIBRATED_BPS
from firstflight.engines.emulate import lab as testbed
from firstflight.engines.emulate.lab import Backend
from firstflight.engines.emulate.layout import SPIN_NS, HostPlan, Layout
from firstflight.errors import MachineError

_BACKENDS: tuple[Backend, ...] = ("tun", "packet")
_PACKET_BYTES = 1000
_LARGE_BYTES = 1500
_SLOW_BPS, _FAST_BPS = 10_000_000, 100_000_000
_RATES_BPS = (100_000_000, 200_000_000, 500_000_000, 1_000_000_000)
# Sent at a rate for this time, so that nothing waits for the link except arrivals in the same millisecond.
_LOAD, _LOAD_S = 0.9, 2.0
_MS = 1_000_000
_CLIENT, _SERVER = HostPlan("client", "10.77.0.1"), HostPlan("server", "10.77.0.2")

# Goals in µs and packets per second: the required value and the target.
_DELAY_GOALS = {"p50": (30.0, 15.0), "p99": (200.0, 100.0), "max": ()}
_SPACING_GOALS = (20.0,)
_LATENESS_GOALS = {"p50": (), "p99": (200.0, 100.0)}
_CAPACITY_GOALS = (400_000.0, 500_000.0)
_UNACCOUNTED = "packets unaccounted for"


class Lab(testbed.Lab):
    """With the command `flood`."""

    programs = (str(Path(__file__).with_name("flood.py")),)


@dataclass(frozen=True)
class Setting:
    """The mode of the link box."""

    backend: Backend
    realtime: bool
    spin_ns: int

    def __str__(self) -> str:
        return f"{self.backend}, {'real-time' if self.realtime else 'normal'}, spin {self.spin_ns // 1000} µs"


def main(json: bool = False) -> int:
    """Measure and print a table (JSON if asked); takes about two minutes on an otherwise idle machine.

    A back end or class that the machine refuses is left out and named on stderr. Returns 1 if a packet went astray,
    else 0. Raises MachineError where nothing at all can be measured.
    """
    rows: list[Row] = []
    for setting in (Setting(*how) for how in product(_BACKENDS, (True, False), (0, SPIN_NS))):
        if sys.stderr.isatty():
            print(f"measuring {setting} ...", file=sys.stderr)
        try:
            rows.extend(_rows(setting))
        except MachineError as error:
            print(f"{setting}: not measured: {error}", file=sys.stderr)
    if not rows:
        raise MachineError("the link emulator cannot be measured here: firstflight doctor lists what is missing")
    print(as_json(rows) if json else as_text(rows))
    return 1 if any(row.unit == _UNACCOUNTED and row.ours != 0 for row in rows) else 0


def _rows(setting: Setting) -> Iterator[Row]:
    # The guarantee is for the real-time class, without sleeping up to the deadline.
    promised = setting.realtime and setting.spin_ns > 0
    astray = 0
    with _lab(setting, _SLOW_BPS, 10 * _MS) as lab:
        _require(lab, setting)
        delays_us, late = _delay_errors_us(lab, _SLOW_BPS, 10 * _MS)
        astray += _astray(lab)
    note = f"lateness {late['p50_ns'] / 1000:.3g} µs (p50), {late['p99_ns'] / 1000:.3g} µs (p99)"
    found = {"p50": np.percentile(delays_us, 50), "p99": np.percentile(delays_us, 99), "max": delays_us.max()}
    for name, error_us in found.items():
        goals = tuple(Goal(limit, at_least=False) for limit in _DELAY_GOALS[name]) if promised else ()
        work = f"delay error, 10 Mbit/s, {setting}"
        remark = note if name == "p99" else ""
        yield Row(work, float(error_us), f"µs, {name}", goals=goals, goals_of_ratio=False, note=remark)
    with _lab(setting, _FAST_BPS, 5 * _MS) as lab:
        spacing_us = float(np.percentile(np.abs(_spacing_errors_us(lab, _FAST_BPS)), 99))
        astray += _astray(lab)
    goals = tuple(Goal(limit, at_least=False) for limit in _SPACING_GOALS) if promised else ()
    yield Row(f"spacing error, 100 Mbit/s, {setting}", spacing_us, "µs, p99", goals=goals, goals_of_ratio=False)
    with _lab(setting, None, _MS) as lab:
        rate = _capacity(lab)
        astray += _astray(lab)
    goals = tuple(Goal(limit) for limit in _CAPACITY_GOALS) if promised else ()
    yield Row(f"capacity, {setting}", rate, "packets of 1500 B / s", goals=goals, goals_of_ratio=False)
    if promised:
        by_rate = {rate_bps: list(_of_rate(setting, rate_bps)) for rate_bps in _RATES_BPS}
        for of_rate in by_rate.values():
            yield from of_rate
        reached = list(takewhile(lambda rate_bps: _is_reached(by_rate[rate_bps]), _RATES_BPS))
        calibrated_bps = max(reached, default=0)
        note = f"the emulator's limit is {CALIBRATED_BPS / 1e6:g} Mbit/s"
        yield Row(f"accurate up to, {setting}", calibrated_bps / 1e6, "Mbit/s", note=note)
    yield Row(f"balance, {setting}", astray, _UNACCOUNTED)


def _is_reached(rows: list[Row]) -> bool:
    """Whether each row meets its first goal, the required value."""
    return all(goal.met(row.ours) for row in rows for goal in row.goals[:1])


def _of_rate(setting: Setting, rate_bps: int) -> Iterator[Row]:
    """The accuracy of a link of a rate: spacing in bursts, lateness under a load that lasts, and missing packets."""
    work = f"{rate_bps / 1e6:g} Mbit/s, {setting}"
    with _lab(setting, rate_bps, 5 * _MS) as lab:
        spacing_us = float(np.percentile(np.abs(_spacing_errors_us(lab, rate_bps, at_once=True)), 99))
        lab.box()
        hosts = {"client": _CLIENT.name, "server": _SERVER.name, "packet_bytes": _LARGE_BYTES}
        sent = lab.call("flood", timeout_s=30, **hosts, duration_s=_LOAD_S, rate_bps=_LOAD * rate_bps)
        time.sleep(0.2)
        box = lab.box()
    [server] = [port for port in box["ports"] if port["name"] == _SERVER.name]
    goals = tuple(Goal(limit, at_least=False) for limit in _SPACING_GOALS)
    yield Row(f"spacing error in bursts, {work}", spacing_us, "µs, p99", goals=goals, goals_of_ratio=False)
    for name, limits in _LATENESS_GOALS.items():
        goals = tuple(Goal(limit, at_least=False) for limit in limits)
        late_us = box["lateness"][f"{name}_ns"] / 1000
        note = f"{sent * _LARGE_BYTES * 8 / _LOAD_S / 1e6:.0f} Mbit/s sent" if name == "p50" else ""
        row = Row(f"lateness under load, {work}", late_us, f"µs, {name}", goals=goals, goals_of_ratio=False, note=note)
        yield row
    missing = sent - server["out"]["packets"]
    goals = (Goal(0.0, at_least=False),)
    yield Row(f"missing under load, {work}", missing, f"packets of {sent}", goals=goals, goals_of_ratio=False)


def _lab(setting: Setting, rate_bps: int | None, delay_ns: int) -> Lab:
    link = {"rate_bps": rate_bps, "delay_ns": delay_ns, "queue": {"kind": "drop_tail", "limit": {"packets": 20_000}}}
    layout = Layout(
        hosts=(_CLIENT, _SERVER),
        links={"link": link, "link.reverse": link},
        paths={(_CLIENT.name, _SERVER.name): (["link"], 0), (_SERVER.name, _CLIENT.name): (["link.reverse"], 0)},
        placements=(),
        duration_ns=60_000 * _MS,
        meter_interval_ns=None,
    )
    return Lab(layout, setting.backend, setting.realtime, spin_ns=setting.spin_ns)


def _require(lab: Lab, setting: Setting) -> None:
    if setting.realtime and not lab.facts["realtime"]:
        raise MachineError(f"the real-time class cannot be had: {lab.facts['realtime_refusal']}")


def _delay_errors_us(lab: Lab, rate_bps: int, delay_ns: int) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """One-way delays of single packets, every 2 ms, minus the expected ones; the link box's own account of lateness."""
    lab.box()
    sent, received = _probe(lab, burst=1, bursts=1000, interval_s=0.002)
    ideal_ns = delay_ns + _PACKET_BYTES * 8_000_000_000 // rate_bps
    return (received - sent - ideal_ns) / 1000, lab.box()["lateness"]


def _spacing_errors_us(lab: Lab, rate_bps: int, at_once: bool = False) -> NDArray[np.float64]:
    """Time between neighbors of bursts minus the time that a packet takes on the line."""
    burst, bursts = 50, 100
    _, received = _probe(lab, burst=burst, bursts=bursts, interval_s=0.012, at_once=at_once)
    spacing_ns = np.diff(received.reshape(bursts, burst), axis=1).ravel()
    return (spacing_ns - _PACKET_BYTES * 8e9 / rate_bps) / 1000


def _probe(
    lab: Lab, burst: int, bursts: int, interval_s: float, at_once: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found = lab.call(
        "probe_packets",
        timeout_s=60,
        client=_CLIENT.name,
        server=_SERVER.name,
        packet_bytes=_PACKET_BYTES,
        burst=burst,
        bursts=bursts,
        interval_s=interval_s,
        at_once=at_once,
    )
    if missing := found["received"].count(None):
        raise MachineError(f"{missing} of {len(found['received'])} packets did not arrive")
    return np.array(found["sent"], dtype=np.int64), np.array(found["received"], dtype=np.int64)


def _capacity(lab: Lab) -> float:
    """Packets a second that the box hands over while more come than it can take."""
    duration_s = 2.0
    lab.box()
    hosts = {"client": _CLIENT.name, "server": _SERVER.name}
    lab.call("flood", timeout_s=30, **hosts, packet_bytes=_LARGE_BYTES, duration_s=duration_s)
    # Packets in flight, a delay of 1 ms and the device's queue, belong to it.
    time.sleep(0.2)
    [server] = [port for port in lab.box()["ports"] if port["name"] == _SERVER.name]
    return float(server["out"]["packets"]) / duration_s


def _astray(lab: Lab) -> int:
    return abs(int(lab.box()["unaccounted"]))
