"""Testbeds: hosts that reach one another over the box, settings that are read back, a machine that is not touched."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import emulations
import testbeds
from firstflight.engines.emulate.kernel import KernelSettings
from firstflight.engines.emulate.lab import Backend
from firstflight.engines.emulate.start import explain
from firstflight.errors import MachineError, RequestError
from testbeds import Lab


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(testbeds.one_link()) as running:
        yield running


@pytest.mark.parametrize("backend", ["tun", "packet"])
def test_a_handshake_between_two_hosts_takes_the_round_trip_that_was_asked_for(backend: Backend) -> None:
    if backend == "tun" and not testbeds.has_tun():
        pytest.skip("no TUN devices here; chmod 0666 /dev/net/tun")
    with Lab(testbeds.one_link(), backend=backend) as lab:
        assert lab.facts["backend"] == backend
        round_trips = [lab.call("round_trip", client="node[1]", server="node[0]") for _ in range(5)]
    # Two packets of 60 bytes at 10 Mbit/s take 0.1 ms; a busy machine may be late, and never early.
    assert 2 * testbeds.DELAY_S <= min(round_trips) < 3 * testbeds.DELAY_S


def test_a_forced_back_end_that_cannot_be_had_is_refused_with_the_fix() -> None:
    if testbeds.has_tun():
        pytest.skip("there are TUN devices here")
    with (
        pytest.raises(MachineError, match=r"no TUN device .*; fix: chmod 0666 /dev/net/tun"),
        Lab(testbeds.one_link(), backend="tun"),
    ):
        pass


def test_settings_are_as_they_were_set(lab: Lab) -> None:
    sysctls = {"net.ipv4.tcp_rmem": "4096 1048576 33554432", "net.ipv4.tcp_slow_start_after_idle": "0"}
    route = {"initcwnd": 3, "congctl": "cubic", "advmss": 960, "quickack": 1}
    lab.set("node[0]", KernelSettings(sysctls=sysctls, route=route, peers={"node[1]": {"initcwnd": 7}}))
    dump = {host: group["sysctls"] for group in lab.kernel_dump() for host in group["hosts"]}
    assert sysctls.items() <= dump["node[0]"].items()
    assert dump["node[1]"]["net.ipv4.tcp_rmem"] != sysctls["net.ipv4.tcp_rmem"]
    assert lab.call("routes", host="node[0]") == {
        "10.77.0.0/16": {"initcwnd": 3, "cc_algo": "cubic", "advmss": 960, "quickack": 1},
        "10.77.0.2/32": {"initcwnd": 7},
    }
    lab.set("node[0]", KernelSettings(route={"initcwnd": 4}))
    assert lab.call("routes", host="node[0]") == {"10.77.0.0/16": {"initcwnd": 4}}


def test_nothing_is_remembered_and_nothing_but_ipv4_is_spoken(lab: Lab) -> None:
    for group in lab.kernel_dump():
        assert group["sysctls"]["net.ipv4.tcp_no_metrics_save"] == "1"
    device = lab.call("look", host="node[0]")
    assert (device["mtu"], device["queue_packets"], device["ipv6"]) == (1500, 10_000, False)


def test_offloads_are_off_on_a_device_with_a_link_layer() -> None:
    with Lab(testbeds.one_link(), backend="packet") as lab:
        assert lab.call("look", host="node[1]")["offloads"] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            KernelSettings(route={"congctl": "nowhere"}),
            r"host node\[0\]: this kernel has no congestion control 'nowhere'; it has .*reno",
        ),
        (
            KernelSettings(sysctls={"net.ipv4.tcp_early_retrans": "9"}),
            r"host node\[0\]: the kernel refuses net.ipv4.tcp_early_retrans = 9 \(Invalid argument\); it is 3",
        ),
        (
            KernelSettings(sysctls={"net.ipv4.tcp_initcwnd": "3"}),
            r"host node\[0\]: this kernel has no net.ipv4.tcp_initcwnd",
        ),
        (KernelSettings(sysctls={"kernel.hostname": "x"}), "kernel.hostname is no setting of a host's network"),
    ],
    ids=["congestion control", "value", "name", "the machine's"],
)
def test_what_the_kernel_refuses_is_one_sentence(lab: Lab, settings: KernelSettings, message: str) -> None:
    with pytest.raises(MachineError, match=message):
        lab.set("node[0]", settings)


def test_a_host_that_is_not_there_is_named(lab: Lab) -> None:
    with pytest.raises(RequestError, match=r'no host "node\[5\]" in the testbed; it has node\[0\], node\[1\]'):
        lab.set("node[5]", KernelSettings())


def test_real_time_is_there_or_the_facts_say_why_not(lab: Lab) -> None:
    assert lab.facts["realtime"] == (lab.facts["realtime_refusal"] is None)
    status = Path(f"/proc/{testbeds.process(lab.mark, 'box')}/stat").read_text().rpartition(")")[2].split()
    assert (status[38] == "1") == lab.facts["realtime"]


def test_an_ended_testbed_says_that_it_is_not_running() -> None:
    with Lab(testbeds.one_link()) as lab:
        pass
    with pytest.raises(MachineError, match="not running and cannot box"):
        lab.box()


# Files that change by themselves, or with every process that starts.
VOLATILE = re.compile(r"kernel/(random/|ns_last_pid|pty/nr|keys/|sched_domain/)|net/netfilter/nf_conntrack_count")


def machine() -> dict[str, str]:
    """Every readable setting below /proc/sys/net and /proc/sys/kernel, and the routes, devices and addresses."""
    found = {}
    for root in ("/proc/sys/net", "/proc/sys/kernel"):
        for path in sorted(Path(root).rglob("*")):
            if path.is_file() and not VOLATILE.search(str(path)):
                try:
                    found[str(path)] = path.read_text()
                except OSError:
                    continue
    for name in ("route", "ipv6_route", "fib_trie", "if_inet6"):
        path = Path("/proc/net") / name
        # Counters of use are printed next to IPv6 routes.
        found[name] = re.sub(r" [0-9a-f]{8}(?= )", "", path.read_text()) if path.exists() else ""
    found["devices"] = " ".join(sorted(testbeds.devices()))
    return found


def peers_remembered() -> set[str]:
    """Addresses whose RTT and window this host's TCP remembers, of the testbed's network."""
    found = subprocess.run(["ip", "tcp_metrics"], capture_output=True, text=True, check=True)
    return {words[0] for words in map(str.split, found.stdout.splitlines()) if words and words[0].startswith("10.77.")}


@pytest.mark.parametrize("backend", ["auto", "packet"])
def test_the_machine_is_the_same_before_and_after(backend: Backend) -> None:
    before, remembered = machine(), peers_remembered()
    assert len(before) > 100
    with Lab(testbeds.one_link(), backend=backend) as lab:
        sysctls = {"net.ipv4.tcp_rmem": "4096 1048576 33554432", "net.ipv4.tcp_sack": "0"}
        for host in ("node[0]", "node[1]"):
            lab.set(host, KernelSettings(sysctls=sysctls, route={"initcwnd": 3, "congctl": "cubic"}))
        lab.call("round_trip", client="node[1]", server="node[0]")
        during = machine()
    after = machine()
    assert {name for name in before if before[name] != during.get(name)} == set()
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert peers_remembered() <= remembered


def test_a_testbed_of_a_hundred_hosts_starts() -> None:
    began = time.monotonic()
    with Lab(testbeds.star(99)) as lab:
        assert time.monotonic() - began < 30
        assert lab.call("round_trip", client="spokes[98]", server="hub[0]") >= 0.042


@pytest.mark.parametrize(
    ("switch", "value", "fix"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ],
)
def test_a_machine_without_user_namespaces_is_told_the_fix(tmp_path: Path, switch: str, value: str, fix: str) -> None:
    said = "unshare: unshare failed: Operation not permitted\n"
    assert str(explain(said, tmp_path)).endswith("; fix: run as root, or in a container with --privileged")
    (tmp_path / switch).parent.mkdir()
    (tmp_path / switch).write_text(f"{value}\n")
    assert str(explain(said, tmp_path)).endswith(f"(unshare: unshare failed: Operation not permitted); fix: {fix}")


def test_servers_that_are_started_anew_leave_no_descriptors_behind() -> None:
    emulations.skip_unless_possible()
    with Lab(testbeds.one_link()) as lab:
        first = testbeds.process(lab.mark, "first process")
        open_then = []
        for turn in range(4):
            lab.call("start_servers", hosts={"node[0]": {"headers": [0], "no_delay": turn % 2 == 0}})
            open_then.append(len(list(Path(f"/proc/{first}/fd").iterdir())))
    assert open_then[-1] <= open_then[1]
