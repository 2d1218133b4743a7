"""ARP, route changes and cached metrics on the running kernel: what CS244 2014 waited 2 s between requests for.

    .venv/bin/python research/cs244_arp.py

Two hosts of Ethernet devices (TAP) in namespaces of their own, 35 ms apart each way by a forwarder of frames. Hosts of
firstflight's emulator cannot show it: their devices carry IP packets and have no ARP. A response of 9,300 bytes takes
two round trips with IW 10 and three with IW 3, handshake included. A line says what was done before a response, how
many round trips it took, and how many ARP requests were broadcast. No root is needed.
"""

import ctypes
import fcntl
import heapq
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RTT_S = 0.07
RESPONSE = 9300
CLIENT, SERVER, PORT = "10.0.0.1", "10.0.0.2", 80
_NEWUSER, _NEWNET, _TUNSETIFF, _TAP_NO_PI, _PDEATHSIG = 0x10000000, 0x40000000, 0x400454CA, 0x1002, 1


def ip(words: str) -> str:
    """What `ip` answers."""
    return subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True).stdout


def host(address: str, role: Callable[[socket.socket], None]) -> tuple[int, socket.socket]:
    """A process in a network of its own: its TAP device and a socket to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        _unshare(_NEWNET)
        tap = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", b"eth0", _TAP_NO_PI))
        ip(f"address add {address}/24 dev eth0")
        ip("link set eth0 up")
        socket.send_fds(theirs, [b"tap"], [tap])
        os.close(tap)
        role(theirs)
        os._exit(0)
    theirs.close()
    return socket.recv_fds(ours, 16, 1)[1][0], ours


def serve(commands: socket.socket) -> None:
    """Answers requests, and changes its own network in between."""
    listener = socket.create_server((SERVER, PORT))
    while True:
        for ready in select.select([listener, commands], [], [])[0]:
            if ready is commands:
                words = commands.recv(1000).decode()
                commands.send(ip(words).encode() or b"-")
            else:
                connection, _ = listener.accept()
                connection.recv(1000)
                connection.sendall(bytes(RESPONSE))
                connection.close()


def ask(commands: socket.socket) -> None:
    """Fetches a response and answers how long it took, or changes its own network."""
    while words := commands.recv(1000).decode():
        if words.startswith("sleep"):
            time.sleep(float(words.split()[1]))
        if words != "get":
            commands.send(b"-" if words.startswith("sleep") else ip(words).encode() or b"-")
            continue
        start = time.monotonic()
        with socket.create_connection((SERVER, PORT)) as connection:
            connection.sendall(b"GET")
            while connection.recv(65536):
                pass
        commands.send(str(time.monotonic() - start).encode())


class Wire:
    """Carries frames between two devices, half a round trip late each, and counts broadcast ARP requests."""

    def __init__(self, one: int, two: int) -> None:
        self.taps, self.requests, self._count = {one: two, two: one}, 0, 0
        self._waiting: list[tuple[float, int, int, bytes]] = []

    def tell(self, who: socket.socket, words: str) -> str:
        """What the host answers; frames are carried meanwhile."""
        who.send(words.encode())
        readers: list[Any] = [*self.taps, who]
        while True:
            late = max(0, self._waiting[0][0] - time.monotonic()) if self._waiting else None
            ready = select.select(readers, [], [], late)[0]
            for tap in self.taps.keys() & set(ready):
                frame, self._count = os.read(tap, 2000), self._count + 1
                self.requests += frame[:6] == b"\xff" * 6 and frame[12:14] == b"\x08\x06"
                heapq.heappush(self._waiting, (time.monotonic() + RTT_S / 2, self._count, self.taps[tap], frame))
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self._waiting)
                os.write(to, frame)
            if who in ready:
                return who.recv(100000).decode()


def measured() -> dict[str, tuple[float, int]]:
    """By what was done before a response: its round trips, and broadcast ARP requests; last, how many destinations the
    server has cached metrics of before and after a route change.
    """
    (one, client), (two, server) = host(CLIENT, ask), host(SERVER, serve)
    wire = Wire(one, two)

    def get() -> tuple[float, int]:
        before = wire.requests
        found = float(wire.tell(client, "get")) / RTT_S, wire.requests - before
        # What closes the connection arrives.
        wire.tell(client, "sleep 0.3")
        return found

    def cached() -> int:
        return wire.tell(server, "tcp_metrics show").count(CLIENT)

    def window(segments: int) -> None:
        wire.tell(server, f"route change 10.0.0.0/24 dev eth0 src {SERVER} initcwnd {segments}")

    window(10)
    found = {"first connection, IW 10": get(), "the next": get()}
    metrics = cached()
    window(3)
    found["after a route change to IW 3"] = get()
    window(10)
    found["after a route change to IW 10"] = get()
    window(10)
    cached_after = cached()
    wire.tell(client, "sleep 2")
    found["after 2 s idle"] = get()
    for name, who in (("client's", client), ("server's", server)):
        wire.tell(who, "neigh flush dev eth0")
        found[f"after the {name} ARP cache was flushed"] = get()
    wire.tell(client, f"neigh change {SERVER} dev eth0 nud stale")
    state = wire.tell(client, "neigh show").split()[-1].lower()
    found[f"the client's entry {state}"] = get()
    return found | {"cached metrics before and after a route change": (metrics, cached_after)}


def _unshare(what: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(what):
        raise OSError(ctypes.get_errno(), "no namespace of one's own")


def main() -> None:
    """Prints the table, or with `--json` the values."""
    user, group = os.getuid(), os.getgid()
    _unshare(_NEWUSER | _NEWNET)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    found = measured()
    if "--json" in sys.argv:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:47} {value[0]:5.2f} {value[1]}")


if __name__ == "__main__":
    main()
