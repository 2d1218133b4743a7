"""Rounds of one transfer, in words and on the page."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from firstflight import explain
from firstflight.cli.app import app
from firstflight.explain.ladder import sheet
from firstflight.explain.page import comparison, cost, heading, line, page
from firstflight.explain.rounds import Transfer
from firstflight.explain.rounds import transfer as of_trace
from firstflight.scenario import Scenario
from firstflight.tracing import Trace

ROOT = Path(__file__).resolve().parents[2]
SHOWN = Scenario.load(Path(explain.__file__).with_name("download.toml"))
DOWNLOAD = Scenario.from_toml("""
name = "download"
duration = "60s"
tcp = { profile = "linux" }

[network]
topology = "chain"
links = { rate = "10Mbit", delay = "50ms", queue = "100p" }

[[application]]
kind = "file_transfer"
size = "30kB"
""")
# A queue of 8 packets behind a flight of 21: 12 are dropped.
SHALLOW = DOWNLOAD.replace("network.links[0].queue", "8p")


def transfer(scenario: Scenario, segments: int) -> Transfer:
    return of_trace(Trace(scenario.replace("tcp.initial_window", segments)))


def test_the_first_commands_show_one_scenario_and_the_pictures_say_what_they_draw():
    assert SHOWN.to_dict() == Scenario.load(ROOT / "examples/download.toml").to_dict()
    times = [f"{1e3 * (transfer(SHOWN, iw).completion_s or 0):.1f} ms" for iw in (3, 10)]
    for name in ("README.md", "docs/start.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "firstflight explain --iw 3,10 --out explain.html" in text
        (alt,) = re.findall(r"!\[(.*?)\]\((?:docs/)?images/explain\.svg\)", text)
        assert re.findall(r"[0-9.]+ ms", alt)[-2:] == times


def test_rounds_double_from_the_initial_window():
    three, ten = transfer(DOWNLOAD, 3), transfer(DOWNLOAD, 10)
    assert [(one.number, one.segments, one.retransmissions) for one in three.rounds] == [
        (1, 3, 0),
        (2, 6, 0),
        (3, 12, 0),
    ]
    assert [(one.number, one.segments, one.retransmissions) for one in ten.rounds] == [(1, 10, 0), (2, 11, 0)]
    assert heading(ten) == "IW 10: 2 rounds, complete after 314.4 ms"
    assert line(ten.rounds[1], ten) == "round 2: 11 segments, from 251.5 ms"
    assert comparison([three, ten]) == (
        "IW 10 instead of IW 3 saves 1 round trip: 314.4 ms instead of 416.8 ms (-24.6%)."
    )


def test_a_window_that_overflows_the_queue_is_no_faster_and_its_retransmissions_are_rounds():
    three, large = transfer(SHALLOW, 3), transfer(SHALLOW, 32)
    assert (large.rounds[0].segments, large.rounds[0].retransmissions) == (21, 0)
    dropped = [crossing for crossing in large.crossings if crossing.arrives_s is None]
    assert len(dropped) == sum(one.retransmissions for one in large.rounds[1:])
    assert all(one.segments == 0 for one in large.rounds[1:])
    assert line(large.rounds[1], large).startswith("round 2: 1 retransmission, from ")
    assert comparison([three, large]).startswith("IW 32 is no faster than IW 3: ")


def test_a_larger_window_is_shown_with_its_cost_to_others():
    long = DOWNLOAD.replace("application.file_transfer.size", "60kB")
    ten, hundred = transfer(long, 10), transfer(long, 100)
    # 42 segments, all in one flight: the last waits for 41 of 1.2 ms each, and is shorter itself.
    assert hundred.longest_wait_s == pytest.approx(41 * 0.0012, abs=0.001)
    assert cost([ten, hundred]).startswith("Cost: with IW 100 data waits up to 48.")
    assert "(with IW 10 " in cost([ten, hundred])
    assert "and 13 of its segments are dropped." in cost([transfer(SHALLOW, 3), transfer(SHALLOW, 32)])


def test_a_transfer_that_does_not_complete_is_not_compared():
    short = DOWNLOAD.replace("duration", "350ms")
    assert comparison([transfer(short, 3), transfer(short, 10)]) == (
        "No comparison: the transfer with IW 3 does not complete within the scenario's duration."
    )


def test_every_segment_takes_the_delay():
    ten = transfer(DOWNLOAD, 10)
    ways = [crossing.arrives_s - crossing.sent_s for crossing in ten.crossings if crossing.arrives_s is not None]
    assert len(ways) == len(ten.crossings)
    assert min(ways) >= 0.05
    assert ten.sender_is_server


def test_the_page_draws_each_transfer_explains_each_term_once_and_needs_nothing_else():
    html = page("A & B", [transfer(SHALLOW, 3), transfer(SHALLOW, 32)])
    assert html.count('role="img"') == 2
    assert "<h1>A &amp; B</h1>" in html
    explained = re.findall(r"<dfn[^>]*>([^<]+)</dfn>", html)
    assert len(explained) == len({word.lower() for word in explained}) >= 7
    assert 'class="gone"' in html
    assert not re.findall(r"(?:src|href)=", html)


def test_the_command_prints_rounds_and_writes_the_page(tmp_path):
    target = tmp_path / "explain.html"
    result = CliRunner().invoke(app, ["explain", "--out", str(target)])
    assert result.exit_code == 0, result.output
    assert "IW 3: 5 rounds, complete after 274.3 ms" in result.output
    assert "Written by firstflight" in target.read_text()


def test_a_sheet_of_ladders_has_a_ladder_a_transfer_and_stands_alone():
    drawn = sheet("A & B", [transfer(SHALLOW, 3), transfer(SHALLOW, 32)])
    assert drawn.count('role="img"') == 2
    assert "A &amp; B" in drawn
    assert "var(" not in drawn
    assert not re.findall(r"(?:src|href)=", drawn)


def test_the_time_of_a_transfer_stands_clear_of_the_end_of_slow_start():
    drawn = sheet("", [transfer(SHOWN, 10)])
    (mark,) = re.findall(r'<text class="took" x="(\d+)"[^>]*"start">(slow start ends.*?)</text>', drawn)
    (took,) = re.findall(r'<text class="strong took" x="(\d+)"[^>]*"end">(209.8 ms)</text>', drawn)
    # A letter is some 7 units wide.
    assert int(mark[0]) + 7 * len(mark[1]) < int(took[0]) - 7 * len(took[1])


@pytest.mark.parametrize("iw", ["", "3;10", "1,2,3,4", "x", "10", "3,3", "0,3", "3,1001"])
def test_windows_that_are_no_numbers_are_refused(iw):
    result = CliRunner().invoke(app, ["explain", "--iw", iw])
    assert "give two or three different initial windows" in str(result.exception)
