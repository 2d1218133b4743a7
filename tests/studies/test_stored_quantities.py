"""A run keeps the quantities of its study: claims, tables and figures are the same with them, and read no records."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from firstflight.errors import RequestError
from firstflight.records import Run, files, machine
from firstflight.records.directory import DOCUMENT, QUANTITIES
from firstflight.studies import find
from firstflight.studies.kernel import DeclaredStudy, declared, stored
from firstflight.studies.kernel.quantity import measured
from small import Answer

NAME = "rfc6928-rounds"


@pytest.fixture
def study() -> DeclaredStudy:
    study = find(NAME)
    assert isinstance(study, DeclaredStudy)
    return study


@pytest.fixture
def directory(firstflight: Callable[..., Answer], tmp_path: Path) -> Path:
    assert firstflight("run", NAME, "--engine", "model", "--out", tmp_path / "run").status == 0
    return tmp_path / "run"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs whose records were read from now on."""
    runs: list[Run] = []

    def measure(run: Run, *others: Any) -> Any:
        runs.append(run)
        return measured(run, *others)

    monkeypatch.setattr(declared, "measured", measure)
    return runs


def array_file(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def archive(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def test_kept_quantities_are_those_of_the_records(directory: Path, study: DeclaredStudy, read: list[Run]) -> None:
    kept = study.quantities(Run.open(directory)).arrays()
    assert (read, [of.name for of in kept]) == ([], ["round_trips"])
    (directory / QUANTITIES).unlink()
    again = study.quantities(Run.open(directory)).arrays()
    assert len(read) == 1
    assert kept.keys() == again.keys()
    assert [of.name for of, array in again.items() if not kept[of].identical(array)] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_without_a_writer_is_not_waited_for(directory: Path, study: DeclaredStudy, read: list[Run]) -> None:
    for name in (QUANTITIES, DOCUMENT):
        (directory / name).rename(directory / f"{name}.1")
        os.mkfifo(directory / name)
        if name == QUANTITIES:
            assert (len(study.quantities(Run.open(directory)).arrays()), len(read)) == (1, 1)
    with pytest.raises(RequestError, match="is damaged, but the directory holds the records of"):
        Run.open(directory)


def test_claims_and_tables_need_no_records(
    directory: Path, firstflight: Callable[..., Answer], read: list[Run], study: DeclaredStudy
) -> None:
    commands = [
        ("claims", directory, "--json"),
        *(("table", directory, of) for of in study.table_names(Run.open(directory))),
    ]
    without_records = [firstflight(*command).out for command in commands]
    assert read == []
    (directory / QUANTITIES).unlink()
    assert [firstflight(*command).out for command in commands] == without_records
    assert len(read) == len(commands)


def test_a_complete_run_that_lost_its_quantities_keeps_them_again(
    directory: Path, firstflight: Callable[..., Answer]
) -> None:
    content = (directory / QUANTITIES).read_bytes()
    entry = content.index(b"PK\x01\x02")
    damages = (
        b"",
        content[:-20],
        content[:200] + bytes(20) + content[220:],
        # Its directory names a compression that nobody has, and another quantity.
        content[: entry + 10] + b"\xff" + content[entry + 11 :],
        content.replace(b"q.round_trips", b"q.round_tripz"),
        array_file(np.arange(3)),
        archive(about=np.array(3)),
        archive(about=np.array("[]")),
    )
    for damage in damages:
        (directory / QUANTITIES).write_bytes(damage)
        assert firstflight("run", NAME, "--engine", "model", "--out", directory).status == 0
        assert (directory / QUANTITIES).read_bytes() == content


def test_quantities_of_fewer_cells_or_other_code_are_not_taken(
    firstflight: Callable[..., Answer],
    tmp_path: Path,
    study: DeclaredStudy,
    read: list[Run],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "run"
    assert firstflight("run", NAME, "--engine", "model", "--only", "iw=3", "--out", out).status == 0
    few = (out / QUANTITIES).read_bytes()
    assert firstflight("run", NAME, "--engine", "model", "--out", out).status == 0
    all_cells = (out / QUANTITIES).read_bytes()
    assert few != all_cells
    read.clear()
    (out / QUANTITIES).write_bytes(few)
    study.quantities(Run.open(out))
    assert len(read) == 1
    (out / QUANTITIES).write_bytes(all_cells)
    monkeypatch.setattr(machine, "sources", lambda: "of another version")
    study.quantities(Run.open(out))
    assert len(read) == 2


def test_quantities_of_a_cell_that_was_measured_again_are_not_taken(
    directory: Path, study: DeclaredStudy, read: list[Run]
) -> None:
    """Its hash is the same; on the kernel, its records are not."""
    before = study.quantities(Run.open(directory)).round_trips
    assert read == []
    for place in (directory / "cells").iterdir():
        table = place / "transfers.parquet"
        pl.read_parquet(table).with_columns(pl.col("completion_time_ns") * 2).write_parquet(table)
        written = [(path.name, path.read_bytes()) for path in place.iterdir() if path.name != files.SUMS]
        (place / files.SUMS).write_bytes(files.sums(written))
    assert not study.quantities(Run.open(directory)).round_trips.equals(before)
    assert len(read) == 1


def test_code_that_was_edited_while_it_ran_keeps_nothing(
    firstflight: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured is of the code before, and the next process would take it for that of the code now."""
    monkeypatch.setattr(machine, "sources", lambda: "edited")
    assert firstflight("run", NAME, "--engine", "model", "--out", tmp_path / "run").status == 0
    assert not (tmp_path / "run" / QUANTITIES).exists()


def test_every_source_and_declaration_of_the_package_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(shutil.copytree(machine.PACKAGE, tmp_path / "firstflight", ignore=shutil.ignore_patterns("*.so")))
    monkeypatch.setattr(machine, "PACKAGE", package)
    seen = {machine.sources()}
    for name in ("studies/rfc2415/study.toml", "studies/kernel/sample.py", "analysis/intervals.py"):
        (package / name).write_text((package / name).read_text() + "\n# changed\n")
        seen.add(machine.sources())
    assert len(seen) == 4


def test_a_study_that_is_not_of_the_package_keeps_nothing(
    directory: Path, study: DeclaredStudy, read: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its code reads is not known: another module of its author may have changed."""
    monkeypatch.setattr(study, "_folder", Path("elsewhere"))
    run = Run.open(directory)
    assert study._origin(run) == ""
    (directory / QUANTITIES).write_bytes(stored.packed(study.quantities(run).arrays()))
    read.clear()
    study.quantities(Run.open(directory))
    assert len(read) == 1


def test_quantities_are_taken_with_the_labels_of_the_study_alone(
    directory: Path, study: DeclaredStudy, tmp_path: Path
) -> None:
    arrays = study.quantities(Run.open(directory)).arrays()
    file = tmp_path / "some.npz"
    file.write_bytes(stored.packed(arrays))
    assert len(study.stored_quantities(file, "model").arrays()) == len(arrays)
    file.write_bytes(stored.packed({of: array.isel(iw=slice(1)) for of, array in arrays.items()}))
    with pytest.raises(RequestError, match="has no quantities with the labels of rfc6928-rounds; run it, and store it"):
        study.stored_quantities(file, "model")
