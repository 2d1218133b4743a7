"""The start of nginx, played by a thread of this process, and the watch over processes."""

import itertools
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.engines.emulate.inside import processes, servers

HEADER = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 1\r\n\r\n"


class SlowNginx:
    """Listens at its Unix socket 50 ms after its port, and returns the same header for every file."""

    pid = 0

    def __init__(self, place: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(place))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        time.sleep(0.05)
        self._socket.listen()
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                if connection.recv(1000):
                    connection.sendall(HEADER)

    def poll(self) -> int | None:
        return None

    def kill(self) -> None:
        self._socket.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[SlowNginx]]:
    made: list[SlowNginx] = []

    def spawn(*_: Any, **__: Any) -> SlowNginx:
        made.append(SlowNginx(tmp_path / "socket"))
        return made[-1]

    def watched(_name: str, process: SlowNginx) -> SimpleNamespace:
        return SimpleNamespace(stop=process.kill)

    monkeypatch.setattr(processes, "find", lambda *_: "nginx")
    monkeypatch.setattr(processes, "give", lambda _: None)
    monkeypatch.setattr(processes, "spawn", spawn)
    monkeypatch.setattr(servers, "Watched", watched)
    yield made
    for each in made:
        each.kill()


def test_the_length_of_its_header_is_asked_for_when_it_accepts_connections(
    started: list[SlowNginx], tmp_path: Path
) -> None:
    namespace = SimpleNamespace(name="server", call=lambda _: {servers.PORT})
    made = servers.Nginx(namespace, tmp_path, [len(HEADER) + 10], True)  # type: ignore[arg-type]
    assert made.path(7, 0) == "/0/7"
    # Once to measure its own header, once with the padded one: "X: xxxx" and the end of the line.
    assert len(started) == 2
    lines = (tmp_path / "nginx.conf").read_text(encoding="ascii").splitlines()
    pads = [line.strip() for line in lines if "add_header" in line]
    assert pads == [*itertools.repeat('add_header X "xxxxx";', 13)]


def test_a_process_that_ends_unasked_is_reported_where_there_is_no_testbed(capfd: pytest.CaptureFixture[str]) -> None:
    processes.Watched("the helper", subprocess.Popen(["false"]))
    until = time.monotonic() + 10
    said = ""
    while not said and time.monotonic() < until:
        time.sleep(0.01)
        said = capfd.readouterr().err
    assert said == "the helper ended unasked: exit status 1\n"
