"""The study congestion-control: a download under each algorithm, and the measures of its windows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.engines.simulate import run_cell
from firstflight.records import Run
from firstflight.report.page import write
from firstflight.scenario import Cell
from firstflight.scenario.cell import chosen
from firstflight.studies import find
from firstflight.studies.congestion_control import DRAWN, BusiestConnection, waiting
from firstflight.studies.execute import run

STUDY: Any = find("congestion-control")
CONTROLS = ["reno", "cubic", "westwood", "vegas", "bbr"]


def cell(**key: str | float) -> Cell:
    """The first cell with these labels."""
    return STUDY.cells_at("simulate", chosen(STUDY.keys("simulate"), key)[:1])[0]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The whole study."""
    return Run.open(run(STUDY, out=tmp_path_factory.mktemp("run") / "base").directory)


@pytest.fixture(scope="module")
def reno(tmp_path_factory: pytest.TempPathFactory) -> Run:
    only = {"experiment": "download", "control": "reno", "rtt_ms": 80, "buffer_bdp": 1.0}
    return run(STUDY, only=only, out=tmp_path_factory.mktemp("run") / "reno")


def test_the_grid_counts_queues_in_full_packets_and_keeps_segments_of_what_is_drawn_only() -> None:
    paths = ((80, 1.0), (20, 0.25), (200, 4.0))
    queues = [cell(rtt_ms=rtt, buffer_bdp=buffer).scenario.to_dict()["network"]["links"][0] for rtt, buffer in paths]
    assert [(link["queue"], link["delay"]) for link in queues] == [("67p", "40ms"), ("4p", "10ms"), ("667p", "100ms")]
    assert [c.key["control"] for c in STUDY.cells("simulate") if c.capture] == CONTROLS
    beside, alone = (cell(control="vegas", elephants=flows).scenario for flows in (1, 0))
    assert [len(scenario.application) for scenario in (beside, alone)] == [2, 1]
    plan = beside.to_plan()["applications"]
    assert {application["server_tcp"]["congestion_control"]["algorithm"] for application in plan} == {"vegas"}


def test_claims_of_the_base_path_are_all_decided(base: Run) -> None:
    claims = STUDY.claims(base)
    assert Counter(claim.verdict for claim in claims)["cannot be checked"] == 0
    assert len({claim.id for claim in claims}) == len(claims) == 15
    by_id = {claim.id: claim for claim in claims}
    assert by_id["talk-parallel-slow-starts"].found == 6
    assert by_id["rfc5681-s3.1-half"].verdict == "holds"
    assert by_id["rfc9438-s4.6-beta"].verdict == "holds"
    # The range is Vegas's own: nothing in it excuses a longer queue.
    vegas = by_id["vegas-queue"]
    assert (vegas.verdict, vegas.tolerance, vegas.found) == ("holds", 0, pytest.approx(3.80, abs=0.01))


def test_vegas_queues_half_a_packet_more_with_an_ack_for_each_segment() -> None:
    # The statement of the claim's reason about delayed ACKs.
    found = []
    for ack in ("every_segment", None):
        scenario = cell(control="vegas", **DRAWN).scenario
        scenario = scenario.replace("tcp.ack", ack) if ack else scenario
        links = run_cell(Cell({}, scenario), 1, 1)["links"].filter(pl.col("interval_start_s").is_between(5, 35))
        found.append(links.filter(pl.col("link").cast(pl.String) == "links[0]")["queue_mean_packets"].mean())
    assert found == pytest.approx([4.30, 3.81], abs=0.01)


def test_a_download_is_timed_and_its_queue_averaged_over_its_own_time(base: Run) -> None:
    q = STUDY.quantities(base)
    completion, mean = (float(of.sel(control="reno", draw=0, **DRAWN)) for of in (q.completion_time, q.mean_queue))
    # 50 MB in segments of 1448 bytes take 34531 packets of 1500 bytes: 41.4 s on the line.
    assert 41.4 < completion < 43
    of_reno = (pl.col("control") == "reno", *(pl.col(key) == of for key, of in DRAWN.items()))
    shown = waiting(base).filter(*of_reno).collect()
    assert shown["queue_mean_packets"].mean() == pytest.approx(mean, rel=0.01)
    assert shown["interval_start_s"].max() < completion


def test_the_elephants_share_is_what_the_short_flow_leaves_of_the_link(base: Run) -> None:
    q = STUDY.quantities(base)
    share, time = q.elephant_share.sel(elephants=1, draw=0), q.mouse_time.sel(draw=0)
    assert share["control"].values.tolist() == CONTROLS
    assert (share.sel(size_kb=100) > 0).all()
    assert (share.sel(size_kb=100) < share.sel(size_kb=20)).all()
    assert (share.sel(size_kb=20) < 100).all()
    assert (time.sel(elephants=0, size_kb=20) < time.sel(elephants=1, size_kb=20)).all()


def test_windows_find_each_fast_recovery_that_the_sender_counted(base: Run) -> None:
    recorded = dict(base.table("transfers", **DRAWN).select("control", "fast_retransmits").collect().iter_rows())
    traces = base.table("segments", **DRAWN).collect().partition_by("control", as_dict=True)
    assert len(traces) == len(CONTROLS)
    for (control,), segments in traces.items():
        assert len(BusiestConnection(segments).reductions) == recorded[control], control


def test_the_tables_have_a_row_an_algorithm_and_the_units_of_their_metrics(base: Run) -> None:
    tables = {table.name: table for table in STUDY.tables(base)}
    assert set(tables) == {"downloads", "paths", "parallel", "mice"}
    downloads = tables["downloads"].frame
    assert downloads["control"].unique(maintain_order=True).to_list() == CONTROLS
    assert downloads.height == 6 * len(CONTROLS)
    assert "67 packets (1 x the bandwidth-delay product)" in tables["downloads"].caption
    assert "control=bbr" in tables["paths"].text()


@pytest.mark.slow
def test_the_figures_are_drawn_from_the_stored_run(base: Run, tmp_path: Path) -> None:
    figures = STUDY.figures(base)
    assert [figure.name for figure in figures] == ["window", "delivered", "queues", "explained"]
    found = figures[1].chart["data"]["values"]
    assert {row["control"] for row in found} == {"Reno", "CUBIC", "Westwood+", "Vegas", "BBR"}
    # 1460 of 1500 bytes are payload.
    assert max(row["value"] for row in found) <= 10 * 1460 / 1500 + 0.03
    page = write(base, STUDY, tmp_path / "report.html").read_text(encoding="utf-8")
    # Each figure wide and narrow.
    assert page.count("<svg") == 2 * len(figures)
    assert "CUBIC" in page
    assert "BBR" in page


def test_a_run_of_one_algorithm_says_what_it_lacks(reno: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(reno)}
    assert claims["rfc5681-s3.1-one-segment-a-round"].verdict == "holds"
    assert claims["bbr-queue"].reason == (
        "This run has no value for experiment download, control bbr, rtt_ms 80, buffer_bdp 1.0."
    )
    assert claims["talk-elephants-20kb"].reason == "This run has no value for experiment mice."
    figures = STUDY.figures(reno)
    assert [figure.name for figure in figures] == ["window", "delivered", "queues", "explained"]
    found = figures[3].chart["data"]["values"]
    first = min((row for row in found if row["window"] == "cwnd"), key=lambda row: row["time_s"])
    assert first["value"] == 10
    assert STUDY.answer(reno) == []


def test_a_run_without_finished_cells_still_answers(reno: Run, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "run.json").write_text((reno.directory / "run.json").read_text())
    empty = Run.open(tmp_path)
    assert STUDY.tables(empty) == []
    assert STUDY.figures(empty) == []
    assert Counter(claim.verdict for claim in STUDY.claims(empty))["cannot be checked"] == 15
    assert STUDY.answer(empty) == []
