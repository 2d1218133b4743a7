"""The reason why CS244 2014 waited 2 s: ARP costs the first response a round trip; the emulator's hosts have none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.studies import cs244_2014

SCRIPT = Path(__file__).parents[2] / "research" / "cs244_arp.py"


def test_an_unresolved_address_costs_a_round_trip_and_a_route_change_or_idle_time_asks_for_none() -> None:
    ran = subprocess.run([sys.executable, SCRIPT, "--json"], capture_output=True, text=True, timeout=60, check=False)
    if "no namespace" in ran.stderr:
        pytest.skip("this machine has no namespaces")
    found = json.loads(ran.stdout)
    metrics = found.pop("cached metrics before and after a route change")
    assert metrics == [1, 1]
    assert "the client's entry stale" in found
    asked = {name for name, (_, requests) in found.items() if requests}
    assert asked == {
        "first connection, IW 10",
        "after the client's ARP cache was flushed",
        "after the server's ARP cache was flushed",
    }
    # Frames may be late on a busy machine, and are never early.
    assert all(round_trips > (2.9 if name in asked else 1.9) for name, (round_trips, _) in found.items())


def test_a_host_of_the_emulator_has_no_arp() -> None:
    scenario = Path(cs244_2014.__file__).parent / "scenario.toml"
    firstflight = Path(sys.executable).with_name("firstflight")
    words = [firstflight, "shell", scenario, "--", "ip", "-brief", "link", "show", "ff0"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode == 3:
        pytest.skip(ran.stderr)
    assert "NOARP" in ran.stdout
