"""A new user's first mistakes: each message gives the correct form, and each command reports what it did."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import firstflight as package

Program = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
TRANSFER = EXAMPLES / "transfer-20-segments.toml"


def test_a_text_that_looks_like_a_number_needs_no_quotes(
    firstflight: Program, small_file: Path, tmp_path: Path
) -> None:
    settings = ("--set", "application.web.http_version=1.1", "--set", "name=7", "--set", "duration=2s")
    ran = firstflight("run", small_file, *settings, "--replicates", 1, "--out", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert 'http_version = "1.1"' in str(package.open_run(tmp_path / "out").scenario)


def test_in_a_file_a_text_without_quotes_is_said(firstflight: Program, small_file: Path) -> None:
    small_file.write_text(small_file.read_text() + "http_version = 1.0\n")
    answer = firstflight("run", small_file)
    assert answer.status == 2
    assert 'application.web.http_version: 1.0 is a number; write it in quotes, as text: "1.0"' in answer.err


def test_several_values_for_set_name_vary(firstflight: Program, small_file: Path) -> None:
    answer = firstflight("run", small_file, "--set", "tcp.initial_window=3,10")
    assert answer.status == 2
    assert "; for several values write --vary tcp.initial_window=3,10" in answer.err


def test_further_mistakes_are_not_taken_for_a_hidden_name(firstflight: Program, small_file: Path) -> None:
    text = small_file.read_text().replace('duration = "20s"', "duration = 20").replace("clients = 4", "clients = 0")
    small_file.write_text(text)
    answer = firstflight("run", small_file)
    assert "(and 1 more mistake)" in answer.err


def test_table_without_a_name_lists_the_tables(firstflight: Program, small_file: Path, tmp_path: Path) -> None:
    firstflight("run", small_file, "--replicates", 1, "--out", tmp_path / "out")
    answer = firstflight("table", tmp_path / "out")
    assert answer.status == 0
    assert answer.out.split() == ["transfers", "pages", "links"]


def test_trace_says_what_it_wrote(firstflight: Program, tmp_path: Path) -> None:
    plot, csv, pcap = tmp_path / "p.svg", tmp_path / "s.csv", tmp_path / "p.pcapng"
    answer = firstflight("trace", TRANSFER, "--plot", plot, "--csv", csv, "--pcap", pcap)
    assert answer.status == 0
    said = answer.out.splitlines()
    assert [line.split(": ")[0] for line in said] == [str(pcap), str(csv), str(plot)]
    assert re.fullmatch(r".*: [0-9]+ packets", said[0])
    answer = firstflight("trace", TRANSFER, "--csv", "-", "--plot", plot)
    assert answer.out.startswith("time_s,")
    assert str(plot) not in answer.out


def test_the_help_of_run_names_every_engine(firstflight: Program) -> None:
    from firstflight.engines import NAMES

    said = firstflight("run", "--help").out
    assert all(name in said for name in NAMES)


def test_a_report_of_varied_values_says_the_command_that_gives_them_again(
    firstflight: Program, small_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a run's"
    vary = ("--vary", "tcp.initial_window=3,10", "--vary", 'duration=2s,"3s"')
    assert firstflight("run", small_file, "--replicates", 2, "--seed", 5, *vary, "--out", out).status == 0
    assert firstflight("report", out).status == 0
    import html

    page = html.unescape((out / "report.html").read_text())
    run, report = re.search(r'id="reproduce".*?<code>(.*?)</code>', page, re.DOTALL).group(1).splitlines()  # type: ignore[union-attr]
    words = shlex.split(run)
    assert words[0] == "firstflight"
    again = firstflight(*words[1:])
    assert again.status == 0, again.err
    assert shlex.split(report) == ["firstflight", "report", f"{out}-again"]
    first, second = (package.open_run(path) for path in (out, f"{out}-again"))
    assert first.cells == second.cells
    assert first.transfers.collect().equals(second.transfers.collect())


def test_no_interval_is_given_where_nothing_is_random(firstflight: Program, tmp_path: Path) -> None:
    vary = ("--vary", "tcp.initial_window=3,10")
    ran = firstflight("run", EXAMPLES / "download.toml", *vary, "--out", tmp_path / "out")
    assert "download takes 23.5% less time on average." in ran.out
    rows = firstflight("table", tmp_path / "out", "comparison", "--format", "csv").out.splitlines()
    low, high = (rows[0].split(",").index(name) for name in ("low", "high"))
    assert [(row.split(",")[low], row.split(",")[high]) for row in rows[1:]] == [("", "")] * 5


@pytest.mark.parametrize("name", ["a b", "it's", "$(touch x)", "a;b"])
def test_printed_commands_are_quoted_for_the_shell(
    firstflight: Program, small_file: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    ran = firstflight("run", small_file, "--replicates", 1, "--out", out)
    commands = [line for line in ran.out.splitlines() if line.startswith("firstflight ")]
    assert commands
    for command in commands:
        assert shlex.split(command)[2] == str(out)
