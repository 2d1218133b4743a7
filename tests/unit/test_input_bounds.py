"""Files without an end, or with more in them than their size lets expect, are refused in one sentence."""

import gzip
import subprocess
import sys

import polars as pl
import pytest

from firstflight import observe
from firstflight.errors import MachineError, RequestError
from firstflight.records import machine
from firstflight.records.run import Run
from firstflight.scenario import paths_table
from firstflight.scenario.laws import read_points

# The program's memory without any work, and the addition for a file read to its bound.
_MEMORY = 2 << 30
_RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[:2] = ["firstflight"]
from firstflight.cli import main
main()
"""


@pytest.mark.parametrize("command", ["trace", "run", "script", "observe", "advise"])
def test_a_file_without_an_end_is_refused_in_one_sentence(command, tmp_path):
    words = [command, "/dev/zero", *(["--out", str(tmp_path / "run")] if command in ("run", "advise") else [])]
    asked = [sys.executable, "-c", _RUN, str(_MEMORY), *words]
    found = subprocess.run(asked, capture_output=True, text=True, timeout=60, env={"POLARS_MAX_THREADS": "1"})
    said = found.stderr + found.stdout
    assert "/dev/zero" in said
    assert "Traceback" not in said
    assert found.returncode == 2
    assert len(said.strip().splitlines()) <= 2


def test_a_measured_distribution_without_an_end_is_refused(tmp_path):
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="it has more than 16 MiB"):
        read_points("endless", tmp_path)


def test_a_run_whose_document_is_too_long_or_a_device_is_refused(tmp_path):
    document = tmp_path / "run.json"
    with document.open("wb") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(RequestError, match="it has more than 256 MiB"):
        Run.open(tmp_path)
    document.unlink()
    document.symlink_to("/dev/zero")
    with pytest.raises(RequestError, match=r"its run\.json was not written by firstflight"):
        Run.open(tmp_path)


def test_a_table_of_paths_is_refused_by_its_rows_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "paths.parquet"
    rows = pl.repeat(0.05, 2_000_000, eager=True)
    pl.DataFrame({"rtt_s": rows, "down_bps": rows}).write_parquet(path)
    monkeypatch.setattr(pl, "read_parquet", None)
    with pytest.raises(ValueError, match="2000000 rows; a table has at most 1000000"):
        paths_table.read_columns("paths.parquet", tmp_path)


def test_a_small_packed_file_with_more_connections_than_memory_holds_is_refused_early(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 30_000_000)
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"rtt_ms,down_mbps,bytes\n" + b"50,1,1000\n" * 2_000_000)
    assert path.stat().st_size < 200_000
    with pytest.raises(MachineError, match="more connections and responses than fit into 30 MB of free memory"):
        observe.read(path)


def test_what_fits_into_memory_is_read(tmp_path):
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"rtt_ms,down_mbps,bytes\n" + b"50,1,1000\n" * 100_000)
    assert observe.read(path).users.height == 100_000
