"""The study rfc6928-rounds: 26 of 26, and the RFC's slip."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from firstflight.records import Run
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.rfc6928_rounds import _difference, answer

STUDY = find("rfc6928-rounds")


@pytest.fixture(scope="module", params=["simulate", "model"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(STUDY, engine=request.param, out=tmp_path_factory.mktemp("run") / "rounds")


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Run:
    only = {"segments": [3, 32], "iw": [10]}
    return run(STUDY, only=only, out=tmp_path_factory.mktemp("run") / "part")


def test_all_printed_values_hold_and_the_slip_differs(whole: Run) -> None:
    claims = STUDY.claims(whole)
    assert Counter(claim.verdict for claim in claims) == {"holds": 28, "differs": 1}
    assert sum("-segments-iw" in claim.id and "example" not in claim.id for claim in claims) == 26
    (slip,) = (claim for claim in claims if claim.verdict == "differs")
    assert slip.id == "rfc6928-s5.1-example-32-segments-iw10"
    assert (slip.expected, slip.found, slip.tolerance) == (2, 3, 0)
    assert "table has 2 for 25 segments and 3 for 33, and round 2 ends with segment 25" in slip.reason


def test_claims_have_an_id_each(whole: Run) -> None:
    names = [claim.id for claim in STUDY.claims(whole)]
    assert len(set(names)) == len(names)


def test_the_table_shows_run_rule_and_rfc_side_by_side(whole: Run) -> None:
    (table,) = STUDY.tables(whole)
    assert table.frame.columns == ["segments", "iw", "metric", "ours", "low", "high", "published", "unit"]
    assert table.frame.height == 2 * 28
    differing = table.frame.filter(table.frame["ours"] != table.frame["published"])
    assert set(differing.select("segments", "iw", "ours", "published").iter_rows()) == {(32, 10, 3.0, 2.0)}


def test_answer_and_figure_come_from_the_run(whole: Run) -> None:
    saving, agreement, slip = STUDY.answer(whole)
    assert "2.8 round trips on average instead of 5.2: 0 to 4 saved" in saving
    assert "This run reproduces 26 of the 26 values" in agreement
    assert "round by round reproduces 26 of 26" in agreement
    assert "they take 3, as the table itself implies" in slip
    (figure,) = STUDY.figures(whole)
    assert figure.chart["layer"]


def test_a_slip_is_the_rfcs_only_where_the_rule_agrees_with_the_run() -> None:
    assert "is a slip" in _difference(3.0, (32, 10), 2)
    this_run = _difference(4.0, (32, 10), 2)
    assert "slip" not in this_run
    assert "here they take 4, where the rule has 3" in this_run
    assert _difference(5.0, (32, 3), 5) == ""


def test_a_restricted_run_says_what_it_cannot_check(part: Run) -> None:
    claims = STUDY.claims(part)
    assert Counter(claim.verdict for claim in claims) == {"holds": 1, "differs": 1, "cannot be checked": 27}
    missing = next(claim for claim in claims if claim.id == "rfc6928-s5.1-79-segments-iw3")
    assert missing.reason == "This run has no value for segments 79, iw 3."
    saving = claims[-1]
    assert saving.reason.startswith("This run has no value for segments 3, 6, 10, ")
    assert STUDY.tables(part)[0].frame.height == 4
    # The share of the table that the run reproduces is not stated for a partial run.
    (slip,) = STUDY.answer(part)
    assert "is a slip" in slip
    assert len(STUDY.figures(part)) == 1


def test_what_the_rule_reproduces_does_not_depend_on_the_cells_of_a_run(part: Run) -> None:
    _, agreement, *_ = answer(STUDY.quantities(part))  # type: ignore[attr-defined]
    assert "This run reproduces 1 of the 26 values" in agreement
    assert "round by round reproduces 26 of 26" in agreement


def test_a_run_without_finished_cells_has_no_answer(tmp_path: Path) -> None:
    whole = run(STUDY, engine="model", only={"segments": [3]}, out=tmp_path / "run")
    for place in (tmp_path / "run" / "cells").iterdir():
        place.rename(tmp_path / place.name)
    assert STUDY.tables(whole) == []
    assert STUDY.figures(whole) == []
    assert Counter(claim.verdict for claim in STUDY.claims(whole))["cannot be checked"] == 29
    assert STUDY.answer(whole) == []
