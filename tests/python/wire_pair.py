"""Our TCP and the kernel's, face to face: a pair of devices in a namespace of its own, without a link between.

`Pair` is for tests. The file is also the program that it runs inside, as the first process of the namespaces, with
nginx, curl and our TCP as its children: it reads a task a line from stdin and answers each on stdout. With
`.venv/bin/python tests/python/wire_pair.py throughput` it measures what one core carries.

    {"do": "serve", "size", "profile", ...}   curl fetches /SIZE (or `path`) from our server
    {"do": "fetch", "size", "profile", ...}   we fetch a file of that size from nginx

Both take `disturb` (the native plan's), `times` (downloads over one connection) and `capture` (a path for a capture
file). Both answer with {"sha256": [...], "facts": of our end, "seconds": [...]}.
"""

import hashlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from firstflight.engines.emulate.start import UNSHARE

OURS, KERNELS = "10.77.0.2", "10.77.0.1"
KERNEL_DEVICE = "k0"
_FILES = Path("/dev/shm")
_PATIENCE_S = 60.0
_PIECE = 1 << 20
_CURL = ["curl", "--disable", "--silent", "--show-error", "--http1.1", "--noproxy", "*", "--max-time", "50"]
_NGINX = """
daemon off; user root root; worker_processes 1; pid {files}/nginx.pid; error_log {files}/error.log;
events {{}}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_timeout 60;
    client_body_temp_path {files}/body; proxy_temp_path {files}/proxy; fastcgi_temp_path {files}/fastcgi;
    uwsgi_temp_path {files}/uwsgi; scgi_temp_path {files}/scgi;
    server {{ listen 80; root {files}; }}
}}
"""


@cache
def missing() -> str | None:
    """What is not there that a pair needs, or None."""
    for program, package in (("unshare", "util-linux"), ("curl", "curl"), ("nginx", "nginx-light")):
        if shutil.which(program, path=_path()) is None:
            return f"{program} is not here: apt-get install {package}"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def pattern(size: int) -> Iterator[bytes]:
    """The bytes of `/SIZE` on our server, piece by piece: lines of 16 characters that tell their offsets."""
    for start in range(0, size, _PIECE):
        end = min(start + _PIECE, size)
        yield b"".join(b"%015x\n" % offset for offset in range(start, end, 16))[: end - start]


@cache
def sha256(size: int) -> str:
    """Of `pattern`."""
    digest = hashlib.sha256()
    for piece in pattern(size):
        digest.update(piece)
    return digest.hexdigest()


class Pair:
    """The program inside, to be used in a `with` statement."""

    def __enter__(self) -> Self:
        environment = os.environ | {"PATH": _path(), "LC_ALL": "C"}
        command = [*UNSHARE, sys.executable, __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, do: str, **parameters: Any) -> dict[str, Any]:
        """What a task answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **parameters}) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE_S)
        assert ready, f"the program inside has not answered within {_PATIENCE_S:g} s"
        line = self._process.stdout.readline()
        assert line, "the program inside ended; what it said is above"
        answer: dict[str, Any] = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer


def _inside() -> None:
    from pyroute2.iproute.linux import IPRoute

    from firstflight.engines.emulate.inside import devices, settings
    from firstflight.engines.emulate.inside.wire import WireHost

    subprocess.run(["mount", "-t", "tmpfs", "none", _FILES], check=True)
    settings.set_sysctls("the pair", settings.everywhere())
    with IPRoute() as netlink:
        netlink.link("add", ifname=KERNEL_DEVICE, kind="veth", peer={"ifname": devices.DEVICE})
        for device in (KERNEL_DEVICE, devices.DEVICE):
            devices.offloads_off("pair", device)
            index = devices.bring_up(netlink, device, without_arp=True)
            if device == KERNEL_DEVICE:
                mac = netlink.get_links(index)[0].get("address")
                netlink.addr("add", index=index, address=KERNELS, prefixlen=24)
        netlink.link("set", index=netlink.link_lookup(ifname="lo")[0], state="up")
    (_FILES / "nginx.conf").write_text(_NGINX.format(files=_FILES))
    nginx = subprocess.Popen(["nginx", "-e", _FILES / "error.log", "-c", _FILES / "nginx.conf"])

    while socket.socket().connect_ex((KERNELS, 80)) != 0:
        assert nginx.poll() is None, "nginx does not start"
        time.sleep(0.01)

    def die(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)
        os._exit(1)

    for line in sys.stdin:
        task = json.loads(line)
        plan = {"address": OURS, "neighbour": mac, "seed": 1}
        plan |= {"disturb": task.get("disturb"), "packets": task.get("capture")}
        ours = WireHost(plan, subprocess.Popen, die)
        try:
            answer = (_serve if task["do"] == "serve" else _fetch)(ours, task)
            answer["cpu_s"] = _cpu_seconds(ours.pid)
            answer["counters"] = ours.ask("take")
        except Exception as error:
            answer = {"failed": repr(error)}
        ours.stop()
        print(json.dumps(answer), flush=True)
    nginx.kill()


def _serve(ours: Any, task: dict[str, Any]) -> dict[str, Any]:
    ours.ask("listen", port=80, profile=task["profile"], header_bytes=task.get("header_bytes"))
    times = task.get("times", 1)
    bodies = [_FILES / f"got{number}" for number in range(times)]
    url = f"http://{OURS}{task.get('path', '/' + str(task['size']))}"
    outputs = [part for body in bodies for part in ("--output", str(body), url)]
    wanted = "%{time_total} %{size_header} %{num_connects}\\n"
    ended = subprocess.run([*_CURL, "--write-out", wanted, *outputs], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    rows = [line.split() for line in ended.stdout.splitlines()]
    answer = {
        "sha256": [hashlib.sha256(body.read_bytes()).hexdigest() for body in bodies],
        "seconds": [float(row[0]) for row in rows],
        "header_bytes": [int(row[1]) for row in rows],
        "connects": [int(row[2]) for row in rows],
    }
    for body in bodies:
        body.unlink()
    return answer | {"facts": ours.reports.get(timeout=10)}


def _fetch(ours: Any, task: dict[str, Any]) -> dict[str, Any]:
    size, times = task["size"], task.get("times", 1)
    file = _FILES / str(size)
    if not file.exists():
        with file.open("wb") as writing:
            writing.writelines(pattern(size))
    what = {"fetch": 0, "server": f"{KERNELS}:80", "paths": [f"/{size}"] * times, "sha256": True}
    what |= {"close": task.get("close", False), "most_ns": 50_000_000_000}
    ours.ask("fetch", profile=task["profile"], what=what)
    responses = [ours.reports.get(timeout=60) for _ in range(times)]
    facts = ours.reports.get(timeout=10)
    return {
        "sha256": [response["sha256"] for response in responses],
        "errors": [response["error"] for response in responses],
        "seconds": [((response["completed_at_ns"] or 0) - response["started_at_ns"]) / 1e9 for response in responses],
        "facts": facts,
    }


def _cpu_seconds(pid: int) -> float:
    """User and system time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _throughput() -> None:
    """Print what our TCP carries: against the clock, with the kernel's end on the same machine, and against its own
    processor time.
    """
    from firstflight import _native

    size = 300_000_000
    with Pair() as pair:
        for do, what in (("serve", "sent to curl"), ("fetch", "received from nginx")):
            runs = [pair.ask(do, size=size, profile=json.loads(_native.profiles())["linux"]) for _ in range(3)]
            best = min(runs, key=lambda run: float(run["seconds"][0]))
            packets = best["counters"]["sent"] + best["counters"]["traffic"]["received"]
            for name, seconds in (("of the clock", best["seconds"][0]), ("of one core", best["cpu_s"])):
                rate = f"{8 * size / seconds / 1e9:.2f} Gbit/s, {packets / seconds:,.0f} packets/s"
                print(f"{size:,} B {what}: {seconds:.2f} s {name}, {rate}")


if __name__ == "__main__":
    if sys.argv[1:] == ["throughput"]:
        _throughput()
    else:
        _inside()
