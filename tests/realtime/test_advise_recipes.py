"""Each recipe of an advice, as it is printed, by the program it is for: a host in network namespaces of the test's own.

A router serves DHCP and router advertisements (dnsmasq) to a host with one device. `/etc`, `/run` and `/var/lib` of
these programs are empty file systems of the test's own.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from firstflight.advise import deploy

WINDOW = 20
GATEWAY, DEVICE, USER = "192.0.2.1", "e0", "203.0.113.9"
NETWORKD = "/lib/systemd/systemd-networkd"
PROGRAMS = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "dnsmasq": "dnsmasq-base",
    "dbus-daemon": "dbus",
    NETWORKD: "systemd",
    "networkctl": "systemd",
    "NetworkManager": "network-manager",
    "netplan": "netplan.io",
    "ifup": "ifupdown",
    "dhclient": "isc-dhcp-client",
}
OWN = "/etc/systemd/network /etc/NetworkManager /etc/netplan /etc/network /var/lib/dhcp /var/lib/NetworkManager"
NETWORK = f"""
set -e
mount --make-rprivate /
for own in /run {OWN}; do if [ -d $own ]; then mount -t tmpfs -o mode=755 tmpfs $own; fi; done
mkdir -p /run/netns /run/dbus /run/network /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
if id systemd-network >/dev/null 2>&1; then chown -R systemd-network: /run/systemd/netif; fi
ip link set lo up; ip netns add host; ip netns attach router $$
ip link add r0 type veth peer name {DEVICE} netns host
ip addr add {GATEWAY}/24 dev r0; ip addr add {USER}/32 dev r0; ip -6 addr add 2001:db8::1/64 dev r0 nodad
ip link set r0 up
if command -v dnsmasq >/dev/null; then
    dnsmasq --no-daemon --port=0 --interface=r0 --bind-interfaces --leasefile-ro --pid-file= --enable-ra \\
        --dhcp-range=192.0.2.10,192.0.2.20,2m --dhcp-option=3,{GATEWAY} --dhcp-range=2001:db8::,ra-only 2>/run/dhcp &
fi
if command -v dbus-daemon >/dev/null; then dbus-daemon --system --fork; fi
exec ip netns exec host sh -e /proc/self/fd/0
"""
# `until_ COMMAND` waits for something that a daemon does; sysfs is read-only where nobody runs udev, as in containers.
HOST = f"""
sudo() {{ "$@"; }}
until_() {{ for _ in $(seq 150); do if eval "$1" >/dev/null 2>&1; then return; fi; sleep 0.1; done; false; }}
shown() {{ echo "-- $1"; ip route get {USER}; }}
mount -o remount,ro /sys; ip link set lo up
"""
ADDRESSED = (
    f"ip link set {DEVICE} up; ip addr add 192.0.2.50/24 dev {DEVICE}; ip route add default via {GATEWAY} metric 5\n"
)
DHCP_NETWORK = f"[Match]\nName={DEVICE}\n[Network]\nDHCP=ipv4\n"
FIXED_NETWORK = f"[Match]\nName={DEVICE}\n[Network]\nAddress=192.0.2.50/24\n"
FIXED = f"static\n    address 192.0.2.50/24\n    gateway {GATEWAY}"
RUN_NETWORKD = f"{NETWORKD} >/run/networkd 2>&1 &\nuntil_ 'ip -4 route show default | grep via'"
DHCP_NETPLAN = f"network:\n  ethernets:\n    {DEVICE}:\n      dhcp4: true\n"
FIXED_NETPLAN = f"network:\n  ethernets:\n    {DEVICE}:\n      addresses: [192.0.2.50/24]\n"


def _on_a_host(script: str, *needs: str) -> dict[str, str]:
    """What is printed after each `shown NAME` of `script`, by name. Skips where a program is missing."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = {PROGRAMS[name] for name in ("ip", "unshare", *needs) if shutil.which(name, path=path) is None}
    if missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    if os.geteuid():
        pytest.skip("needs root: the programs that configure a network change to users of their own")
    own = ["unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
    made = subprocess.run([*own, "true"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespaces here: {made.stderr.strip()}")
    run = subprocess.run(
        [*own, "sh", "-c", NETWORK],
        input=HOST + script,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    points = run.stdout.split("-- ")[1:]
    return {name: rest for name, _, rest in (point.partition("\n") for point in points)}


def _step(title: str) -> deploy.Step:
    (found,) = (step for step in deploy.steps(WINDOW, 10, current_known=True) if title in step.title)
    return found


def _typed(lines: Sequence[str], **places: str) -> str:
    text = "\n".join(lines)
    for place, value in ({"GATEWAY": GATEWAY, "DEVICE": DEVICE} | places).items():
        text = text.replace(place, value)
    return text


def _written(path: str, text: str, mode: str = "644") -> str:
    """Lines that write `text` into a file of that name."""
    return f"mkdir -p {Path(path).parent}\ncat >{path} <<'END'\n{text.rstrip()}\nEND\nchmod {mode} {path}\n"


def _has_window(printed: str) -> bool:
    return f"initcwnd {WINDOW}" in printed


def _by_networkd(network: str, step: deploy.Step, before: str = "", name: str = "NAME") -> dict[str, str]:
    """What the host's route was before and after `step`; `before`: lines that stand above those of the step."""
    path = step.file.replace(name, f"10-{DEVICE}")
    base = f"/etc/systemd/network/10-{DEVICE}.network"
    return _on_a_host(
        f"{_written(base, network)}{RUN_NETWORKD}\nshown before\n"
        f"{_written(path, before + _typed(step.lines))}{_typed(step.then)}\n"
        f"until_ 'ip -4 route show default | grep initcwnd'; sleep 1; shown after\n"
        "networkctl renew e0; sleep 2; shown renewed\n",
        NETWORKD,
        "networkctl",
        "dbus-daemon",
        "dnsmasq",
    )


def test_networkd_with_dhcp_takes_the_window_and_keeps_it_when_the_lease_is_renewed() -> None:
    found = _by_networkd(DHCP_NETWORK, _step("networkd, address by DHCP"))
    assert [_has_window(found[at]) for at in ("before", "after", "renewed")] == [False, True, True]


def test_networkd_with_a_router_s_advertisements_takes_the_window() -> None:
    step = _step("networkd, address by DHCP")
    text = _typed(step.lines).replace("[DHCPv4]", "[IPv6AcceptRA]").replace("_dhcp4", "_ipv6ra")
    found = _on_a_host(
        f"{_written(f'/etc/systemd/network/10-{DEVICE}.network', FIXED_NETWORK + 'IPv6AcceptRA=yes')}"
        f"{_written(step.file.replace('NAME', f'10-{DEVICE}'), text)}{NETWORKD} >/run/networkd 2>&1 &\n"
        "until_ 'ip -6 route show default | grep initcwnd'; sleep 1; echo '-- all'; ip -6 route show default\n",
        NETWORKD,
        "dbus-daemon",
        "dnsmasq",
    )
    (route,) = found["all"].splitlines()
    assert _has_window(route)


def test_networkd_with_a_fixed_gateway_takes_the_window() -> None:
    found = _by_networkd(FIXED_NETWORK + f"Gateway={GATEWAY}\n", _step("networkd, fixed gateway"), FIXED_NETWORK)
    assert [_has_window(found[at]) for at in ("before", "after", "renewed")] == [False, True, True]


@pytest.mark.parametrize("fixed", [False, True], ids=["dhcp", "fixed"])
def test_network_manager_takes_the_window_and_keeps_it_in_a_new_connection(fixed: bool) -> None:
    method = f"ipv4.method manual ipv4.addresses 192.0.2.50/24 ipv4.gateway {GATEWAY}" if fixed else ""
    step = _step("NetworkManager")
    config = _written("/etc/NetworkManager/NetworkManager.conf", "[main]\nplugins=keyfile\nno-auto-default=*")
    found = _on_a_host(
        f"{config}NetworkManager >/run/manager 2>&1\n"
        "until_ 'nmcli general status'\n"
        f"nmcli connection add type ethernet ifname {DEVICE} con-name wired ipv6.method ignore {method} >/dev/null\n"
        "until_ 'ip -4 route show default | grep via'; shown before\n"
        f"{_typed(step.lines, CONNECTION='wired')} >/dev/null; sleep 1; shown after\n"
        "nmcli connection up wired >/dev/null; until_ 'ip -4 route show default | grep via'; sleep 1; shown again\n"
        f"nmcli connection modify wired -ipv4.routes '0.0.0.0/0 {GATEWAY} 90 initcwnd={WINDOW}'\n"
        f"nmcli device reapply {DEVICE} >/dev/null; sleep 1; shown back\n",
        "NetworkManager",
        "dbus-daemon",
        "dnsmasq",
    )
    assert [_has_window(found[at]) for at in ("before", "after", "again", "back")] == [False, True, True, False]


def _by_netplan(plan: str, step: deploy.Step, file: str, text: str) -> dict[str, str]:
    return _on_a_host(
        f"{_written('/etc/netplan/50-own.yaml', plan, '600')}netplan generate\n{RUN_NETWORKD}\nshown before\n"
        f"{_written(file, text, '600')}{_typed(step.then)}\n"
        "until_ 'ip -4 route show default | grep initcwnd'; sleep 1; shown after\n",
        "netplan",
        NETWORKD,
        "networkctl",
        "dbus-daemon",
        "dnsmasq",
    )


def test_netplan_with_dhcp_takes_the_window_from_a_file_beside_the_others() -> None:
    step = _step("netplan, address by DHCP")
    found = _by_netplan(DHCP_NETPLAN, step, step.file, _typed(step.lines))
    assert [_has_window(found[at]) for at in ("before", "after")] == [False, True]


def test_netplan_with_a_fixed_gateway_takes_the_window_from_one_more_line() -> None:
    step = _step("netplan, fixed gateway")
    lines = [f"      {line}" for line in _typed(step.lines).splitlines()]
    without, whole = ("\n".join([FIXED_NETPLAN.rstrip(), *part]) for part in (lines[:-1], lines))
    found = _by_netplan(without, step, "/etc/netplan/50-own.yaml", whole)
    assert [_has_window(found[at]) for at in ("before", "after")] == [False, True]


@pytest.mark.parametrize(
    "method", ["dhcp", f"static\n    address 192.0.2.50/24\n    gateway {GATEWAY}"], ids=["dhcp", "fixed"]
)
def test_ifupdown_sets_the_window_with_the_device(method: str) -> None:
    step = _step("ifupdown")
    interfaces = f"iface {DEVICE} inet {method}\n    "
    found = _on_a_host(
        "mkdir -p /etc/network/if-pre-up.d /etc/network/if-up.d /etc/network/if-down.d /etc/network/if-post-down.d\n"
        f"{_written(step.file, interfaces)}ifup {DEVICE}; shown before; ifdown {DEVICE}\n"
        f"{_written(step.file, interfaces + _typed(step.lines))}ifup {DEVICE}; shown after\n",
        "ifup",
        "dhclient",
        "dnsmasq",
    )
    assert [_has_window(found[at]) for at in ("before", "after")] == [False, True]


# A connection of the router to port 443 of address $2, whose server runs in the namespace $1 as process $server.
CONNECTION = f"""
connect_() {{
    ip netns exec $1 {sys.executable} -c '
import socket, time
with socket.create_server(("0.0.0.0", 443)) as server:
    held = server.accept()
    time.sleep(60)
' &
    server=$!
    until_ "ip netns exec $1 ss -tln | grep :443"
    ip netns exec router {sys.executable} -c '
import socket, sys, time
with socket.create_connection((sys.argv[1], 443), source_address=("{USER}", 0)):
    time.sleep(60)
' $2 &
    client=$!
    until_ "ip netns exec $1 ss -tn state established | grep :443"
}}
end_() {{ kill $client $server; wait $client $server || true; }}
"""


def test_a_new_connection_begins_with_the_window_and_the_printed_line_shows_it() -> None:
    routes, sockets = _step("See that it works").lines
    setting = _step("until the next restart").lines[0]
    found = _on_a_host(
        f"{ADDRESSED}{CONNECTION}connect_ host 192.0.2.50; shown before; {sockets}\nend_\n"
        f"{setting}\nconnect_ host 192.0.2.50; shown after; {routes}\n{sockets}\nend_\n",
    )
    assert f"cwnd:{deploy.LINUX_DEFAULT} " in found["before"]
    assert f"cwnd:{WINDOW} " in found["after"]


def test_a_route_of_the_host_does_nothing_for_a_server_in_a_container_and_one_inside_does() -> None:
    setting = _step("until the next restart").lines[0]
    (inside,) = _step("in a container").lines
    seen = f"ip netns exec container {_step('See that it works').lines[1]}"
    found = _on_a_host(
        f"{ADDRESSED}{CONNECTION}"
        "ip netns add container; ip link add c0 type veth peer name eth0 netns container\n"
        "ip addr add 198.51.100.1/24 dev c0; ip link set c0 up; echo 1 >/proc/sys/net/ipv4/ip_forward\n"
        "within='ip -n container'; $within link set lo up; $within addr add 198.51.100.2/24 dev eth0\n"
        "$within link set eth0 up; $within route add default via 198.51.100.1\n"
        f"ip -n router route add 198.51.100.0/24 via 192.0.2.50\n{setting}\n"
        f"connect_ container 198.51.100.2; shown host; {seen}\n"
        f"{inside.replace('PID', '$server')}; end_; connect_ container 198.51.100.2; shown inside; {seen}; end_\n",
        "nsenter",
    )
    assert _has_window(found["host"])
    assert f"cwnd:{deploy.LINUX_DEFAULT} " in found["host"]
    assert f"cwnd:{WINDOW} " in found["inside"]
