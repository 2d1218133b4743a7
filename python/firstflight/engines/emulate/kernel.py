"""From the effective TCP profile of an end to the settings of a Linux kernel: sysctls of its namespace, and its routes.

A kernel has no setting for some parts of a profile. Such a part must be Linux's behavior (profile
`linux`), else the request is refused: nothing runs with other settings than asked.
"""

import dataclasses
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError, RequestError
from firstflight.scenario.tcp import friendly, initial_window_bytes, spelled
from firstflight.scenario.tcp import profile as named_profile

# Bytes of a segment that timestamps take (RFC 7323).
_TIMESTAMPS_BYTES = 12
# tcp_min_snd_mss: below, the kernel takes 48 for any smaller value of the peer; and 12 of them go to timestamps.
_SMALLEST_MSS = 88
_MILLISECOND = 1_000_000

# Policies for the initial window that a number of segments can stand for.
_INITIAL_WINDOWS = ("fixed", "rfc2581", "rfc3390", "rfc6928", "linux")
# Fields of which a kernel has one behavior only.
_LINUX_ONLY = (
    "loss_window_segments",
    "syn_loss_response",
    "initial_ssthresh_segments",
    "max_send_window_segments",
    "limited_transmit",
    "early_retransmit",
    "pacing",
    "loose_sequence_check",
    "min_mss_bytes",
    "mss_within_half_window",
    "ignore_shrinking_duplicates",
    "retry_stale_syn_ack",
    "startup",
    "idle_check",
    "slow_start_growth",
    "congestion_avoidance",
    "ssthresh",
    "data_on_handshake_ack",
    "piggyback_fin",
)
_LINUX_ONLY_RTO = (
    "initial_ns",
    "granularity_ns",
    "samples",
    "estimator",
    "backoff",
    "backoff_at_fast_retransmit",
    "after_syn_loss",
)

# Settings that new namespaces would copy from the host; set, so that the host's state does not leak into results.
# Linux's own values.
_PINNED = {
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_no_ssthresh_metrics_save": "1",
    "net.ipv4.tcp_fastopen": "0",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_autocorking": "1",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_thin_linear_timeouts": "0",
    "net.ipv4.tcp_max_reordering": "300",
    "net.ipv4.tcp_retrans_collapse": "1",
    "net.ipv4.tcp_notsent_lowat": "4294967295",
    "net.ipv4.tcp_limit_output_bytes": "4194304",
    "net.ipv4.tcp_min_tso_segs": "2",
    "net.ipv4.tcp_app_win": "31",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.tcp_ecn_fallback": "1",
    "net.ipv4.tcp_comp_sack_delay_ns": "1000000",
    "net.ipv4.tcp_comp_sack_slack_ns": "100000",
    "net.ipv4.tcp_comp_sack_nr": "44",
    "net.ipv4.tcp_shrink_window": "0",
}
# Some are newer than the oldest supported kernel (5.4); where one is missing, the kernel behaves as with its value
# here.
_MAY_BE_MISSING = {
    "net.ipv4.tcp_comp_sack_slack_ns": "100000",
    "net.ipv4.tcp_shrink_window": "0",
    "net.ipv4.tcp_syn_linear_timeouts": "0",
    "net.ipv4.tcp_rto_max_ms": "120000",
}
# Without `send_buffer` an application writes everything immediately: no buffer here is larger.
_UNLIMITED = 1 << 28
# CLOCK_MONOTONIC_COARSE, whose resolution is a tick.
_COARSE_CLOCK = 6
_HYSTART = Path("/sys/module/tcp_cubic/parameters")
# tcp_cubic's hystart_detect: 1 looks at trains of ACKs, 2 at delays, 3 at both.
_HYSTART_DETECT = {"off": ("0", None), "hystart": ("1", "3"), "ack_train": ("1", "1"), "delay": ("1", "2")}


@dataclasses.dataclass(frozen=True)
class KernelSettings:
    """Settings of one host's kernel. `sysctls` by name ("net.ipv4.tcp_sack": "1"); `route` the attributes of its route
    to everyone, by iproute2's names (initcwnd in segments, congctl, advmss in bytes, quickack 0 or 1, rto_min in ms);
    `peers` those towards single hosts, by name, which replace `route` as a whole there; `missing` the sysctls that an
    older kernel lacks and does not need.
    """

    sysctls: Mapping[str, str] = dataclasses.field(default_factory=dict)
    route: Mapping[str, int | str] = dataclasses.field(default_factory=dict)
    peers: Mapping[str, Mapping[str, int | str]] = dataclasses.field(default_factory=dict)
    missing: Sequence[str] = ()


def segment_bytes(profile: Mapping[str, Any]) -> int:
    """Payload of a full segment of an end with this complete profile."""
    return int(profile["mss_bytes"]) - (_TIMESTAMPS_BYTES if profile["timestamps"] else 0)


def initial_window_segments(profile: Mapping[str, Any], where: str) -> int:
    """The initial window in whole segments, the kernel's unit.

    RequestError for a policy that no kernel has.
    """
    policy = profile["initial_window"]
    if policy["policy"] not in _INITIAL_WINDOWS:
        raise RequestError(
            f'{where}.initial_window: no kernel has the policy "{policy["policy"]}"; write a number of segments, or '
            'stack = "firstflight" for this end'
        )
    segment = segment_bytes(profile)
    return initial_window_bytes(policy, segment) // segment


def kernel_settings(profile: Mapping[str, Any], where: str) -> KernelSettings:
    """The settings with which a kernel behaves as a complete profile says. `where` begins each refusal, such as
    "application.web.server_tcp".

    RequestError names the field without a kernel setting, MachineError a global setting of this machine that differs.
    """
    linux = named_profile("linux")
    rules = _scoreboard(where, profile, linux)
    for field in _LINUX_ONLY:
        _same(where, field, profile[field], linux[field])
    for field in _LINUX_ONLY_RTO:
        _same(f"{where}.rto", field, profile["rto"][field], linux["rto"][field])
    _ticks(where, profile)
    _undo(where, profile, rules)
    sysctls = _PINNED | _buffers(where, profile) | _switches(where, profile, rules) | _timers(where, profile)
    missing = tuple(name for name, value in _MAY_BE_MISSING.items() if sysctls.get(name) == value)
    return KernelSettings(sysctls, _route(where, profile, rules, linux), missing=missing)


def tick_ns() -> int:
    """A tick of this kernel's clock (a jiffy), in nanoseconds: 4,000,000 with `CONFIG_HZ=250`."""
    return round(time.clock_getres(_COARSE_CLOCK) * 1e9)


def _scoreboard(where: str, profile: Mapping[str, Any], linux: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rules of the scoreboard, which a kernel has with and without SACK."""
    (linux_rules,) = linux["recovery"].values()
    recovery = profile["recovery"]
    if not isinstance(recovery, dict) or "scoreboard" not in recovery:
        _same(where, "recovery", recovery if isinstance(recovery, str) else next(iter(recovery)), "scoreboard")
    rules: Mapping[str, Any] = recovery["scoreboard"]
    for field in ("prr", "timer_restart", "trains"):
        _same(f"{where}.recovery.scoreboard", field, rules[field], linux_rules[field])
    return rules


def _ticks(where: str, profile: Mapping[str, Any]) -> None:
    """A profile without ticks says nothing of them; one that has ticks must have this kernel's."""
    tick, actual = profile["timer_tick"], tick_ns()
    if tick is None:
        return
    asked = tick["period_ns"]
    if asked != actual:
        raise MachineError(
            f"{where}.timer_tick.period: this kernel was built with ticks of {actual} ns, not {asked}; write "
            f'"{actual}ns", or timer_tick = "none", or stack = "firstflight" for this end'
        )
    if not tick["wheel"]:
        raise RequestError(
            f'{where}.timer_tick.wheel: a kernel\'s timers wait in a wheel; write true, or timer_tick = "none", or '
            'stack = "firstflight" for this end'
        )


def _same(where: str, field: str, value: Any, linux: Any) -> None:
    if value != linux:
        raise RequestError(
            f"{where}.{friendly(field)}: the kernel has only {spelled(linux, field)}, not {spelled(value, field)}; set "
            'profile = "linux", or stack = "firstflight" for this endpoint'
        )


def _undo(where: str, profile: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Undoing cannot be switched, but the features that it needs can."""
    if profile["undo_spurious_syn"] != profile["timestamps"]:
        _same(where, "undo_spurious_syn", profile["undo_spurious_syn"], True)
    for field, basis in (("undo_by_timestamps", "timestamps"), ("undo_by_dsack", "dsack")):
        if rules[field] != profile[basis]:
            _same(f"{where}.recovery.scoreboard", field, rules[field], True)


def _buffers(where: str, profile: Mapping[str, Any]) -> dict[str, str]:
    """tcp_wmem as the profile has it. tcp_rmem: the window right after the handshake is half its second value, the
    largest half its third.

    The kernel keeps the other half for its own overhead (TCP_DEFAULT_SCALING_RATIO).
    """
    largest = int(profile["receive_window_bytes"])
    growth = profile["receive_window_growth"]
    first = largest if growth is None else int(growth["initial_bytes"])
    if min(first, largest) < 2 * segment_bytes(profile):
        raise RequestError(
            f"{where}.receive_window: a kernel needs at least two segments ({2 * segment_bytes(profile)} bytes), "
            f"not {min(first, largest)}"
        )
    buffer = profile["send_buffer"] or {"initial_bytes": _UNLIMITED, "maximum_bytes": _UNLIMITED}
    return {
        "net.ipv4.tcp_wmem": f"4096 {buffer['initial_bytes']} {buffer['maximum_bytes']}",
        "net.ipv4.tcp_rmem": f"4096 {2 * first} {2 * largest}",
        "net.ipv4.tcp_window_scaling": _switch(profile["window_scaling"]),
        "net.ipv4.tcp_adv_win_scale": "1",
    }


def _switches(where: str, profile: Mapping[str, Any], rules: Mapping[str, Any]) -> dict[str, str]:
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if profile["sack"] and not rules["rack"] and release and (int(release[1]), int(release[2])) >= (6, 17):
        # Linux 1c120191dcec removed RFC 6675's counting and left tcp_recovery without effect.
        raise MachineError(
            f"{where}.recovery.scoreboard.rack: Linux since 6.17 has only true, not false; write true or sack = false, "
            'or stack = "firstflight" for this end'
        )
    restart = profile["restart_window"]["policy"]
    if restart not in ("halving", "off"):
        raise RequestError(
            f'{where}.restart_window: a kernel knows "halving" (tcp_slow_start_after_idle = 1) and "off", not '
            f'"{restart}"; write one of these, or stack = "firstflight" for this end'
        )
    validation = profile["window_validation"]
    if not isinstance(validation, dict) or "cwnd_limited" not in validation:
        _same(where, "window_validation", validation, "cwnd_limited")
    # One switch for both: tcp_cwnd_restart and tcp_cwnd_application_limited ask for it.
    decay = validation["cwnd_limited"]["app_limited_decay"]
    if decay != (restart == "halving"):
        raise RequestError(
            f"{where}.window_validation.cwnd_limited.app_limited_decay: {spelled(decay)} does not go with "
            f'restart_window = "{restart}" in a kernel, which has one switch for both (tcp_slow_start_after_idle); '
            f'write app_limited_decay = {spelled(restart == "halving")}, or stack = "firstflight" for this end'
        )
    if profile["nagle"] == "classic":
        raise RequestError(
            f'{where}.nagle: a kernel has Minshall\'s variant, "minshall", or none, "off", but not "classic"; write '
            'one of these, or stack = "firstflight" for this end'
        )
    return {
        "net.ipv4.tcp_slow_start_after_idle": _switch(restart == "halving"),
        "net.ipv4.tcp_sack": _switch(profile["sack"]),
        "net.ipv4.tcp_dsack": _switch(profile["dsack"]),
        "net.ipv4.tcp_timestamps": _switch(profile["timestamps"]),
        "net.ipv4.tcp_ecn": {"off": "0", "on": "1", "passive": "2"}[profile["ecn"]],
        "net.ipv4.tcp_recovery": _switch(rules["rack"]),
        "net.ipv4.tcp_early_retrans": "3" if rules["tail_loss_probe"] else "0",
        "net.ipv4.tcp_frto": "2" if rules["f_rto"] else "0",
    }


def _timers(where: str, profile: Mapping[str, Any]) -> dict[str, str]:
    linear = int(profile["linear_syn_timeouts"])
    syn_retries = int(profile["max_syn_retries"]) - linear
    numbers = {
        # tcp_syn_retries counts from the last of the linear ones.
        "max_syn_retries": ("net.ipv4.tcp_syn_retries", syn_retries, 1, 127),
        "max_syn_ack_retries": ("net.ipv4.tcp_synack_retries", int(profile["max_syn_ack_retries"]), 0, 255),
        "linear_syn_timeouts": ("net.ipv4.tcp_syn_linear_timeouts", linear, 0, 127),
        "max_retries": ("net.ipv4.tcp_retries2", int(profile["max_retries"]), 0, 255),
        "duplicate_ack_threshold": ("net.ipv4.tcp_reordering", int(profile["duplicate_ack_threshold"]), 1, 300),
        "rto.maximum": ("net.ipv4.tcp_rto_max_ms", _milliseconds(where, "maximum", profile), 1000, 120000),
    }
    for field, (name, value, low, high) in numbers.items():
        if not low <= value <= high:
            raise RequestError(f"{where}.{field}: a kernel's {name} is from {low} to {high}, and this asks for {value}")
    return {name: str(value) for name, value, _, _ in numbers.values()}


def _milliseconds(where: str, field: str, profile: Mapping[str, Any]) -> int:
    value = int(profile["rto"][f"{field}_ns"])
    if value % _MILLISECOND or value == 0:
        raise RequestError(f"{where}.rto.{field}: a kernel counts in whole milliseconds, and this is {value} ns")
    return value // _MILLISECOND


def _route(
    where: str, profile: Mapping[str, Any], rules: Mapping[str, Any], linux: Mapping[str, Any]
) -> dict[str, int | str]:
    mss = int(profile["mss_bytes"])
    if mss < _SMALLEST_MSS:
        raise RequestError(f"{where}.mss: a kernel needs at least {_SMALLEST_MSS} bytes, not {mss}")
    route: dict[str, int | str] = {
        "initcwnd": initial_window_segments(profile, where),
        "advmss": mss,
        "congctl": _congestion_control(where, profile),
    }
    # The route's attribute overrides the clock of delayed ACKs as well, so it is set where it says something new only.
    minimum = _milliseconds(where, "minimum", profile)
    probe = rules["tail_loss_probe"]
    if probe and probe["max_ack_delay_ns"] != minimum * _MILLISECOND:
        raise RequestError(
            f"{where}.recovery.scoreboard.tail_loss_probe.max_ack_delay: the kernel uses rto.minimum, here {minimum} "
            'ms; set both to the same value, or stack = "firstflight" for this endpoint'
        )
    if minimum * _MILLISECOND != linux["rto"]["minimum_ns"]:
        route["rto_min"] = minimum
    if profile["ack"]["policy"] == "every_segment":
        route["quickack"] = 1
    else:
        _same(where, "ack", profile["ack"], linux["ack"])
    return route


def _congestion_control(where: str, profile: Mapping[str, Any]) -> str:
    algorithm = str(profile["congestion_control"]["algorithm"])
    if algorithm != "cubic":
        return algorithm
    asked = profile["congestion_control"]["hystart"]
    if asked not in _HYSTART_DETECT:
        raise RequestError(
            f'{where}.congestion_control.hystart: no kernel has "{asked}"; write "hystart" or "off", or stack = '
            '"firstflight" for this end'
        )
    switch, detect = _HYSTART_DETECT[asked]
    for name, value in (("hystart", switch), ("hystart_detect", detect)):
        actual = _module_parameter(name)
        if value is not None and actual is not None and actual != value:
            raise MachineError(
                f'{where}.congestion_control: hystart = "{asked}" needs {_HYSTART / name} = {value}, and this machine '
                f"has {actual} for all its namespaces; change it there, or write what it has"
            )
    return algorithm


def _module_parameter(name: str) -> str | None:
    """None where there is no module to ask: whether the kernel has CUBIC shows when the route is set."""
    try:
        return (_HYSTART / name).read_text(encoding="ascii").strip()
    except OSError:
        return None


def _switch(on: bool) -> str:
    return "1" if on else "0"
