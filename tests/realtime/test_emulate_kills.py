"""Whatever of a testbed is killed, and whenever: soon nothing of it is left, and the runner is notified."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import emulations
import testbeds
from firstflight.engines.emulate.inside.clients import TimedClient
from firstflight.engines.emulate.lab import Backend
from firstflight.errors import MachineError
from testbeds import Lab

# An idle machine takes tenths of a second, and 13 ms more for each packet socket, which the kernel closes one by one; a
# testbed that nothing ended would stay.
WITHIN_S = 5.0

# A runner with handshakes in progress; it prints its testbed's mark once that is built.
RUNNER = """
import sys
sys.path.insert(0, {tests!r})
import testbeds
with testbeds.Lab(testbeds.one_link()) as lab:
    print(lab.mark, flush=True)
    while True:
        lab.call("round_trip", client="node[1]", server="node[0]")
"""


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


def runner(directory: Path) -> "subprocess.Popen[str]":
    """A process with its own testbed, whose temporary files, if it made any, would be in the directory."""
    program = RUNNER.format(tests=str(Path(testbeds.__file__).parent))
    environment = os.environ | {"TMPDIR": str(directory)}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=directory, env=environment
    )


def test_nothing_is_left_when_the_runner_is_killed(tmp_path: Path) -> None:
    with runner(tmp_path) as running:
        assert running.stdout is not None
        mark = running.stdout.readline().strip()
        devices = testbeds.devices_of(mark)
        # The first process's own, and one a host.
        with testbeds.namespaces_end(mark, at_least=3):
            running.kill()
            assert testbeds.seconds_until_gone(mark) < WITHIN_S
    assert not devices & testbeds.devices()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_runner_is_interrupted(tmp_path: Path) -> None:
    with runner(tmp_path) as running:
        assert running.stdout is not None
        mark = running.stdout.readline().strip()
        running.terminate()
        assert testbeds.seconds_until_gone(mark) < WITHIN_S


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.6])
def test_nothing_is_left_when_the_runner_is_killed_while_it_starts(tmp_path: Path, after_s: float) -> None:
    # Its testbed's mark is not known yet, so the environment carries one of the test's own.
    mark = f"{os.getpid()}-{after_s}"
    os.environ["FIRSTFLIGHT_TEST"] = mark
    try:
        running = runner(tmp_path)
    finally:
        del os.environ["FIRSTFLIGHT_TEST"]
    with running:
        time.sleep(after_s)
        running.kill()
        running.wait()
        assert testbeds.seconds_until_gone(mark, "FIRSTFLIGHT_TEST") < WITHIN_S


@pytest.mark.parametrize("role", ["box", "first process", "unshare"])
def test_the_runner_is_told_in_one_sentence_when_a_part_of_the_testbed_is_killed(role: str) -> None:
    with Lab(testbeds.one_link()) as lab, testbeds.namespaces_end(lab.mark, at_least=3):
        mark = lab.mark
        threading.Timer(0.2, os.kill, (testbeds.process(mark, role), signal.SIGKILL)).start()
        began = time.monotonic()
        with pytest.raises(MachineError) as caught:
            measure_for_ever(lab)
        assert time.monotonic() - began < 0.2 + WITHIN_S
        assert testbeds.seconds_until_gone(mark) < WITHIN_S
        sentence = str(caught.value)
        assert "\n" not in sentence
        assert ("the link emulator ended unasked: killed by SIGKILL" if role == "box" else "was killed") in sentence
        # It stays like that: no later call hangs.
        with pytest.raises(MachineError):
            lab.box()


def measure_for_ever(lab: Lab) -> None:
    while True:
        lab.call("round_trip", client="node[1]", server="node[0]", timeout_s=10)


@pytest.mark.parametrize("backend", ["tun", "packet"])
def test_nothing_is_left_of_forty_hosts_either(backend: Backend) -> None:
    if backend == "tun" and not testbeds.has_tun():
        pytest.skip("no TUN devices here; chmod 0666 /dev/net/tun")
    with Lab(testbeds.star(39), backend=backend) as lab, testbeds.namespaces_end(lab.mark, at_least=40):
        mark = lab.mark
        session = testbeds.process(mark, "unshare")
        os.kill(testbeds.process(mark, "first process"), signal.SIGKILL)
        began = time.monotonic()
        while testbeds.in_session(session):
            assert time.monotonic() - began < WITHIN_S
            time.sleep(0.01)


def test_a_testbed_that_ends_leaves_nothing() -> None:
    with Lab(testbeds.one_link()) as lab, testbeds.namespaces_end(lab.mark, at_least=3):
        mark = lab.mark
        devices = testbeds.devices_of(mark)
        lab.close()
        assert testbeds.processes_of(mark) == {}
    assert not devices & testbeds.devices()


def test_two_testbeds_at_once_do_not_meet() -> None:
    with Lab(testbeds.one_link()) as one, Lab(testbeds.one_link()) as other:
        mine, theirs = (testbeds.namespaces(testbeds.processes_of(lab.mark)) for lab in (one, other))
        assert not mine & theirs - testbeds.namespaces([os.getpid()])
        for lab in (one, other):
            lab.call("round_trip", client="node[1]", server="node[0]")
            assert lab.box()["ports"] is not None


LONG = """
name = "long"
duration = "60s"

[tcp]
profile = "linux"
receive_window_growth = "none"

[network]
topology = "chain"
links = { rate = "10Mbit", delay = "5ms", queue = "200p" }

[[application]]
kind = "file_transfer"
size = "50MB"
count = 1
"""


REQUESTS = LONG.replace(
    'kind = "file_transfer"\nsize = "50MB"\ncount = 1',
    'kind = "request_response"\nrequest = "200B"\nresponse = "50MB"\nthink_time = "0s"',
)


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        ("nginx", "nginx on host node[0] ended unasked: killed by SIGKILL"),
        ("curl", "curl on host node[1] ended unasked: killed by SIGKILL"),
        ("client", "the client on host node[1] ended unasked: killed by SIGKILL"),
        ("box", "the link emulator ended unasked: killed by SIGKILL"),
        ("capture", "the capture on host node[0] ended unasked: killed by SIGKILL"),
        ("first process", "the testbed was killed before it answered"),
    ],
)
def test_a_run_ends_with_one_sentence_when_a_program_of_it_is_killed(tmp_path: Path, role: str, sentence: str) -> None:
    emulations.skip_unless_possible()
    scenario = tmp_path / "long.toml"
    scenario.write_text(REQUESTS if role == "client" else LONG)
    mark = f"{os.getpid()}-{role}"
    command = [
        "-c",
        "from firstflight.cli import main; main()",
        "run",
        scenario,
        "--engine",
        "emulate",
        "--replicates",
        "1",
    ]
    run = subprocess.Popen(
        [sys.executable, *command, "--out", tmp_path / "run"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FIRSTFLIGHT_TEST": mark},
    )
    with run:
        # Under way once a client runs.
        wait_for(mark, "client" if role == "client" else "curl")
        session = wait_for(mark, "unshare")
        memory = {path.name for path in Path(f"/proc/{wait_for(mark, 'box')}/root/dev/shm").iterdir()}
        os.kill(wait_for(mark, role), signal.SIGKILL)
        began = time.monotonic()
        while testbeds.in_session(session):
            assert time.monotonic() - began < WITHIN_S
            time.sleep(0.01)
        _, said = run.communicate(timeout=30)
    assert run.returncode == 3
    assert said.count("\n") == 1
    assert sentence in said
    assert not list((tmp_path / "run").glob("cells/*/*"))
    assert memory
    assert not memory & {path.name for path in Path("/dev/shm").iterdir()}


def wait_for(mark: str, role: str) -> int:
    """The number of a process of the run, once there is one of that role."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return testbeds.process(mark, role, "FIRSTFLIGHT_TEST")
        except LookupError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_client_that_is_killed_before_it_is_asked_says_so() -> None:
    client = TimedClient.__new__(TimedClient)
    client._name, client._lock = "the client on host a", threading.Lock()
    with subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE) as client._program:
        client._program.kill()
        client._program.wait()
        with pytest.raises(MachineError, match=r"^the client on host a ended unasked: killed by SIGKILL$"):
            client.leave("kept")
        # What could not be written is flushed again at the end.
        with contextlib.suppress(BrokenPipeError):
            client._program.communicate()
