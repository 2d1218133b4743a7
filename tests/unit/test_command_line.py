"""Commands, output shapes and exit statuses that scripts depend on."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import firstflight as package
from firstflight.engines.emulate import start
from firstflight.studies import NAMES

Program = Callable[..., Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "transfer-20-segments.toml"
PROGRAM = Path(sys.executable).with_name("firstflight")


def test_run_table_and_report_of_a_scenario_file(firstflight: Program, small_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = firstflight("run", small_file, "--replicates", 3, "--jobs", 2, "--out", out)
    assert ran.status == 0, ran.err
    assert ran.err == ""
    assert f"firstflight report {out}" in ran.out
    table = firstflight("table", out, "transfers", "--format", "csv")
    rows = list(csv.DictReader(table.out.splitlines()))
    assert list(rows[0])[-6:] == ["metric", "ours", "low", "high", "published", "unit"]
    assert rows[0]["scenario"] == "small"
    as_json = json.loads(firstflight("table", out, "transfers", "--format", "json").out)
    assert firstflight("table", out, "transfers").out
    claims = firstflight("claims", out, "--json")
    assert (claims.status, json.loads(claims.out)["rows"]) == (0, [])
    assert json.loads(claims.out).keys() == as_json.keys()
    assert firstflight("report", out).status == 0
    assert "<html" in (out / "report.html").read_text()
    drawn = firstflight("report", out, "--figures", "--format", "pdf")
    figures = sorted((out / "figures").iterdir())
    assert sorted(drawn.out.splitlines()) == [*map(str, figures), str(out / "report.html")]
    assert {path.suffix for path in figures} == {".pdf"}
    assert all(path.read_bytes().startswith(b"%PDF") for path in figures)
    refused = firstflight("report", out, "--format", "pdf")
    assert (refused.status, refused.err) == (2, "firstflight: --format is that of --figures; add --figures\n")


def test_a_run_goes_to_runs_name_by_default(
    firstflight: Program, small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert firstflight("run", small_file, "--replicates", 1).status == 0
    assert (tmp_path / "runs" / "small" / "run.json").exists()


def test_set_changes_a_key_of_the_scenario(firstflight: Program, small_file: Path, tmp_path: Path) -> None:
    settings = ("--set", "tcp.initial_window=10", "--set", "duration=5s", "--set", "network.bottleneck.queue=32kB")
    assert firstflight("run", small_file, *settings, "--replicates", 1, "--out", tmp_path / "out").status == 0
    run = package.open_run(tmp_path / "out")
    assert 'duration = "5s"' in str(run.scenario)
    assert run.provenance["profiles"][0]["effective"]["initial_window"]["segments"] == 10


def test_set_aside_keeps_the_old_run_under_a_new_name(firstflight: Program, small_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    firstflight("run", small_file, "--replicates", 1, "--out", out)
    refused = firstflight("run", small_file, "--replicates", 2, "--out", out)
    assert refused.status == 2
    assert "it has 1 replicates a cell, not 2; choose another --out, or add --set-aside" in refused.err
    assert firstflight("run", small_file, "--replicates", 2, "--out", out, "--set-aside").status == 0
    assert package.open_run(tmp_path / "out.1").provenance["replicates"] == 1
    assert package.open_run(out).provenance["replicates"] == 2


def test_runs_set_aside_are_named_with_their_size_and_how_to_delete_them(
    firstflight: Program, small_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first, second, third = (
        firstflight("run", small_file, "--replicates", number, "--out", out, "--set-aside").out for number in (1, 2, 3)
    )
    assert "rm -r" not in first
    assert f"The earlier run in {out} is now {out}.1. It takes 0 MB" in second
    assert f"is now {out}.2. The 2 runs set aside there take 0 MB" in third
    assert f"\nrm -r {out}.1 {out}.2\n" in third


def test_without_a_command_the_help_goes_to_stderr(firstflight: Program) -> None:
    answer = firstflight()
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("Usage: ")


@pytest.mark.parametrize("command", [(), ("run",), ("trace",)])
def test_help_has_a_short_name(firstflight: Program, command: tuple[str, ...]) -> None:
    assert firstflight(*command, "-h").out == firstflight(*command, "--help").out != ""


def test_a_shell_completes_commands() -> None:
    asked = {"_FIRSTFLIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "firstflight ob", "COMP_CWORD": "1"}
    program = [Path(sys.executable).with_name("firstflight")]
    done = subprocess.run(program, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("observe", "")


VOICE = Path(__file__).parents[2] / "examples/voice.toml"
WRONG_REQUESTS = [
    (("run", "rfc2451"), 'unknown study "rfc2451"; did you mean "rfc2415"?'),
    (("run", "nowhere.toml"), 'there is no file "nowhere.toml"'),
    (("run", "no/such/thing"), 'there is no file "no/such/thing"'),
    (("run", "."), '"." is a directory; name a file'),
    (("trace", str(VOICE)), "voice: the first application sends datagrams; trace --pcap F writes"),
    (("trace", "."), '"." is a directory; name a file'),
    (
        ("run", "{small}", "--set", "mtu=900B", "--vary", "mtu=800B,700B"),
        '--set gives "mtu", which is varied; leave that --set out',
    ),
    (("explain", "{small}", "--set", "tcp.initial_window=5"), '--set gives "tcp.initial_window", which is varied'),
    (("trace", "{small}", "--engine", "model"), "'--engine': 'model' is not one of 'simulate', 'emulate', 'both'.\n"),
    (("run", "{small}", "--engine", "simulator"), 'unknown engine "simulator"; did you mean "simulate"?'),
    (("run", "{small}", "--replicates", "0"), "replicates is 0; write a whole number from 1"),
    (("run", "{small}", "--replicates", "99999999999"), "replicates is 99999999999; write a whole number from 1"),
    (("run", "{small}", "--jobs", "0"), "jobs is 0; write a number from 1 to 1024"),
    (("run", "{small}", "--seed", "-1"), "the seed is -1"),
    (("run", "{small}", "--set", "tcp.initial_window=0"), "--set tcp.initial_window=0: tcp.initial_window.segments: 0"),
    (("run", "{small}", "--set", "tcp"), '--set "tcp" is not KEY=VALUE'),
    (("run", "{small}", "--set", "mtu=900B", "--set", "mtu=800B"), '--set gives "mtu" twice: write it once'),
    (("run", "{small}", "--set", "network.bottleneck.queue=1e10p"), "a number of packets is at most 4294967295p"),
    (("run", "{small}", "--only", "web=8"), 'the cells have no key "web"'),
    (("run", "{small}", "--engine", "model"), "is of kind web_page"),
    (("run", "rfc2415", "--only", "web=8"), 'the cells have no key "web"; did you mean "webs"?'),
    (("run", "rfc2415", "--only", "webs=9"), 'no cell has webs = "9"; known: 8, 16, 32, 64'),
    (("run", "rfc2415", "--only", "webs"), '--only "webs" is not KEY=VALUE'),
    (
        ("run", "rfc2415", "--only", "webs=8,"),
        '--only "webs=8,": write values with commas between them, such as webs=3,10',
    ),
    (
        ("run", "post-quantum", "--only", 'chain="ECDSA","ML-DSA-44, 3"'),
        'no cell has chain = "ML-DSA-44, 3"; known: ECDSA, ',
    ),
    (("run", "rfc2415", "--set", "duration=5s"), "--set changes a scenario file"),
    (("claims", "nowhere"), 'there is no directory "nowhere"'),
    (("table", "nowhere", "table1"), 'there is no directory "nowhere"'),
    (("report", "nowhere"), 'there is no directory "nowhere"'),
    (("trace", "nowhere.toml"), 'there is no file "nowhere.toml"'),
    (("trace", "{small}", "--plot", "x.gif"), '"x.gif": a picture is written as .svg, .png or .pdf'),
    (("explain", "{small}", "--out", "x"), '"x": a page is written as .html, a picture as .svg, .png or .pdf'),
    (("explain", "--iw", "3,20", "--vary", "mtu=900B,800B"), "leave --iw or --vary out"),
    (("trace", "{small}", "--vary", "tcp.initial_window=3,10"), "give it --plot F alone"),
    (("trace", "{small}", "--vary", "tcp.initial_window=3", "--plot", "x.svg"), "write at least two"),
    (("trace", "{small}", "--seed", "-1"), "the seed is -1"),
    (("trace", "{small}", "--at", "server"), "--at says where --pcap takes packets; add --pcap F"),
    (("trace", "{small}", "--link", "bottleneck"), "--link says where --pcap takes packets; add --pcap F"),
    (("trace", "{small}", "--pcap", "x", "--at", "server", "--link", "hub"), "either --at an end or on a --link"),
    (("trace", "{small}", "--pcap", "x", "--link", "hub"), 'there is no link "hub" in this network; it has'),
    (("trace", "{small}", "--pcap", "-"), "packets are written to a file"),
    (("probe", "--list", "nowhere.txt"), 'there is no file "nowhere.txt"'),
    (("probe", "--list", "/bin/ls"), '"/bin/ls" is not UTF-8 text: invalid'),
    (("compare", "a", "b"), 'there is no file "a"'),
    (("run",), "Missing argument"),
    (("rnu",), "No such command"),
    (("run", "{small}", "--sed", "1"), "No such option"),
    (("run", "{small}", "--seed", "one"), "Invalid value for '--seed': Input should be a valid integer, not \"one\""),
]


@pytest.mark.parametrize(("arguments", "expected"), WRONG_REQUESTS, ids=[" ".join(a) for a, _ in WRONG_REQUESTS])
def test_a_wrong_request_is_one_sentence_on_stderr_and_status_2(
    firstflight: Program,
    small_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = firstflight(*(argument.replace("{small}", str(small_file)) for argument in arguments))
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.startswith("firstflight: ")
    assert expected in answer.err.splitlines(keepends=True)[0]
    assert "Traceback" not in answer.err
    assert not list(tmp_path.rglob("*.parquet"))


def test_an_unknown_table_is_answered_with_the_known_ones(
    firstflight: Program, small_file: Path, tmp_path: Path
) -> None:
    firstflight("run", small_file, "--replicates", 1, "--out", tmp_path / "out")
    answer = firstflight("table", tmp_path / "out", "transfer")
    assert (answer.status, answer.err) == (
        2,
        'firstflight: this run has no table "transfer"; did you mean "transfers"?\n',
    )


def test_studies_lists_them_all(firstflight: Program) -> None:
    answer = firstflight("studies")
    assert answer.status == 0
    assert all(name in answer.out for name in NAMES)


@pytest.mark.parametrize("window", [3, 10])
def test_trace_writes_the_columns_of_the_map(firstflight: Program, tmp_path: Path, window: int) -> None:
    path = tmp_path / "t.csv"
    answer = firstflight("trace", EXAMPLE, "--csv", path, "--set", f"tcp.initial_window={window}")
    assert answer.status == 0, answer.err
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == [
        "time_s",
        "event",
        "direction",
        "seq",
        "length",
        "ack",
        "window_bytes",
        "cwnd_segments",
        "flags",
        "handshake",
        "mark",
        "sender_event",
    ]
    assert all(re.fullmatch(r"\d+\.\d{9}", row["time_s"]) for row in rows)
    assert (rows[0]["flags"], rows[0]["direction"], rows[0]["seq"]) == ("SYN", "to_server", "0")
    data = [row for row in rows if row["event"] == "sent" and row["direction"] == "to_client" and int(row["length"])]
    assert sum(int(row["length"]) for row in data) == 20 * 1460
    assert len([row for row in data if row["time_s"] == data[0]["time_s"]]) == window


def test_trace_prints_a_table_and_draws_a_plot(firstflight: Program, tmp_path: Path) -> None:
    printed = firstflight("trace", EXAMPLE)
    assert printed.status == 0
    assert printed.out.splitlines()[0].split()[:3] == ["time_s", "event", "direction"]
    drawn = firstflight("trace", EXAMPLE, "--plot", tmp_path / "t.svg")
    assert (drawn.status, drawn.out.split(": ")[0]) == (0, str(tmp_path / "t.svg"))
    assert (tmp_path / "t.svg").read_text().startswith("<svg")


def test_trace_draws_several_settings_in_one_picture_and_says_where(firstflight: Program, tmp_path: Path) -> None:
    plot = tmp_path / "t.svg"
    answer = firstflight("trace", EXAMPLE, "--vary", "tcp.initial_window=3,10", "--plot", plot)
    assert (answer.status, answer.err, answer.out) == (0, "", f"{plot}: IW 3, IW 10\n")
    assert "IW 3: complete after 515.9 ms" in plot.read_text()


def test_explain_draws_the_ladders_of_any_key_alone(firstflight: Program, tmp_path: Path) -> None:
    ladder = tmp_path / "l.svg"
    answer = firstflight("explain", EXAMPLE, "--out", ladder)
    assert (answer.status, answer.err, answer.out.splitlines()[-1]) == (0, "", str(ladder))
    assert [name in ladder.read_text() for name in ("IW 3: 4 rounds", "IW 10: 2 rounds")] == [True, True]
    answer = firstflight("explain", EXAMPLE, "--vary", "network.links[0].queue=5p,20p", "--out", ladder)
    assert "queue 20p: 4 rounds" in answer.out
    assert "queue 20p: 4 rounds" in ladder.read_text()


def test_trace_writes_packets_in_both_formats(firstflight: Program, tmp_path: Path) -> None:
    for name, magic in (("t.pcapng", b"\n\r\r\n"), ("t.pcap", b"\x4d\x3c\xb2\xa1")):
        answer = firstflight("trace", EXAMPLE, "--pcap", tmp_path / name, "--at", "server")
        assert (answer.status, answer.out) == (0, f"{tmp_path / name}: 35 packets\n")
        assert (tmp_path / name).read_bytes()[:4] == magic


def test_trace_to_a_place_that_cannot_be_made_is_status_3(firstflight: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option in ("--csv", "--pcap"):
        answer = firstflight("trace", EXAMPLE, option, tmp_path / "file" / "t")
        assert answer.status == 3
        assert "cannot be written" in answer.err


def test_a_program_that_gives_no_version_is_there_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "curl"
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(start, "_is_root", lambda: False)
    assert start.version_of("curl") == ("", True)


def test_doctor_says_how_to_fix_what_is_missing(firstflight: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    answer = firstflight("doctor", "--json")
    assert answer.status == 0
    findings = {finding["name"]: finding for finding in json.loads(answer.out)}
    assert {*findings["native module"]} == {"name", "needed_for", "found", "ok", "required", "fix"}
    assert findings["native module"]["ok"]
    assert not findings["ns-2"]["ok"]
    assert all(finding["ok"] or finding["fix"] for finding in findings.values())
    assert "fix:\n                        apt-get install ns2\n" in firstflight("doctor").out


def test_version_is_printed(firstflight: Program) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", firstflight("--version").out)


def test_help_does_not_wait_for_polars() -> None:
    late = "('polars', 'pydantic', 'numpy')"
    script = f"import sys, firstflight.cli.app; print([name for name in {late} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(("asked", "threads"), [({}, "1\n"), ({"POLARS_MAX_THREADS": "2"}, "2\n")])
def test_a_report_is_made_with_one_thread_of_polars_unless_asked(asked: dict[str, str], threads: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "POLARS_MAX_THREADS"} | asked
    script = "from firstflight.cli.app import load; load('report'); import polars; print(polars.thread_pool_size())"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert found == threads


def test_ctrl_c_leaves_a_run_that_continues(small_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        str(PROGRAM),
        "run",
        str(small_file),
        "--replicates",
        "2000",
        "--set",
        "duration=2000s",
        "--out",
        str(out),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    while not (out / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.startswith("firstflight: interrupted; 0 finished cells are kept in ")
    assert len(errors.splitlines()) == 1
    assert package.open_run(out).missing == 1


def test_output_into_a_closed_pipe_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [str(PROGRAM), "trace", str(EXAMPLE)], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_onto_a_full_disk_is_one_sentence_and_status_3() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(PROGRAM), "trace", str(EXAMPLE)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr == "firstflight: the output cannot be written: No space left on device; make room\n"
