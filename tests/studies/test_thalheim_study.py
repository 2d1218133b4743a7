"""The study thalheim: the talk's figure, its statements, and the two remarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from emulations import skip_unless_possible
from firstflight.analysis.claim import counts
from firstflight.engines.simulate import run_cell
from firstflight.records import Identity, Run
from firstflight.report.page import write
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.thalheim.computed import closed_form_s, simulated_s, talk_s
from firstflight.studies.thalheim.grid import cell, points, shallow, together, transfer
from firstflight.studies.thalheim.measure import AGAIN, FLIGHTS, TIME, Place, values

STUDY = find("thalheim")
FIGURES = ["overview", "relative_100", "relative_10", "relative_1", "formulas", "small_queue", "parallel", "mice"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(run(STUDY, out=tmp_path_factory.mktemp("run") / "whole").directory)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """As an emulated run looks: the simulator's times with a machine's moods, one cell mostly disturbed."""
    chosen = [transfer(10, 50, size, iw) for size in (20, 100) for iw in (3, 10, 32)]
    cells = [cell(point, "emulate") for point in chosen]
    identity = Identity("thalheim", "emulate", seed=1, replicates=20, scenario=None)
    draw = np.random.default_rng(1)
    with Run.create(tmp_path_factory.mktemp("run") / "emulated", identity, cells) as made:
        for point, own in zip(chosen, cells, strict=True):
            tables = run_cell(own, 1, 20)
            spoiled = 12 if point == transfer(10, 50, 20, 10) else 1
            late = draw.exponential(0.0003, 20)
            tables["transfers"] = tables["transfers"].with_columns(
                pl.col("completion_time_s") + pl.Series(late) + (pl.col("replicate") < spoiled).cast(pl.Float64),
                (pl.col("replicate") < spoiled).cast(pl.UInt8).alias("disturbed"),
            )
            made.write(identity.cell_hash(own), own, tables, {})
    return Run.open(made.directory)


def test_the_grid_is_the_talks_figure_and_three_remarks() -> None:
    experiments = [point.experiment for point in points()]
    assert {name: experiments.count(name) for name in dict.fromkeys(experiments)} == {
        "transfer": 480,
        "shallow": 120,
        "parallel": 18,
        "mice": 6,
    }
    # The same bytes whatever the number of connections.
    assert {point.size_kb * point.flows for point in points() if point.experiment == "parallel"} == {600}
    assert cell(transfer(10, 50, 20, 3), "emulate").replicates == 20
    assert cell(transfer(10, 50, 20, 3), "simulate").replicates is None


@pytest.mark.slow
def test_both_engines_are_given_the_same_scenarios() -> None:
    simulated, emulated = ([own.scenario.to_toml() for own in STUDY.cells(engine)] for engine in STUDY.engines)
    assert simulated == emulated
    plan = cell(transfer(10, 50, 20, 6), "emulate").scenario.to_plan()["applications"][0]
    assert plan["server_tcp"]["congestion_control"] == {"algorithm": "cubic", "hystart": "hystart"}


@pytest.mark.slow
def test_every_statement_but_the_lost_formula_is_decided(whole: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(whole)}
    assert [name for name, claim in claims.items() if claim.verdict == "cannot be checked"] == ["talk-formula"]
    for name in ("gain-from-0", "gain-grows-with-delay", "gain-falls-with-size", "parallel-slow-starts", "elephant"):
        assert claims[f"talk-{name}"].verdict == "holds", name
    # 20 kB take three rounds with 3 segments and one with 16, and the handshake one in any case: 4 become 2.
    assert claims["talk-gain-to-60"].found == pytest.approx(50, abs=0.5)
    assert "from the request on, without the handshake, 66" in claims["talk-gain-to-60"].reason


def test_over_mininets_shaper_the_largest_gain_depends_on_the_length_of_gso_packets(whole: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(whole)}
    found = {shaper: claims[f"talk-gain-to-60-{shaper}"].found for shaper in ("htb-flights", "htb-pairs")}
    assert found["htb-flights"] == pytest.approx(70.5, abs=0.1)
    assert found["htb-pairs"] == pytest.approx(claims["talk-gain-to-60"].found, abs=0.1)
    for shaper in found:
        assert claims[f"talk-gain-from-0-{shaper}"].verdict == "differs"
        assert claims[f"talk-gain-grows-with-delay-{shaper}"].verdict == "holds"


def test_no_packet_is_lost_over_the_ample_queue_and_a_large_first_flight_over_the_small_one(whole: Run) -> None:
    found = values(whole)
    again = {place.point: sample.median for place, sample in found.items() if place.metric == AGAIN}
    assert max(count for point, count in again.items() if point.queue_packets == 1000) == 0
    assert again[shallow(10, 500, 32)] > 0
    assert found[Place(FLIGHTS, together(1000, 6, 10))].median == 60


def test_formulas_meet_the_simulator_where_they_should(whole: Run) -> None:
    # Rounds of 3, 6 and 12 segments for 20.3 kB, and one for the handshake, of 20 ms each.
    assert talk_s(transfer(100, 10, 20, 3)) == pytest.approx(4 * 0.02)
    found = values(whole)
    for point in (transfer(1, 200, 100, 10), transfer(10, 50, 1000, 3), transfer(100, 10, 5, 32)):
        measured = found[Place(TIME, point)].median
        assert simulated_s(point) == measured
        assert closed_form_s(point) == pytest.approx(measured, rel=0.03)


@pytest.mark.slow
def test_the_figures_and_tables_of_a_whole_run_are_in_its_report(whole: Run, tmp_path: Path) -> None:
    assert [figure.name for figure in STUDY.figures(whole)] == FIGURES
    tables = {table.name: table for table in STUDY.tables(whole)}
    assert list(tables) == ["relative", "times", "formula", "shallow", "parallel", "mice"]
    shown = tables["relative"].frame.filter(pl.col("iw") == 3)
    assert shown["ours"].to_list() == [100.0] * 60
    page = write(whole, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 * len(FIGURES)


def test_an_emulated_slice_shows_quartiles_what_was_disturbed_and_the_simulator_beside_it(emulated: Run) -> None:
    tables = {table.name: table for table in STUDY.tables(emulated)}
    times = tables["times"].frame
    disturbed = times.filter(pl.col("metric") == "disturbed")["ours"].to_list()
    assert sorted(disturbed) == [1, 1, 1, 1, 1, 12]
    assert tables["times"].notes == (
        "10 Mbit/s, 50 ms, 20 kB, IW 10: 12 of 20 transfers were disturbed; the figure rests on the others.",
    )
    # What was disturbed is a second late, and no median knows of it.
    difference = tables["engines"].frame.filter(pl.col("metric") == "difference")["ours"]
    assert 0 < difference.min() < difference.max() < 0.3  # type: ignore[operator]
    assert {figure.name for figure in STUDY.figures(emulated)} == {"overview", "relative_10", "formulas"}


@pytest.mark.slow
def test_the_kernel_takes_the_round_trips_that_the_simulator_does(tmp_path: Path) -> None:
    skip_unless_possible()
    only = {"experiment": "transfer", "rate_mbit": 10, "delay_ms": 50, "size_kb": 20, "iw": [3, 10, 16]}
    slice_ = Run.open(run(STUDY, engine="emulate", only=only, replicates=2, out=tmp_path / "slice").directory)
    # Without regard to what was disturbed: a busy machine costs milliseconds, a round trip is 100.
    fastest = dict(slice_.transfers.group_by("iw").agg(pl.col("completion_time_s").min()).collect().iter_rows())
    for iw, seconds in fastest.items():
        assert 0 < seconds - simulated_s(transfer(10, 50, 20, iw)) < 0.05, iw


def test_a_slice_says_which_statements_it_cannot_check_and_why(emulated: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(emulated)}
    assert claims["talk-gain-from-0"].verdict == "holds"
    assert claims["talk-gain-from-0"].low is not None
    assert claims["talk-gain-to-60"].reason == (
        "The largest of a figure wants all of it, and this run has 4 of 300 gains."
    )
    assert claims["talk-gain-grows-with-delay"].reason == (
        "This needs transfers of the same rate, size and window at 10, 50, 100 and 200 ms, and this run has none."
    )
    assert claims["talk-formula-in-words"].reason.startswith("This needs transfers at 1, 10 and 100 Mbit/s")
    assert claims["talk-elephant"].reason == "This run lacks requests of 20 kB beside a long download with IW 3."
    assert all(STUDY.answer(emulated))


def test_a_run_without_finished_cells_still_answers(whole: Run, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "run.json").write_text((whole.directory / "run.json").read_text())
    empty = Run.open(tmp_path)
    assert STUDY.tables(empty) == []
    assert STUDY.figures(empty) == []
    assert counts(STUDY.claims(empty))["cannot be checked"] == len(STUDY.claims(empty))
    assert all(STUDY.answer(empty))
