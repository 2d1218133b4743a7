"""Input that would not fit is refused before any of it is allocated."""

import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import firstflight as package
from firstflight import MachineError
from firstflight.engines import memory
from firstflight.records import machine
from firstflight.scenario import Scenario
from firstflight.studies.execute import MOST_JOBS

Program = Callable[..., Any]
GIGABYTE = 10**9


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(
    ("setting", "status", "expected"),
    [
        ("network.left[0].count=1000000000", 2, "count: 1000000000 is too large; write at most 32767"),
        (
            "application.web.clients=10000000",
            3,
            "GB of memory for 10,000,000 clients in 2 threads, and 8.0 GB are free",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_allocated(
    firstflight: Program,
    small_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    status: int,
    expected: str,
) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 8 * GIGABYTE)
    before, began = peak_bytes(), time.monotonic()
    answer = firstflight("run", small_file, "--set", setting, "--jobs", 2, "--out", tmp_path / "out")
    assert (answer.status, answer.err.count("\n")) == (status, 1)
    assert expected in answer.err
    assert not (tmp_path / "out").exists()
    assert peak_bytes() - before < 100 << 20
    assert time.monotonic() - began < 10


def test_a_million_threads_are_refused_and_no_more_begin_than_have_work(
    firstflight: Program, small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = firstflight("run", small_file, "--jobs", 1_000_000, "--out", tmp_path / "out")
    assert answer.status == 2
    assert f"jobs is 1000000; write a number from 1 to {MOST_JOBS}, or leave it out: one a CPU" in answer.err

    from firstflight.engines import sweep

    asked = []
    in_threads = sweep._in_threads
    monkeypatch.setattr(sweep, "_in_threads", lambda jobs, tasks: (asked.append(jobs), in_threads(jobs, tasks)))
    answer = firstflight("run", small_file, "--jobs", MOST_JOBS, "--replicates", 3, "--out", tmp_path / "out")
    assert answer.status == 0, answer.err
    assert asked == [3]


def test_a_trace_that_does_not_fit_is_refused(
    firstflight: Program, small_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: GIGABYTE)
    answer = firstflight("trace", small_file, "--set", "application.web.clients=1000000")
    assert answer.status == 3
    assert 'scenario "small" needs about 3.9 GB of memory for 1,000,000 clients, and 1.0 GB are free' in answer.err


def test_a_population_whose_rows_do_not_fit_is_refused_and_its_aggregates_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 8 * GIGABYTE)
    scenario = package.load_scenario(Path(__file__).parents[2] / "examples" / "population.toml")
    many = scenario.replace("population.users", 100_000_000)
    with pytest.raises(MachineError, match=r"24\.0 GB of memory for 100,000,000 users, and 8\.0 GB are free"):
        memory.check_together([many])
    memory.check_together([many.replace("population.records", "aggregates")])


def test_one_thread_is_named_where_it_is_the_threads_that_do_not_fit(
    small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 5 * GIGABYTE)
    many = small.replace("application.web.clients", 1_000_000)
    memory.check_together([many])
    with pytest.raises(MachineError, match=r"7\.8 GB .* in 2 threads, and 5\.0 GB are free; .* or write --jobs 1"):
        memory.check_together([many, many])


OPEN = """
name = "open"
duration = "1s"
tcp = { profile = "linux" }

[network]
topology = "star"
hub = { rate = "10Gbit", delay = "1ms", queue = "100p" }
spokes = { count = 10, rate = "10Mbit", delay = "5ms", queue = "100p" }

[[application]]
name = "web"
kind = "file_transfer"
size = "10kB"
count = 1
clients = 40_000
"""
MEASURED = """
import re, sys
from pathlib import Path
from firstflight import Cell, Scenario
from firstflight.engines.memory import about_bytes
from firstflight.engines.simulate import run_cell
scenario = Scenario.from_toml(sys.stdin.read())
def peak(): return 1024 * int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1])
run_cell(Cell({"a": 1}, scenario.replace("application.web.clients", 10)), 1, 1)
before = peak()
run_cell(Cell({"a": 1}, scenario), 1, 1)
print(sum(about_bytes(scenario).values()), peak() - before)
"""


def test_the_estimate_is_about_what_a_simulation_takes() -> None:
    """In a separate process, whose largest size has seen nothing else."""
    command = [sys.executable, "-c", MEASURED]
    done = subprocess.run(command, input=OPEN, capture_output=True, text=True, check=True)
    estimated, taken = map(int, done.stdout.split())
    assert 0.5 * taken < estimated < 1.5 * taken


def test_free_memory_is_that_of_the_machine_or_its_control_group() -> None:
    free = machine.free_memory_bytes()
    assert free is not None
    assert 0 < free <= (machine.memory_bytes() or 0)


ARRIVING = """
name = "load"
duration = "600s"
tcp = { profile = "linux" }
network = { topology = "chain", links = { rate = "10Mbit", delay = "30ms", queue = "50ms" } }

[[application]]
name = "others"
kind = "arrivals"
size = "20kB"
load = 2.0
of = "links[0]"
"""


@pytest.mark.parametrize("command", ["run", "explain", "trace"])
@pytest.mark.parametrize("load", ["500000.0", "30", "10.1"])
def test_a_load_above_ten_times_the_rate_is_refused(
    firstflight: Program, tmp_path: Path, command: str, load: str
) -> None:
    file = tmp_path / "load.toml"
    file.write_text(ARRIVING.replace("2.0", load))
    answer = firstflight(command, file)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert f"application.others.load: {float(load)} is too large; write at most 10" in answer.err.replace(
        "30 ", "30.0 "
    )


@pytest.mark.parametrize(
    ("settings", "gigabytes"),
    [
        ({"load": 10.0, "duration": "6000s"}, "18.1 GB of memory for 3,650,000 files"),
        ({"idle_time": "30us"}, "109.8 GB of memory for 20,000,000 files"),
        ({"idle_time": "30us", "clients": 3}, "329.8 GB of memory for 60,000,000 files"),
        ({"load": 0.9, "duration": "400000min"}, "315.4 GB of memory for 1,314,000,000 files"),
    ],
)
def test_files_that_arrive_are_counted_before_any_is_simulated(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], gigabytes: str
) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 8 * GIGABYTE)
    document = tomllib.loads(ARRIVING)
    others = document["application"][0]
    if "idle_time" in settings:
        del others["load"], others["of"]
    document["duration"] = settings.pop("duration", "600s")
    others |= settings
    with pytest.raises(MachineError, match=f'scenario "load" needs about {gigabytes} of "others", and 8.0 GB are free'):
        memory.check_together([Scenario.from_dict(document)])


def test_a_number_of_files_that_ends_early_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: GIGABYTE)
    scenario = Scenario.from_toml(
        ARRIVING.replace("load = 2.0", 'count = 1000\nidle_time = "1us"').replace("of =", "#")
    )
    memory.check_together([scenario])


@pytest.mark.parametrize(("load", "capture"), [("2.0", False), ("0.5", False), ("0.5", True)])
def test_the_estimate_of_an_open_loop_is_about_what_it_takes(load: str, capture: bool) -> None:
    file = ARRIVING.replace("600s", "60s" if capture else "150s").replace("2.0", load).replace("20kB", "5kB")
    program = MEASURED.replace('"application.web.clients", 10', '"duration", "1s"').replace(
        'scenario.replace("application.web.clients", 40_000)', "scenario"
    )
    program = program.replace('Cell({"a": 1}, scenario)', f'Cell({{"a": 1}}, scenario, capture={capture})')
    program = program.replace("about_bytes(scenario)", f"about_bytes(scenario, {capture})")
    done = subprocess.run([sys.executable, "-c", program], input=file, capture_output=True, text=True, check=True)
    estimated, taken = map(int, done.stdout.split())
    assert 0.4 * taken < estimated < 1.6 * taken


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_free_memory_is_what_the_process_may_still_take(limit: str) -> None:
    program = (
        "import resource; from firstflight.records.machine import free_memory_bytes; "
        f"resource.setrlimit(resource.{limit}, (2 << 30, 2 << 30)); print(free_memory_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 2 << 30
