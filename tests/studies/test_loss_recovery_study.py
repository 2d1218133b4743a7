"""The study loss-recovery: the recovery from each single loss of a first flight, and its cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.records import Run
from firstflight.report.figure import svg
from firstflight.scenario.cell import chosen
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.loss_recovery import EARLY, FAST, PROBE, TIMEOUT, cost

STUDY: Any = find("loss-recovery")
ROUND_TRIP_MS = 100
PACKET_MS = 1.2


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> Run:
    only = {"experiment": "one_loss"}
    return Run.open(run(STUDY, only=only, out=tmp_path_factory.mktemp("run") / "matrices").directory)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Run:
    only = {"experiment": "random_loss", "size_segments": 10, "stack": ["new_reno", "sack"]}
    return run(STUDY, only=only, replicates=2, out=tmp_path_factory.mktemp("run") / "comparison")


def repairs(run: Run, stack: str, iw: int) -> list[int]:
    """Of a flight that nothing follows, by position."""
    found = STUDY.quantities(run).repair.sel(follows="nothing", stack=stack, iw=iw, draw=0)
    return [int(kind) for kind in found.sel(position=slice(1, iw)).values]


def costs(run: Run, stack: str, iw: int) -> list[float]:
    """The same: how much later the response is complete, ms."""
    found = cost(STUDY.quantities(run)).sel(follows="nothing", stack=stack, iw=iw, draw=0)
    return [float(late) for late in found.sel(position=slice(1, iw)).values]


def test_each_position_of_each_window_is_lost_once_and_retransmitted(matrices: Run) -> None:
    q = STUDY.quantities(matrices)
    lost = q.repair.sel(position=slice(1, None), draw=0)
    assert int(lost.notnull().sum()) == 2 * 6 * sum(range(1, 17))
    assert int((lost.notnull() & (q.retransmissions.sel(draw=0) >= 1)).sum()) == 2 * 6 * sum(range(1, 17))
    assert int(q.repair.sel(position=0, draw=0).notnull().sum()) == 0
    first = matrices.transfers.select("client", "first_flight_lost_segments", "completed").collect()
    assert first["completed"].min() == 1
    assert first.filter(pl.col("client") == 0)["first_flight_lost_segments"].max() == 0
    assert first.filter(pl.col("client") > 0)["first_flight_lost_segments"].min() == 1


def test_nothing_is_retransmitted_or_probed_where_nothing_is_lost(matrices: Run) -> None:
    without = matrices.transfers.filter(pl.col("client") == 0)
    counted = ("retransmissions", "timeouts", "fast_retransmits", "tail_loss_probes")
    assert without.select(pl.col(counted).max()).collect().row(0) == (0, 0, 0, 0)


def test_three_segments_behind_the_loss_make_a_fast_retransmit(matrices: Run) -> None:
    assert repairs(matrices, "new_reno", 6) == [FAST] * 3 + [TIMEOUT] * 3
    # Segment 1 waits for the delayed ACK, and segment 3's ACK, which acknowledges it, is not a duplicate.
    assert repairs(matrices, "new_reno", 5) == [FAST] + [TIMEOUT] * 4
    assert repairs(matrices, "sack", 5) == [FAST] * 2 + [TIMEOUT] * 3


def test_early_retransmit_and_rack_need_fewer_and_the_tail_needs_a_probe(matrices: Run) -> None:
    assert repairs(matrices, "sack_early", 5) == [FAST] * 2 + [EARLY] * 2 + [TIMEOUT]
    assert repairs(matrices, "linux", 5) == [FAST] * 2 + [EARLY] * 2 + [PROBE]
    assert repairs(matrices, "linux_no_sack", 5) == [FAST] * 2 + [TIMEOUT] * 3


def test_the_cost_is_what_arithmetic_says(matrices: Run) -> None:
    # The third duplicate leaves when segment 5 arrives, three packets after the lost one was due; a round trip later
    # the repair is there, and the last of ten had been due eight packets after the loss.
    assert costs(matrices, "new_reno", 10)[1] == pytest.approx(
        ROUND_TRIP_MS + (3 - 8 + 2) * PACKET_MS, abs=2 * PACKET_MS
    )
    # RACK waits a quarter of the minimum RTT in addition (RFC 8985 section 6.2).
    assert costs(matrices, "linux", 10)[8] == pytest.approx(1.25 * ROUND_TRIP_MS, abs=3 * PACKET_MS)
    # RFC 6298's floor of 1 s, from the last acknowledgment, a round trip after the segment.
    assert costs(matrices, "new_reno", 3)[2] == pytest.approx(1000 + ROUND_TRIP_MS, abs=3 * PACKET_MS)


def test_claims_about_the_matrices_are_decided_and_those_about_random_loss_are_not(matrices: Run) -> None:
    claims = STUDY.claims(matrices)
    assert len({claim.id for claim in claims}) == len(claims) == 25
    assert Counter(claim.verdict for claim in claims)["cannot be checked"] == 16
    by_id = {claim.id: claim for claim in claims}
    assert (by_id["rfc6928-s5.3-fast-retransmit-flight"].found, by_id["rfc8985-s7-no-timeouts"].found) == (70, 0)
    strict = by_id["rfc6928-s5.3-three-segments-suffice"]
    assert strict.verdict == "differs"
    assert "segment 2 of 5" in strict.reason
    assert by_id["rfc6928-cw10-no-sack-5-segments"].reason == ("This run has no value for experiment random_loss.")
    assert by_id["rfc6928-cw10-no-sack-64-kbps"].reason == ("This run has no value for experiment congested.")


@pytest.mark.slow
def test_means_under_random_loss_are_compared(comparison: Run) -> None:
    assert int(STUDY.quantities(comparison).random_loss.sel(draw=0).notnull().sum()) == 2 * 4 * 2
    by_id = {claim.id: claim for claim in STUDY.claims(comparison)}
    claim = by_id["rfc6928-cw10-no-sack-10-segments"]
    assert claim.verdict == "holds"
    assert "% at 0.5%" in claim.reason
    assert by_id["rfc6928-s5.3-lengthy-timeout"].verdict == "cannot be checked"
    # The sentence needs all sizes.
    assert STUDY.answer(comparison) == []
    assert [figure.name for figure in STUDY.figures(comparison)] == ["random_loss"]
    assert [table.name for table in STUDY.tables(comparison)] == ["random_loss"]


def test_five_responses_at_once_lose_packets_in_the_queue(tmp_path: Path) -> None:
    only = {"experiment": "congested", "size_segments": 20, "rate_kbps": 64, "stack": ["new_reno", "sack"]}
    congested = run(STUDY, only=only, replicates=2, out=tmp_path / "congested")
    bottleneck = congested.links.filter(pl.col("link").cast(pl.String) == "links[0]").collect()
    assert bottleneck["queue_max_packets"].max() == 40
    # Fifteen segments fit, fifty do not.
    assert bottleneck.filter(pl.col("iw") == 3)["dropped_packets"].max() == 0
    assert bottleneck.filter(pl.col("iw") == 10)["dropped_packets"].min() > 0
    assert int(STUDY.quantities(congested).congested.sel(draw=0).notnull().sum()) == 2 * 2
    assert [figure.name for figure in STUDY.figures(congested)] == ["congested"]


def test_there_is_a_matrix_a_pair_of_senders_and_kind_of_response(matrices: Run) -> None:
    figures = {figure.name: figure for figure in STUDY.figures(matrices)}
    assert set(figures) == {
        f"{pair}_{follows}" for pair in ("rfc", "early", "linux") for follows in ("nothing", "data")
    }
    assert svg(figures["linux_nothing"].chart).startswith("<svg")
    found = figures["linux_nothing"].chart["data"]["values"]
    times = {row["kind"]: row["value"] for row in found}
    # A timer costs more than duplicates do.
    assert times["tail loss probe"] > times["fast retransmit"]
    assert "RACK" in figures["linux_nothing"].caption
    assert {table.name for table in STUDY.tables(matrices)} == {"repairs", "positions"}


def test_full_segments_make_up_every_response() -> None:
    for stack, payload in (("sack", 1460), ("linux", 1448)):
        (place,) = chosen(STUDY.keys("simulate"), {"follows": "nothing", "stack": stack, "iw": 7})
        size = STUDY.cells_at("simulate", [place])[0].scenario.to_plan()["applications"][0]["size"]
        assert size == {"distribution": "constant", "value": 7 * payload}


def test_a_run_without_finished_cells_still_answers(matrices: Run, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "run.json").write_text((matrices.directory / "run.json").read_text())
    empty = Run.open(tmp_path)
    assert STUDY.tables(empty) == []
    assert STUDY.figures(empty) == []
    assert Counter(claim.verdict for claim in STUDY.claims(empty))["cannot be checked"] == 25
    assert STUDY.answer(empty) == []


def test_nothing_arrives_twice_with_sack_unless_a_timeout_is_spurious() -> None:
    only = {"experiment": "duplicates", "size_segments": 20, "stack": ["new_reno", "sack"], "iw": [3, 6, 16]}
    twice = STUDY.quantities(run(STUDY, only=only, replicates=1)).duplicates.isel(draw=0).sel(size_segments=20)
    fast, slow = (twice.sel(rate_kbps=rate) for rate in (1024, 256))
    assert float(fast.sel(stack="sack").max()) == 0 < float(fast.sel(stack="new_reno", iw=16))
    assert float(slow.sel(iw=3).max()) == 0 < float(slow.sel(iw=6).min())
