"""The link box on real devices: its queues with real packets, its counters, and its end."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import testbeds
from firstflight.engines.emulate.lab import TUN_FIX, Backend, Lab
from firstflight.engines.emulate.layout import Layout
from firstflight.records import schema

DELAY_NS = 10_000_000
SLOW = {"rate_bps": 100_000, "delay_ns": DELAY_NS, "queue": {"kind": "drop_tail", "limit": {"packets": 5}}}
# Of a packet of 1,000 bytes at that rate.
LINE_NS = 80_000_000
CHILD = Path(testbeds.__file__).parent / "linkbox_child.py"


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


def layout(link: dict[str, Any]) -> Layout:
    one_link = testbeds.one_link()
    return replace(one_link, links=dict.fromkeys(one_link.links, link))


def burst(lab: Lab, packets: int) -> list[int | None]:
    """Arrival time of each of this number of packets of 1,000 bytes, sent back to back, since the first was sent."""
    found = lab.call(
        "probe_packets", client="node[0]", server="node[1]", packet_bytes=1000, burst=packets, bursts=1, interval_s=0
    )
    return [None if time_ns is None else time_ns - found["sent"][0] for time_ns in found["received"]]


@pytest.fixture(params=["tun", "packet"])
def slow(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A link that takes 80 ms for a packet, so that no stall of the machine matters, and loses its second."""
    backend: Backend = request.param
    if backend == "tun" and not testbeds.has_tun():
        pytest.skip(f"no TUN devices here; {TUN_FIX}")
    with Lab(layout(SLOW | {"lose": [2]}), backend=backend, log=True) as lab:
        yield lab


def test_a_queue_of_5_lets_6_packets_of_a_burst_of_32_through_and_all_are_accounted_for(slow: Lab) -> None:
    slow.box()
    received = burst(slow, 32)
    # The first goes straight to the line and five wait; the second is lost behind it.
    assert [index for index, time_ns in enumerate(received) if time_ns is not None] == [0, 2, 3, 4, 5]
    counters = slow.box()
    link = counters["links"][0]
    assert [link[name]["packets"] for name in ("offered", "dropped", "sent", "lost")] == [32, 26, 6, 1]
    assert (counters["unaccounted"], counters["under_way"]) == (0, 0)
    ports = {port["name"]: port for port in counters["ports"]}
    assert (ports["node[0]"]["in"]["packets"], ports["node[1]"]["out"]["packets"]) == (32, 5)
    for port in ports.values():
        wrong = ("foreign", "unroutable", "oversized", "unchecksummed", "write_errors", "read_errors", "socket_drops")
        assert [port[name] for name in wrong] == [0] * len(wrong)


def test_packets_are_handed_over_at_their_deadlines_and_never_before(slow: Lab) -> None:
    # The lost one took its time on the line. A busy machine may be late, but not by a packet's time there.
    lines = [(time_ns - DELAY_NS) // LINE_NS for time_ns in burst(slow, 6) if time_ns is not None]
    assert lines == [1, 3, 4, 5, 6]
    lateness = slow.box()["lateness"]
    assert lateness["packets"] == 5
    assert 0 < lateness["p50_ns"] <= lateness["p99_ns"] <= lateness["max_ns"]


def test_the_log_has_a_row_of_the_schema_for_each_packet_at_the_link(slow: Lab) -> None:
    slow.box()
    burst(slow, 8)
    answer = slow.box("take", intervals=True)
    rows = testbeds.columns(answer["tables"]["crossings"])
    assert list(rows) == [column.name for column in schema.TABLES["crossings"]]
    assert rows["event"] == [1, 3, 1, 1, 1, 1, 2, 2]
    assert rows["bytes"] == [1000] * 8
    assert {end - start for start, end in zip(rows["start_ns"][:6], rows["end_ns"][:6], strict=True)} == {LINE_NS}
    assert rows["start_ns"][1:6] == rows["end_ns"][:5]
    assert rows["start_ns"][6] == rows["time_ns"][6]
    [[client, server]] = answer["connections"]
    assert (client.split(":")[0], server) == ("10.77.0.1", "10.77.0.2:9")
    links = testbeds.columns(answer["tables"]["links"])
    assert list(links) == [column.name for column in schema.TABLES["links"]]
    assert (sum(links["offered_packets"]), sum(links["dropped_packets"])) == (8, 2)


def test_a_reset_begins_the_list_of_losses_and_the_intervals_again(slow: Lab) -> None:
    for replicate in (0, 1):
        slow.box("reset", replicate=replicate)
        assert [time_ns is None for time_ns in burst(slow, 3)] == [False, True, False]
        answer = slow.box("take", intervals=True)
        assert set(testbeds.columns(answer["tables"]["crossings"])["replicate"]) == {replicate}
        assert sum(testbeds.columns(answer["tables"]["links"])["offered_packets"]) == 3


def child(case: str) -> dict[str, Any]:
    """The results of a case of the child script, in separate namespaces."""
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, str(CHILD), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def tun() -> None:
    if not testbeds.has_tun():
        pytest.skip(f"no TUN devices here; {TUN_FIX}")


@pytest.mark.usefixtures("tun")
def test_what_cannot_be_forwarded_is_counted_for_what_it_is() -> None:
    sender, receiver = child("forwarding")["ports"]
    assert sender["unroutable"] == 2
    assert sender["in"]["packets"] == receiver["write_errors"] == 3
    assert (receiver["out"]["packets"], receiver["last_error"]) == (0, "writing: Input/output error (os error 5)")


@pytest.mark.usefixtures("tun")
@pytest.mark.parametrize("case", ["stop", "closed", "closed while answering", "terminated"])
def test_the_box_ends_and_its_devices_with_it(case: str) -> None:
    assert child(case) == {"ended": True, "devices": ["lo"]}


@pytest.mark.usefixtures("tun")
def test_too_many_packets_in_flight_end_the_box_with_a_sentence() -> None:
    error = child("too many")["error"]
    found = re.fullmatch(
        r"too many packets in flight \((\d+)\); raise most_packets, or lower rates, delays or queues", error
    )
    assert found is not None, error
    # There must be room for the next batch of 64.
    assert 1024 - 64 < int(found[1]) <= 1024


def test_a_batch_that_takes_all_packets_that_wait_does_not_hold_them_up() -> None:
    sender, receiver = child("full batch")["ports"]
    assert (sender["in"]["packets"], receiver["out"]["packets"]) == (64, 64)


def test_a_capture_tells_of_packets_whose_checksums_an_offload_left_out() -> None:
    # A loopback always leaves them out, and shows each packet twice: as it is sent and as it is received.
    found = child("capture")
    rows, counts = found["segments"], found["counts"]
    assert list(rows) == [column.name for column in schema.TABLES["segments"]]
    assert counts["unchecksummed"] > 0
    assert counts["malformed"] > 0
    assert len(rows["event"]) + counts["malformed"] == counts["packets"] == found["packets_in_file"]
    assert counts["packets"] % 2 == counts["socket_drops"] == counts["missed"] == 0
    assert set(rows["event"]) == {0, 1}
    assert set(rows["recovery_state"]) == {255}
    assert 0 <= min(rows["time_ns"]) <= max(rows["time_ns"]) < 20_000_000_000
