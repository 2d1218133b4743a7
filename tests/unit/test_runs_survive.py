"""Nothing finished is lost, nothing half-written is read, and the records do not depend on how they came about."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import firstflight
from clusters import until
from firstflight import MachineError, RequestError
from firstflight.records import Run, files
from firstflight.records.files import TEMPORARY
from firstflight.records.schema import SCHEMA_VERSION
from firstflight.scenario import Scenario
from firstflight.temporary import temporary_directory
from small_grid import WINDOWS, SmallGrid

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
# Each run that continues costs seconds; places and moments are drawn, and six hit several of each.
KILLS = 6


def contents(run: Run) -> dict[str, bytes]:
    """Every record file of a run, and every analysed table, byte by byte."""
    cells = run.directory / "cells"
    found = {str(path.relative_to(cells)): path.read_bytes() for path in sorted(cells.rglob("*")) if path.is_file()}
    return found | {table.name: table.csv().encode() for table in SmallGrid().tables(run)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return firstflight.run(SmallGrid(), jobs=1, out=tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def expected(whole: Run) -> dict[str, bytes]:
    return contents(whole)


def test_two_threads_write_the_same_bytes_as_one(expected: dict[str, bytes], tmp_path: Path) -> None:
    assert contents(firstflight.run(SmallGrid(), jobs=2, out=tmp_path / "run")) == expected


def killed_after(directory: Path, seconds: float) -> int:
    """Work on the run in `directory`, be killed so long after the work begins, and return how many cells are done."""
    command = [sys.executable, FIXTURES / "small_grid.py", directory, "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    return len(Run.open(directory).cells)


def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(
    whole: Run, expected: dict[str, bytes], tmp_path: Path
) -> None:
    cells, moments = len(whole.cells), random.Random(2415)
    # Steps short enough that the work outlasts the kills; should it not, another run takes up the remaining ones.
    latest_s = whole.provenance["sessions"][0]["wall_s"] / KILLS
    directories, kills = [tmp_path / "0"], 0
    finished = 0
    while kills < KILLS:
        before, finished = finished, killed_after(directories[-1], moments.uniform(0, latest_s))
        assert finished >= before, "a finished cell was lost"
        kills += finished < cells
        if finished == cells:
            directories.append(tmp_path / str(len(directories)))
            finished = 0
    for directory in directories:
        assert contents(firstflight.run(SmallGrid(), jobs=2, out=directory)) == expected
        assert not list(directory.rglob(f"{TEMPORARY}*"))


def test_what_has_finished_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    firstflight.run(SmallGrid(), only={"clients": [8]}, out=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    run = firstflight.run(SmallGrid(), only={"clients": [8, 16]}, out=tmp_path)
    assert len(run.cells) == 2 * WINDOWS
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_cells_that_join_later_keep_the_order_of_the_grid(whole: Run, tmp_path: Path) -> None:
    for clients in (24, 8, 16):
        run = firstflight.run(SmallGrid(), only={"clients": [clients]}, out=tmp_path)
    assert run.cells == whole.cells
    assert run.transfers.collect().equals(whole.transfers.collect())


def test_no_temporary_directory_is_left_where_no_process_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BlockingIOError), temporary_directory():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_no_records_of_a_run_without_a_directory(tmp_path: Path) -> None:
    program = (
        "import os, signal, firstflight\n"
        "print(firstflight.run(firstflight.load_scenario('examples/download.toml'), replicates=1).directory)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert tmp_path in Path(done.stdout).parents, done.stderr
    until(lambda: not list(tmp_path.iterdir()), "its records are gone")


def test_leftovers_of_a_killed_run_are_removed_at_the_next_start(tmp_path: Path) -> None:
    firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1]}, out=tmp_path)
    (tmp_path / "cells" / f"{TEMPORARY}{'0a' * 10}").mkdir()
    (tmp_path / f"{TEMPORARY}run.json").write_text("{")
    firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1]}, out=tmp_path)
    assert not list(tmp_path.rglob(f"{TEMPORARY}*"))


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    lock = files.Lock(tmp_path)
    with pytest.raises(RequestError, match=r"another process \(pid \d+\) is writing in"):
        firstflight.run(SmallGrid(), out=tmp_path)
    lock.release()
    firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1]}, out=tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seed": 2}, "its seed is 1, not 2"),
        ({"replicates": 3}, "it has 2 replicates a cell, not 3"),
    ],
)
def test_a_directory_holds_one_run_only(tmp_path: Path, change: dict[str, int], expected: str) -> None:
    only = {"clients": [8], "iw": [1]}
    firstflight.run(SmallGrid(), only=only, out=tmp_path)
    with pytest.raises(RequestError, match=f"holds another run: {expected}; choose another --out"):
        firstflight.run(SmallGrid(), only=only, out=tmp_path, **change)  # type: ignore[arg-type]


def test_another_scenario_is_told_by_the_keys_that_differ(tmp_path: Path) -> None:
    before = firstflight.load_scenario(FIXTURES.parents[1] / "examples" / "download.toml")
    firstflight.run(before, replicates=1, out=tmp_path)
    other = before.replace("network.links[0].rate", "5Mbit").replace("tcp.initial_window", 3)
    with pytest.raises(RequestError) as refused:
        firstflight.run(other, replicates=1, out=tmp_path)
    changes = "its network.links[0].rate was 10Mbit, now 5Mbit and its tcp.initial_window was not there, now 3"
    assert f"holds another run: {changes}; choose another --out" in str(refused.value)


def test_changed_code_starts_a_new_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"clients": [8], "iw": [1]}
    firstflight.run(SmallGrid(), only=only, out=tmp_path)
    monkeypatch.setattr("firstflight.records.machine.code_version", lambda engine: "another")
    with pytest.raises(RequestError, match="made by another version of the code"):
        firstflight.run(SmallGrid(), only=only, out=tmp_path)


def test_a_changed_grid_is_not_mixed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"clients": [8], "iw": [1]}
    firstflight.run(SmallGrid(), only=only, out=tmp_path)
    changed = SmallGrid()
    cells = [type(cell)(cell.key, cell.scenario.replace("duration", "99s")) for cell in changed.cells("simulate")]
    monkeypatch.setattr(SmallGrid, "cells", lambda self, engine: cells)
    with pytest.raises(RequestError, match="its study was another"):
        firstflight.run(changed, only=only, out=tmp_path)


def test_cells_with_other_replicates_are_not_called_another_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = {"clients": [8], "iw": [1]}
    cells = [type(cell)(cell.key, cell.scenario, 1) for cell in SmallGrid().cells("simulate")]
    with monkeypatch.context() as patch:
        patch.setattr(SmallGrid, "cells", lambda self, engine: cells)
        firstflight.run(SmallGrid(), only=only, out=tmp_path)
    with pytest.raises(RequestError, match="some of its cells have another number of replicates"):
        firstflight.run(SmallGrid(), only=only, out=tmp_path)


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(RequestError, match="is not a run and not empty; choose another --out"):
        firstflight.run(SmallGrid(), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RequestError, match="is a file"):
        firstflight.run(SmallGrid(), out=tmp_path / "thesis.tex")


def test_a_run_in_which_nothing_finished_gives_way(tmp_path: Path, small: Scenario) -> None:
    refused = small.replace("application.web.clients", 5)
    with pytest.raises(RequestError, match="is of kind web_page"):
        firstflight.run(refused, engine="model", out=tmp_path)
    assert firstflight.run(small, replicates=1, out=tmp_path).cells == [{"scenario": "small"}]


def test_what_is_no_run_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no directory"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(RequestError, match=r"is not a run: it has no run\.json"):
        Run.open(tmp_path)
    (tmp_path / "run.json").write_text("[1, 2]")
    with pytest.raises(RequestError, match="was not written by firstflight"):
        Run.open(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "firstflight run"}')
    with pytest.raises(RequestError, match="was not written by firstflight"):
        Run.open(tmp_path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-9])]


@pytest.mark.parametrize("damage", [*DAMAGES, *([pipe] if hasattr(os, "mkfifo") else [])])
def test_a_damaged_cell_is_named_with_the_fix(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    only = {"clients": [8], "iw": [1]}
    run = firstflight.run(SmallGrid(), only=only, out=tmp_path)
    pages = run.pages.collect()
    path = next(tmp_path.rglob("pages.parquet"))
    damage(path)
    for attempt in (lambda: Run.open(tmp_path), lambda: firstflight.run(SmallGrid(), only=only, out=tmp_path)):
        with pytest.raises(
            RequestError,
            match=r"missing or damaged, so the cell clients 8, iw 1 cannot be read; delete",
        ):
            attempt()
    shutil.rmtree(path.parent)
    assert firstflight.run(SmallGrid(), only=only, out=tmp_path).pages.collect().equals(pages)


def test_a_run_of_another_record_schema_cannot_be_opened(tmp_path: Path) -> None:
    firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1]}, out=tmp_path)
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace(f'"schema": {SCHEMA_VERSION},', '"schema": 999,'))
    with pytest.raises(RequestError, match="a run of another version: its records have schema 999"):
        Run.open(tmp_path)
    with pytest.raises(RequestError, match="a run of another version: its records have schema 999"):
        firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1]}, out=tmp_path)
    # Its entries may be others than ours.
    path.write_text('{"format": "firstflight run", "schema": 999}')
    with pytest.raises(RequestError, match="a run of another version: its records have schema 999"):
        Run.open(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path: Path, whole: Run, expected: dict[str, bytes]) -> None:
    # A limit on the size of files stands in for a disk without space: the system refuses the larger cells' writes.
    sizes = [max(path.stat().st_size for path in cell.iterdir()) for cell in (whole.directory / "cells").iterdir()]
    limit = sorted(sizes)[len(sizes) // 4]
    child = subprocess.run(
        [sys.executable, FIXTURES / "small_grid.py", tmp_path, "2"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    last = child.stderr.strip().splitlines()[-1]
    assert last.startswith("firstflight.errors.MachineError: there is no space left for")
    assert "make room and run the same command again" in last
    kept = Run.open(tmp_path).cells
    assert 0 < len(kept) < len(whole.cells)
    assert contents(firstflight.run(SmallGrid(), out=tmp_path)) == expected


def test_a_directory_without_permission_is_a_machine_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(MachineError, match=r"cannot be written: Permission denied; choose another --out"):
        firstflight.run(SmallGrid(), out=tmp_path / "x")


def test_a_disk_that_is_full_from_the_start_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("os.write", "os.fsync", "firstflight.records.files.sums"):
        with monkeypatch.context() as patch:
            patch.setattr(call, refuse)
            with pytest.raises(MachineError, match="there is no space left for"):
                firstflight.run(SmallGrid(), out=tmp_path / call)
    assert not list(tmp_path.iterdir())


def test_python_without_docstrings_draws_a_trace(tmp_path: Path, small_file: Path) -> None:
    plot = tmp_path / "trace.svg"
    program = [sys.executable, "-OO", "-c", "from firstflight.cli import main; main()"]
    subprocess.run([*program, "trace", small_file, "--plot", plot], capture_output=True, check=True)
    assert plot.read_text().startswith("<svg")
