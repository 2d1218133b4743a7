"""A recording as a packet script."""

from collections.abc import Iterator
from typing import Any

from firstflight.conform.packet import ACK, SYN, Packet, parse
from firstflight.conform.parameters import Parameters
from firstflight.engines.emulate.inside.sockets import tcp_info

Event = tuple[str, int, Any]

# The settings of the recorded kernel, the same for all.
SYSCTLS = {
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_dsack": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_early_retrans": "3",
    "net.ipv4.tcp_recovery": "1",
    "net.ipv4.tcp_frto": "2",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_reordering": "3",
    # Only with `compressed`: far from arrivals that are 3 ms apart.
    "net.ipv4.tcp_comp_sack_delay_ns": "7500000",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    # Windows must not be bounded by the send buffer.
    "net.ipv4.tcp_wmem": "4096 8388608 8388608",
}
_ASSERTED = ("snd_cwnd", "unacked", "ca_state", "snd_ssthresh", "sacked", "lost", "retrans")
# The timer wheel's slots of 2 s, with ticks of 4 ms, repeat after this number of ticks; no timer here is longer.
_WHEEL_TICKS = 1 << 12
_BEFORE_US = 1_000
# The MTU of connections with an MSS that 1500 bytes have no room for.
JUMBO = 9_000


def write_script(parameters: Parameters, recording: dict[str, Any], kernel: str) -> str:
    """The script; its first line says of which connection, its second of which kernel.

    `recording`: as `inside.record.record` answers.
    """
    events: list[Event] = [tuple(event) for event in recording["events"]]
    zero_us = events[0][1] // 1_000 - _BEFORE_US
    tick = recording["tick_ns"]
    clock_us = (zero_us + recording["clock_ns"] // 1_000) % (_WHEEL_TICKS * tick // 1_000)
    head = [
        f"// {parameters.described()}",
        f"// recorded on {kernel}",
        "--tolerance_usecs=1000",
        f"--clock_usecs={clock_us}",
        f"--set=timer_tick={{ period = {tick // 1_000}us, wheel = true }}",
        *_preamble(parameters),
        "",
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
        "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0",
        "+0 bind(3, ..., ...) = 0",
        "+0 listen(3, 1) = 0",
    ]
    return "\n".join([*head, *_lines(parameters, events, zero_us)]) + "\n"


def _preamble(parameters: Parameters) -> list[str]:
    sysctls = SYSCTLS | {
        "net.ipv4.tcp_congestion_control": parameters.cc,
        "net.ipv4.tcp_sack": str(int(parameters.sack)),
        "net.ipv4.tcp_timestamps": str(int(parameters.timestamps)),
        "net.ipv4.tcp_slow_start_after_idle": str(int(parameters.restart)),
        "net.ipv4.tcp_min_tso_segs": "2" if parameters.trains else "1",
        "net.ipv4.tcp_comp_sack_nr": "44" if parameters.compressed else "0",
    }
    lines = [f"sysctl -q {name}=" + (f'"{value}"' if " " in value else value) for name, value in sysctls.items()]
    route = f"initcwnd {parameters.iw}" + (f" mtu {JUMBO}" if parameters.jumbo else "")
    lines.append(f"ip route replace 192.0.2.1 via 192.168.0.2 dev tun0 {route}")
    return ["`" + lines[0], *(f" {line}" for line in lines[1:-1]), f" {lines[-1]}`"]


def _lines(parameters: Parameters, events: list[Event], zero_us: int) -> Iterator[str]:
    origin = 0
    sender = parameters.direction == "sender"
    for place, (kind, at, content) in enumerate(events):
        time = f"{(at // 1_000 - zero_us) / 1e6:.6f}"
        if kind in ("in", "out"):
            packet = parse(content)
            if packet is None:
                continue
            if kind == "out" and packet.flags & SYN:
                origin = packet.seq
            shown = _packet(packet, kind == "out", origin, kind == "in" or not sender, parameters.ecn)
            yield f"{time} {shown}"
        elif kind == "accept":
            yield f"{time} accept(3, ..., ...) = 4"
            if parameters.nodelay:
                yield f"{time} setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0"
        elif kind == "info":
            # A packet between asking and the answer: it is unknown whether it counts.
            if place + 1 == len(events) or events[place + 1][1] - at > 20_000:
                yield f"{time} {_assertion(tcp_info(content))}"
        else:
            yield f"{time} {kind}(4, ..., {content}) = {content}"


def _packet(packet: Packet, sent: bool, origin: int, stated_window: bool, ecn: bool) -> str:
    seq = packet.seq - (origin if sent else 0) & 0xFFFFFFFF
    parts = [
        ">" if sent else "<",
        (packet.mark() if ecn else "") + packet.letters(),
        f"{seq}:{seq + packet.length}({packet.length})",
    ]
    if packet.flags & ACK:
        parts.append(f"ack {packet.ack - (0 if sent else origin) & 0xFFFFFFFF}")
    if stated_window:
        parts.append(f"win {packet.window}")
    options = packet.written_options(0 if sent else origin)
    if options:
        parts.append(f"<{options}>")
    return " ".join(parts)


def _assertion(info: dict[str, int]) -> str:
    shown = ", ".join(f"tcpi_{name}" for name in _ASSERTED)
    return "%{ assert " + " and ".join(f"tcpi_{name} == {info[name]}" for name in _ASSERTED) + f", ({shown}) }}%"
