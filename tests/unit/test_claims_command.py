"""The output of `firstflight claims` for a claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from firstflight.analysis.claim import Claim, Expectation, Sentence, above, at_most, tally
from firstflight.analysis.intervals import Estimate
from firstflight.cli import claims as claims_command


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *claims: Claim) -> str:
    monkeypatch.setattr("firstflight.cli.claims.Run.open", lambda directory: SimpleNamespace(study="rfc2415"))
    study = SimpleNamespace(claims=lambda run: list(claims), deciding=lambda run, claims: "")
    monkeypatch.setattr(claims_command, "of", lambda run: study)
    claims_command.command(Path("anywhere"))
    return capsys.readouterr().out


def sentence(expectation: Expectation, tolerance: float) -> Sentence:
    own = replace(expectation, unit="percent", tolerance=tolerance)
    return Sentence("x-1", "a book", "Nobody is harmed.", own, "It calls 5% no effect.")


def test_a_tally_has_verbs_that_fit_and_no_empty_verdicts() -> None:
    assert (
        tally({"holds": 13, "differs": 1, "undecided": 2, "cannot be checked": 0}) == "13 hold, 1 differs, 2 undecided"
    )


def test_a_verdict_is_printed_with_tolerance_interval_and_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = sentence(at_most(0), 5).judge(Estimate(3.904, 3.1, 4.7, 10))
    assert printed(capsys, monkeypatch, claim) == (
        "holds             x-1: Nobody is harmed. (a book)\n"
        "                  expected at most 0, tolerance 5%; found 3.904% (95% CI 3.1 to 4.7)\n"
        "                  It calls 5% no effect.\n\n"
    )


def test_a_claim_whose_value_was_put_in_is_shown_as_it_is_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = replace(sentence(at_most(0), 5).judge(Estimate(3.904, 3.1, 4.7, 10)), given=True)
    assert (given.verdict, given.counted) == ("holds", "put in or fitted")
    assert printed(capsys, monkeypatch, given).startswith("put in or fitted  x-1: ")
    assert replace(given, verdict="differs").counted == "differs"


def test_a_zero_has_no_sign(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(capsys, monkeypatch, sentence(at_most(0), 5).judge(Estimate(-0.0, -0.0, 0.0, 10)))
    assert "; found 0% (95% CI 0 to 0)\n" in text


def test_what_is_undecided_or_unchecked_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(
        capsys,
        monkeypatch,
        sentence(above(0), 0).judge(Estimate(3.8, -3.7, 11.3, 10)),
        sentence(above(0), 0).unchecked("The run lacks a cell."),
    )
    assert text.startswith("undecided         x-1:")
    assert "expected above 0%; found 3.8% (95% CI -3.7 to 11.3)\n" in text
    assert "more replicates could decide." in text
    assert text.endswith("expected above 0%\n                  The run lacks a cell.\n\n")
