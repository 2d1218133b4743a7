"""The parts of a scenario and a run for engines in real time: response headers, stacks, groups of cells,
environments.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest

import firstflight
from firstflight import Cell, RequestError, Scenario, engines
from firstflight.engines import RealTime, simulate
from firstflight.engines.sweep import sweep
from firstflight.records import Identity, RunWriter
from firstflight.records.schema import RETURNED

SCENARIO = """
name = "one"
duration = "10s"
[tcp]
profile = "linux"
[network]
topology = "chain"
links = { rate = "10Mbit", delay = "20ms", queue = "1000p" }
[[application]]
kind = "file_transfer"
size = "20kB"
count = 1
"""


def scenario(**changes: object) -> Scenario:
    made = Scenario.from_toml(SCENARIO)
    for path, value in changes.items():
        made = made.replace(path.replace("__", "."), value)
    return made


@pytest.mark.parametrize("engine", ["simulate", "model"])
def test_a_response_header_precedes_the_file_on_the_stream(engine: str) -> None:
    changes = {"tcp__profile": "rfc"} if engine == "model" else {}
    cell = Cell({"c": 1}, scenario(application__file_transfer__response_header="300B", **changes))
    transfers = engines.find(engine).run_cell(cell, 1, 1)["transfers"]
    longer = Cell({"c": 1}, scenario(application__file_transfer__size="20300B", **changes))
    assert transfers["bytes"].to_list() == transfers["delivered_bytes"].to_list() == [20300]
    assert transfers.equals(engines.find(engine).run_cell(longer, 1, 1)["transfers"])


def test_each_object_of_a_page_has_a_response_header() -> None:
    page = scenario().to_dict()
    page["application"] = [
        {"kind": "web_page", "primary": "10kB", "inline": "5kB", "inline_count": 2, "think_time": "1s", "count": 1}
        | {"response_header": "200B"}
    ]
    transfers = simulate.run_cell(Cell({"c": 1}, Scenario.from_dict(page)), 1, 1)["transfers"]
    assert sorted(transfers["bytes"].to_list()) == [5200, 5200, 10200]


def test_an_end_has_the_stack_of_the_innermost_table_that_names_one() -> None:
    assert scenario().stacks(0) == ("kernel", "kernel")
    outer = scenario(tcp__stack="firstflight")
    assert outer.stacks(0) == ("firstflight", "firstflight")
    inner = outer.replace("application.file_transfer.client_tcp", {"stack": "kernel"})
    assert inner.stacks(0) == ("kernel", "firstflight")
    assert Scenario.from_toml(inner.to_toml()).stacks(0) == ("kernel", "firstflight")
    assert inner.to_plan() == scenario().to_plan()


def test_an_unknown_stack_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestError, match=r'tcp\.stack: unknown choice "kernal"; did you mean "kernel"'):
        scenario(tcp__stack="kernal")


class Clock:
    """A stand-in for an engine in real time: it simulates, and records its requests."""

    def __init__(self) -> None:
        self.asked: list[list[object]] = []

    def run_cell(self, cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
        return simulate.run_cell(cell, seed, replicates, first_replicate)

    def together(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        sizes = dict.fromkeys(cell.key["size"] for cell in cells)
        return [[cell for cell in cells if cell.key["size"] == size] for size in sizes]

    def run_together(
        self, cells: Sequence[Cell], seed: int, replicates: Sequence[int], on_replicates: Callable[[Cell, int], None]
    ) -> list[dict[str, pl.DataFrame]]:
        self.asked.append([tuple(cell.key.values()) for cell in cells])
        note = pl.DataFrame({"name": ["kernel"], "value": ["6.18"]})
        return [
            self.run_cell(cell, seed, number) | {"environment": note}
            for cell, number in zip(cells, replicates, strict=True)
        ]

    def surroundings(self) -> dict[str, str]:
        return {"kernel": "6.18"}

    def jobs(self, group: Sequence[Cell]) -> int:
        return 1


def test_cells_of_an_engine_in_real_time_run_in_its_groups_and_note_their_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    assert isinstance(clock, RealTime)
    assert not isinstance(simulate, RealTime)
    known = engines.find
    monkeypatch.setattr("firstflight.engines.sweep.find", lambda name: clock if name == "clock" else known(name))
    cells = [
        Cell(
            {"where": where, "size": size, "iw": iw},
            scenario(application__file_transfer__size=f"{size}kB", tcp__initial_window=iw),
            engine=engine,
        )
        for where, engine in (("clock", "clock"), ("simulated", "simulate"))
        for size in (5, 20)
        for iw in (3, 10)
    ]
    identity = Identity(study="pair", engine="clock", seed=1, replicates=2)
    with RunWriter.create(tmp_path / "run", identity, cells) as run:
        sweep(run, identity, cells, 1)
        assert clock.asked == [[("clock", 5, 3), ("clock", 5, 10)], [("clock", 20, 3), ("clock", 20, 10)]]
        rows = run.transfers.collect()
        assert rows.group_by("where").len().sort("where").rows() == [("clock", 8), ("simulated", 8)]
        assert run.provenance["environments"] == [{"kernel": "6.18"}]
        # Nothing is left to do, and nothing is done again.
        sweep(run, identity, cells, 1)
        assert len(clock.asked) == 2


def test_a_request_that_the_engine_refuses_leaves_no_directory(tmp_path: Path) -> None:
    page = scenario().to_dict() | {
        "application": [{"kind": "web_page", "primary": "1kB", "inline": "1kB", "think_time": "1s"}]
    }
    with pytest.raises(RequestError, match="web_page"):
        firstflight.run(Scenario.from_dict(page), engine="model", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(RequestError, match="web_page"):
        firstflight.run(Scenario.from_dict(page), engine="model", out=tmp_path / "old")
    assert (tmp_path / "old").exists()


def test_a_run_in_real_time_is_not_continued_with_another_kernel_or_program(tmp_path: Path) -> None:
    def identity(**facts: str) -> Identity:
        return Identity("pair", "emulate", 1, 2, surroundings={"emulate": {"kernel": "6.18", "nginx": "1.22"} | facts})

    cells = [Cell({"iw": iw}, scenario(tcp__initial_window=iw)) for iw in (3, 10)]
    tables = simulate.run_cell(cells[0], 1, 2)
    with RunWriter.create(tmp_path / "run", identity(), cells[:1]) as run:
        run.write(identity().cell_hash(cells[0]), cells[0], {name: tables[name] for name in RETURNED}, {})
    for facts, expected in (
        ({"kernel": "6.12"}, "its kernel was 6.18, now 6.12"),
        ({"nginx": "1.26"}, "its nginx was 1.22, now 1.26"),
        ({"net.ipv4.tcp_rmem": "4096"}, "its net.ipv4.tcp_rmem was not there, now 4096"),
    ):
        with pytest.raises(RequestError, match=f"holds another run: {expected}; choose another --out"):
            RunWriter.create(tmp_path / "run", identity(**facts), cells)
        assert identity(**facts).cell_hash(cells[1]) != identity().cell_hash(cells[1])
    with RunWriter.create(tmp_path / "run", identity(), cells) as run:
        assert run.missing == 1
