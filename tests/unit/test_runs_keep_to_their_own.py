"""A run touches nothing that is not its own, reads the directory that its path names, and notices changes in it."""

import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import firstflight
from firstflight import RequestError, Scenario
from firstflight.engines import assembly
from firstflight.records import STORED, Run, files, machine
from firstflight.records.chunks import Chunks
from firstflight.records.directory import write_document
from small_grid import SmallGrid

CELL = "0123456789abcdef0123"
ONLY = {"clients": [8], "iw": [1, 2]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return firstflight.run(SmallGrid(), only=ONLY, out=tmp_path_factory.mktemp("made") / "run")


@pytest.fixture
def copy(made: Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.directory, tmp_path / "copy"))


def again(directory: Path) -> Run:
    return firstflight.run(SmallGrid(), only=ONLY, out=directory)


@pytest.mark.parametrize(
    "place", ["chunks/mydata", f"chunks/{CELL}/mydata", "cells/mydata", "chunks/.unfinished-mydata"]
)
def test_what_is_not_the_runs_own_is_not_deleted(copy: Path, place: str) -> None:
    Chunks(copy / "chunks").write(CELL, range(2), {"pages": pl.DataFrame({"n": [1]})})
    (copy / place).mkdir()
    (copy / place / "f").write_text("x")
    again(copy)
    assert (copy / place / "f").read_text() == "x"
    assert not (copy / "chunks" / CELL / "0-2").exists()


def test_a_directory_with_chunks_of_somebody_else_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "chunks" / "mydata").mkdir(parents=True)
    with pytest.raises(RequestError, match="is not a run and not empty"):
        again(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["chunks", "mydata"]


@pytest.mark.parametrize("name", ["chunks", "cells", ".lock", "run.json", "quantities.npz"])
def test_a_symbolic_link_is_refused_and_what_it_leads_to_stays(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if name in ("chunks", "cells"):
        (elsewhere / CELL).mkdir(parents=True)
        kept = elsewhere / CELL / "f"
    else:
        kept = elsewhere
    kept.write_text("x")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(elsewhere)
    with pytest.raises(RequestError, match="is a symbolic link"):
        again(tmp_path / "run")
    assert kept.read_text() == "x"


def test_a_link_in_the_place_of_a_cells_chunks_or_of_an_unfinished_file_is_not_followed(
    copy: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "0-2").mkdir(parents=True)
    (copy / "chunks").mkdir()
    (copy / "chunks" / CELL).symlink_to(elsewhere)
    (tmp_path / "text").write_text("x")
    (copy / ".unfinished-run.json").symlink_to(tmp_path / "text")
    again(copy)
    assert (elsewhere / "0-2").exists()
    assert (tmp_path / "text").read_text() == "x"
    with pytest.raises(RequestError, match="is a symbolic link"):
        Chunks(copy / "chunks").write(CELL, range(2), {"pages": pl.DataFrame({"n": [1]})})


def test_a_refused_request_leaves_what_somebody_put_into_its_directory_meanwhile(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(cell: object, *_: object) -> None:
        (tmp_path / "run" / "notes").write_text("x")
        raise RequestError("no")

    monkeypatch.setattr("firstflight.engines.simulate.run_cell", refuse)
    with pytest.raises(RequestError, match="no"):
        firstflight.run(small, out=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes"]


@pytest.mark.parametrize("name", ["r?", "run [old]", "r*", "~/xx", "file:/x", "s3:/bucket/x", "{a,b}"])
def test_a_path_is_no_pattern_and_no_address(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    firstflight.run(small, replicates=2, out="r1")
    run = firstflight.run(small, replicates=2, out=name)
    assert run.pages.collect().equals(Run.open("r1").pages.collect())
    assert Run.open(name).provenance["finished"] == 1


def test_an_interrupted_cell_continues_in_a_directory_whose_name_has_brackets(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "KEEP_AFTER_S", 0.0)
    run = firstflight.run(small, replicates=6, jobs=1, out=tmp_path / "run [1]*")
    assert run.pages.collect().equals(firstflight.run(small, replicates=6).pages.collect())


def test_a_name_that_is_no_text_or_too_long_is_one_sentence(tmp_path: Path) -> None:
    for name in (os.fsdecode(b"\xff"), "x" * 300, "x/" * 3000):
        with pytest.raises(RequestError, match=r"is not UTF-8; choose another|File name too long; choose another name"):
            again(tmp_path / name)
        with pytest.raises(RequestError, match=r"is not UTF-8; choose another|cannot be read: File name too long"):
            Run.open(tmp_path / name)


def read_all(directory: Path) -> None:
    run = Run.open(directory)
    for table in STORED:
        run.table(table).collect()


@pytest.mark.slow
def test_each_flipped_bit_is_noticed_and_the_cell_is_named(made: Run, tmp_path: Path) -> None:
    whole = {table: getattr(made, table).collect() for table in ("transfers", "pages", "links")}
    choice = random.Random(1)
    paths = sorted(path for path in made.directory.rglob("*") if path.suffix in (".parquet", ".json"))
    for number in range(12):
        copy = Path(shutil.copytree(made.directory, tmp_path / str(number)))
        path = copy / choice.choice(paths).relative_to(made.directory)
        content = bytearray(path.read_bytes())
        at = choice.randrange(len(content))
        content[at] ^= 1 << choice.randrange(8)
        path.write_bytes(content)
        with pytest.raises(RequestError) as refusal:
            read_all(copy)
        if path.suffix == ".parquet":
            assert "so the cell clients 8, iw " in str(refusal.value)
            assert f"(rm -r {path.parent}) and run the same command again" in str(refusal.value)
            shutil.rmtree(path.parent)
        mended = again(copy)
        for table, frame in whole.items():
            assert getattr(mended, table).collect().equals(frame)


def test_a_damaged_chunk_is_computed_again(small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = firstflight.run(small, replicates=6).transfers.collect()
    monkeypatch.setattr(assembly, "KEEP_AFTER_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(assembly.Assembly, "_store_if_whole", lambda self: self._keep() if self._held else None)
        firstflight.run(small, replicates=6, jobs=1, out=tmp_path)
    path = next(tmp_path.rglob("transfers.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert firstflight.run(small, replicates=6, out=tmp_path).transfers.collect().equals(whole)


DAMAGES = (lambda text: text[: len(text) // 2], lambda text: "", lambda text: text.replace("clients", "client5"))


@pytest.mark.parametrize("damage", DAMAGES)
def test_finished_cells_outlive_their_document(
    copy: Path, damage: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    written = {path: path.stat().st_mtime_ns for path in copy.rglob("*.parquet")}
    document = copy / "run.json"
    document.write_text(damage(document.read_text()))
    with pytest.raises(
        RequestError, match=r"is damaged, but the directory holds the records of 2 cells: run the command"
    ):
        Run.open(copy)
    with pytest.raises(RequestError, match="this is another one: choose another --out"):
        firstflight.run(SmallGrid(), only=ONLY, seed=9, out=copy)
    assert len(again(copy).cells) == 2
    assert "lost its run.json; it is rewritten for 2 cells" in caplog.text
    assert len(Run.open(copy).cells) == 2
    assert written == {path: path.stat().st_mtime_ns for path in written}
    document.unlink()
    assert len(again(copy).cells) == 2


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("cells", None),
        ("cells", [{"key": {"iw": 1}, "hash": "/etc", "replicates": 1, "capture": False}]),
        ("cells", [{"key": {"iw": 1}, "hash": "../../x", "replicates": 1, "capture": False}]),
        ("cells", [{"key": {"iw": [1]}, "hash": CELL, "replicates": 1, "capture": False}]),
        ("sessions", 3),
        ("code", "x"),
        ("scenario", ["x"]),
        ("schema", None),
        ("schema", {}),
    ],
)
def test_a_document_of_another_shape_is_one_sentence(tmp_path: Path, made: Run, entry: str, value: object) -> None:
    document = json.loads((made.directory / "run.json").read_text())
    document[entry] = value
    write_document(tmp_path, document)
    for attempt in (Run.open, again):
        with pytest.raises(
            RequestError, match=r"is not a run: its run.json was not written|a run of another version"
        ) as no:
            attempt(tmp_path)
        assert "/etc" not in str(no.value)
    deep = '{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}"
    (tmp_path / "run.json").write_text(deep)
    with pytest.raises(RequestError, match="is not a run"):
        Run.open(tmp_path)


def test_unreadable_cells_are_one_sentence(made: Run) -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        copy = Path(shutil.copytree(made.directory, Path(directory) / "copy"))
        (copy / "cells").chmod(0)
        # Permissions do not restrict root.
        user = os.geteuid()
        os.seteuid(user or 65534)
        try:
            with pytest.raises(RequestError, match=r"cannot be read: Permission denied"):
                Run.open(copy)
        finally:
            os.seteuid(user)
            (copy / "cells").chmod(0o755)


def test_the_code_of_one_engine_is_not_in_the_identity_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = Path(shutil.copytree(machine.PACKAGE, tmp_path / "firstflight"))
    monkeypatch.setattr(machine, "PACKAGE", package)
    monkeypatch.setattr("firstflight.engines.__file__", str(package / "engines" / "__init__.py"))

    def versions() -> dict[str, str]:
        machine.code_version.cache_clear()
        return {engine: machine.code_version(engine) for engine in ("simulate", "model", "emulate")}

    def edit(name: str) -> set[str]:
        before = versions()
        (package / name).write_text((package / name).read_text() + "\n")
        after = versions()
        return {engine for engine in before if before[engine] != after[engine]}

    try:
        assert edit("engines/emulate/campaign.py") == {"emulate"}
        assert edit("engines/emulate/inside/servers.py") == {"emulate"}
        assert edit("engines/model/loss.py") == {"model"}
        assert edit("engines/simulate.py") == {"simulate"}
        for shared in ("engines/assembly.py", "engines/sweep.py", "scenario/tcp.py", "records/schema.py"):
            assert edit(shared) == {"simulate", "model", "emulate"}
        assert not edit("report/page.py")
    finally:
        machine.code_version.cache_clear()


def test_no_engine_uses_code_of_another() -> None:
    engines = {"simulate", "model", "emulate"}
    for name in engines:
        place = machine.PACKAGE / "engines" / name
        paths = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        assert paths
        for path in paths:
            imported = [line for line in path.read_text().splitlines() if " import " in line]
            for other in engines - {name}:
                assert not any(f"engines.{other}" in line or f"..{other} import" in line for line in imported), path


def test_checksums_are_those_of_sha256sum(made: Run) -> None:
    places = list((made.directory / "cells").iterdir())
    assert places
    for place in places:
        done = subprocess.run(["sha256sum", "-c", files.SUMS], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        listed = {line.split()[1] for line in (place / files.SUMS).read_text().splitlines()}
        assert listed == {path.name for path in place.iterdir()} - {files.SUMS}
