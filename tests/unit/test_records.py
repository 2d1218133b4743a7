"""The shape of a run's frames, and their attached data."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import firstflight
from firstflight import RequestError
from firstflight.engines import simulate
from firstflight.records import STORED, Run
from firstflight.records.schema import RETURNED, TABLES, as_stored, empty, from_stored
from firstflight.scenario import Cell, Scenario
from small_grid import SmallGrid


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return firstflight.run(SmallGrid(), only={"clients": [8], "iw": [1, 2]}, out=tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("table", STORED)
def test_frames_have_the_schema_behind_the_keys(run: Run, table: str) -> None:
    frame = getattr(run, table).collect()
    assert frame.columns == ["clients", "iw", *(column.name for column in TABLES[table])]
    assert frame.schema["clients"] == pl.Int64
    if table in RETURNED:
        assert frame["iw"].unique(maintain_order=True).to_list() == [1, 2]
        assert frame["replicate"].n_unique() == 2
    else:
        assert frame.is_empty(), "there is no population"


def test_every_column_has_a_meaning_and_a_unit_that_its_name_agrees_with() -> None:
    for columns in TABLES.values():
        for column in columns:
            assert column.meaning
            for ending, unit in (("_s", "s"), ("_ns", "ns"), ("_bytes", "B"), ("_packets", "packets")):
                if column.name.endswith(ending):
                    assert column.unit == unit, column.name


@pytest.mark.parametrize("table", ["transfers", "pages"])
def test_times_are_stored_in_whole_nanoseconds_and_read_as_they_were(table: str, tmp_path: Path) -> None:
    times = [column.name for column in TABLES[table] if column.unit == "s"]
    whole = [nanoseconds / 1e9 for nanoseconds in (0, 1, 3, 999_999_999, 161_476_403_721, 3_600_000_000_001)]
    frame = (
        empty(table)
        .clear(7)
        .with_columns(
            pl.Series(name, [*whole[index:], *whole[:index], float("nan")]) for index, name in enumerate(times)
        )
    )
    as_stored(table, frame).sink_parquet(tmp_path / "table.parquet")

    stored = pl.read_parquet(tmp_path / "table.parquet")
    assert stored["start_ns"].to_list()[:-1] == [0, 1, 3, 999_999_999, 161_476_403_721, 3_600_000_000_001]
    assert stored.select(*from_stored(table).values()).equals(frame)


def test_names_are_categories_and_absent_pages_null(run: Run) -> None:
    assert run.transfers.collect()["application"].unique().to_list() == ["web"]
    assert "bottleneck.reverse" in run.links.collect()["link"].cast(pl.String).to_list()
    assert run.transfers.collect()["page"].null_count() == 0


def test_each_file_carries_seed_versions_commit_and_machine_and_each_cell_its_scenario(run: Run) -> None:
    paths = list(run.directory.rglob("*.parquet"))
    # Of two cells.
    assert len({path.parent for path in paths}) == 2
    for path in paths:
        about = json.loads(pl.read_parquet_metadata(path)["firstflight"])
        assert about["seed"] == 1
        assert {"versions", "commit", "machine", "code", "replicates"} <= about.keys()
        assert Scenario.load(path.with_name("scenario.toml")).application[0].clients == 8


def test_a_cell_without_its_whole_scenario_is_damaged(run: Run, tmp_path: Path) -> None:
    for name, damage in (("gone", None), ("cut", 100)):
        copy = Path(shutil.copytree(run.directory, tmp_path / name))
        path = next(copy.rglob("scenario.toml"))
        text = path.read_text()
        path.unlink()
        if damage is not None:
            path.write_text(text[:damage].rstrip())
        with pytest.raises(firstflight.RequestError, match=r"scenario\.toml. is missing or damaged"):
            Run.open(copy)


def test_a_table_can_be_had_of_some_cells_alone(run: Run) -> None:
    assert run.table("transfers", iw=2).collect().equals(run.transfers.filter(pl.col("iw") == 2).collect())
    with pytest.raises(RequestError, match=r"iw is \[2, 3\]; give one value"):
        run.table("transfers", iw=[2, 3])  # type: ignore[arg-type]
    none = run.table("transfers", iw=3).collect()
    assert none.is_empty()
    assert none.columns == run.transfers.collect_schema().names()


def test_provenance_tells_machine_command_profiles_and_cost(run: Run) -> None:
    about = run.provenance
    assert about["finished"] == 2
    assert about["counts"]["packet_hops"] > 0
    session = about["sessions"][-1]
    assert session["ended"]
    assert session["wall_s"] > 0
    assert {"command", "started", "cpu_s", "jobs", "machine"} <= session.keys()
    windows = [profile["effective"]["initial_window"]["segments"] for profile in about["profiles"]]
    assert windows == [1, 2]


def test_a_run_without_finished_cells_has_empty_frames(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "run.json").write_text((run.directory / "run.json").read_text())
    empty = Run.open(tmp_path)
    assert empty.cells == []
    assert empty.missing == 2
    assert empty.transfers.collect().columns == run.transfers.collect_schema().names()
    assert empty.provenance["counts"] == {}


def test_a_run_without_a_directory_of_its_own_lives_until_the_process_ends(small_file: Path) -> None:
    script = (
        "import firstflight, sys\n"
        "scenario = firstflight.load_scenario(sys.argv[1])\n"
        "print(firstflight.run(scenario, replicates=2).pages.collect()['replicate'].n_unique())\n"
        "print(firstflight.run(scenario, replicates=2).directory)\n"
    )
    command = [sys.executable, "-c", script, small_file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    replicates, directory = done.stdout.split()
    assert replicates == "2"
    assert not Path(directory).exists()


def test_replicates_differ_and_do_not_depend_on_their_number(small: Scenario) -> None:
    two = firstflight.run(small, replicates=2).pages.collect()
    five = firstflight.run(small, replicates=5, jobs=2).pages.collect()
    assert five.filter(pl.col("replicate") < 2).equals(two)
    first, second = (two.filter(pl.col("replicate") == r)["start_s"].to_list() for r in (0, 1))
    assert first != second


@pytest.mark.parametrize("clients", [8, "8", np.int64(8)])
def test_a_value_of_a_key_is_the_same_as_number_and_as_text(run: Run, clients: Any) -> None:
    assert run.table("transfers", clients=clients, iw=1).collect().height > 0
    assert firstflight.run(SmallGrid(), only={"clients": clients, "iw": 2}).cells == [{"clients": 8, "iw": 2}]


def test_records_are_those_needed_or_all(small: Scenario) -> None:
    with pytest.raises(RequestError, match='records is \'al\'; write "needed" or "all"'):
        firstflight.run(small, records="al")  # type: ignore[arg-type]


def test_a_restriction_to_one_value_needs_no_list(small: Scenario) -> None:
    assert firstflight.run(SmallGrid(), only={"clients": 8, "iw": "2"}).cells == [{"clients": 8, "iw": 2}]


def test_a_key_that_is_a_column_is_refused(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallGrid, "cells", lambda self, engine: [Cell({"replicate": 1}, small)])
    with pytest.raises(ValueError, match='a cell key cannot be called "replicate"'):
        firstflight.run(SmallGrid())


def test_cells_with_the_same_plan_share_their_records(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell({"which": which}, small) for which in ("a", "b")]
    monkeypatch.setattr(SmallGrid, "cells", lambda self, engine: cells)
    run = firstflight.run(SmallGrid())
    assert len(list((run.directory / "cells").iterdir())) == 1
    assert run.cells == [{"which": "a"}, {"which": "b"}]
    assert run.pages.collect()["which"].unique(maintain_order=True).to_list() == ["a", "b"]


def test_a_cell_that_captures_stores_its_segments_and_others_do_not(
    small: Scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cells = [Cell({"which": "kept"}, small, capture=True), Cell({"which": "counted"}, small)]
    monkeypatch.setattr(SmallGrid, "cells", lambda self, engine: cells)
    made = firstflight.run(SmallGrid(), out=tmp_path / "run")
    again = Run.open(made.directory)
    segments = again.segments.collect()
    assert segments.columns == ["which", *(column.name for column in TABLES["segments"])]
    assert segments["which"].unique().to_list() == ["kept"]
    assert segments["replicate"].n_unique() == 2
    sent = segments.filter((pl.col("event") == 0) & (pl.col("length") > 0) & (pl.col("from_server") == 1)).height
    kept, counted = (
        again.transfers.filter(pl.col("which") == which).drop("which").collect() for which in ("kept", "counted")
    )
    assert sent == kept["segments_sent"].sum()
    assert kept.equals(counted)
    # The captures belong to the cell: without them the run is damaged.
    (path,) = made.directory.rglob("segments.parquet")
    path.unlink()
    with pytest.raises(firstflight.RequestError, match=r"segments\.parquet. is missing or damaged"):
        Run.open(made.directory)


@pytest.mark.parametrize(("lost_syn", "segments"), [("keep", 10), ("rfc6928", 1)])
def test_the_initial_window_in_the_records_is_the_one_that_the_connection_began_with(
    lost_syn: str, segments: int
) -> None:
    # An RTT of 5 s: the SYN is retransmitted twice before its answer can arrive.
    path = Path(__file__).parents[2] / "examples" / "download.toml"
    download = Scenario.load(path).replace("network.links[0].delay", "2500ms").replace("tcp.profile", "rfc")
    far = download.replace("tcp.syn_loss_response", lost_syn).replace("duration", "200s")
    [row] = simulate.run_cell(Cell({}, far), 1, 1)["transfers"].to_dicts()
    assert row["initial_window_segments"] == segments
