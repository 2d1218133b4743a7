"""The files of examples/guard name metrics and options that there are."""

import json
import re
import shlex
import shutil
import subprocess
from ipaddress import ip_network
from pathlib import Path

import pytest

from firstflight import _native
from firstflight.cli.app import load
from firstflight.errors import MachineError
from firstflight.guard.closed import _V4, _V6, Began, Counts, Row, outcome
from firstflight.guard.metrics import Metrics
from firstflight.guard.windows import RandomWindows

EXAMPLES = Path(__file__).parents[2] / "examples/guard"
ROW = Row(b"", 18, 2, 0, 25_000, 20, 40_000, 1_000_000, 0, 0, 7)


def scrape(metrics: Metrics) -> str:
    groups = [{"group": "192.0.2.0/24", "e_value": 1.5}]
    metrics.show({"windows_set": 1, "hands_off": 0, "groups": groups}, Counts(1, 0, 0, 0))
    return metrics._text.decode()


def test_the_dashboard_asks_for_metrics_that_are_served() -> None:
    metrics = Metrics()
    metrics.count(outcome(0.0, ip_network("192.0.2.0/28"), ROW, Began(20, judged=True), 20))
    served = set(re.findall(r"^# TYPE (\S+)", scrape(metrics), re.MULTILINE))
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))
    asked = set(re.findall(r"firstflight_guard_\w+", json.dumps([p["targets"] for p in dashboard["panels"]])))
    assert asked
    assert asked <= served


def test_groups_in_metrics_are_bounded() -> None:
    metrics = Metrics()
    for k in range(300):
        prefix = ip_network(f"10.{k % 256}.{k // 256}.0/28") if k < 256 else ip_network(f"172.{k - 256}.0.0/28")
        metrics.count(outcome(0.0, prefix, ROW, Began(10, judged=True), 20))
    groups = re.findall(r"^firstflight_guard_connections_total{group=\"(\S+?)\"", scrape(metrics), re.MULTILINE)
    assert len(groups) == 101
    assert "other" in groups


def test_a_loss_is_known_of_connections_within_the_window_under_trial_and_a_dsack_explains_one() -> None:
    prefix = ip_network("192.0.2.0/28")
    lost = [
        outcome(0.0, prefix, row, Began(10, judged=True), 20).first_flight_lost
        for row in (ROW, ROW._replace(dsacks=2), ROW._replace(retransmissions=0), ROW._replace(segments=21))
    ]
    assert lost == [True, False, False, None]


def test_of_a_connection_of_any_length_a_loss_is_known_where_its_flight_was_watched() -> None:
    row = ROW._replace(segments=2000)
    for watched in (True, False):
        found = outcome(0.0, ip_network("192.0.2.0/28"), row, Began(20, judged=True, lost=watched), 20)
        assert (found.first_flight_lost, found.arm, found.initial_window) == (watched, "raised", 20)


def test_what_the_kernel_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused:
        _native.DrawnWindows(tmp_path / "nowhere", [80], 20)
    assert refused.value.strerror == "No such file or directory"
    with pytest.raises(
        MachineError, match=r"nowhere: .*attached: No such file or directory; name a directory of cgroup"
    ):
        RandomWindows(tmp_path / "nowhere", [80], 20)


def test_a_network_that_keeps_its_hash_is_equal_to_others() -> None:
    for kept, other in ((_V4("192.0.2.16/28"), "192.0.2.16/28"), (_V6("2001:db8:1::/56"), "2001:db8:1::/56")):
        assert kept == ip_network(other)
        assert {ip_network(other): 1}[kept] == dict[object, int]([(kept, 1)])[ip_network(other)] == 1
        wider = kept.supernet(new_prefix=24)
        assert (wider, hash(wider)) == (ip_network(str(wider)), hash(ip_network(str(wider))))


def test_the_unit_calls_commands_and_options_that_there_are() -> None:
    text = (EXAMPLES / "firstflight-guard.service").read_text(encoding="utf-8")
    called = re.findall(r"^Exec\w+=\S+/firstflight guard (.+)$", text, re.MULTILINE)
    assert [words.split()[0] for words in called] == ["run", "undo"]
    for words in map(shlex.split, called):
        load(f"guard {words[0]}").make_context(words[0], words[1:])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    text = (EXAMPLES / "firstflight-guard.service").read_text(encoding="utf-8")
    unit = tmp_path / "firstflight-guard.service"
    unit.write_text(text.replace("/opt/firstflight/bin/firstflight", "/bin/true"), encoding="utf-8")
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert str(unit) not in found.stderr, found.stderr
