"""IPv6 and other MTUs than 1500 on the kernel: the same segments as in virtual time, in packets of these sizes."""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import testbeds
from emulations import FAR, cell, download, never_early, rounds, skip_unless_possible
from firstflight import Cell, Scenario
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign
from firstflight.engines.emulate.campaign import capture
from firstflight.engines.emulate.lab import Backend, Lab
from firstflight.engines.emulate.layout import lay_out

KEYS = [
    {"ip": "ipv6"},
    {"ip": "ipv6", "mtu": "1280B"},
    {"ip": "ipv6", "mtu": "9000B"},
    {"mtu": "1280B"},
    {"mtu": "9000B"},
]
# Without CUBIC, whose slow start ends when acknowledgments are late by milliseconds (HyStart).
TCP = {"initial_window": 10, "congestion_control": "reno"}
OURS = TCP | {"stack": "firstflight", "profile": "linux", "receive_window_growth": "none"}
DOWNLOAD = Path(__file__).parents[2] / "examples" / "download.toml"
# Each device, TCP, IP version and MTU, and each device with either TCP.
CASES: list[tuple[Backend, str, dict[str, str]]] = [
    *(("tun", "kernel", keys) for keys in KEYS),
    ("packet", "kernel", KEYS[2]),
    ("packet", "kernel", KEYS[3]),
    ("tun", "firstflight", KEYS[1]),
    ("tun", "firstflight", KEYS[4]),
    ("packet", "firstflight", KEYS[0]),
    ("packet", "firstflight", KEYS[2]),
]


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    skip_unless_possible()
    if not Path("/proc/sys/net/ipv6").is_dir():
        pytest.skip("this kernel has no IPv6")


def far(**changes: Any) -> Cell:
    receive_window = {"tcp__receive_window": "1MiB"} if changes.get("mtu") == "9000B" else {}
    asked = {"link__delay": FAR, "web__response_header": "300B", "web__count": 2}
    asked |= {f"tcp__{key}": value for key, value in TCP.items()}
    return cell(**asked | receive_window | changes, capture=True)


@pytest.mark.parametrize(
    ("backend", "stack", "keys"), CASES, ids=lambda part: part if isinstance(part, str) else "-".join(part.values())
)
def test_the_kernel_sends_the_segments_of_virtual_time(
    backend: Backend, stack: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "tun" and not testbeds.has_tun():
        pytest.skip("no TUN devices here; chmod 0666 /dev/net/tun")
    monkeypatch.setattr(campaign, "Lab", functools.partial(Lab, backend=backend))
    asked = far(**keys, **({"tcp": OURS} if stack == "firstflight" else {}))
    real, virtual = campaign.run_cell(asked, 1, 1), simulate.run_cell(asked, 1, 1)
    for column in ("bytes", "delivered_bytes", "completed", "first_flight_segments", "segments_sent"):
        assert real["transfers"][column].to_list() == virtual["transfers"][column].to_list(), column
    assert asked_for(real["segments"]) == asked_for(virtual["segments"])
    sent, simulated = (
        rounds(tables["segments"]).select("connection", "round", "seq", "length").rows() for tables in (real, virtual)
    )
    assert sent == simulated
    never_early(real["transfers"], virtual["transfers"])


def asked_for(segments: pl.DataFrame) -> list[tuple[int, ...]]:
    """What clients sent to open a connection and to ask, each once: connection, bytes, MSS option."""
    asking = (pl.col.mss.is_not_null()) | (pl.col.length > 0)
    return segments.filter(asking, from_server=0, event=1).select("connection", "length", "mss").rows()


@pytest.mark.parametrize("keys", KEYS[:2], ids=lambda keys: "-".join(keys.values()))
def test_links_carry_the_bytes_of_virtual_time(keys: dict[str, str]) -> None:
    streams = {"kind": "constant_rate", "rate": "400kbit", "payload": "1000B", "direction": "both", "length": "1s"}
    asked = Cell({}, Scenario.from_dict(download(**keys).to_dict() | {"application": [streams], "duration": "2s"}))
    real, virtual = campaign.run_cell(asked, 1, 1), simulate.run_cell(asked, 1, 1)
    for tables in (real, virtual):
        assert (
            tables["streams"]["packets_sent"].to_list() == tables["streams"]["packets_received"].to_list() == [48, 48]
        )
    for column in ("sent_packets", "sent_bytes"):
        assert real["links"][column].to_list() == virtual["links"][column].to_list()


def test_pages_and_exchanges_are_fetched_over_ipv6() -> None:
    page = {"kind": "web_page", "primary": "5kB", "inline": "8kB", "inline_count": 3, "think_time": "1s", "count": 1}
    asking = {"kind": "request_response", "request": "90B", "response": "5kB", "think_time": "100ms", "count": 3}
    document = download(ip="ipv6").to_dict() | {"application": [page | {"name": "page"}, asking | {"name": "asking"}]}
    tables = campaign.run_cell(Cell({}, Scenario.from_dict(document)), 1, 1)
    assert tables["pages"]["completed"].to_list() == [1]
    assert tables["transfers"]["completed"].to_list() == [1] * 7


@pytest.mark.parametrize("keys", KEYS[2:4], ids=lambda keys: "-".join(keys.values()))
def test_a_trace_of_the_kernel_has_packets_of_the_mtu(keys: dict[str, str]) -> None:
    scenario = far(**keys).scenario
    layout = lay_out(scenario)
    assert (layout.mtu, layout.ip) == (scenario.mtu_bytes(), keys.get("ip", "ipv4"))
    captured = capture(scenario, 1)
    assert max(captured.tables["segments"]["length"]) == scenario.full_payload_bytes(0)
    assert captured.packets["client"].packets == captured.packets["server"].packets > 20


def test_nothing_but_the_scenarios_packets_is_on_the_links() -> None:
    scenario = download(ip="ipv6", web__response_header="300B")
    with testbeds.Lab(lay_out(scenario)) as lab:
        for host in ("node[0]", "node[1]"):
            look = lab.call("look", host=host)
            assert (look["mtu"], look["ipv6"]) == (1500, True)
        assert 0.010 < lab.call("round_trip", client="node[1]", server="node[0]") < 0.1
        box = lab.box(intervals=True)
        while box["under_way"]:
            box = lab.box(intervals=True)
        ports = {port["name"]: port for port in box["ports"]}
        assert {port[what] for port in ports.values() for what in ("foreign", "unroutable", "oversized")} == {0}


def shell(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("firstflight"), "shell", DOWNLOAD, "--set", "ip=ipv6", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_programs_of_a_shell_meet_ipv6_hosts_by_name_and_the_mtu(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    pcap = tmp_path / "packets.pcapng"
    curl = "curl -s -o /dev/null -w '%{remote_ip} %{size_download}\\n' http://server/file"
    script = (
        f"getent hosts server; ip -o link show ff0 | grep -o 'mtu [0-9]*'; {curl}; echo $FIRSTFLIGHT_SERVER; exit 3"
    )
    done = shell("--set", "mtu=4000B", "--serve", tmp_path, "--pcap", pcap, "--", "sh", "-c", script)
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines()[0].split() == ["fd77::1", "node0", "server"]
    assert done.stdout.splitlines()[1:] == ["mtu 4000", "fd77::1 100000", "fd77::1"]
    assert pcap.stat().st_size > 2000
