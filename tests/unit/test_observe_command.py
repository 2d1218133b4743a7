"""`firstflight observe`: its output, its files, and its page."""

import re
import sys
from pathlib import Path

import pytest

from firstflight import observe
from firstflight.cli import main
from firstflight.observe import plain
from firstflight.observe.nginx_format import LOG_FORMAT
from flows import EXAMPLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "observe.md").read_text(encoding="utf-8")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command; returns its exit status, its output and its errors."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["firstflight", "observe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return command


def test_it_prints_what_was_read_what_is_missing_and_what_was_left_out(run, tmp_path):
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((EXAMPLES / "server.pcapng").read_bytes()[:-3])
    status, printed, _ = run(cut)

    assert status == 0
    assert re.search(r"connections +8\n", printed)
    assert re.search(r"responses +32\n", printed)
    assert re.search(r"RTT +45\.\d+ ms \(20\.\d+, 115\.\d+\) +8 connections", printed)
    assert re.search(r"first flight +10 segments \(10, 10\) +8 responses", printed)
    assert re.search(r"retransmissions +0\.\d+% +\d+ of 1,\d{3} segments", printed)
    assert "missing in this format: up_bps, buffer_bytes, loss, timeouts, initial_window_segments" in printed
    assert re.search(r"left out or incomplete: 1 x the file ends within a packet.* \(byte \d+\)", printed)


def test_a_file_that_holds_nothing_is_exit_status_2(run, tmp_path):
    (tmp_path / "empty").touch()

    status, printed, complaint = run(tmp_path / "empty")

    assert (status, printed) == (2, "")
    assert complaint == f"firstflight: {tmp_path / 'empty'} is empty; there is nothing to read\n"


def test_a_file_that_is_named_twice_does_not_count_twice(run, tmp_path):
    other = tmp_path / "other.txt"
    other.symlink_to(EXAMPLES / "ss.txt")

    status, printed, complaint = run(EXAMPLES / "ss.txt", other)

    assert (status, printed) == (2, "")
    assert complaint.endswith("is named twice, and its connections would count twice; name it once\n")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_table_it_writes_is_read_again(run, tmp_path, ending):
    out = tmp_path / f"flows.{ending}"

    assert run(EXAMPLES / "ss.txt", "--out", out)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    again, seen = observe.read(out), observe.read(EXAMPLES / "ss.txt")
    assert again.transfers["bytes"].to_list() == seen.transfers["bytes"].to_list()
    assert again.users["rtt_s"].to_list() == pytest.approx(seen.users["rtt_s"].to_list())


def test_a_place_that_cannot_be_written_and_a_name_that_says_no_format_are_told(run, tmp_path):
    assert run(EXAMPLES / "ss.txt", "--out", tmp_path / "flows.txt")[0] == 2
    (tmp_path / "file").touch()
    assert run(EXAMPLES / "ss.txt", "--out", tmp_path / "file" / "flows.csv")[0] == 3


def test_the_page_has_the_line_to_configure_every_kind_and_every_column():
    assert f"log_format firstflight '{LOG_FORMAT}';" in PAGE
    assert [kind for kind in observe.KINDS if f"[`{kind}`]" not in PAGE] == []
    written = set(re.findall(r"`(\w+)`", PAGE))
    missing = [
        (name, unit)
        for name, quantity in {**plain.PATH, **plain.RESPONSE, **plain.HANDSHAKE}.items()
        for unit in quantity.units
        if "_".join(filter(None, (name, unit))) not in written
        and not ({f"{name}_" if name else "bytes", unit or name} <= written)
    ]
    assert missing == []


def test_the_links_of_the_page_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert targets
    for target in targets:
        assert target.startswith("https://") or (EXAMPLES.parents[1] / "docs" / target).exists(), target
