"""What test_linkbox.py does in a network namespace of its own: `linkbox_child.py CASE` prints what it found as JSON."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import testbeds
from firstflight import _native

LINK = {"rate_bps": None, "delay_ns": 1_000_000, "queue": {"kind": "drop_tail", "limit_packets": 5000}}
BOX = (
    "import sys, json; from firstflight import _native; plan, fds, control = json.loads(sys.argv[1]); "
    "_native.run_box(plan, [tuple(fd) for fd in fds], control)"
)
# Of Linux; Python has no name for it.
SO_NO_CHECK = 11


class Control:
    """A control socket with the process at its other end."""

    def __init__(self, call: str, arguments: list[Any], fds: list[int]) -> None:
        self.socket, other = socket.socketpair()
        command = [sys.executable, "-c", call, json.dumps([*arguments, other.fileno()])]
        self.process = subprocess.Popen(command, pass_fds=[*fds, other.fileno()], stderr=subprocess.PIPE)
        other.close()
        for fd in fds:
            os.close(fd)
        self.stream = self.socket.makefile("rb")

    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stream.readline())
        payload = self.stream.read(found["payload_bytes"])
        at = 0
        for table, described in found["tables"].items():
            columns = {}
            for name, dtype, length in described:
                columns[name] = (dtype, payload[at : at + length])
                at += length
            found["tables"][table] = testbeds.columns(columns)
        return found

    def ask(self, do: str, **parameters: Any) -> dict[str, Any]:
        self.socket.sendall(json.dumps({"do": do, **parameters}).encode() + b"\n")
        return self.answer()


def up(device: str, *address: str) -> None:
    if address:
        subprocess.run(["ip", "addr", "add", *address, "dev", device], check=True)
    subprocess.run(["ip", "link", "set", "dev", device, "up"], check=True)


def box(delay_ns: int = 1_000_000, most_packets: int = 65536) -> Control:
    """A box between device a, behind which this namespace's kernel is, and device b, which is down."""
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    fds = [_native.open_device("tun", name) for name in ("a", "b")]
    up("a", "10.77.0.1", "peer", "10.77.0.0/24")
    link = LINK | {"delay_ns": delay_ns}
    plan = {
        "links": [{"name": "link", "forward": link, "reverse": link}],
        "ports": [{"name": "a", "address": "10.77.0.1"}, {"name": "b", "address": "10.77.0.2"}],
        "routes": [{"from": "a", "to": "b", "path": [["link", "forward"]]}],
        "duration_ns": 60_000_000_000,
        "meter_interval_ns": None,
        "seed": 1,
        "log": True,
        "most_packets": most_packets,
    }
    control = Control(BOX, [json.dumps(plan), [["tun", fd] for fd in fds]], fds)
    control.ask("take")
    return control


def send(to: str, packets: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        # A pair of interfaces would leave the checksum out.
        sender.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        for _ in range(packets):
            sender.sendto(bytes(100), (to, 9))


def forwarding() -> dict[str, Any]:
    running = box()
    send("10.77.0.2", 3)
    send("10.77.0.9", 2)
    time.sleep(0.3)
    return {"ports": running.ask("take")["ports"]}


def too_many() -> dict[str, Any]:
    running = box(delay_ns=60_000_000_000, most_packets=1000)
    # What a box that waits for the processor does not read in time is lost before it: there is more until it has ended.
    while not select.select([running.socket], [], [], 0.1)[0]:
        send("10.77.0.2", 400)
    return {"error": running.answer()["error"]}


def full_batch() -> dict[str, Any]:
    """A box between packet sockets that finds just as many packets waiting as it reads at once."""
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    for name in ("a", "b"):
        subprocess.run(["ip", "link", "add", "name", name, "type", "veth", "peer", "name", f"{name}-box"], check=True)
        up(f"{name}-box")
    up("a", "10.77.0.1/24")
    up("b")
    neighbour = ["ip", "neigh", "add", "10.77.0.2", "lladdr", "02:00:00:00:00:02", "dev", "a"]
    subprocess.run(neighbour, check=True)
    plan = {
        "links": [{"name": "link", "forward": LINK, "reverse": LINK}],
        "ports": [
            {"name": name, "address": address, "peer_mac": "02:00:00:00:00:02"}
            for name, address in (("a", "10.77.0.1"), ("b", "10.77.0.2"))
        ],
        "routes": [{"from": "a", "to": "b", "path": [["link", "forward"]]}],
        "duration_ns": 60_000_000_000,
        "meter_interval_ns": None,
        "seed": 1,
    }
    fds = [_native.open_device("packet", f"{name}-box") for name in ("a", "b")]
    running = Control(BOX, [json.dumps(plan), [["packet", fd] for fd in fds]], fds)
    running.ask("take")
    os.kill(running.process.pid, signal.SIGSTOP)
    send("10.77.0.2", 64)
    os.kill(running.process.pid, signal.SIGCONT)
    time.sleep(0.3)
    return {"ports": running.ask("take")["ports"]}


def ending(case: str) -> dict[str, Any]:
    running = box()
    if case == "stop":
        running.ask("stop")
    elif case == "closed while answering":
        # More rows than the socket holds, of which nobody reads any.
        for _ in range(100):
            send("10.77.0.2", 500)
            time.sleep(0.01)
        running.socket.sendall(b'{"do": "take"}\n')
        time.sleep(0.2)
    elif case == "terminated":
        running.process.terminate()
    running.stream.close()
    running.socket.close()
    running.process.wait(10)
    return {"ended": True, "devices": sorted(testbeds.devices())}


def capture() -> dict[str, Any]:
    up("lo")
    call = (
        "import sys, json; from firstflight import _native; _native.run_capture('lo', *json.loads(sys.argv[1]), 65535)"
    )
    running = Control(call, [], [])
    running.ask("reset")
    origin_ns = time.monotonic_ns()
    with socket.create_server(("127.0.0.1", 8080)) as listener:
        client = socket.create_connection(("127.0.0.1", 8080))
        server, _ = listener.accept()
        threading.Thread(target=server.sendall, args=(bytes(5000),)).start()
        received = 0
        while received < 5000:
            received += len(client.recv(65536))
        client.close()
        server.close()
    time.sleep(0.3)
    with tempfile.TemporaryDirectory() as directory:
        written = running.ask("pcapng", path=f"{directory}/lo.pcapng")
    answer = running.ask("take", origin_ns=origin_ns)
    return {
        "segments": answer["tables"]["segments"],
        "counts": answer["counts"],
        "packets_in_file": written["packets"],
    }


CASES = {"forwarding": forwarding, "too many": too_many, "full batch": full_batch, "capture": capture}

if __name__ == "__main__":
    case = sys.argv[1]
    print(json.dumps(CASES[case]() if case in CASES else ending(case)))
