import math
import re
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from firstflight.analysis.claim import COUNTED, Sentence, above
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.report import page
from firstflight.report.distribution import completion_times
from firstflight.report.figure import Figure, layer, quantitative, svg
from firstflight.report.page import Content, _without_long_lists

ROWS = [
    {"iw": 1, "metric": "delay", "ours": 0.5, "low": 0.4, "high": 0.6, "published": 0.5, "unit": "s"},
    {"iw": 2, "metric": "delay", "ours": 0.6, "published": 0.5, "unit": "s"},
    {"iw": 3, "metric": "delay", "ours": 0.3, "published": 0.5, "unit": "s"},
    {"iw": 4, "metric": "delay", "ours": 0.3, "published": 9.9, "unit": "s"},
]


def content(**changes) -> Content:
    chart = layer("point", [{"x": 1, "y": 2}], x=quantitative("x"), y=quantitative("y"))
    fields = {
        "kind": "study",
        "name": "example",
        "title": "Is <it> so?",
        "asked": "What was asked.",
        "answer": ["It is 5% sooner."],
        "claims": [
            Sentence("example-1", "a book", "It is sooner.", above(0, "percent"), "A direction.").judge(
                Estimate(5.0, 4.0, 6.0, 10)
            )
        ],
        "figures": [Figure("drawn", "A figure", "What it shows.", chart, chart)],
        "tables": [
            Table(
                "t",
                "A table",
                "",
                ("iw",),
                rows_frame(("iw",), ROWS),
                across="iw",
                metrics=(Metric("delay", "Delay", near=0.15),),
                misprints=frozenset({("delay", "4")}),
            )
        ],
        "commands": ["firstflight run example --out DIR"],
        "provenance": [("seed", "1")],
    }
    return Content(**(fields | changes))


def test_page_needs_nothing_but_itself():
    html = page.render(content())
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)
    assert "http" not in without_namespaces.replace("http-equiv", "")
    assert "<script" not in html
    assert not re.search(r"@import|url\(", html)


def test_text_from_a_run_cannot_become_markup():
    assert "Is &lt;it&gt; so?" in page.render(content())


def test_cells_are_marked_by_their_distance_from_the_published_value():
    html = page.render(content())
    cells = re.findall(r'<td class="([^"]*)"><b>([\d.]+)</b>', html)
    assert [(value, set(classes.split())) for classes, value in cells] == [
        ("0.50", {"near", "first"}),
        ("0.60", {"over"}),
        ("0.30", {"under", "far"}),
        ("0.30", {"misprint"}),
    ]
    assert "±0.10" in html


def test_an_undecided_claim_has_a_badge_a_filter_and_its_reason():
    sentence = Sentence("example-2", "a book", "It is later.", above(0, "percent"), "A direction.")
    html = page.render(content(claims=[sentence.judge(Estimate(1.0, -1.0, 3.0, 10))]))
    assert '<span class="badge v2">undecided</span>' in html
    assert '<input type="radio" name="show" value="v2">undecided' in html
    assert all(f".claim:not(.v{number})" in html for number in range(len(COUNTED)))
    assert "more replicates could decide" in html


@pytest.mark.parametrize(
    ("unit", "shown"), [("percent", "<b>5%</b> <i>[4, 6]</i> · expected above 0 ±1%<"), ("ratio", "above 0 ±1<")]
)
def test_a_claim_has_the_sign_of_its_unit_and_a_ratio_none(unit: str, shown: str):
    claim = Sentence("example-3", "a book", "It is later.", above(0, unit, 1), "A direction.")
    assert shown in page.render(content(claims=[claim.judge(Estimate(5.0, 4.0, 6.0, 10))]))


def test_parts_without_content_leave_no_heading():
    html = page.render(content(answer=[], claims=[], figures=[], tables=[]))
    for heading in ("The answer", "Figures", "Tables", "Claims", "Limitations"):
        assert f">{heading}<" not in html
    assert ">Reproduce<" in html


def test_a_figure_of_a_notebook_is_its_picture_and_of_a_terminal_its_words():
    (figure,) = content().figures
    assert figure._repr_html_().startswith("<p>A figure</p><svg ")
    assert repr(figure) == "Figure(name='drawn', title='A figure', caption='What it shows.', finding='')"


def test_a_picture_has_a_line_at_a_value_once_and_short_points():
    rows = [{"x": place, "y": place / 7} for place in range(9)]
    layers = [layer("rule", y={"datum": 1}), layer("circle", x=quantitative("x"), y=quantitative("y"))]
    drawn = svg({"data": {"values": rows}, "layer": layers})
    assert len(re.findall(r"<line [^>]*stroke=.#1b1f24", drawn)) == 1
    assert drawn.count("<circle ") == 9
    assert re.findall(r"[\d]+\.\d{3,}", re.sub(">[^<]*<", "", drawn)) == []
    assert ">0.4<" in drawn


def test_report_is_renamed_into_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "gather", lambda run, study: content())
    run = SimpleNamespace(directory=tmp_path)
    assert page.write(run, None) == tmp_path / "report.html"
    elsewhere = page.write(run, None, tmp_path / "other.html")
    assert elsewhere.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.html", "report.html"]


def test_figures_can_be_had_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "gather", lambda run, study: content())
    paths = page.figures_to_files(SimpleNamespace(), None, tmp_path / "figures")
    assert [path.name for path in paths] == ["drawn.svg", "drawn.png"]
    assert paths[0].read_bytes().startswith(b"<svg")
    assert paths[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "text"), [(123.4, "123"), (12.34, "12.3"), (1.0, "1"), (0.056, "0.06"), ("above 0", "above 0")]
)
def test_figures_in_claims_are_short(value, text):
    assert page.short(value) == text


@pytest.mark.parametrize(("unfinished", "title"), [(1, "Median: 2 s"), (2, "Median: 3 s"), (4, "More than half did")])
def test_what_did_not_finish_is_later_than_every_time_as_in_the_tables(unfinished: int, title: str) -> None:
    rows = [{"application": "web", "completed": 1, "completion_time_s": time_s} for time_s in (1.0, 2.0, 3.0)]
    rows += [{"application": "web", "completed": 0, "completion_time_s": math.nan}] * unfinished
    (figure,) = completion_times(pl.DataFrame(rows).lazy(), [])
    assert figure.finding.startswith(title)


def test_a_distribution_counts_users_by_their_weight_as_the_tables_do() -> None:
    users = pl.DataFrame({"replicate": 0, "client": range(4), "weight": [1.0, 1.0, 1.0, 7.0]})
    rows = users.select(
        "replicate", "client", application=pl.lit("web"), completed=pl.lit(1), completion_time_s=4.0 - pl.col("client")
    )
    titles = [completion_times(rows.lazy(), [], weights=of)[0].finding for of in (None, users.lazy())]
    assert titles == ["Median: 2 s", "Median: 1 s"]


def test_lines_of_completion_times_say_what_was_varied():
    rows = [
        {"initial_window": iw, "seed": 1, "application": name, "completed": 1, "completion_time_s": 0.1 * iw}
        for iw in (3, 10)
        for name in ("search", "photo")
    ]
    keys = ["initial_window", "seed"]
    [figure] = completion_times(pl.DataFrame(rows).lazy(), keys)
    assert figure.narrow is not None
    abreast = [of["encoding"]["color"]["legend"]["columns"] for of in (figure.chart, figure.narrow)]
    assert abreast == [2, 1], "a legend wider than the picture would make it smaller"
    assert figure.finding == "Median: 0.3 s (initial_window 3, photo) to 1 s (initial_window 10, search)"
    several = svg(completion_times(pl.DataFrame(rows).lazy(), keys)[0].chart)
    assert "initial_window 3, photo" in several
    assert "seed" not in several
    one = svg(completion_times(pl.DataFrame(rows[::2]).lazy(), keys)[0].chart)
    assert "initial_window 10" in one
    assert "search" not in one


def test_a_long_list_of_numbers_is_cut_where_a_scenario_is_shown():
    short = "rate = [1.0, 2, -3e5]"
    long = f"rtt_s = [{', '.join(['0.05'] * 1200)}]"
    shown = _without_long_lists(f"columns = {{ {long}, {short} }}")
    assert shown == (
        "columns = { rtt_s = [0.05, 0.05, 0.05, 0.05, 0.05, ... 1,200 numbers in run.json], rate = [1.0, 2, -3e5] }"
    )
