"""The guard on a host: nginx, curl, and a queue that becomes too short for the raised window."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import testbeds
from bench.guard import measure, rows_of
from firstflight.counted import counted
from firstflight.guard.watchdog import ending_signals
from testbeds import refusal

CHILD = Path(testbeds.__file__).parent / "guard_host_child.py"
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(refusal() is not None, reason=f"no namespaces here: {refusal()}"),
]


def _found(*, as_root: bool = False, **case: Any) -> dict[str, Any]:
    for program, package in {"nginx": "nginx-light", "curl": "curl", "tc": "iproute2"}.items():
        if shutil.which(program, path=_PATH) is None:
            pytest.skip(f"there is no {program}; apt-get install {package}")
    user = [] if as_root else ["--user", "--map-root-user"]
    own = ["unshare", *user, "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    command = [*own, sys.executable, str(CHILD), json.dumps(case)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env={"PATH": _PATH})
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout)
    return found


def test_a_queue_that_becomes_too_short_is_found_and_every_window_falls_back() -> None:
    found = _found(do="bad")
    assert found["raised"]
    assert all(line.split()[-2:] == ["initcwnd", "20"] for line in found["raised"])
    evidence = found["stopped"]["evidence"]
    assert evidence["e_value"] >= 20
    assert evidence["losses_raised"] > evidence["losses"] / 2
    # Nobody is harmed longer than it takes to see eight losses in one arm, each client counted once in three seconds.
    assert found["after_bad"] <= 1000
    assert found["left"] == []
    assert found["status"]["connections"]["dropped"] == 0
    assert found["code"] == 0
    assert found["as_before"]


def test_what_a_guard_and_its_watchdog_leave_when_both_are_killed_is_undone() -> None:
    found = _found(do="killed")
    assert found["left"]
    assert found["while_running"][0] == 3
    assert "a guard is running with this state" in found["while_running"][1]
    assert "10.78.0.0/24" in found["shown"] or "10.78" in found["shown"]
    assert 'firstflight_guard_connections_total{group="10.78.0.0/16",arm="control"}' in found["metrics"]
    assert "firstflight_guard_route_changes_total " in found["metrics"]
    assert found["dead"][0] == 1
    assert "was killed; run `firstflight guard undo --state " in found["dead"][1]
    assert found["undone"] == f"{counted(len(found['left']), 'route')} removed\n"
    assert found["as_before"]


_CAUGHT = "HUP INT QUIT TERM USR1 USR2 ALRM XCPU VTALRM PROF IO PWR STKFLT RTMIN"
# Of those that one handler catches, a terminal's, a service manager's and a real-time one; of the others, the one that
# no program can catch, and a fault.
_ENDING = [getattr(signal, f"SIG{name}") for name in ["HUP", "INT", "TERM", "RTMIN", "KILL", "SEGV"]]


def test_signals_that_end_a_process_are_caught() -> None:
    assert {int(getattr(signal, f"SIG{name}")) for name in _CAUGHT.split()} <= ending_signals()


def test_routes_are_as_before_whichever_signal_ended_a_guard_with_traffic() -> None:
    found = _found(do="kills", count=len(_ENDING), signals=[int(kind) for kind in _ENDING])
    assert found["odd"] == []
    assert found["had_windows"] >= 2


def test_a_client_whose_syn_is_answered_and_that_is_not_heard_of_again_is_seen_once() -> None:
    found = _found(do="unanswered")
    assert found["looks"] == [[], ["10.78.0.3/32"], []]
    assert found["clients"] == {"10.78.0.2/32": [[7, 16, 80]]}


def test_a_window_is_learned_from_what_was_delivered_and_a_dry_run_sets_nothing() -> None:
    found = _found(do="learned")
    assert found["dry"]["set"] == 0
    assert found["dry"]["status"]["windows_set"] == 0
    assert found["dry"]["status"]["groups"][0]["connections"] == 0
    assert found["acts"]["set"] > 0
    for run in found.values():
        # The response has 18 segments, and a window cannot be shown to be larger than the data sent.
        windows = {window for window in run["decided"] if window is not None}
        assert windows
        assert windows <= set(range(11, 19))
        assert run["code"] == 0


def test_each_of_some_thousand_connections_is_reported_or_counted_as_dropped() -> None:
    if shutil.which("nginx", path=_PATH) is None:
        pytest.skip("there is no nginx; apt-get install nginx-light")
    found = measure(seconds=2, warm_up_s=1, clients=2)
    assert found.driven["connections"] > 100
    assert {row.work: row.same for row in rows_of(found)}["connections seen"]


def _without_bpf() -> str | None:
    """Why BPF programs cannot be attached here; None if they can."""
    if os.geteuid() != 0:
        return "BPF takes root's rights"
    if Path("/proc/self/uid_map").read_text(encoding="ascii").split() != ["0", "0", "4294967295"]:
        return "BPF takes the first user namespace"
    if " cgroup2 " not in Path("/proc/mounts").read_text(encoding="utf-8"):
        return "no cgroup of version 2 is mounted"
    return None


needs_bpf = pytest.mark.skipif(_without_bpf() is not None, reason=str(_without_bpf()))


@needs_bpf
def test_windows_are_drawn_for_connections_of_a_port_where_no_route_has_one_and_end_with_the_program() -> None:
    found = _found(as_root=True, do="drawn")
    assert found["before"] == [10] * 3
    assert set(found["during"]) == {10, 20}
    # A half of 60, with a probability of 1 in 10^6 of being outside.
    assert 11 <= found["during"].count(20) <= 49
    assert found["found"] == [[window, False] for window in found["during"]]
    assert found["again"] is None
    assert found["respected"] == [12] * 10
    assert found["removed"] == found["after"] == [10] * 10


@needs_bpf
def test_losses_in_the_first_flight_of_longer_connections_are_found_where_connections_are_drawn() -> None:
    found = _found(as_root=True, do="by connection")
    assert found["raised"]
    assert found["routes"] == []
    evidence = found["stopped"]["evidence"]
    assert evidence["e_value"] >= 20
    assert evidence["losses_raised"] > evidence["losses"] / 2
    assert found["after_bad"] <= 1000
    assert found["left"] == []
    assert found["code"] == 0
    assert found["as_before"]
