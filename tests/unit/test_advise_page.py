"""The page, the data file and the terminal's text of an advice, from made-up numbers."""

import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from advise_made_up import advice
from firstflight.advise import deploy, page
from firstflight.advise.budget import judged_check, parse
from firstflight.advise.figures import _cost, _groups, _percentiles
from firstflight.advise.first_look import is_elsewhere
from firstflight.advise.missing import CAPTURE, Missing
from firstflight.advise.outliers import Outliers
from firstflight.advise.request import check as check_request
from firstflight.advise.run import guard_commands
from firstflight.analysis.intervals import Estimate
from firstflight.cli.advise import lines
from firstflight.errors import MachineError
from firstflight.observe.observation import Observation, TrafficSource
from firstflight.report.figure import Figure, svg
from firstflight.report.page import unbreakable

VOID = {"meta", "br", "link", "img", "input", "path", "line"}


class Page(HTMLParser):
    """The page as a browser parses it: the text, the ids, its loaded resources, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.ids: set[str] = set()
        self.loads: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            if name in ("src", "srcset") or (name == "href" and not str(value).startswith("#")):
                self.loads.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_data(self, data: str) -> None:
        self.text += data


def figures() -> list[Figure]:
    made = [one(advice()) for one in (_percentiles, _groups, _cost)]
    return [figure for figure in made if figure is not None]


@pytest.fixture(scope="module")
def html() -> str:
    return page.render(advice(), figures(), ["firstflight advise flows.csv"])


@pytest.mark.parametrize(
    ("outcome", "level", "lit"),
    [
        ("change", "high", "go"),
        ("change", "depends on unknowns", "care"),
        ("change", "insufficient data", "care"),
        ("keep", "depends on unknowns", "care"),
        ("keep", "insufficient data", "care"),
        ("keep", "high", "stop"),
    ],
)
def test_the_light_is_green_for_a_sure_change_and_red_for_none(outcome: str, level: str, lit: str) -> None:
    made = dataclasses.replace(
        advice(), confidence=level, decision=dataclasses.replace(advice().decision, outcome=outcome)
    )
    html = page.render(made, figures(), [])
    assert f'<p class="light {lit}">' in html
    assert level in html
    assert ("Not yet: insufficient data" in html) == (level == "insufficient data")


def test_doubts_about_the_users_are_on_the_first_screen() -> None:
    flows = dataclasses.replace(advice().flows, doubts=("median RTT 0.017 ms: is this a load balancer's log?",))
    html = page.render(dataclasses.replace(advice(), confidence="depends on unknowns", flows=flows), figures(), [])
    first_screen = html[html.index('id="answer"') : html.index('id="gain"')]
    assert '<p class="light care">' in first_screen
    assert "Median RTT 0.017 ms" in first_screen.replace("\u00a0", " ")


def test_the_page_says_what_whom_at_what_cost_and_how_sure_and_needs_nothing_else(html: str) -> None:
    found = Page(html)
    assert found.open == []
    assert {"answer", "gain", "whom", "cost", "sure", "deploy", "watch", "users", "limits", "reproduce"} <= found.ids
    assert found.loads == []
    assert "<script" not in html


def test_the_page_begins_with_the_advice_and_ends_with_the_command_that_repeats_it(html: str) -> None:
    text = Page(html).text
    assert "Raise the initial window from 10 to 16 segments." in text
    assert "the recommendation would be 32 if the reference case were known to be true" in text
    assert "firstflight advise flows.csv" in text


def test_names_from_the_data_cannot_break_the_page(html: str) -> None:
    assert "shallow <buffers>" not in html
    assert "shallow <buffers>" in Page(html).text
    assert "flows <1>.csv" not in html


def test_a_bucket_without_flows_says_so_and_never_zero_percent(html: str) -> None:
    text = Page(html).text
    row = text[text.index("All buckets") :]
    empty = row[row.index("above 50 ms") : row.index("above 50 ms") + 80]
    assert "no flows" in empty
    assert "no data" in empty
    assert "0.00" not in empty


def test_a_percentile_without_an_interval_says_how_many_flows_it_needs(html: str) -> None:
    assert "p99 needs 2,000" in Page(html).text


def test_a_bucket_without_an_interval_is_named_in_the_figure() -> None:
    drawn = next(figure for figure in figures() if figure.name == "groups")
    assert "no flows" in svg(drawn.chart)
    assert "too few: 27" in svg(drawn.chart)


def test_what_is_over_the_budget_is_told_with_setting_and_limit(html: str) -> None:
    text = Page(html).text.replace("\u00a0", " ")
    assert (
        "over the budget: retransmissions +3.00 pp (+2.90 to +3.10) against a limit of +0.5 pp with shallow <buffers>"
        in text
    )


def test_the_data_file_is_json_whose_missing_numbers_are_null(tmp_path: Path) -> None:
    path = page.write(advice(), figures(), ["firstflight advise"], tmp_path)
    assert path == tmp_path / "advice.html"
    found = json.loads((tmp_path / "advice.json").read_text(), parse_constant=pytest.fail)
    assert found["decision"]["initial_window"] == 16
    assert found["decision"]["alone"] == {"reference": 32, "shallow <buffers>": 16}
    empty = next(one for one in found["groups"] if one["users"] == 0)
    assert empty["change_percent"] == {"value": None, "low": None, "high": None}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_a_page_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="cannot be written"):
        page.write(advice(), [], [], tmp_path / "file")


def test_the_terminal_shows_the_answer_each_candidate_and_the_line_to_set_it() -> None:
    text = "\n".join(lines(advice()))
    assert "current initial window: 10 (92% of 700 that show it)" in text
    assert "unreadable: 3 x rtt_ms is not a number" in text
    assert "note: a segment is taken to hold 1448 bytes" in text
    assert "Raise the initial window from 10 to 16 segments." in text
    assert "initcwnd 16" in text


def test_a_percentile_of_too_few_is_neither_drawn_nor_shown_as_a_number_in_the_terminal() -> None:
    drawn = next(figure for figure in figures() if figure.name == "percentiles")
    assert "99th" not in svg(drawn.chart)
    assert "median" in svg(drawn.chart)
    row = next(line for line in lines(advice()) if line.startswith("      16"))
    assert row.split()[:5] == ["16", "-6.0%", "-6.0%", "-6.0%", "too"]


def test_the_heading_of_each_picture_is_what_was_found(html: str) -> None:
    found = [figure.finding for figure in figures()]
    assert found == [
        "16 instead of 10 segments: mean -6.0%, 95th percentile -6.0%",
        "Mean time with 16 segments: -6.0% (RTT up to 20 ms)",
        "Retransmission rate with 16 segments: 1.00 to 1.20% (reference)",
    ]
    assert all(f"<h3>{unbreakable(text)}</h3>" in html for text in found)


def test_of_several_checks_of_a_term_one_that_is_over_is_shown_before_one_that_reaches_further() -> None:
    term = parse("others=+5%")[0]
    over, wide = (
        judged_check(term, 16, "reference", Estimate(6, low, high), 900) for low, high in ((5.5, 6.5), (-5, 17))
    )
    assert page.worst([wide, over], 16, "reference", "others") is over


def test_a_change_that_rounds_to_nothing_has_no_sign() -> None:
    assert page.change(Estimate(-0.001, -0.2, 0.001), 2) == "0.00"
    assert page.span(Estimate(-0.001, -0.2, 0.001), 2) == "-0.20 to 0.00"


def test_percent_signs_stay_with_their_numbers_and_what_is_copied_stays_as_it_is() -> None:
    html = page.render(advice(), [], ["firstflight advise 'flows 5 %.csv' --harm 'p99=+5 %'"])
    copied = html[html.index('<section id="reproduce">') :]
    assert "flows 5 %.csv" in copied
    assert "p99=+5 %" in copied
    assert "\u00a0%" in html
    assert unbreakable("<p>5 %</p><pre>5 %</pre><p>5 %</p>") == "<p>5\u00a0%</p><pre>5 %</pre><p>5\u00a0%</p>"


def test_charts_and_tables_have_one_sign_for_a_gain() -> None:
    made = advice()
    drawn = {row["change"] for figure in figures()[:2] for row in rows_of(figure) if row.get("change") is not None}
    shown = {gain.change_percent.value for gain in made.gains} | {each.change_percent.value for each in made.groups}
    assert drawn
    assert drawn <= shown


def rows_of(figure: Figure) -> list[dict[str, Any]]:
    """The rows of a figure's own data."""
    found: list[dict[str, Any]] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            values = part.get("values")
            if isinstance(values, list):
                found.extend(row for row in values if isinstance(row, dict))
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    walk(figure.chart)
    return found


def first_screen(html: str) -> str:
    return html[html.index('id="answer"') : html.index('id="gain"')]


def test_nothing_to_paste_stands_beside_insufficient_data() -> None:
    """Neither the line that sets a window nor the one that captures more, and no such line in the terminal."""
    needed = Missing(32, ("the paths to your users lose 0.5% of the packets rather than 2%",), CAPTURE)
    made = dataclasses.replace(advice(), confidence="insufficient data", deploy=(), missing=needed)
    html = page.render(made, figures(), ["firstflight advise flows.csv"])
    assert "<pre" not in first_screen(html)
    assert 'What can be done now: <a href="#deploy">try it under watch</a>' in first_screen(html)
    assert "initcwnd" not in html[: html.index('id="watch"')]
    assert "The data is not sufficient for a change, so no line that makes one stands here." in html
    # Where to get the missing data stands with the reasons.
    assert CAPTURE.replace("'", "&#39;") in html[html.index('id="sure"') :]
    assert "initcwnd" not in "\n".join(lines(made))


def test_a_recommendation_to_keep_the_window_shows_no_line_that_sets_one() -> None:
    kept = dataclasses.replace(advice().decision, outcome="keep", initial_window=10)
    html = page.render(dataclasses.replace(advice(), decision=kept, deploy=()), [], [])
    assert "initcwnd" not in html[: html.index('id="watch"')]
    assert "The recommendation is to keep 10." in html


def test_a_change_leads_to_the_guard_before_the_lines_that_set_it() -> None:
    html = page.render(advice(), figures(), [], guard=["sudo firstflight guard run --advice out/advice.json"])
    assert "initcwnd 16" in first_screen(html)
    assert "firstflight guard" in first_screen(html)
    section = html[html.index('<section id="deploy">') :]
    assert section.index("guard run --advice out/advice.json") < section.index("initcwnd 16")


def test_the_log_of_hosts_that_are_not_linux_or_not_the_reader_s_gets_no_line_for_linux() -> None:
    made = dataclasses.replace(advice(), deploy=(deploy.elsewhere(),))
    html = page.render(made, figures(), [])
    assert made.command == ""
    assert "initcwnd 16" not in html
    assert "FreeBSD" in html
    assert "Windows" in html
    text = "\n".join(lines(made))
    assert "initcwnd 16" not in text
    assert "FreeBSD" in text


@pytest.mark.parametrize(
    ("kind", "form", "elsewhere"),
    [
        ("log", "CloudFront standard log", True),
        ("log", "W3C extended log (IIS)", True),
        ("log", "AWS Application Load Balancer log", True),
        ("log", "Azure Front Door log", True),
        ("log", "JSON lines", False),
        ("log", "common or combined log", False),
        ("table", "IIS", False),
    ],
)
def test_a_log_s_format_shows_whose_hosts_sent_it(kind: str, form: str, elsewhere: bool) -> None:
    source = TrafficSource(Path("some.log"), kind, None, (), (), form)
    assert is_elsewhere(cast(Observation, SimpleNamespace(source=source))) == elsewhere


def test_the_page_says_how_many_of_the_connections_were_simulated() -> None:
    flows = dataclasses.replace(advice().flows, usable=3776, simulated=500)
    html = page.render(dataclasses.replace(advice(), flows=flows), [], [])
    assert "3,776 observed connections, a random 500 of them simulated with an initial window of 10" in html


def test_an_end_of_an_interval_that_excludes_nothing_is_not_shown_as_nothing() -> None:
    assert page.span(Estimate(-0.3, -0.6, -0.02)) == "-0.60 to -0.02"
    assert page.span(Estimate(0.3, 0.0004, 0.6)) == "+0.0004 to +0.6000"
    assert page.span(Estimate(0.3, -0.02, 0.6)) == "0.0 to +0.6"


@pytest.mark.parametrize("timed", [True, False])
def test_the_guard_is_rehearsed_where_the_flows_have_times(timed: bool, tmp_path: Path) -> None:
    (tmp_path / "my log").write_text("x")
    asked = check_request(tmp_path / "my log", iw="10,16", harm="mean=+5%")
    transfers = pl.DataFrame({"start_s": [1.0] if timed else [None]}, schema={"start_s": pl.Float64})
    seen = cast(Observation, SimpleNamespace(transfers=transfers))
    *rehearse, run = guard_commands(asked, Path("runs/my advice"), seen)
    assert rehearse == ([f"firstflight guard rehearse '{tmp_path}/my log'"] if timed else [])
    assert run == "sudo $(command -v firstflight) guard run --advice 'runs/my advice/advice.json'"


@pytest.mark.parametrize("window", [16, 10])
def test_outliers_stand_in_the_answer_where_they_turn_it_and_with_the_data_in_any_case(window: int) -> None:
    record = "connection 7: 4.29 GB, RTT 37 ms"
    found = Outliers((record,), 1900, 73.0, window, 16, Estimate(-2, -7, 60), Estimate(-11, -12, -10))
    told = found.sentence(advice().decision)
    answer = (*advice().answer[:1], told, *advice().answer[1:]) if window == 10 else advice().answer
    made = dataclasses.replace(advice(), outliers=found, answer=answer)
    html = page.render(made, figures(), []).replace("\u00a0", " ")
    assert told.startswith("Outliers: of 1,900 users, 1 response makes up 73% of all time (connection 7: 4.29 GB, RTT")
    assert told.endswith("changes the mean time by -11.0% (-12.0 to -10.0) instead of -2.0% (-7.0 to +60.0).")
    assert ("Without it the recommendation is the same" in told) == (window == 16)
    assert ("Without it the recommendation would be to keep 10" in told) == (window == 10)
    assert (record in first_screen(html)) == (window == 10)
    assert record in html[html.index('id="users"') :]
    assert "\n".join(lines(made)).count(record) == 1
