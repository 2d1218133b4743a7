"""`firstflight shell`: programs of the user's inside a scenario's network."""

import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import testbeds
from firstflight.engines.emulate import namespaces
from opened import as_ordinary_user

EXAMPLES = Path(__file__).parents[2] / "examples"
DOWNLOAD = EXAMPLES / "download.toml"
FIRSTFLIGHT = str(Path(sys.executable).with_name("firstflight"))
SIZE = 100_000


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


def shell(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The command with these words, ended within a minute."""
    command = [FIRSTFLIGHT, "shell", DOWNLOAD, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def packets(path: Path) -> list[int]:
    """The interface of each packet of a pcapng file: blocks of type 6, which begin with type, length, interface."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        kind, length, interface = struct.unpack_from("=III", content, at)
        found += [interface] if kind == 6 else []
        at += length
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "file").write_bytes(bytes(SIZE))
    return directory


def test_a_program_meets_the_scenarios_network_and_nothing_else() -> None:
    script = "getent hosts server; getent hosts node1; ip -o link show up | wc -l; ip route; id -u; exit 3"
    done = shell("--set", "tcp.initial_window=7", "--", "sh", "-c", script)
    assert done.returncode == 3
    printed = done.stdout.splitlines()
    assert printed[0].split() == ["10.77.0.1", "node0", "server"]
    assert printed[1].split() == ["10.77.0.2", "node1", "client"]
    # The loopback interface and the way into the network.
    assert printed[2] == "2"
    assert [line for line in printed if "10.77.0.0/16" in line and "initcwnd 7" in line]
    assert printed[-1] == str(os.geteuid())


def test_a_served_file_comes_with_the_asked_window(site: Path, tmp_path: Path) -> None:
    pcap, links, plot = tmp_path / "packets.pcapng", tmp_path / "links.pcapng", tmp_path / "plot.svg"
    curl = ("curl", "-sk", "-w", "%{http_version} %{size_download}\\n", "-o", os.devnull, "http://server/file")
    # A second run replaces the output of the first.
    for window in (3, 7):
        written = ("--pcap", pcap, "--links", links, "--plot", plot)
        done = shell("--serve", site, *written, "--set", f"tcp.initial_window={window}", "--", *curl)
        assert (done.returncode, done.stdout) == (0, f"1.1 {SIZE}\n"), done.stderr
        assert re.search(rf"first flight +{window} segments", done.stderr)
        assert "links[0].reverse" in done.stderr
        # Nothing is lost, so both ends of the cable see the same packets as the server's device.
        assert len(packets(links)) == 2 * len(packets(pcap)) > 2 * SIZE // 1448
        assert set(packets(links)) == {0, 1}
    assert plot.read_text().startswith("<svg")


def test_over_tls_it_is_http_2_and_the_capture_shows_the_handshake_as_such(site: Path, tmp_path: Path) -> None:
    curl = ("curl", "-sk", "-w", "%{http_version} %{size_download}\\n", "-o", os.devnull, "https://server/file")
    done = shell("--serve", site, "--pcap", tmp_path / "packets.pcapng", "--", *curl)
    assert (done.returncode, done.stdout) == (0, f"2 {SIZE}\n"), done.stderr
    assert "1 connection with TLS" in done.stderr
    assert re.search(r"responses +1\n", done.stderr)


def test_a_program_on_another_host_beside() -> None:
    listen = "node0=exec python3 -m http.server 8000 --directory /usr/share/doc"
    ask = "until curl -s -o /dev/null -w '%{http_code}' http://node0:8000/; do sleep 0.1; done"
    done = shell("--beside", listen, "--host", "node1", "--", "sh", "-c", ask)
    assert done.stdout.endswith("200")


def test_the_users_shell_has_the_terminal() -> None:
    """Job control works, and the status is the shell's."""
    ours, its = pty.openpty()
    command = [FIRSTFLIGHT, "shell", DOWNLOAD]
    environment = os.environ | {"SHELL": "/bin/bash", "TERM": "dumb"}
    with subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True
    ) as running:
        os.close(its)
        os.write(ours, b"sleep 100 &\njobs\nkill %1\nexit 5\n")
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:
            # A terminal's read result when its other end is closed.
            pass
        os.close(ours)
        assert running.wait(30) == 5
    assert b"Running" in said


SLEEPS = "echo ready; exec sleep 1000"
COUNTS = "trap 'echo counted; exit 7' INT; echo ready; while :; do sleep 0.1; done"
DEAF = "trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done"


@pytest.mark.parametrize(
    ("script", "sent", "status"),
    [
        # Ctrl-C and Ctrl-\\ at the terminal. The program decides what they do, and gets them once.
        (SLEEPS, b"\x03", 130),
        (SLEEPS, b"\x1c", 131),
        (COUNTS, b"\x03", 7),
        (SLEEPS, signal.SIGINT, 130),
        (COUNTS, signal.SIGINT, 130),
        (SLEEPS, signal.SIGTERM, 143),
        (SLEEPS, signal.SIGHUP, 129),
        (DEAF, signal.SIGINT, 130),
        (DEAF, signal.SIGTERM, 143),
    ],
)
def test_a_signal_ends_the_program_and_is_its_status(script: str, sent: bytes | signal.Signals, status: int) -> None:
    ours, its = pty.openpty()
    said = b""
    # What nohup and a shell's "&" ignore would be ignored by the program, too.
    command = ["env", "--default-signal=HUP,INT,QUIT", "setsid", "--ctty", FIRSTFLIGHT, "shell", str(DOWNLOAD), "--"]
    with subprocess.Popen([*command, "sh", "-c", script], stdin=its, stdout=its, stderr=its) as running:
        os.close(its)
        try:
            while b"ready" not in said:
                said += os.read(ours, 4096)
            if isinstance(sent, bytes):
                os.write(ours, sent)
            else:
                running.send_signal(sent)
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:
            # A terminal's read result when its other end is closed.
            pass
        os.close(ours)
        assert running.wait(30) == status, said
    assert said.count(b"counted") == (script == COUNTS)


def test_what_comes_too_late_for_a_testbed_says_so_in_a_sentence() -> None:
    words = ("enter", str(2**22 + 1), "3", "iperf3", "-s")
    done = subprocess.run([sys.executable, namespaces.__file__, *words], capture_output=True, text=True, check=False)
    assert done.stderr == "firstflight: the testbed ended before iperf3 began\n"


def test_what_runs_beside_writes_nothing_into_the_programs_output() -> None:
    done = shell("--beside", "server=echo beside; exec sleep 1000", "--", "sh", "-c", "sleep 0.5; echo ours")
    assert done.stdout == "ours\n"
    assert "beside" in done.stderr


def test_a_user_without_privilege_pings_a_host_by_its_name(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this test becomes an ordinary user, which only root can")
    if shutil.which("ping") is None:
        pytest.skip("there is no ping on this machine; apt-get install iputils-ping")
    ping = ("ping", "-c", "2", "-i", "0.2", "-q", "server")
    done = as_ordinary_user(tmp_path, [FIRSTFLIGHT, "shell", str(DOWNLOAD), "--", *ping])
    assert "2 packets transmitted, 2 received" in done.stdout, done.stdout + done.stderr
    # 20 ms each way.
    assert float(done.stdout.split("/")[3].split()[-1]) >= 40


def test_hosts_have_the_links_and_arms_that_are_drawn_for_the_seed() -> None:
    routes: dict[str, set[str]] = {}
    for seed in ("1", "1", "2"):
        script = "cat /etc/hosts; ip route"
        command = [FIRSTFLIGHT, "shell", str(EXAMPLES / "adoption.toml"), "--host", "server", "--seed", seed]
        done = subprocess.run(
            [*command, "--", "sh", "-c", script], capture_output=True, text=True, timeout=120, check=True
        )
        own = set(re.findall(r"(10\.77\.0\.\d+) .*initcwnd 10", done.stdout))
        assert routes.setdefault(seed, own) == own
        assert 0 < len(own) < 20
    assert routes["1"] != routes["2"]


def test_nothing_is_left_when_it_is_killed() -> None:
    beside = "server=exec sleep 1000"
    command = [FIRSTFLIGHT, "shell", DOWNLOAD, "--beside", beside, "--"]
    script = f'echo "${testbeds.MARK}"; exec sleep 1000'
    with subprocess.Popen([*command, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        mark = running.stdout.readline().strip()

        def sleeping() -> int:
            return len([words for words in testbeds.processes_of(mark).values() if words[0] == "sleep"])

        # The program says its mark before it sleeps, and the one beside it may be later still.
        until = time.monotonic() + 10
        while sleeping() < 2 and time.monotonic() < until:
            time.sleep(0.01)
        found = sleeping()
        devices = testbeds.devices_of(mark)
        running.send_signal(signal.SIGKILL)
        time.sleep(0.1)
        assert found == 2
        assert testbeds.seconds_until_gone(mark) < 2
    assert not devices & testbeds.devices()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", "node7"), 'there is no host "node7"; there are server, client, node0, node1'),
        (("--serve", "nowhere"), "--serve nowhere: there is no such directory"),
        (("--beside", "server"), '--beside "server" is not HOST=COMMAND'),
        (("--plot", "plot.gif"), '"plot.gif": a picture is written as .svg, .png or .pdf'),
        (("--pcap", "a.pcap"), "--pcap a.pcap: packets are written as .pcapng"),
        (("--links", "a.pcap"), "--links a.pcap: packets are written as .pcapng"),
        (("--set", "tcp.stack=firstflight"), "programs use the kernel's TCP"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(words: tuple[str, ...], sentence: str) -> None:
    done = shell(*words, "--", "echo", "ran")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "ran" not in done.stdout
