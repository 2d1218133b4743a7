"""docs/evidence has a page of each study that is kept, and what is kept is of the claims that the study has now."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import firstflight
from firstflight.studies import find
from firstflight.studies.kernel import DeclaredStudy

DOCS = Path(__file__).parents[2] / "docs"


def _pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("evidence_page", DOCS / "evidence_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES: list[str] = _pages().names()


def test_every_file_of_evidence_belongs_to_a_study_of_which_something_is_kept() -> None:
    files = {path.name.partition(".")[0] for path in (DOCS / "evidence").iterdir()}
    assert files == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_what_its_store_makes(name: str) -> None:
    page = (DOCS / "evidence" / f"{name}.md").read_text(encoding="utf-8")
    assert page == _pages().page(name)
    assert (DOCS / "evidence" / f"{name}.claims.csv").read_text(encoding="utf-8") == _pages().claims_file(name)
    assert [file.name for file in (DOCS / "evidence").glob(f"{name}.*.csv") if f"]({file.name})" not in page] == []
    tables = [block.partition("\n```")[0] for block in page.split("```text\n")[1:]]
    assert [table for table in tables if len(table.splitlines()) > 30] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_are_the_claims_that_the_study_has_now(name: str) -> None:
    kept = json.loads((DOCS / "evidence" / f"{name}.json").read_text(encoding="utf-8"))
    if not (DOCS / "evidence" / f"{name}.npz").exists():
        study = find(name)
        assert isinstance(study, DeclaredStudy)
        assert [claim["id"] for claim in kept["claims"]] == study.claim_ids(kept["engine"])
        return
    current = _pages().with_current_claims(name)
    assert current["answer"] == kept["answer"]
    for now, before in zip(current["claims"], kept["claims"], strict=True):
        numbers = {of: before[of] for of in ("found", "low", "high") if before[of] is not None}
        # Sums differ between processors in their last digits.
        assert now == before | {of: pytest.approx(number, 1e-9, 1e-9) for of, number in numbers.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if (DOCS / "evidence" / f"{name}.npz").exists()])
def test_the_evidence_is_of_the_scenarios_that_the_study_has_now(name: str) -> None:
    """If it fails: run the study, and store it (docs/evidence_page.py)."""
    kept = json.loads((DOCS / "evidence" / f"{name}.json").read_text(encoding="utf-8"))
    assert _pages().scenarios(find(name), kept["engine"]) == kept["scenarios"]


@pytest.mark.parametrize("name", NAMES)
def test_the_sentence_of_a_claim_and_its_reason_stand_alone(name: str) -> None:
    claims = json.loads((DOCS / "evidence" / f"{name}.json").read_text(encoding="utf-8"))["claims"]
    pronoun = re.compile("(And|But|Or|So|They|It|Its|This [a-z]+ |These|Those|There|That|Then|Their)\\b")
    assert [claim["text"] for claim in claims if pronoun.match(claim["text"])] == []
    assert [claim["reason"] for claim in claims if len(claim["reason"].split()) < 5] == []


def test_the_page_of_answers_is_what_the_stores_make() -> None:
    assert (DOCS / "what-we-found.md").read_text(encoding="utf-8") == _pages().answers()


def test_the_list_of_studies_is_what_the_stores_make() -> None:
    page = (DOCS / "validation.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"(evidence/{name}.md)" not in page] == []
    assert page == _pages().validation()


def test_an_answer_does_not_outlive_its_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pages = _pages()
    questions = (DOCS / "questions.toml").read_text(encoding="utf-8")
    changed = tmp_path / "questions.toml"
    changed.write_text(questions.replace('verdict = "undecided"', 'verdict = "holds"', 1), encoding="utf-8")
    monkeypatch.setattr(pages, "QUESTIONS", changed)
    with pytest.raises(ValueError, match=r'" was answered when .* and it is "undecided": rewrite'):
        pages.answers()


def test_an_answer_has_one_place_for_its_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pages = _pages()
    changed = tmp_path / "questions.toml"
    changed.write_text(
        (DOCS / "questions.toml").read_text(encoding="utf-8").replace(": 21 take {}", ": 21 take some"),
        encoding="utf-8",
    )
    monkeypatch.setattr(pages, "QUESTIONS", changed)
    with pytest.raises(ValueError, match=r"needs one \{\} for the number"):
        pages.answers()


@pytest.mark.parametrize(
    ("options", "lacks"),
    [
        ({"only": {"iw": 3}}, "of 28 cells are finished; run it without --only, to the end"),
        ({"replicates": 2}, "it has 2 replicates a cell, and the study 1; run it without --replicates"),
    ],
)
def test_a_run_that_is_not_whole_is_not_stored(
    options: dict[str, Any], lacks: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pages = _pages()
    monkeypatch.setattr(pages, "EVIDENCE", tmp_path / "evidence")
    out = tmp_path / "run"
    firstflight.run("rfc6928-rounds", out=out, **options)
    with pytest.raises(firstflight.RequestError, match=lacks):
        pages.store(str(out))
    assert not (tmp_path / "evidence").exists()


def test_a_claim_of_a_quantity_that_is_not_stored_needs_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find("queues"), "_claims", lambda q: [q.download])
    with pytest.raises(
        firstflight.RequestError, match=r'no quantity "download"; .*for others, run queues, and store it'
    ):
        _pages().with_current_claims("queues")


def test_a_whole_run_is_stored_as_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pages = _pages()
    kept = (DOCS / "evidence" / "rfc6928-rounds.json").read_text(encoding="utf-8")
    monkeypatch.setattr(pages, "EVIDENCE", tmp_path)
    firstflight.run("rfc6928-rounds", out=tmp_path / "run")
    pages.store(str(tmp_path / "run"))
    assert (tmp_path / "rfc6928-rounds.json").read_text(encoding="utf-8") == kept
    stored = {path.name for path in tmp_path.glob("*.*") if path.suffix not in (".json", ".npz")}
    assert {"rfc6928-rounds.round_trips.csv", "rfc6928-rounds.rounds.svg"} <= stored
    for name in stored:
        assert (tmp_path / name).read_bytes() == (DOCS / "evidence" / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_begins_with_its_answer_and_a_figure_that_is_there(name: str) -> None:
    page = (DOCS / "evidence" / f"{name}.md").read_text(encoding="utf-8")
    begin, _, _ = page.partition("**Question.**")
    assert "**Answer.**" in begin
    files = set(re.findall(r"[\w.-]+\.svg", page))
    assert files == {path.name for path in (DOCS / "evidence").glob(f"{name}.*svg")}
    assert re.search(r"!\[.+\]\([\w.-]+\.svg\)", begin)


def test_the_readme_has_the_numbers_of_the_evidence() -> None:
    kept = json.loads((DOCS / "evidence/rfc2415.json").read_text(encoding="utf-8"))
    number = Counter(claim["verdict"] for claim in kept["claims"] if not claim["given"])
    readme = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    counted = f"{number['holds']} hold, {number['differs']} differ and {number['undecided']} are undecided"
    assert f"Of its {len(kept['claims'])} claims {counted}" in readme
    gain = re.search(r"falls by ([\d.]+%)", kept["answer"][0])
    assert gain is not None
    assert f"{gain[1]} shorter" in readme
