"""`firstflight advise` from flows to page: its stored files, its resumption, its refusals."""

import base64
import gzip
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import advise_flows
import firstflight
from firstflight import _native
from firstflight.advise import advise, experiment
from firstflight.advise.fit import FittedPopulation
from firstflight.advise.sensitivity import SensitivityCase, cases
from firstflight.analysis.ab import least_units
from firstflight.cli.app import app
from firstflight.errors import RequestError
from firstflight.explore.page import PAGE
from firstflight.records import Run

BUDGET = "retransmissions=+0.5,mean=+5%"
NAMES = ("reference", "shallow buffers", "cross traffic")
CASES = len(NAMES)
FLOWS = least_units("mean") + 100
WORK = 2 * FLOWS
VISITS = Path(__file__).resolve().parents[2] / "examples" / "flows" / "visits.log.gz"


def some(population: FittedPopulation) -> list[SensitivityCase]:
    """Three of the cases: enough to see their handling."""
    return [case for case in cases(population) if case.name in NAMES]


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "WORK", WORK)
    monkeypatch.setattr("firstflight.advise.run.cases", some)


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return advise_flows.write(tmp_path_factory.mktemp("flows") / "flows.csv", FLOWS)


@pytest.fixture(scope="module")
def done(flows: Path) -> Path:
    out = flows.parent / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "WORK", WORK)
        patch.setattr("firstflight.advise.run.cases", some)
        advise(flows, iw="10,16", harm=BUDGET, out=out, jobs=1)
    return out


def stored(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "advice.json").read_text())
    return found


def sessions(out: Path) -> int:
    return len(Run.open(out).provenance["sessions"])


def test_every_setting_is_simulated_with_every_window_on_the_same_users(done: Path) -> None:
    run = Run.open(done)
    assert len(run.cells) == 2 * CASES
    rows = run.transfers.collect()
    reference = rows.filter(rows["case"] == "reference")
    sizes = [reference.filter(reference["iw"] == window).sort("replicate", "client")["bytes"] for window in (10, 16)]
    assert sizes[0].to_list() == sizes[1].to_list()
    # A SYN that was lost twice leaves one segment.
    assert set(reference.filter(reference["iw"] == 16)["initial_window_segments"]) - {1} == {16}


def test_the_other_connections_keep_their_window(done: Path) -> None:
    rows = Run.open(done).transfers.collect()
    others = rows.filter(rows["application"].cast(str).str.starts_with("other"))
    assert others.height > 0
    assert set(others["initial_window_segments"]) - {1} == {10}


def test_the_page_and_its_data_are_there_and_say_the_same(done: Path) -> None:
    found = stored(done)
    html = (done / "advice.html").read_text()
    assert found["flows"]["usable"] == FLOWS
    assert found["current"]["window"] == 10
    assert found["answer"][0].split(".")[0] in html
    assert len(found["cases"]) == CASES


@pytest.mark.slow
def test_what_is_assumed_of_the_users_is_shown_as_assumed_and_not_as_found_in_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.advise.measure.LEAST_IN_BUCKET", 20)
    flows = advise_flows.write(tmp_path / "flows.csv", FLOWS, rates=False)
    made, page = advise(flows, iw="10,16", harm="retransmissions=+0.5,groups=+1%", out=tmp_path / "out", jobs=1)
    html = page.read_text().replace("\u00a0", " ")
    assert made.flows.assumed == ("the link rate of 100% of the users",)
    assert "Assumed, not observed: the link rate of 100% of the users." in html
    assert "Path and size of a user are those" not in html
    assert "the users of the data" not in html
    assert "link rates that are assumed for 100% of them" in html
    assert "Users, rate assumed for 100%: each dot is one in" in html
    titles = {segment.dimension for segment in made.groups}
    assert titles == {
        "RTT",
        "Response size",
        "Link rate (assumed)",
        "Bandwidth-delay product (assumed)",
    }
    wheres = {check.where for check in made.checks if check.where.startswith(("rate", "bandwidth"))}
    assert wheres
    assert all("(assumed)" in where for where in wheres)


@pytest.mark.slow
def test_the_shipped_log_is_advised_on_though_it_lacks_flows_for_a_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deep_alone(population: FittedPopulation) -> list[SensitivityCase]:
        return [case for case in cases(population) if case.name == "deep buffers"]

    monkeypatch.setattr("firstflight.advise.run.cases", deep_alone)
    made, _ = advise(VISITS, iw="10,16", harm="retransmissions=+0.5,p99=+5%", out=tmp_path / "out", jobs=1)
    assert (made.decision.outcome, made.decision.initial_window) == ("change", 16)
    assert made.confidence == "insufficient data"
    assert "p99 (needs 4,000)" in made.confidence_reason


@pytest.mark.slow
def test_an_access_log_without_round_trips_is_never_sure_whatever_is_assumed_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(population: FittedPopulation) -> list[SensitivityCase]:
        kept = ("reference", "shallow buffers", "no loss")
        return [case for case in cases(population) if case.name in kept or case.about == "given"]

    monkeypatch.setattr("firstflight.advise.run.cases", few)
    random = np.random.default_rng(1)
    log = tmp_path / "combined.log"
    sizes = (40e3 * random.lognormal(0, 1.2, FLOWS)).astype(int)
    lines = [
        f'10.{row % 250}.9.7 - - [28/Nov/2026:10:{row // 60:02d}:{row % 60:02d} +0000] "GET / HTTP/1.1" 200 {size}'
        for row, size in enumerate(sizes)
    ]
    log.write_text("\n".join(lines) + "\n")
    more: tuple[list[str], ...] = [], ["buffer=150ms"], ["buffer=150ms", "loss=0.4%"]
    made = []
    for place, terms in enumerate(more):
        assume = ["paths=uk-2023+30ms", *terms]
        one, page = advise(log, iw="10,16", harm=BUDGET, out=tmp_path / f"{place}", jobs=1, assume=assume)
        made.append(one)
        html = page.read_text()
        assert one.confidence == "insufficient data"
        assert "The RTT of 100% of the users is assumed, not observed." in one.confidence_reason
        assert '<p class="light care">' in html
        assert "initcwnd 16" not in html
    assert [len(one.cases) for one in made] == [3, 4, 5]
    raised = [one.decision.outcome == "change" for one in made]
    assert raised == sorted(raised, reverse=True)


def test_flows_that_show_all_of_a_user_have_nothing_assumed_of_path_and_size(done: Path) -> None:
    assert stored(done)["flows"]["assumed"] == []
    html = (done / "advice.html").read_text()
    assert "Path and size of a user are those" in html
    assert "the users of the data" in html


def test_the_decision_is_made_again_with_other_seeds_of_the_resampling(done: Path) -> None:
    assert len(stored(done)["decision"]["other_seeds"]) == 4


def test_a_percentile_that_so_few_flows_cannot_give_has_no_interval_and_says_why(done: Path) -> None:
    tail = next(gain for gain in stored(done)["gains"] if gain["statistic"] == "p99")
    assert tail["change_percent"]["low"] is None
    assert f"p99 needs {least_units('p99'):,}" in tail["reason"]


def test_replicates_do_not_pass_for_more_flows(done: Path) -> None:
    assert stored(done)["flows"]["replicates"] == 2
    mean = next(gain for gain in stored(done)["gains"] if gain["statistic"] == "mean")
    assert mean["change_percent"]["low"] is not None
    assert f"{FLOWS:,} pairs are too few" in next(g for g in stored(done)["gains"] if g["statistic"] == "p99")["reason"]


@pytest.mark.slow
def test_a_second_time_nothing_is_simulated_and_the_budget_may_be_another(done: Path, flows: Path) -> None:
    before = sessions(done)
    other, _ = advise(flows, iw="10,16", harm="mean=+1%", out=done)
    assert sessions(done) == before
    assert [term.text for term in other.budget] == ["mean=+1%"]


@pytest.mark.slow
def test_two_threads_give_what_one_gives_and_a_lost_cell_is_made_again(done: Path, flows: Path, tmp_path: Path) -> None:
    first, _ = advise(flows, iw="10,16", harm=BUDGET, out=done)
    out = tmp_path / "again"
    advise(flows, iw="10,16", harm=BUDGET, out=out, jobs=2)
    for cell in sorted((out / "cells").iterdir())[:3]:
        shutil.rmtree(cell)
    again, _ = advise(flows, iw="10,16", harm=BUDGET, out=out, jobs=2)
    assert again.as_dict() == first.as_dict()


@pytest.mark.slow
def test_a_candidate_that_is_added_leaves_the_others_as_they_are(done: Path, flows: Path, tmp_path: Path) -> None:
    out = tmp_path / "more"
    shutil.copytree(done, out)
    more, _ = advise(flows, iw="20", harm=BUDGET, out=out)
    assert more.candidates == (20,)
    assert len(Run.open(out).cells) == 3 * CASES
    both, _ = advise(flows, iw="16,20", harm=BUDGET, out=out)
    assert both.candidates == (16, 20)
    assert sessions(out) == sessions(done) + 1


def test_a_directory_of_other_flows_is_refused_and_left_as_it_is(done: Path, tmp_path: Path) -> None:
    other = advise_flows.write(tmp_path / "other.csv", FLOWS, seed=2)
    before = (done / "advice.json").read_bytes()
    with pytest.raises(RequestError, match=r"holds the advice of another request: the flows of flows\.csv"):
        advise(other, iw="10,16", out=done)
    assert (done / "advice.json").read_bytes() == before


@pytest.mark.slow
def test_the_advice_of_something_else_can_be_set_aside(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    other = advise_flows.write(tmp_path / "other.csv", FLOWS, seed=2)
    advise(other, iw="10,16", harm=BUDGET, out=out, set_aside=True)
    assert stored(out)["flows"]["source"] == "other.csv"
    assert stored(tmp_path / "out.1")["flows"]["source"] == "flows.csv"


def test_a_directory_that_is_no_advice_is_refused(flows: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(RequestError, match="is not a run and not empty"):
        advise(flows, out=tmp_path)


def test_a_report_of_an_advice_says_where_its_page_is(done: Path) -> None:
    with pytest.raises(RequestError, match=r"holds an advice: its page is advice\.html"):
        firstflight.studies.of(Run.open(done))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.csv"], 'there is no file "none.csv"'),
        (["FLOWS", "--iw", "ten"], '--iw "ten"'),
        (["FLOWS", "--iw", "10"], "names only 10, which is the current window"),
        (["FLOWS", "--iw", "2000"], "from 1 to 1000"),
        (["FLOWS", "--harm", "speed=+5%"], 'nothing is called "speed"'),
        (["FLOWS", "--max-connections", "5"], "--max-connections is 5"),
        (["FLOWS", "--kind", "apache"], 'no kind of file "apache"'),
    ],
)
def test_a_wrong_request_ends_with_status_2_and_one_sentence(
    firstflight: Callable[..., Any], flows: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    words = [str(flows) if word == "FLOWS" else word for word in arguments]
    out = tmp_path / "out"
    done = firstflight("advise", *words, "--out", out)
    assert done.status == 2
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.skipif(not PAGE.exists(), reason="the explorer is not built: make explore")
def test_the_page_links_users_to_the_explorer_and_they_take_the_time_that_was_stored(done: Path) -> None:
    links = re.findall(
        r'<a href="explorer\.html#plan=([\w-]+)&amp;a\.iw=(\d+)&amp;b\.iw=(\d+)">', (done / "advice.html").read_text()
    )
    assert (done / "explorer.html").read_text() == PAGE.read_text()
    assert [(int(a), int(b)) for _, a, b in links] == 4 * [(10, 16)]
    rows = Run.open(done).table("transfers", case="reference", iw=10).collect()
    every = set(rows["completion_time_s"])
    for packed, *_ in links:
        opening = json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "==")))
        alone = _native.simulate(json.dumps(opening["plan"]), opening["seed"], 0, 1, False)
        (took,) = np.frombuffer(alone["tables"]["transfers"]["completion_time_s"][1])
        assert took in every


@pytest.mark.slow
def test_the_first_advice_of_the_readme_is_about_what_its_program_makes_and_warns_of_nothing(tmp_path: Path) -> None:
    shipped, flows = VISITS.with_name("homes.csv.gz"), tmp_path / "homes.csv"
    subprocess.run([sys.executable, VISITS.with_name("homes.py"), flows, "--flows", "4000"], check=True)
    assert gzip.decompress(shipped.read_bytes()) == flows.read_bytes()
    words = ["advise", str(shipped), "--iw", "10,20", "--out", str(tmp_path / "advice")]
    said = CliRunner().invoke(app, words, catch_exceptions=False).output
    assert "Raise the initial window from 10 to 20 segments." in said
    assert not re.search("insufficient|single network|proxy|doubt", said)
