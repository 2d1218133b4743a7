"""The scorecard of RFC 9743: its cases, the meaning of a verdict, and two cases from the command to the page."""

import math
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import firstflight
from firstflight import studies
from firstflight.analysis.intervals import Estimate
from firstflight.cli.app import app
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario.tcp import choices
from firstflight.studies.scorecard import NOT_MEASURED, Scheme, Scorecard, scheme
from firstflight.studies.scorecard.case import MEASURES, MeasureChange
from firstflight.studies.scorecard.scheme import known

# Of the table of contents of RFC 9743; 5.2 itself asks for starvation and loss of feedback.
SECTIONS = {
    "5": "1.1 1.2 1.3 1.4 1.5 2 2.1 2.2 2.3 3.1 3.2",
    "6": "1 2 3 4",
    "7": "1 2 3 4 5 6 7 8 9 10 11",
}
PAGE = (Path(__file__).parents[2] / "docs/scorecard.md").read_text(encoding="utf-8")
CUBIC = Scheme("cubic")
SLICE = ["bufferbloat", "high-delay"]


def change(measure: str, value: float, low: float, high: float) -> MeasureChange:
    return MeasureChange(MEASURES[measure], "flows", 1, 1, Estimate(value, low, high))


def test_the_whole_interval_decides_a_verdict_and_less_time_or_more_bytes_are_better() -> None:
    assert change("time", -12, -15, -9).verdict == change("delivered", 12, 9, 15).verdict == "better"
    assert change("time", 12, 9, 15).verdict == change("delivered", -12, -15, -9).verdict == "worse"
    assert change("time", 1, -4, 5).verdict == "equal"
    assert change("time", 6, 4, 8).verdict == change("time", 0, -9, 9).verdict == "inconclusive"
    assert change("time", 6, math.nan, math.nan).verdict == "inconclusive"
    assert change("rating", -0.2, -0.25, -0.15).verdict == "worse"


def test_every_scheme_of_the_profile_has_a_name() -> None:
    names = {next(iter(table.values())) for key in ("startup", "congestion_control") for table in choices()[key]}
    assert names <= set(known())
    assert known()["hystart_plus_plus"] == {
        "congestion_control": {"algorithm": "cubic", "hystart": "hystart_plus_plus"}
    }


def test_every_section_of_the_rfc_has_a_case_or_a_reason() -> None:
    card = Scorecard(scheme("jump_start"), CUBIC)
    assert {case["section"] for case in card._case_tables.values()} | {section for section, *_ in NOT_MEASURED} == {
        f"{chapter}.{section}" for chapter, sections in SECTIONS.items() for section in sections.split()
    }


def test_only_the_servers_of_a_schemes_own_flows_have_it() -> None:
    cells = Scorecard(scheme("bbr"), CUBIC).cells("simulate")
    mixed = next(cell for cell in cells if cell.key["experiment"] == "cubic" and cell.key["scheme"] == "bbr")
    own, other = mixed.scenario.to_plan()["applications"]
    assert own["server_tcp"]["congestion_control"] == {"algorithm": "bbr"}
    assert other["server_tcp"]["congestion_control"]["algorithm"] == "cubic"
    assert own["client_tcp"] == other["client_tcp"]


def test_two_cases_from_the_command_to_the_page(tmp_path: Path) -> None:
    out = tmp_path / "card"
    words = [*shlex.split(next(line for line in PAGE.splitlines() if " --only " in line))[1:], "--out", str(out)]
    printed = CliRunner().invoke(app, words, catch_exceptions=False).output
    assert re.search(r"5\.1\.2  .*\n +own flows +\w+ .*\n +others or link +worse ", printed)
    assert re.search(r"7\.5    .*\n +own flows +better ", printed)
    assert re.search(r"7\.10   .*\n +not applicable ", printed)
    run = Run.open(out)
    card = studies.of(run)
    judged = {case.id: case.changes for case in card.cases(run) if case.id in SLICE}
    assert judged["bufferbloat"]["others or link"].verdict == "worse"
    assert judged["high-delay"]["own flows"].verdict == "better"
    assert {claim.id: claim.verdict for claim in card.claims(run) if claim.id in SLICE} == {
        "bufferbloat": "differs",
        "high-delay": "holds",
    }
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "RFC 9743 scorecard of jump_start against cubic" in page
    # Each change has the verdict of its own interval beside it.
    for change in (change for changes in judged.values() for change in changes.values()):
        assert f'badge {change.verdict}">{change.verdict}</span> {change.title} <span' in page
    assert "firstflight scorecard jump_start" in page


def test_the_reference_under_another_name_changes_nothing() -> None:
    card = Scorecard(scheme("window"), CUBIC)
    run = firstflight.run(card, replicates=2, only={"experiment": ["starvation", "real-time"]})
    found = [case for case in Scorecard.of(run).cases(run) if case.gain and case.harm]
    assert {change.verdict for case in found for change in case.changes.values()} == {"equal"}
    assert {change.change.value for case in found for change in (case.gain, case.harm) if change} == {0}


@pytest.mark.slow
def test_the_page_has_the_changes_of_bbr_and_jump_start_that_it_names() -> None:
    run = firstflight.run(Scorecard(scheme("bbr"), CUBIC), replicates=30, only={"experiment": "high-loss"})
    harm = next(case.harm for case in Scorecard.of(run).cases(run) if case.id == "high-loss")
    assert harm is not None
    assert harm.verdict == "worse"
    found, low, high = (f"{of:.1f}" for of in (harm.change.value, harm.change.low, harm.change.high))
    assert f"finds {found} pp\nmore drops there (95% CI {low} to {high})" in PAGE
    run = firstflight.run(Scorecard(scheme("jump_start"), CUBIC), only={"experiment": "drop-tail"})
    case = next(case for case in Scorecard.of(run).cases(run) if case.id == "drop-tail")
    assert case.gain is not None
    assert case.harm is not None
    assert f"({-case.gain.change.value:.1f}% less time), and others'" in PAGE
    assert f"({case.harm.change.value:.0f}% more)" in PAGE


def test_a_file_gives_a_scheme(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[tcp]\nstartup = { scheme = "rapid_start", growth = 2 }\n')
    assert scheme(str(file)) == Scheme("mine.toml", {"startup": {"scheme": "rapid_start", "growth": 2}})
    file.write_text("[network]\n")
    with pytest.raises(RequestError, match=r"has no \[tcp\] table"):
        scheme(str(file))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jumpstart", 'did you mean "jump_start"'),
        ("no.toml", "there is no file"),
        ("quick_start", r'needs "rate"; parameters go into the \[tcp\] table of a file'),
    ],
)
def test_an_unknown_scheme_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        scheme(text)


def test_an_unknown_case_is_one_sentence() -> None:
    result = CliRunner().invoke(app, ["scorecard", "bbr", "--only", "buferbloat"])
    assert str(result.exception) == 'no case is called "buferbloat"; did you mean "bufferbloat"?'


def test_the_reference_is_not_compared_with_itself() -> None:
    with pytest.raises(RequestError, match="is the reference too"):
        Scorecard(scheme("cubic"), CUBIC)
