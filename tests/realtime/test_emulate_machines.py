"""The program `firstflight run --engine emulate` on machines that lack something: privileges, TUN devices, a congestion
control, a setting, room on the disk. It runs all the same, or says in one sentence why not and with which status.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import emulations
from firstflight.records import Run
from opened import REPOSITORY, as_ordinary_user, on_a_small_disk, without

PROGRAM = str(Path(sys.executable).with_name("firstflight"))
EXAMPLE = str(REPOSITORY / "examples/download.toml")
ASKED = ["--engine", "emulate", "--replicates", "1"]
TUN = "/dev/net"
# More than the kernel takes, for a setting that every run makes.
WRONG = """
from firstflight.engines.emulate import kernel
kernel._PINNED["net.ipv4.tcp_early_retrans"] = "9"
kernel._switches = lambda *_: {}
from firstflight.cli import main
main()
"""


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    emulations.skip_unless_possible()


@pytest.fixture
def anyones() -> Iterator[Path]:
    """A directory that every user may write to, where every user finds it."""
    directory = Path(tempfile.mkdtemp(prefix="firstflight-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("user", ["ordinary", "root"])
def test_the_example_runs_on_packet_sockets(user: str, tmp_path: Path, anyones: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can take TUN devices away")
    command = [PROGRAM, "run", EXAMPLE, *ASKED, "--out", str(anyones / "run")]
    hidden = [TUN] if Path(TUN).is_dir() else []
    done = as_ordinary_user(tmp_path, command, hidden) if user == "ordinary" else without(tmp_path, command, hidden)
    assert done.returncode == 0, done.stderr
    assert (anyones / "run").stat().st_uid == (65534 if user == "ordinary" else 0)
    run = Run.open(anyones / "run")
    transfers = run.transfers.collect()
    assert transfers["completed"].to_list() == [1]
    assert transfers["delivered_bytes"].to_list() == [100_240]
    assert transfers["first_flight_segments"].to_list() == [10]
    assert [environment["backend"] for environment in run.provenance["environments"]] == ["packet"]


def test_a_disk_that_fills_is_one_sentence_and_status_3(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can have a small disk")
    done = on_a_small_disk(tmp_path, 16_384, [PROGRAM, "run", EXAMPLE, *ASKED, "--out", str(tmp_path / "run")])
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "there is no space left for" in done.stderr
    assert "make room and run the same command again" in done.stderr


def test_a_congestion_control_that_the_kernel_lacks_is_one_sentence_and_status_3(tmp_path: Path) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    lacking = next((name for name in ("vegas", "westwood") if name not in available), None)
    if lacking is None:
        pytest.skip(f"this kernel has them all: {available}")
    text = Path(EXAMPLE).read_text()
    (tmp_path / "other.toml").write_text(text.replace('"linux"', f'"linux"\ncongestion_control = "{lacking}"'))
    done = run([PROGRAM, "run", str(tmp_path / "other.toml"), *ASKED, "--out", str(tmp_path / "run")])
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert f"this kernel has no congestion control '{lacking}'; it has " in done.stderr
    assert not list((tmp_path / "run").glob("cells/*/*"))


def test_a_setting_that_the_kernel_refuses_is_one_sentence_and_status_3(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", WRONG, "run", EXAMPLE, *ASKED, "--out", str(tmp_path / "run")])
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "the kernel refuses net.ipv4.tcp_early_retrans = 9 (Invalid argument); it is 3" in done.stderr
    assert not list((tmp_path / "run").glob("cells/*/*"))


def test_a_congestion_control_that_nobody_has_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    text = Path(EXAMPLE).read_text()
    (tmp_path / "other.toml").write_text(text.replace('"linux"', '"linux"\ncongestion_control = "none such"'))
    done = run([PROGRAM, "run", str(tmp_path / "other.toml"), *ASKED, "--out", str(tmp_path / "run")])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "congestion_control" in done.stderr


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
