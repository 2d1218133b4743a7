"""A command's output replaces its own earlier output and nothing else."""

import ast
import json
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import firstflight as package
from firstflight import MachineError, RequestError, Scenario
from firstflight.input_files import scan
from firstflight.records import directory, files, output
from firstflight.records.machine import PACKAGE
from firstflight.report import figures_to_files, write
from firstflight.studies import of
from small import Answer

Program = Callable[..., Answer]
ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "examples" / "transfer-20-segments.toml"
LOG = ROOT / "examples" / "flows" / "nginx.log"
OPTIONS = {".csv": "--csv", ".svg": "--plot", ".png": "--plot", ".pcap": "--pcap", ".pcapng": "--pcap"}


@pytest.mark.parametrize("suffix", OPTIONS)
def test_trace_replaces_its_own_file_and_no_other(firstflight: Program, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    assert firstflight("trace", TRANSFER, OPTIONS[suffix], path).status == 0
    first = path.read_bytes()
    again = firstflight("trace", TRANSFER, "--set", "tcp.initial_window=10", OPTIONS[suffix], path)
    assert (again.status, again.err) == (0, "")
    assert path.read_bytes() != first
    path.write_text("mine\n")
    answer = firstflight("trace", TRANSFER, OPTIONS[suffix], path)
    assert answer.status == 2
    assert (
        answer.err
        == f'firstflight: "{path}" exists and was not written by this command; delete it, or choose another name\n'
    )
    assert path.read_text() == "mine\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_observe_replaces_its_own_file_and_no_other(firstflight: Program, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    for _ in range(2):
        assert firstflight("observe", LOG, "--out", path).status == 0
    assert firstflight("observe", path).status == 0
    path.write_text("mine\n")
    assert firstflight("observe", LOG, "--out", path).status == 2
    assert path.read_text() == "mine\n"


@pytest.mark.parametrize("link", [False, True])
def test_a_command_does_not_write_over_what_it_reads(firstflight: Program, tmp_path: Path, link: bool) -> None:
    path = tmp_path / "flows.csv"
    assert firstflight("observe", LOG, "--out", path).status == 0
    before, target = path.read_bytes(), path
    if link:
        target = tmp_path / "same.csv"
        target.hardlink_to(path)
    answer = firstflight("observe", path, "--out", target)
    assert answer.status == 2
    assert "is the file that is read; write to another" in answer.err
    assert path.read_bytes() == before
    scenario = tmp_path / "x.svg"
    scenario.write_bytes(TRANSFER.read_bytes())
    answer = firstflight("trace", scenario, "--plot", scenario)
    assert "is the file that is read" in answer.err
    assert scenario.read_bytes() == TRANSFER.read_bytes()


def test_a_directory_that_is_not_there_is_made(firstflight: Program, tmp_path: Path) -> None:
    for number, command in enumerate(
        [
            ("trace", TRANSFER, "--csv", "t.csv"),
            ("trace", TRANSFER, "--plot", "t.svg"),
            ("trace", TRANSFER, "--pcap", "t.pcapng"),
            ("explain", "--out", "t.html"),
            ("observe", LOG, "--out", "t.csv"),
        ]
    ):
        path = tmp_path / "runs" / str(number) / command[-1]
        answer = firstflight(*command[:-1], path)
        assert (answer.status, answer.err) == (0, "")
        assert path.stat().st_size > 0


def test_two_outputs_are_not_one_file(firstflight: Program, tmp_path: Path) -> None:
    answer = firstflight("trace", TRANSFER, "--plot", tmp_path / "x.svg", "--csv", tmp_path / "x.svg")
    assert answer.status == 2
    assert "name the same file" in answer.err


def test_links_devices_and_directories_are_not_replaced(firstflight: Program, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "mine")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "directory.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("link.csv", "dangling.csv", "directory.csv", "pipe.csv"):
        answer = firstflight("trace", TRANSFER, "--csv", tmp_path / name)
        assert answer.status == 2
        assert "is a directory, link or device; name a file" in answer.err
    assert (tmp_path / "mine").read_text() == "x"


@pytest.mark.slow
def test_a_report_replaces_an_earlier_one_and_nothing_else(small: Scenario, tmp_path: Path) -> None:
    run = package.run(small, replicates=2, vary={"tcp.initial_window": [3, 10]}, out=tmp_path / "run")
    study = of(run)
    for _ in range(2):
        write(run, study)
        figures_to_files(run, study, tmp_path / "figures")
    (tmp_path / "run" / "report.html").write_text("<p>mine")
    with pytest.raises(RequestError, match="exists and was not written by this command"):
        write(run, study)
    next((tmp_path / "figures").iterdir()).write_text("mine")
    with pytest.raises(RequestError, match="exists and was not written by this command"):
        figures_to_files(run, study, tmp_path / "figures")


def test_a_file_is_durable_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file))[1])
    monkeypatch.setattr(Path, "replace", lambda path, to: (calls.append("replace"), replace(path, to))[1])
    output.write(tmp_path / "x.svg", b"<svg/>")
    assert calls == ["fsync", "replace", "fsync"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.svg"
    target.write_text(output.MARK)

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(MachineError, match=r"no space left for .*: nothing was written; make room$"):
        output.write(target, b"<svg/>")
    assert target.read_text() == output.MARK
    assert [path.name for path in tmp_path.iterdir()] == ["x.svg"]


@pytest.mark.parametrize("fault", ["write", "rename"])
def test_a_fault_before_or_at_the_rename_keeps_the_old_run_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    directory.write_document(tmp_path, {"format": "old"})
    old = (tmp_path / "run.json").read_bytes()
    beside: list[dict[str, str]] = []

    def refuse(path: Path | int, target: Path | None = None) -> None:
        # At this moment a reader sees the old one whole, and the new one is whole if it is to take its place.
        assert (tmp_path / "run.json").read_bytes() == old
        if target is not None and isinstance(path, Path):
            assert target == tmp_path / "run.json"
            beside.append(json.loads(path.read_bytes()))
        raise OSError(5, "Input/output error")

    module, name = (os, "fsync") if fault == "write" else (Path, "replace")
    monkeypatch.setattr(module, name, refuse)
    with pytest.raises(OSError, match="Input/output"):
        directory.write_document(tmp_path, {"format": "new"})
    assert [found["format"] for found in beside] == (["new"] if fault == "rename" else [])
    assert (tmp_path / "run.json").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_fault_at_the_rename_of_a_cell_leaves_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, target: Path) -> None:
        assert not target.exists()
        assert files.is_directory_as_written(path)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="Input/output"):
        files.write_directory(tmp_path / "cell", [("a", b"1"), ("b", b"22")])
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_a_cell_and_their_directory_are_durable_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int | str] = []
    fsync, rename = os.fsync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(os.fstat(file).st_ino), fsync(file))[1])
    monkeypatch.setattr(Path, "rename", lambda path, to: (calls.append("rename"), rename(path, to))[1])
    place = tmp_path / "cell"
    files.write_directory(place, [("a", b"1"), ("b", b"22")])
    # The files in any order, as they are synced at once.
    assert set(calls[:3]) == {path.stat().st_ino for path in place.iterdir()}
    assert calls[3:] == [place.stat().st_ino, "rename", tmp_path.stat().st_ino]


def test_a_cell_is_written_where_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    files._sync_threads.cache_clear()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    files.write_directory(tmp_path / "cell", [("a", b"1"), ("b", b"22")])
    assert files.is_directory_as_written(tmp_path / "cell")
    assert {path.stat().st_ino for path in (tmp_path / "cell").iterdir()} < set(synced)


def test_a_forked_process_writes_a_cell_though_it_has_none_of_the_threads(tmp_path: Path) -> None:
    files.write_directory(tmp_path / "here", [("a", b"1")])
    there = tmp_path / "there"
    fork, contents = multiprocessing.get_context("fork"), [("a", b"1")]
    process = fork.Process(target=files.write_directory, args=(there, contents), daemon=True)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert files.is_directory_as_written(there)


def test_no_reader_of_tables_is_given_a_path_that_it_may_take_for_a_pattern() -> None:
    readers = {"read_csv", "read_parquet", "scan_csv", "scan_parquet", "read_ipc", "scan_ipc"}
    found = 0
    for path in PACKAGE.rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in readers:
                is_bytes = ast.unparse(call.args[0]).endswith((".read_bytes()", ".encode()"))
                assert is_bytes or "glob=False" in ast.unparse(call), f"{path}:{call.lineno}"
                found += 1
    assert found > 2


def test_a_table_is_read_from_the_file_of_that_name(firstflight: Program, tmp_path: Path) -> None:
    for name, rows in (("p1.parquet", 2), ("p[1].parquet", 1)):
        table = pl.DataFrame({"rtt_ms": [50.0] * rows, "down_mbps": [8.0] * rows, "bytes": [20_000] * rows})
        with (tmp_path / name).open("wb") as file:
            table.write_parquet(file)
    assert "1 connection" in firstflight("observe", tmp_path / "p[1].parquet").out
    assert scan(tmp_path / "p[1].parquet").collect().height == 1


@pytest.mark.slow
def test_damage_in_a_table_of_paths_or_flows_is_one_sentence(firstflight: Program, tmp_path: Path) -> None:
    path = tmp_path / "flows.parquet"
    values = [float(value) for value in range(1000)]
    pl.DataFrame({"rtt_ms": values, "down_mbps": values, "bytes": values}).write_parquet(path)
    content = path.read_bytes()
    for at in range(5, len(content) - 8, len(content) // 60):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        answer = firstflight("observe", path)
        assert answer.status in (0, 2)
        assert answer.err.count("\n") == (answer.status == 2)


def test_a_path_that_no_command_can_look_at_is_one_sentence(firstflight: Program, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    for command in (
        ("run", TRANSFER, "--out", long),
        ("run", f"{long}.toml"),
        ("observe", long),
        ("observe", LOG, "--out", f"{long}.csv"),
        ("trace", TRANSFER, "--csv", long),
        ("trace", TRANSFER, "--pcap", long),
        ("table", long, "transfers"),
        ("advise", LOG, "--out", long),
        ("script", long),
        ("run", TRANSFER, "--out", tmp_path / os.fsdecode(b"\xff")),
        ("observe", os.fsdecode(b"\xff")),
    ):
        answer = firstflight(*command)
        assert answer.status in (2, 3), command
        assert "File name too long" in answer.err or "is not UTF-8" in answer.err or "no file" in answer.err, answer.err
        assert answer.err.count("\n") == 1, answer.err
