"""The namespace in which the guard's cost is measured: a job as JSON on stdin, `guard.Measured` on stdout.

nginx and the guard are in this namespace, clients in another; each request uses a new connection.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError

_SERVER = "10.79.0.1"
_RESPONSE_BYTES = 2000
_NGINX = """\
daemon off; master_process off; pid {d}/pid; error_log {d}/error; user root;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_timeout 0;
    client_body_temp_path {d}/1; proxy_temp_path {d}/2; fastcgi_temp_path {d}/3; uwsgi_temp_path {d}/4;
    scgi_temp_path {d}/5;
    server {{ listen 80 backlog=4096; root {d}; }}
}}
"""
_STATUS_WITHIN_S = 3.0


def main() -> None:
    """Read the job, measure with the guard and without, print both."""
    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        directory = Path(made)
        # nginx changes its user in a namespace that has one user alone.
        directory.chmod(0o755)
        clients = stack.enter_context(_namespace())
        _connect(clients)
        server = stack.enter_context(_nginx(directory))
        alone = _drive(job["seconds"], job["clients"], clients, server)
        guard = stack.enter_context(_guard(directory / "state"))
        watched = _watched(job, clients, server, guard, directory / "state")
    json.dump(watched | {"alone": alone}, sys.stdout)


def _watched(job: dict[str, Any], clients: int, server: int, guard: int, state: Path) -> dict[str, Any]:
    _drive(job["warm_up_s"], job["clients"], clients, server)
    time.sleep(_STATUS_WITHIN_S)
    before, started, cpu_s = _counts(state), time.monotonic(), _cpu_s(guard)
    time.sleep(_STATUS_WITHIN_S)
    idle = (_cpu_s(guard) - cpu_s) / (time.monotonic() - started)
    cpu_s = _cpu_s(guard)
    driven = _drive(job["seconds"], job["clients"], clients, server)
    cpu_s = _cpu_s(guard) - cpu_s
    time.sleep(_STATUS_WITHIN_S)
    after = _counts(state)
    changes = after.pop("route_changes") - before.pop("route_changes")
    return {
        "driven": driven,
        "guard_cpu_s": cpu_s,
        "idle_share": idle,
        "counts": {name: after[name] - before[name] for name in after},
        "resident_bytes": _peak_bytes(guard),
        "routes": len(_routes()),
        "route_changes": changes,
    }


def _drive(seconds: float, processes: int, namespace: int, server: int) -> dict[str, float]:
    """Connections made one after the other by this number of clients, and the CPU time of clients and server."""
    program = Path(__file__).with_name("guard_client.py")
    command = ["nsenter", f"--net=/proc/{namespace}/ns/net", sys.executable, "-S", str(program), _SERVER, str(seconds)]
    started, cpu_s = time.monotonic(), _cpu_s(server)
    children = [subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE) for number in range(processes)]
    found = [json.loads(child.communicate(timeout=seconds + 30)[0]) for child in children]
    return {
        "connections": sum(client["connections"] for client in found),
        "seconds": time.monotonic() - started,
        "cpu_s": _cpu_s(server) - cpu_s + sum(client["cpu_s"] for client in found),
    }


@contextmanager
def _namespace() -> Iterator[int]:
    holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    own = Path("/proc/self/ns/net").readlink()
    try:
        _until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own, "a namespace for clients")
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def _connect(clients: int) -> None:
    inside = ["nsenter", f"--net=/proc/{clients}/ns/net", "ip"]
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "add", "name", "s", "type", "veth", "peer", "name", "c", "netns", str(clients)],
        ["ip", "addr", "add", f"{_SERVER}/24", "dev", "s"],
        ["ip", "link", "set", "s", "up"],
        ["ip", "route", "add", "10.64.0.0/15", "via", "10.79.0.2"],
        [*inside, "addr", "add", "10.79.0.2/24", "dev", "c"],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "link", "set", "c", "up"],
        # All of these addresses are the client's own.
        [*inside, "route", "add", "local", "10.64.0.0/15", "dev", "lo"],
    ):
        subprocess.run(command, check=True)


@contextmanager
def _nginx(directory: Path) -> Iterator[int]:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise MachineError("there is no nginx; apt-get install nginx-light")
    (directory / "file").write_bytes(bytes(_RESPONSE_BYTES))
    (directory / "config").write_text(_NGINX.format(d=directory), encoding="ascii")
    with _process([program, "-c", str(directory / "config"), "-e", str(directory / "error")]) as pid:
        _until((directory / "pid").exists, "nginx")
        yield pid


@contextmanager
def _guard(state: Path) -> Iterator[int]:
    command = [
        sys.executable,
        "-c",
        "from firstflight.cli import main; main()",
        "guard",
        "run",
        "--state",
        str(state),
        "--ports",
        "80",
    ]
    with _process([*command, "--iw", "20", "--least", "100"]) as pid:
        _until((state / "status.json").exists, "the guard")
        yield pid


@contextmanager
def _process(command: list[str]) -> Iterator[int]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _until(condition: Callable[[], object], what: str, within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise MachineError(f"{what} did not come within {within_s:g} s")
        time.sleep(0.05)


def _counts(state: Path) -> dict[str, int]:
    """The counts once those of two statuses in turn are equal: the kernel may be late with its reports."""
    status: dict[str, Any] = {"connections": None, "written_at": 0.0}

    def settled() -> bool:
        found = json.loads((state / "status.json").read_text(encoding="utf-8"))
        same = found["connections"] == status["connections"] and found["written_at"] > status["written_at"]
        status.update(found if found["written_at"] > status["written_at"] + 1.5 else {})
        return bool(same)

    _until(settled, "the guard's status", within_s=60)
    return {**status["connections"], **{name: status[name] for name in ("uncertain", "route_changes")}}


def _cpu_s(pid: int) -> float:
    """CPU time of all threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _routes() -> list[bytes]:
    show = ["ip", "route", "show", "proto", "71"]
    return subprocess.run(show, capture_output=True, check=True).stdout.splitlines()


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return 1024 * int(status.partition("\nVmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
