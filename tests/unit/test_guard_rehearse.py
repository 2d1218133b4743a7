"""Rehearsals: logs in virtual time, bad links, and values that a log lacks."""

import gzip
import json
import runpy
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from firstflight import observe
from firstflight.guard.brain import Brain, Settings
from firstflight.guard.groups import Groups
from firstflight.guard.policy import Policy
from firstflight.guard.rehearse import BadLink, LoggedConnection, Rehearsal, connections, rehearse
from firstflight.guard.stop_rule import StopRule

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
    stopped = sum(bool(month(seed).stops) for seed in range(4))
    # At an error rate of 5% two or more of four have a probability of 1.4%.
    assert stopped <= 1


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
    assert [stop["group"] for stop in found["stops"]] == ["10.77.0.0/24"]
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


def lines_with(tmp_path: Path, **first: str) -> Path:
    """The log with one line more, the first one's with other values."""
    lines = gzip.decompress(VISITS.read_bytes()).decode().splitlines()
    words = dict(word.split("=", 1) for word in lines[0].split()) | {"connection": "999999"} | first
    path = tmp_path / "flows.log"
    path.write_text("\n".join([*lines, " ".join(f"{name}={value}" for name, value in words.items())]) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "named"), [({"msec": "0.000"}, "1970-01-01"), ({"msec": "4102444800.000"}, "2100-01-01")]
)
def test_a_line_of_another_time_is_left_out_named_and_changes_nothing_else(
    firstflight: Program, tmp_path: Path, values: dict[str, str], named: str
) -> None:
    found = json.loads(firstflight("guard", "rehearse", lines_with(tmp_path, **values), *OPTIONS, "--json").out)
    assert f"left out: 1 connection ({named}) more than 30 days from all others or longer than that" in found["notes"]
    plain = json.loads(firstflight("guard", "rehearse", VISITS, *OPTIONS, "--json").out)
    assert {**found, "notes": None} == {**plain, "notes": None}


def test_years_without_connections_take_no_time() -> None:
    settings = Settings(Policy("static", 20), StopRule(period_s=1.0))
    prefix = ip_network("192.0.2.1/32")
    times = [year * 365 * 86400.0 + k for year in range(50) for k in range(20)]
    log = [LoggedConnection(at, at + 0.5, prefix, 60_000, 0, False, 0, 0.05) for at in times]
    done: list[int] = []
    found = rehearse(log, Brain(settings, Groups(10)), 1.0, progress=done.append)
    assert done == list(range(1000))
    # An hour of silence is gone through, and then the years at once.
    assert len(found.moments) < 50 * 3700


def test_a_log_whose_hosts_never_come_again_says_so(firstflight: Program, tmp_path: Path) -> None:
    line = '10.0.{}.{} - - [10/Oct/2025:13:{:02d}:{:02d} +0000] "GET / HTTP/1.1" 200 45658 "-" "UA"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(line.format(n % 200, n % 250, n // 60, n % 60) for n in range(3000)))
    done = firstflight("guard", "rehearse", log, "--loss", "2%", "--period", "60s", "--least", "50")
    assert "verdict: no host connected again while its route raised the window" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "the log is too short: arms are drawn once per period; give --period 13s"),
        (["--period", "10s", "--least", "5000"], "too little traffic: 10.77.0.0/24 has most, "),
        (["--period", "10s"], "undecided: the log has no losses, so no harm could be seen; give --loss 2%"),
        (
            ["--period", "10s", "--loss", "2%"],
            "`sudo firstflight guard run --iw 20 --policy static --period 10s --least ",
        ),
        (["--iw", "5", "--period", "10s"], "nothing to raise: 5 segments are not more than the system's"),
    ],
)
def test_a_rehearsal_ends_in_what_to_do_next(firstflight: Program, options: list[str], said: str) -> None:
    done = firstflight("guard", "rehearse", VISITS, *options)
    assert done.status == 0, done.err
    last = done.out.splitlines()[-1]
    assert last.startswith("verdict: ")
    assert said in last


def test_a_loss_in_a_handshake_of_tls_is_one_loss_and_its_bytes_are_no_response(tmp_path: Path) -> None:
    # The capture's first flight over TLS is that of the handshake: lost there, and nothing of the response.
    path = tmp_path / "flows.csv"
    head = (
        "start_s,rtt_ms,bytes,segments_sent,retransmissions,first_flight_segments,first_flight_lost_segments,tls_bytes"
    )
    path.write_text(f"{head}\n1,20,9000,7,0,9,1,12000\n2,20,9000,7,0,9,0,12000\n")
    found, _ = connections(observe.read(path), None, 1)
    assert [one.bytes for one in found] == [9000, 9000]
    assert [(one.lost, one.retransmissions) for one in found] == [(True, 0), (False, 0)]
