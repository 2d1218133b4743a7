"""The guard's routes in a network namespace: set, changed, followed and undone, while other programs change routes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import testbeds
from testbeds import refusal

CHILD = Path(testbeds.__file__).parent / "guard_routes_child.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(refusal() is not None, reason=f"no namespaces here: {refusal()}"),
]


def _found(**case: Any) -> dict[str, Any]:
    own = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    command = [*own, sys.executable, str(CHILD), json.dumps(case)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout)
    return found


def test_routes_are_as_before_after_undo_whenever_the_guard_was_killed() -> None:
    found = _found(do="kills", count=30)
    assert found["odd"] == 0
    assert found["left_behind"] > 10


def test_changes_by_others_win() -> None:
    found = _found(do="others")
    way = "via 10.79.0.2 dev g0 metric 2071000000 mtu 1400 initcwnd"
    assert [line.split() for line in found["set"]["ours"].splitlines()] == [
        f"10.78.{k}.0/28 {way} 20".split() for k in range(3)
    ]
    assert f"10.78.0.0/28 {way} 30".split() in [line.split() for line in found["changed"]["ours"].splitlines()]

    ((event, prefix, _),) = found["admin changes"]["notes"]
    assert (event, prefix) == ("hands off", "10.78.0.0/28")
    assert "initcwnd 40" in found["admin's"]
    assert "10.78.0.0/28" not in found["admin changes"]["ours"]
    assert "10.78.0.0/28" not in found["wanted again"]["ours"]

    ((event, prefix, _),) = found["admin removes"]["notes"]
    assert (event, prefix) == ("hands off", "10.78.1.0/28")

    assert ["stepped back", "10.78.2.0/28"] in [note[:2] for note in found["gateway moves"]["notes"]]
    assert found["gateway moves"]["ours"] == ""
    assert "10.78.2.0/28 via 10.79.0.3" in found["later"]["ours"]

    assert found["admin's window"]["ours"] == found["respected"]["ours"] == ""
    assert found["respected"]["notes"] == [
        ["hands off", "10.78.2.0/28", "not set: 10.78.0.0/16 has initcwnd 12 already"]
    ]
    assert found["after"] == found["before"]


def test_a_route_of_each_kind_is_copied_with_its_way_or_left_alone_and_as_before_after_undo() -> None:
    found = _found(do="kinds")
    assert found["odd"] == []
    assert found["other way"] == []
    assert found["kinds"] + len(found["refused"]) == 67
    # A kernel without some module refuses a few.
    assert len(found["refused"]) <= 6


def test_every_window_is_gone_one_look_after_policy_routing_comes_up() -> None:
    found = _found(do="policies")
    assert found["left"] == []
    assert all(found["barred"].values())
    assert found["again"] == 16
    assert "`ip rule` has rule 100 in addition to local, main and default" in found["barred"].values()
    assert "`ip -6 route` has a route by source to ::/0" in found["barred"].values()
    assert len(found["refused"]) <= 1, found["refused"]


def test_thousands_of_windows_set_at_once_stay_set() -> None:
    found = _found(do="many", count=5000)
    assert found["set"] == found["status"]["route_changes"] == 5000
    assert found["events"] == ["set"]
    assert not found["after"]


def test_undo_beside_changes_of_ipv6_routes_removes_every_route_and_forgets_none() -> None:
    found = _found(do="churn", count=3)
    assert min(found["set"]) == 1500
    assert found["left"] == [0, 0, 0]
    assert found["journal"] == [0, 0, 0]
