"""The lines that set an initial window on Linux, keep it over a reboot, show that it works, and take it back.

tests/realtime/test_advise_recipes.py runs them on a host in a network namespace (Debian 12). `ip route replace` with
the whole line of the route changes that route; with a part of it, it adds a second one (another metric is another
route). A later `initcwnd` in the line wins over an earlier one.
"""

from dataclasses import dataclass

LINUX_DEFAULT = 10
"""TCP_INIT_CWND of Linux since 2.6.39."""
CLIENT_WINDOW_SEGMENTS = 44
"""Number of segments in the window that a Linux client announces first with default settings: 63 kB of 1448 bytes."""


@dataclass(frozen=True)
class Step:
    """One thing to do: a heading, the lines to type or to write into `file`, what to type `then`, and notes. `host`:
    the program or system that it is for; empty if for each.
    """

    title: str
    lines: tuple[str, ...]
    note: str = ""
    file: str = ""
    then: tuple[str, ...] = ()
    host: str = ""


def steps(window: int, current: int, current_known: bool) -> list[Step]:
    """Commands that replace `current` by `window`; `current_known` False: assumed, not seen in the data."""
    return [
        _look(),
        Step(
            "Set it for all destinations, until the next restart of the network",
            (
                f"sudo ip route replace $(ip -4 route show default | head -n 1) initcwnd {window}",
                f"sudo ip -6 route replace $(ip -6 route show default | head -n 1) initcwnd {window}",
            ),
            "New connections use it immediately; open connections and server programs need no restart. Give the route "
            "in full: a part of it (such as another metric) would add a second default route. Leave out the second "
            "line without IPv6. Where a router announces the default route (proto ra), its line has a time in it that "
            "ip refuses (expires), and the route is renewed without the window: use the persistent form. A route with "
            "several next hops needs its own line.",
            host="ip route",
        ),
        Step(
            "Or set it for some destinations first",
            (f"sudo ip route replace 203.0.113.0/24 via GATEWAY dev DEVICE initcwnd {window}",),
            "GATEWAY and DEVICE as in the default route, 203.0.113.0/24 the prefix of the users: the rest stays as it "
            "is, and both can be compared. On some of the servers only, it is an experiment, too.",
            host="ip route",
        ),
        *persistent(window),
        container(window),
        elsewhere(),
        verify(window),
        roll_back(current, current_known),
        receive_window(window),
    ]


def _look() -> Step:
    return Step(
        "Look first, and keep the output",
        ("ip -4 route show default", "ip -6 route show default"),
        "On every machine where the users' TCP connections end: the load balancer or TLS terminator, if there is one, "
        "not the servers behind it. HTTP/3 is not TCP: its window is a setting of the server.",
        host="ip route",
    )


def persistent(window: int) -> list[Step]:
    """The same so that it outlives a reboot, for each program that configures networks on Linux."""
    reload = ("sudo networkctl reload",)
    netplan = ("sudo netplan generate", *reload)
    line = f"InitialCongestionWindow={window}"
    second = "Two default routes would remain otherwise, and the one without the window would be used."
    units = "The number is of segments, though older manuals say bytes. systemd.network(5)."
    return [
        Step(
            "Keep it over a reboot: systemd-networkd, address by DHCP",
            ("[DHCPv4]", "UseGateway=no", "[Route]", "Gateway=_dhcp4", line),
            "NAME.network is what networkctl status DEVICE calls the network file. "
            f"UseGateway=no is necessary. {second} The reload renews the address: no packets pass for a second. "
            f"For IPv6 the same with [IPv6AcceptRA] and _ipv6ra. {units}",
            file="/etc/systemd/network/NAME.network.d/initcwnd.conf",
            then=reload,
            host="networkd",
        ),
        Step(
            "Keep it over a reboot: systemd-networkd, fixed gateway",
            ("[Route]", "Gateway=GATEWAY", line),
            f"In the place of the line Gateway=GATEWAY below [Network]. {second} {units}",
            file="/etc/systemd/network/NAME.network",
            then=reload,
            host="networkd",
        ),
        Step(
            "Keep it over a reboot: NetworkManager",
            (
                f"sudo nmcli connection modify CONNECTION +ipv4.routes '0.0.0.0/0 GATEWAY 90 initcwnd={window}'",
                "sudo nmcli device reapply DEVICE",
            ),
            "CONNECTION as in nmcli connection show --active. 90 is a metric below NetworkManager's own of 100: this "
            "route is used. For IPv6: +ipv6.routes '::/0 GATEWAY 90 ...'. It keeps this GATEWAY, also if DHCP "
            "gives another one later. Back: -ipv4.routes with the same text, and reapply. nm-settings-nmcli(5).",
            host="NetworkManager",
        ),
        Step(
            "Keep it over a reboot: netplan, address by DHCP",
            (
                "network:",
                "  ethernets:",
                "    DEVICE:",
                "      dhcp4-overrides: {use-routes: false}",
                "      routes:",
                f"        - {{to: default, via: GATEWAY, congestion-window: {window}}}",
            ),
            "One more file (renderer: networkd). It keeps this GATEWAY, also if DHCP gives another "
            "one later, and takes no other routes from DHCP. netplan(5).",
            file="/etc/netplan/90-initcwnd.yaml",
            then=("sudo chmod 600 /etc/netplan/90-initcwnd.yaml", *netplan),
            host="netplan",
        ),
        Step(
            "Keep it over a reboot: netplan, fixed gateway",
            ("routes:", "  - to: default", "    via: GATEWAY", f"    congestion-window: {window}"),
            "The last line is new. A gateway4 line is replaced by these. netplan(5).",
            file="/etc/netplan/*.yaml",
            then=netplan,
            host="netplan",
        ),
        Step(
            "Keep it over a reboot: ifupdown",
            (f"post-up ip -4 route replace $(ip -4 route show default | head -n 1) initcwnd {window}",),
            "Below the iface line of the device; -6 below that of inet6. It takes effect with the next ifup. "
            "interfaces(5).",
            file="/etc/network/interfaces",
            host="ifupdown",
        ),
    ]


def container(window: int) -> Step:
    """For a server in a separate network namespace."""
    return Step(
        "For a server in a container, set it in there",
        (
            "sudo nsenter --net --target PID sh -c "
            f"'ip -4 route replace $(ip -4 route show default | head -n 1) initcwnd {window}'",
        ),
        "The window is that of the route in the server's own network namespace. A route of the host does nothing for a "
        "container or pod, unless it shares the host's network. PID is a process of the server: docker inspect "
        "--format '{{.State.Pid}}' NAME. A new container begins without it, so set it where containers are started.",
        host="container",
    )


def elsewhere() -> Step:
    """For hosts on which these lines mean nothing."""
    return Step(
        "Hosts that are not Linux, or not yours",
        (),
        "From the manuals, not tried here. FreeBSD: the sysctl net.inet.tcp.initcwnd_segments, tcp(4), for all "
        "connections. Windows Server: the parameter InitialCongestionWindow of Set-NetTCPSetting, for a custom "
        "template. A CDN's servers are the CDN's: the log shows its connections, and only it can change their window.",
        host="Windows, FreeBSD, CDN",
    )


def verify(window: int) -> Step:
    """Commands that show that connections begin with it."""
    return Step(
        "See that it works",
        (
            "ip route get 203.0.113.9    # the route to a user: initcwnd is there",
            "ss -tin state established '( sport = :443 )'",
        ),
        f"A connection that has sent little shows cwnd:{window}; one that has sent more has grown beyond it, or fallen "
        f"after a loss. In a capture, {window} full segments leave before the first ACK of data, if the response is as "
        "long and the client's window holds them. A server that sends its response header by itself (nginx without "
        "tcp_nopush) spends one of the segments on it.",
    )


def roll_back(current: int, known: bool) -> Step:
    """The commands that restore the earlier window."""
    plain = current == LINUX_DEFAULT
    lines = (
        f"sudo ip route replace $(ip -4 route show default | head -n 1) initcwnd {current}",
        f"sudo ip -6 route replace $(ip -6 route show default | head -n 1) initcwnd {current}",
    )
    source = "was seen in the data" if known else "is Linux's default and was not seen in the data"
    return Step(
        "Take it back",
        lines,
        f"{current} {source}. "
        + ("It is what Linux does without the word initcwnd, too. " if plain else "")
        + "Remove the persistent lines as well. It applies to new connections; open ones keep theirs.",
    )


def receive_window(window: int) -> Step:
    """The requirements on the other endpoint."""
    lines = ["sysctl net.ipv4.tcp_rmem    # on a client: half of the middle value is its first window"]
    if window <= CLIENT_WINDOW_SEGMENTS:
        note = (
            f"Nothing: a Linux client advertises room for about {CLIENT_WINDOW_SEGMENTS} full segments at first, and "
            f"{window} fit. "
        )
    else:
        lines += [f'sudo sysctl net.ipv4.tcp_rmem="4096 {_middle(window)} $(cut -f3 /proc/sys/net/ipv4/tcp_rmem)"']
        note = (
            f"A Linux client with default settings advertises about {CLIENT_WINDOW_SEGMENTS} full segments at first, "
            "which bounds the first flight, whatever the server may send. Who runs the clients as well can raise the "
            "middle value of tcp_rmem: half of it is advertised after the handshake. "
        )
    return Step(
        "Limit of the clients",
        tuple(lines),
        note + "The route attribute initrwnd of a client can only lower its first window on Linux 6.18, not raise it. "
        "For uploads the same holds with the roles exchanged.",
    )


def _middle(window: int) -> int:
    """A middle value of tcp_rmem, a power of two, of which half holds `window` segments of 1448 bytes."""
    need, size = 2 * window * 1448, 131072
    while size < need:
        size *= 2
    return size


def watch(window: int) -> list[tuple[str, str]]:
    """Values to monitor afterwards: (what, how). RFC 6928 section 12 asks for it before and after, and to fall back."""
    return [
        (
            "Share of retransmitted segments",
            "nstat -az TcpOutSegs TcpRetransSegs, before and after, at the same hours; against the budget above",
        ),
        (
            "Losses in the first flight",
            f"RFC 6928's key sign: retransmissions while at most {window} segments were ever sent; "
            "firstflight observe on a capture counts them (first_flight_lost_segments)",
        ),
        ("Timeouts and tail loss probes", "nstat -az TcpExtTCPTimeouts TcpExtTCPLossProbes TcpExtTCPSlowStartRetrans"),
        ("ECN marks", "nstat -az TcpExtTCPDeliveredCE IpExtInCEPkts, where ECN is in use"),
        (
            "Time of a response, by percentile and by network of the users",
            "the log you made this advice from: some of the servers with the new window, the others without; "
            "the mean hides whom it hurts",
        ),
        (
            "Prefixes that get worse",
            "RFC 6928 section 12: destinations whose first flights lose should fall back, by a separate route with a "
            "smaller initcwnd",
        ),
    ]
