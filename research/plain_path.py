"""Downloads over a path that shares no code with firstflight: nginx, curl, two TUN devices and the relay below.

    sudo .venv/bin/python research/plain_path.py > tests/fixtures/plain_path.csv

Thirty conditions are drawn with one seed; each is downloaded five times by this machine's kernel with its defaults.
`tests/unit/test_plain_path.py` simulates them and compares the times. Four minutes on a machine that does nothing else.
"""

import csv
import ctypes
import fcntl
import heapq
import os
import platform
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median

SEED, CONDITIONS, REPEATS = 20261129, 30, 5
SERVER, CLIENT = "10.111.0.1", "10.111.0.2"
_TUNSETIFF, _TUN_NO_INFORMATION = 0x400454CA, 0x1001
_PR_SET_TIMERSLACK = 29
_NGINX = """\
daemon off;
master_process off;
user root;
pid {at}/nginx.pid;
error_log {at}/error.log;
events {{ }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
    server {{ listen 80; root {at}; }}
}}
"""


def conditions() -> Iterator[dict[str, object]]:
    """Rates of 2 to 100 Mbit/s, RTTs of 10 to 200 ms, queues of 10 packets to more than two BDP, 5 kB to 4.7 MB, the
    windows 3, 10 and 32, three controllers, losses of 0 to 2 percent.
    """
    draw = random.Random(SEED)
    for _ in range(CONDITIONS):
        rate, rtt = draw.choice([2, 5, 10, 20, 48, 100]), draw.choice([10, 27, 50, 100, 200])
        bdp = rate * rtt / 12
        size = round(5000 * 940 ** draw.random() * min(1, rate / 10))
        share = draw.choice([0, 0, 0.005, 0.02])
        segments = -(-size // 1448)
        yield {
            "rate_mbit": rate,
            "rtt_ms": rtt,
            "queue_packets": max(10, round(bdp * draw.choice([0.5, 1, 2]))),
            "size": size,
            "iw": draw.choice([3, 10, 32]),
            "control": draw.choice(["cubic", "cubic", "reno", "bbr"]),
            "lost": " ".join(str(at) for at in range(1, segments + 1) if draw.random() < share),
        }


def tun(name: str, namespace: str, address: str, peer: str) -> int:
    """A TUN device in a namespace; the file of its packets."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_NO_INFORMATION))
    ip("link", "set", name, "netns", namespace)
    for words in (
        ("addr", "add", address, "peer", peer, "dev", name),
        ("link", "set", name, "up", "txqueuelen", "10000"),
    ):
        ip("-n", namespace, *words)
    return device


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True)


def payload(packet: bytes) -> int:
    """Bytes of data in an IPv4 packet of TCP."""
    header = 4 * (packet[0] & 15)
    return len(packet) - header - 4 * (packet[header + 12] >> 4)


def relay(server: int, client: int, rate_mbit: int, rtt_ms: int, queue_packets: int, lost: frozenset[int]) -> None:
    """Carry packets until the process is killed: a queue with drop tail, a rate and half of the RTT for each way."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    free_at, starts, data = {server: 0, client: 0}, {server: deque[int](), client: deque[int]()}, 0
    arriving: list[tuple[int, int, int, bytes]] = []
    limit, number = {server: queue_packets, client: 10_000}, 0
    while True:
        wait = max(0, arriving[0][0] - time.monotonic_ns()) / 1e9 if arriving else None
        readable, _, _ = select.select([server, client], [], [], wait)
        now = time.monotonic_ns()
        while arriving and arriving[0][0] <= now:
            _, _, other, packet = heapq.heappop(arriving)
            os.write(other, packet)
        for side in readable:
            packet, now = os.read(side, 65536), time.monotonic_ns()
            if packet[0] >> 4 != 4:
                continue
            waiting = starts[side]
            while waiting and waiting[0] <= now:
                waiting.popleft()
            if len(waiting) >= limit[side]:
                continue
            start = max(now, free_at[side])
            waiting.append(start)
            free_at[side] = start + 8000 * len(packet) // rate_mbit
            number += 1
            if side == server and payload(packet) > 0:
                data += 1
                if data in lost:
                    continue
            due = free_at[side] + rtt_ms * 500_000
            heapq.heappush(arriving, (due, number, client if side == server else server, packet))


@contextmanager
def testbed(condition: dict[str, object]) -> Iterator[Path]:
    """Two namespaces with the condition's path between them and nginx in one; a directory of files that it serves."""
    made = [f"plain-{os.getpid()}-{side}" for side in ("server", "client")]
    with tempfile.TemporaryDirectory() as at:
        Path(at).chmod(0o755)
        running: list[subprocess.Popen[bytes] | BaseProcess] = []
        ends: tuple[int, ...] = ()
        try:
            for name in made:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ends = tun("plain0", made[0], SERVER, CLIENT), tun("plain1", made[1], CLIENT, SERVER)
            options = "initcwnd", str(condition["iw"]), "congctl", str(condition["control"])
            ip("-n", made[0], "route", "replace", CLIENT, "dev", "plain0", *options)
            lost = frozenset(map(int, str(condition["lost"]).split()))
            path = (int(str(condition[key])) for key in ("rate_mbit", "rtt_ms", "queue_packets"))
            running.append(get_context("fork").Process(target=relay, args=(*ends, *path, lost)))
            running[-1].start()
            (Path(at) / "nginx.conf").write_text(_NGINX.format(at=at))
            (Path(at) / "file").write_bytes(bytes(int(str(condition["size"]))))
            words = ["ip", "netns", "exec", made[0], "nginx", "-p", at, "-c", f"{at}/nginx.conf"]
            running.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
            time.sleep(0.5)
            yield Path(at)
        finally:
            for process in running:
                process.kill()
                process.join() if isinstance(process, BaseProcess) else process.wait()
            for end in ends:
                os.close(end)
            for name in made:
                # The first error counts, if there was one.
                subprocess.run(["ip", "netns", "del", name], check=False)


def download() -> tuple[float, float, int, int]:
    """Milliseconds from the SYN to the SYN-ACK and to the last byte; bytes of the request and the response's header."""
    client = ["ip", "netns", "exec", f"plain-{os.getpid()}-client"]
    form = "%{time_namelookup} %{time_connect} %{time_total} %{size_request} %{size_header}"
    words = [*client, "curl", "-s", "--max-time", "60", "-o", "/dev/null", "-w", form, f"http://{SERVER}/file"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    lookup, connect, total, request, header = done.stdout.split()
    handshake, whole = (round(1e3 * (float(end) - float(lookup)), 3) for end in (connect, total))
    return handshake, whole, int(request), int(header)


def main() -> None:
    """Print the table."""
    if os.geteuid() != 0:
        sys.exit("plain_path.py: needs root for namespaces and TUN devices; run it with sudo")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    table = None
    for condition in conditions():
        handshakes, times = [], []
        for _ in range(REPEATS):
            # A new testbed per download: the relay counts what it loses from the first segment on.
            with testbed(condition):
                handshake, whole, request, header = download()
                handshakes.append(handshake)
                times.append(whole)
        measured = {
            "request": request,
            "header": header,
            "handshake_ms": median(handshakes),
            "times_ms": " ".join(map(str, times)),
            "kernel": platform.release(),
        }
        if table is None:
            table = csv.DictWriter(sys.stdout, [*condition, *measured], lineterminator="\n")
            table.writeheader()
        table.writerow(condition | measured)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
