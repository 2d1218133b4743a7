"""Files that others open: a page that may load nothing and run nothing, a cell that a spreadsheet does not compute."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.analysis.table import Table, defused, rows_frame

Program = Callable[..., Any]
POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'\">"
)
TEMPLATES = sorted((Path(__file__).parents[2] / "python" / "firstflight").rglob("*.html.j2"))


def test_every_page_forbids_what_it_does_not_need() -> None:
    assert {path.name for path in TEMPLATES} == {
        "report.html.j2",
        "advice.html.j2",
        "comparison.html.j2",
        "explain.html.j2",
    }
    for path in TEMPLATES:
        text = path.read_text()
        head = text[text.index("<head>") : text.index("</head>")]
        assert POLICY in head
        # Only the declaration of the character set comes before the policy.
        assert head.index(POLICY) < head.index("<style>")
        assert "<script" not in text


def test_a_report_carries_the_policy_and_needs_nothing_that_it_forbids(
    firstflight: Program, small_file: Path, tmp_path: Path
) -> None:
    firstflight("run", small_file, "--replicates", 1, "--out", tmp_path / "out")
    firstflight("report", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("Content-Security-Policy") == 1
    for forbidden in ("<script", "<img", "<link ", "<iframe", "@import", "url(http", "<image"):
        assert forbidden not in page


@pytest.mark.parametrize("name", ["=1+1", "+1", "-cmd|' /C calc'!A0", "@SUM(1)"])
def test_a_text_that_a_spreadsheet_would_compute_is_defused(name: str) -> None:
    rows = [{"who": name, "metric": "mean", "ours": -1.5, "unit": "s"}]
    table = Table("t", "t", "", ("who",), rows_frame(("who",), rows))
    line = table.csv().splitlines()[1]
    assert line.strip('"').startswith(f"'{name[:3]}")
    assert ",-1.5," in line


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    frame = pl.DataFrame({"text": ["web", "a=b", None], "number": [-1, 2, 3]})
    assert defused(frame).equals(frame)


def test_observed_names_are_defused_in_csv(firstflight: Program, tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    table.write_text("connection,rtt_ms,down_mbps,bytes\n=1+1,40,10,2000\nb,41,11,3000\n")
    assert firstflight("observe", table, "--out", out).status == 0
    assert "=1+1" not in out.read_text().replace("'=1+1", "")
    assert firstflight("observe", out).status == 0
