"""The keys `ip` and `mtu`: sizes of headers and segments, in the simulator, the model and captures."""

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight import Cell, RequestError, Scenario
from firstflight.engines import model, simulate

SCENARIO = """
name = "one"
duration = "60s"
[tcp]
profile = "rfc"
initial_window = 10
[network]
topology = "chain"
links = { rate = "10Mbit", delay = "20ms", queue = "1000p" }
[[application]]
kind = "file_transfer"
name = "file"
size = "100kB"
count = 1
"""
# The keys, with the bytes of headers and of the largest segment that follow.
KEYS: list[tuple[dict[str, str], int, int]] = [
    ({}, 40, 1460),
    ({"ip": "ipv6"}, 60, 1440),
    ({"mtu": "1280B"}, 40, 1240),
    ({"mtu": "9000B"}, 40, 8960),
    ({"ip": "ipv6", "mtu": "1280B"}, 60, 1220),
    ({"ip": "ipv6", "mtu": "9000B"}, 60, 8940),
]


def scenario(**changes: Any) -> Scenario:
    paths = {path.replace("__", ".").replace("link.", "network.links[0].", 1): to for path, to in changes.items()}
    return Scenario.from_toml(SCENARIO).replace_all(paths.items())


def ends(made: Scenario) -> list[int]:
    (application,) = made.to_plan()["applications"]
    return [application[end]["mss_bytes"] for end in ("client_tcp", "server_tcp")]


@pytest.mark.parametrize(("keys", "header", "mss"), KEYS)
def test_a_full_segment_fills_a_packet_of_the_mtu(keys: dict[str, str], header: int, mss: int) -> None:
    made = scenario(**keys)
    assert (made.to_plan()["header_bytes"], ends(made), made.mtu_bytes()) == (header, [mss, mss], mss + header)
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()


@pytest.mark.parametrize(("keys", "header", "mss"), KEYS)
@pytest.mark.parametrize("engine", [simulate, model])
def test_sizes_on_the_wire_and_times_follow(engine: Any, keys: dict[str, str], header: int, mss: int) -> None:
    made = scenario(**keys, application__file__size=f"{mss}B", link__rate="1Mbit")
    tables = engine.run_cell(Cell({}, made), 1, 1)
    # SYN, SYN-ACK, the request of 80 bytes behind the ACK, and one full segment, over 20 ms each way.
    took = 4 * 0.02 + sum(8 * size / 1e6 for size in (header, header, header, header + 80, header + mss))
    assert tables["transfers"]["completion_time_s"].to_list() == [pytest.approx(took, abs=1e-8)]


def test_the_simulators_links_carry_packets_of_the_mtu() -> None:
    for keys, header, mss in KEYS:
        made = scenario(**keys, application__file__size=f"{10 * mss}B")
        links = simulate.run_cell(Cell({}, made), 1, 1)["links"]
        down = links.row(by_predicate=pl.col("link") == "links[0]", named=True)
        # SYN-ACK, ten segments, FIN or its ACK.
        assert down["sent_bytes"] - 10 * (mss + header) in (2 * header, 3 * header), keys


def test_an_mss_that_is_set_keeps_its_meaning() -> None:
    assert ends(scenario(ip="ipv6", mtu="9000B", tcp__mss="1000B")) == [1000, 1000]
    assert ends(scenario(mtu="9000B", application__file__server_tcp={"mss": "536B"})) == [8960, 536]
    # A table that names a profile starts afresh, its segments too.
    assert ends(scenario(mtu="1280B", tcp__mss="500B", application__file__tcp={"profile": "linux"})) == [1240, 1240]
    # Without the keys packets are as long as the segments ask for.
    assert scenario(tcp__mss="8960B").mtu_bytes() == 9000
    assert scenario(tcp__mss="536B").mtu_bytes() == 1500
    assert ends(scenario(mtu="1500B", header_size="54B")) == [1446, 1446]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ip": "ipv6", "tcp__mss": "1460B"}, 'tcp.mss is "1460B", which exceeds the mtu of 1500B with 60B of headers'),
        ({"mtu": "576B", "application__file__client_tcp": {"mss": "537B"}}, "application.file.client_tcp.mss is"),
        ({"ip": "ipv6", "mtu": "1279B"}, "mtu is 1279B, and must be from 1280B to 65535B"),
        ({"mtu": "67B"}, "mtu is 67B, and must be from 68B to 65535B"),
        ({"mtu": "70kB"}, "must be from 68B to 65535B"),
        ({"ip": "ipv6", "header_size": "1500B"}, "mtu is 1500B, and must be from 1501B to 65535B"),
        ({"ip": "ipv6", "header_size": "40B"}, 'header_size is "40B", and IPv6 and TCP have 60B at least'),
        ({"ip": "ipv5"}, "ip: "),
        ({"ip": "ipv6", "tcp__startup": {"scheme": "quick_start", "rate": 8}}, 'startup: "quick_start" is not modeled'),
        ({"link__mtu": "1280B"}, '"mtu" is one for the whole scenario; write it at the top'),
        ({"network__mtu": "1280B"}, '"mtu" is one for the whole scenario; write it at the top'),
        ({"network__ip": "ipv6"}, '"ip" is one for the whole scenario'),
    ],
)
def test_keys_that_contradict_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError) as refused:
        scenario(**changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


DATAGRAMS: list[tuple[dict[str, Any], int]] = [
    ({"kind": "voice"}, 60),
    ({"kind": "game"}, 48),
    ({"kind": "constant_rate", "rate": "1Mbit"}, 48),
    ({"kind": "dns", "think_time": "1s"}, 48),
]


@pytest.mark.parametrize(("application", "header"), DATAGRAMS)
def test_datagrams_have_the_headers_of_ipv6(application: dict[str, Any], header: int) -> None:
    document = scenario().to_dict() | {"application": [application]}
    (plan,) = Scenario.from_dict(document | {"ip": "ipv6"}).to_plan()["applications"]
    (before,) = Scenario.from_dict(document).to_plan()["applications"]
    assert (plan["datagram_header_bytes"], before["datagram_header_bytes"]) == (header, header - 20)
    given = application | {"header_size": "100B"}
    (plan,) = Scenario.from_dict(document | {"ip": "ipv6", "application": [given]}).to_plan()["applications"]
    assert plan["datagram_header_bytes"] == 100


def test_look_ups_of_a_page_have_the_headers_of_ipv6() -> None:
    page = {"kind": "web_page", "primary": "10kB", "inline": "5kB", "think_time": "1s", "dns": {}}
    document = scenario().to_dict() | {"application": [page]}
    (plan,) = Scenario.from_dict(document | {"ip": "ipv6"}).to_plan()["applications"]
    assert plan["dns"]["datagram_header_bytes"] == 48


def test_datagrams_longer_than_the_mtu_are_refused() -> None:
    for application, said in (
        ({"kind": "constant_rate", "rate": "1Mbit", "payload": "1453B"}, "payload: 1453B exceed the mtu of 1500B"),
        ({"kind": "game", "server_payload": "2kB"}, "server_payload: 2000B exceed the mtu"),
        (
            {"kind": "dns", "think_time": "1s", "answer": {"distribution": "exponential", "mean": "200B"}},
            'answer: it has no upper end, and a packet has one; add maximum = "1452B"',
        ),
        ({"kind": "voice", "codec": "opus", "frame": "120ms", "bitrate": "500kbit"}, "frame: 7500B exceed the mtu"),
    ):
        document = scenario().to_dict() | {"application": [application | {"name": "one"}]}
        with pytest.raises(RequestError) as refused:
            Scenario.from_dict(document | {"ip": "ipv6"})
        assert f"application.one.{said}" in str(refused.value)


def test_users_with_a_path_each_have_the_keys_too() -> None:
    sent = {}
    for ip in ("ipv4", "ipv6"):
        users = scenario(ip=ip, application__file__size="14400B").with_population(name="uk-2023", users=20)
        assert users.star_of_users(seed=1).ip == ip
        tables = simulate.run_cell(Cell({}, users), 1, 1)
        sent[ip] = tables["transfers"]["segments_sent"].sum() - tables["transfers"]["retransmissions"].sum()
    assert sent == {"ipv4": 20 * 10, "ipv6": 20 * 10}


def records(path: Path) -> list[bytes]:
    """The packets of a pcap file."""
    content, at, found = path.read_bytes(), 24, []
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at + 8)
        found.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    return found


@pytest.mark.parametrize("mtu", ["1280B", "9000B"])
def test_a_capture_has_ipv6_packets_of_the_mtu(tmp_path: Path, mtu: str) -> None:
    path = tmp_path / "x.pcap"
    simulate.capture_packets(scenario(ip="ipv6", mtu=mtu), 1, path)
    packets = records(path)
    assert {packet[0] >> 4 for packet in packets} == {6}
    assert max(map(len, packets)) == int(mtu.removesuffix("B"))
    assert {packet[8:24] for packet in packets} == {bytes([0xFD, *bytes(14), at]) for at in (1, 2)}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not here: apt-get install tshark")
def test_tshark_finds_no_mistake_in_ipv6_packets(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    calls = {"kind": "voice", "name": "call", "direction": "download", "length": "1s"}
    document = scenario(ip="ipv6").to_dict()
    document["application"].append(calls)
    count = simulate.capture_packets(Scenario.from_dict(document), 1, path)
    fields = ("ipv6.src", "tcp.checksum.status", "udp.checksum.status", "_ws.malformed", "ipv6.plen", "tcp.len")
    asked = [part for field in fields for part in ("-e", field)]
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    command = ["tshark", "-r", path, *checks, "-T", "fields", *asked]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [dict(zip(fields, line.split("\t"), strict=True)) for line in printed]
    assert len(rows) == count
    assert {row["ipv6.src"] for row in rows} == {"fd00::1", "fd00::2"}
    assert {row["tcp.checksum.status"] + row["udp.checksum.status"] for row in rows} == {"1"}
    assert {row["_ws.malformed"] for row in rows} == {""}
    assert max(int(row["tcp.len"] or 0) for row in rows) == 1440
    # A call of G.711 with a frame of 20 ms: 160 bytes behind RTP's and UDP's headers.
    assert {row["ipv6.plen"] for row in rows if not row["tcp.len"]} == {"180"}
