"""How fast text files of flows are read, and how much memory that takes, for a file and one of ten times its length.

    .venv/bin/python tests/python/observe_memory.py [MEGABYTES]

Makes the files (20 and 200 MB if not given), reads each in a process of its own and prints a line each. Snapshots are
of 2,000 sockets, one in fifty of them another one each time; the log has ten responses a connection, 5,000 connections
at once.
"""

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

READ = """
import os, resource, sys, time
from firstflight import observe
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
seen = observe.read(sys.argv[1])
cpu_s = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = os.path.getsize(sys.argv[1]) / 1e6
print(f"{seen.source.kind:6} {size:5.0f} MB {size / cpu_s:4.0f} MB/CPU s {peak / 1024:4.0f} MiB at most, "
      f"{before / 1024:.0f} before; {seen.users.height:,} connections, {seen.transfers.height:,} responses")
"""


def log(at: random.Random) -> Iterator[str]:
    """Lines of nginx."""
    now, number = 1_795_287_326.0, 0
    connections: list[list[float]] = []
    while True:
        now += 0.0005
        if len(connections) < 5000:
            number += 1
            connections.append([number, 0, now, at.randrange(1 << 24), at.randrange(8000, 120_000)])
        place = at.randrange(len(connections))
        connection = connections[place]
        connection[1] += 1
        which, request, began, address, rtt_us = connection
        size = int(at.lognormvariate(10, 1.5))
        waited = rtt_us * 1e-6 * at.choice([11, 15]) if size > 200_000 else 0.0
        seen_us = int(rtt_us * at.uniform(1, 2))
        host = f"10.{int(address) >> 16}.{int(address) >> 8 & 255}.{int(address) & 255}"
        yield (
            f"msec={now:.3f} remote_addr={host} connection={which} connection_requests={request} "
            f"connection_time={now - began:.3f} request_time={waited:.3f} request_completion=OK status=200 "
            f"server_protocol=HTTP/1.1 request_length=83 bytes_sent={size + 242} body_bytes_sent={size} "
            f"tcpinfo_rtt={seen_us} tcpinfo_rttvar={seen_us // 2} tcpinfo_snd_cwnd={at.randrange(10, 40)} "
            "tcpinfo_rcv_space=14480\n"
        )
        if request == 10:
            connections[place] = connections[-1]
            connections.pop()


def snapshots(at: random.Random) -> Iterator[str]:
    """Lines of ss, and of date between them."""
    second = 0
    sockets: list[tuple[str, int, float]] = [("", 0, 0.0)] * 2000
    while True:
        second += 1
        yield f"{1_795_287_326 + second}.3\n"
        for place, (ends, sent, least_ms) in enumerate(sockets):
            if not ends or at.random() < 0.02:
                ends = f"198.18.{at.randrange(256)}.{at.randrange(256)}:{at.randrange(20_000, 60_000)}"
                sent, least_ms = 0, at.uniform(8, 120)
            sent += at.randrange(30)
            sockets[place] = ends, sent, least_ms
            rtt_ms, window = least_ms * at.uniform(1, 1.8), at.randrange(10, 60)
            yield (
                f"ESTAB 0      0      10.77.0.1:8080 {ends}\n\t cubic wscale:7,7 rto:484 rtt:{rtt_ms:.3f}/32.069 "
                f"ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:{window} bytes_sent:{1448 * sent} "
                f"bytes_acked:{1448 * sent} bytes_received:83 segs_out:{sent + 2} segs_in:13 data_segs_out:{sent} "
                "data_segs_in:1 send 1291286bps lastsnd:84 lastrcv:248 lastack:36 pacing_rate 2582560bps "
                f"delivery_rate {int(window * 1448 * 8000 / rtt_ms)}bps delivered:{sent} busy:{second}44ms "
                f"rcv_space:14480 rcv_ssthresh:64088 minrtt:{least_ms:.3f} snd_wnd:80512\n"
            )


def tests(at: random.Random) -> Iterator[str]:
    """Rows of M-Lab."""
    yield "id,a.MeanThroughputMbps,a.MinRTT,a.LossRate,raw.ClientIP\n"
    while True:
        address = f"203.{at.randrange(256)}.{at.randrange(256)}.{at.randrange(256)}"
        yield f"ndt-{at.getrandbits(160):040x},{at.uniform(1, 900):.4f},{at.uniform(3, 200):.3f},0.01,{address}\n"


def table(at: random.Random) -> Iterator[str]:
    """Rows of a plain table, about ten a connection."""
    yield "connection,rtt_ms,bytes,completion_time_ms\n"
    row = 0
    while True:
        row += 1
        connection = f"c{row // 10 + at.randrange(100)}"
        yield f"{connection},{at.uniform(8, 120):.3f},{at.randrange(1000, 900_000)},{at.uniform(200, 900):.1f}\n"


def write(path: Path, made: Callable[[random.Random], Iterator[str]], size: float) -> None:
    """The same lines each time, up to `size` bytes."""
    with path.open("w") as file:
        for line in made(random.Random(1)):
            size -= file.write(line)
            if size <= 0:
                return


def main() -> None:
    """Make, read and print."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory() as directory:
        for made in (log, snapshots, tests, table):
            for times in (1, 10):
                path = Path(directory) / "flows"
                write(path, made, megabytes * times * 1e6)
                subprocess.run([sys.executable, "-c", READ, str(path)], check=True)


if __name__ == "__main__":
    main()
