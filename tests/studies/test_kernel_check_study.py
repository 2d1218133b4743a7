"""The study kernel-check with a stand-in for the kernel: it simulates, a little late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from firstflight import Cell, Run, engines
from firstflight.analysis.claim import counts
from firstflight.engines import simulate
from firstflight.engines.emulate.kernel import tick_ns
from firstflight.report.page import write
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.kernel_check.claims import all_claims, is_close
from firstflight.studies.kernel_check.grid import EMULATE, SIMULATE, Point, ample, captured, cell, points
from firstflight.studies.kernel_check.measure import Measured, Pair, pairs
from firstflight.studies.kernel_check.overlay import timeline

STUDY = find("kernel-check")
LATE_S = 0.0004


class LateSimulator:
    """Every transfer ends a little later than simulated; each third replicate is disturbed, and later still."""

    def run_cell(self, cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
        tables = simulate.run_cell(cell, seed, replicates, first_replicate)
        disturbed = pl.col("replicate") % 3 == 2
        tables["transfers"] = tables["transfers"].with_columns(
            pl.col("completion_time_s") + pl.when(disturbed).then(1.0).otherwise(LATE_S),
            disturbed.cast(pl.UInt8).alias("disturbed"),
            pl.when(disturbed).then(1.0).otherwise(0.0).alias("stall_s"),
        )
        return tables

    def together(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        return [list(cells)]

    def run_together(
        self, cells: Sequence[Cell], seed: int, replicates: Sequence[int], on_replicates: Callable[[Cell, int], None]
    ) -> list[dict[str, pl.DataFrame]]:
        return [self.run_cell(cell, seed, number) for cell, number in zip(cells, replicates, strict=True)]

    def jobs(self, group: Sequence[Cell]) -> int:
        return 1


@pytest.fixture(scope="module")
def slice_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """CUBIC at 10 Mbit/s and 70 ms, with both of the captured connections."""
    known, stand_in = engines.find, LateSimulator()
    only = {"control": "cubic", "rate_mbit": 10, "rtt_ms": 70, "size_kb": [100, 500], "iw": [10, 32]}
    with pytest.MonkeyPatch.context() as patch:
        for place in ("engines.sweep.find", "studies.execute.find_engine"):
            patch.setattr(f"firstflight.{place}", lambda name: stand_in if name == EMULATE else known(name))
        return run(STUDY, only=only, replicates=3, out=tmp_path_factory.mktemp("run") / "slice")


@pytest.mark.slow
def test_the_grid_has_every_condition_twice_with_one_scenario(tmp_path: Path) -> None:
    grid = STUDY.cells(EMULATE)
    assert len(grid) == 2 * len(points()) == 2 * 5 * 3 * 3 * 4 * 2 * 3
    halves = [{**c.key, "engine": ""} for c in grid[::2]], [{**c.key, "engine": ""} for c in grid[1::2]]
    assert halves[0] == halves[1]
    assert [c.engine for c in grid] == [EMULATE, SIMULATE] * len(points())
    assert all(a.scenario == b.scenario for a, b in zip(grid[::2], grid[1::2], strict=True))
    assert [c.engine for c in STUDY.cells(SIMULATE)] == [SIMULATE] * len(points())


def test_the_longest_queue_never_overflows_and_the_others_do() -> None:
    hardest = max(points(), key=lambda p: (p.size_kb, p.iw, p.queue))
    assert hardest.queue == ample()
    links = simulate.run_cell(cell(hardest, SIMULATE), 1, 1)["links"]
    assert links["dropped_packets"].sum() == 0
    for queue in (10, 25):
        shallow = simulate.run_cell(cell(hardest._replace(queue=queue), SIMULATE), 1, 1)["transfers"]
        assert shallow["first_flight_lost"].item() > 0


def test_disturbed_transfers_are_counted_and_left_out_of_the_medians(slice_run: Run) -> None:
    found = pairs(slice_run)
    assert len(found) == 12
    for pair in found:
        assert (pair.emulated.count, pair.emulated.disturbed, pair.simulated.count) == (3, 1, 3)
        # The third, a second late, would move the median.
        assert abs(pair.difference_s) < 0.1
        assert pair.emulated.first_flight_lost == pair.simulated.first_flight_lost


def test_claims_hold_for_an_engine_that_is_a_little_late_and_say_how_much_of_the_grid_they_saw(slice_run: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(slice_run)}
    assert {claim.verdict for claim in claims.values()} == {"holds"}
    assert claims["time-without-loss"].found == 100
    assert claims["time-without-loss"].reason.startswith("4 cells, of 360 that the grid has with such queues.")
    assert "lacks 1068 of the grid's 1080 conditions" in " ".join(STUDY.answer(slice_run))


def test_tables_have_both_engines_and_the_number_of_disturbed_transfers(slice_run: Run) -> None:
    tables = {table.name: table for table in STUDY.tables(slice_run)}
    assert list(tables) == ["summary", "farthest", "queue-1000", "queue-25", "queue-10"]
    row = {r["metric"]: r["ours"] for r in tables["queue-1000"].frame.head(12).iter_rows(named=True)}
    assert row["emulated"] - row["simulated"] == pytest.approx(row["difference"]) == pytest.approx(1000 * LATE_S)
    assert (row["transfers"], row["disturbed"]) == (3, 1)
    assert row["lower_quartile"] == row["upper_quartile"] == row["emulated"]


def test_the_report_shows_both_captured_connections(slice_run: Run, tmp_path: Path) -> None:
    names = [figure.name for figure in STUDY.figures(slice_run)]
    connections = [f"connection_{name}" for name in captured()]
    assert names == ["differences", *connections, "windows_queue_1000", "windows_queue_25", "windows_queue_10"]
    page = write(slice_run, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "One connection segment by segment: 500 kB, 70 ms, 10 Mbit/s, IW 32, cubic, queue 10" in page


def test_a_timeline_begins_with_the_syn_at_the_server_and_ends_with_the_last_byte_acknowledged() -> None:
    point = captured()["clean"]
    segments = simulate.run_cell(cell(point, SIMULATE), 1, 1)["segments"]
    line = timeline(segments)
    assert line["time_ms"][0] == 0
    sent = line.filter(pl.col("what") == "sent")
    # One round trip after the SYN, nearly: the request follows the handshake's last segment.
    assert point.rtt_ms < sent["time_ms"][0] < point.rtt_ms + 1
    assert sent["high_kb"].max() == pytest.approx(point.size_kb + 0.3, abs=0.002)
    assert line.filter(pl.col("what") == "acknowledged")["low_kb"].max() >= sent["high_kb"].max()


def test_the_simulated_half_alone_is_no_comparison(tmp_path: Path) -> None:
    only = {"size_kb": 5, "queue": [1000, 10], "iw": 10, "rtt_ms": 20}
    half = run(STUDY, engine=SIMULATE, only=only, out=tmp_path / "half")
    assert counts(STUDY.claims(half))["cannot be checked"] == 4
    assert STUDY.tables(half) == []
    assert STUDY.figures(half) == []
    assert STUDY.answer(half) == ['This run has the simulated half only; "--engine emulate" runs both.']


def _pair(simulated_s: float, emulated_s: float) -> Pair:
    one = Measured(simulated_s, simulated_s, simulated_s, 10, 0, 0, 0, 5, 0, 0)
    return Pair(Point(ample(), "reno", 5, 20, 1, 10), replace(one, time_s=emulated_s), one)


def test_a_difference_counts_as_close_within_one_millisecond_or_one_percent() -> None:
    assert is_close(_pair(0.040, 0.0409))
    assert is_close(_pair(1.0, 1.0099))
    assert not is_close(_pair(0.040, 0.0411))
    assert not is_close(_pair(1.0, 0.985))


def test_one_cell_too_far_makes_the_claim_differ_and_is_named() -> None:
    claim = all_claims([_pair(0.040, 0.0409), _pair(0.040, 0.060)], 0)[0]
    assert (claim.verdict, claim.found) == ("differs", 50)
    assert "5 kB, 20 ms, 1 Mbit/s, IW 10, reno, queue 1000: +20.0 ms, +50.0 %" in claim.reason


def test_both_halves_have_the_ticks_of_the_kernel_that_runs_here() -> None:
    point = points()[0]
    for engine in (EMULATE, SIMULATE):
        tcp = cell(point, engine).scenario.tcp
        assert tcp.timer_tick == {"period": f"{tick_ns()}ns", "wheel": True}
