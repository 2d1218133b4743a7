"""Rehearsals: logs in virtual time, bad links, and values that a log lacks."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight import observe
from firstflight.guard.rehearse import BadLink, Rehearsal, connections

Program = Callable[..., Any]
REPOSITORY = Path(__file__).resolve().parents[2]
FLOWS = REPOSITORY / "examples/flows"
VISITS = FLOWS / "visits.log.gz"


@pytest.fixture(scope="module")
def month() -> Callable[..., Rehearsal]:
    """Simulates a month of the benchmark."""
    found: Callable[..., Rehearsal] = runpy.run_path(str(REPOSITORY / "research/guard_false_stops.py"))["month"]
    return found


def test_a_bad_link_is_stopped_within_some_hundred_connections(month: Callable[..., Rehearsal]) -> None:
    found = month(1, bad=BadLink(10 * 86400.0, 0.2))
    stop = found.stops[0]
    assert stop.at > 10 * 86400
    assert stop.raised_since_bad is not None
    assert 0 < stop.raised_since_bad < 300
    assert found.missed == []


@pytest.mark.slow
def test_harmless_months_are_rarely_stopped(month: Callable[..., Rehearsal]) -> None:
    """A slice; the whole benchmark is research/guard_false_stops.py."""
    stopped = sum(bool(month(seed).stops) for seed in range(8))
    # At an error rate of 5% three or more of eight have a probability of 0.6%.
    assert stopped <= 2


def test_a_log_without_losses_says_what_to_give() -> None:
    found, notes = connections(observe.read(VISITS), None, seed=1)
    assert all(connection.lost is None for connection in found)
    assert "no losses in the log: the rule sees none; give --loss, such as 2%" in notes


def test_a_capture_tells_losses_of_the_first_flight() -> None:
    found, notes = connections(observe.read(FLOWS / "server.pcapng"), None, seed=1)
    assert all(connection.lost is not None for connection in found)
    assert not any("no losses" in note for note in notes)


OPTIONS = ("--loss", "3%", "--period", "10s", "--least", "200", "--bad", "60s=30%")


def test_the_command_prints_what_the_page_shows_and_draws_it(firstflight: Program, tmp_path: Path) -> None:
    picture = tmp_path / "timeline.png"
    done = firstflight("guard", "rehearse", VISITS, *OPTIONS, "--plot", picture)
    assert done.status == 0, done.err
    page = (REPOSITORY / "docs/guard.md").read_text()
    assert f"examples/flows/visits.log.gz {' '.join(OPTIONS)}" in page
    for line in done.out.splitlines()[8:-1]:
        assert f"    {line}" in page
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_holds_the_same(firstflight: Program) -> None:
    found = json.loads(firstflight("guard", "rehearse", VISITS, *OPTIONS, "--json").out)
    assert found["connections"] == 4000
    assert [stop["group"] for stop in found["stops"]] == ["10.0.0.0/24"]
    assert found["missed"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bad", "20%"], "is not TIME=RATE"),
        (["--bad", "60=20%"], "has no unit"),
        (["--bad", "60min=20%"], "ends before, its last connection opens after 2.2 min"),
        (["--loss", "200%"], "is no share of connections"),
        (["--policy", "best"], "there is no policy"),
        (["--period", "never"], "--period"),
        (["--plot", "timeline.gif"], ".svg, .png or .pdf"),
    ],
)
def test_a_wrong_option_is_named(firstflight: Program, options: list[str], said: str) -> None:
    done = firstflight("guard", "rehearse", VISITS, *options)
    assert done.status == 2
    assert said in done.err


def test_a_log_without_times_is_refused(firstflight: Program) -> None:
    done = firstflight("guard", "rehearse", FLOWS / "table.csv")
    assert done.status == 2
    assert "has no times" in done.err
