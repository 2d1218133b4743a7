"""Packet scripts: the project's own and the public ones keep their verdicts (tests/packet_scripts/ledger.toml)."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from firstflight import packet_scripts
from firstflight.cli.script import find_scripts, run_script
from firstflight.errors import RequestError

OWN = Path(__file__).parents[1] / "packet_scripts"
LEDGER: dict[str, Any] = tomllib.loads((OWN / "ledger.toml").read_text(encoding="utf-8"))
CORPUS = "PACKETDRILL_CORPUS"
MICROSECOND_NS = 1_000
# packetdrill's own tolerance.
FOUR_MILLISECONDS_NS = 4_000_000


def _recorded(section: str) -> dict[str, str]:
    """The verdict of each script in a section of the ledger; a kernel that differs is a difference to us, too."""
    entries: dict[str, str] = dict.fromkeys(LEDGER[section]["pass"], "pass")
    for path, entry in LEDGER[section].get("otherwise", {}).items():
        entries[path] = {"kernel-differs": "differs"}.get(entry["verdict"], entry["verdict"])
    return entries


def _found(root: Path, tolerance_ns: int) -> dict[str, str]:
    scripts = find_scripts([root])
    return {str(path.relative_to(root)): run_script(path, tolerance_ns)["verdict"] for path in scripts}


def test_our_own_scripts_have_the_verdicts_of_the_ledger() -> None:
    found = _found(OWN, MICROSECOND_NS)
    assert found == _recorded("own")
    assert len(found) >= 60


def test_the_public_scripts_have_the_verdicts_of_the_ledger() -> None:
    root = os.environ.get(CORPUS)
    if not root:
        pytest.skip(f"{CORPUS} names no checkout of the public packetdrill repository")
    found = _found(Path(root), FOUR_MILLISECONDS_NS)
    recorded = _recorded("public")
    common = sorted(found.keys() & recorded.keys())
    assert common, f"{root} holds none of the scripts in the ledger: it should be the top of the checkout"
    assert {path: found[path] for path in common} == {path: recorded[path] for path in common}


def test_a_public_script_that_one_of_ours_stands_for_passes_and_so_does_ours() -> None:
    stand_ins = LEDGER["public"]["shown_by"]
    assert len(stand_ins) >= 40
    assert set(stand_ins) <= set(LEDGER["public"]["pass"])
    assert set(stand_ins.values()) <= set(LEDGER["own"]["pass"])


def test_each_entry_that_is_not_a_pass_says_why() -> None:
    for section in ("own", "public"):
        otherwise = LEDGER[section].get("otherwise", {})
        # All of the project's own pass.
        assert bool(otherwise) == (section == "public")
        for path, entry in otherwise.items():
            assert entry["verdict"] in ("differs", "unsupported", "kernel-differs"), path
            assert len(entry["why"]) > 20, path
            assert entry["why"].endswith("."), path
            assert path not in LEDGER[section]["pass"], path


def test_a_byte_order_mark_as_editors_on_windows_write_it_is_no_part_of_a_script(tmp_path: Path) -> None:
    script = next((OWN / "idle").glob("*.pkt"))
    marked = tmp_path / "marked.pkt"
    marked.write_bytes(b"\xef\xbb\xbf" + script.read_bytes())
    assert run_script(marked, MICROSECOND_NS)["verdict"] == "pass"


def test_a_difference_shows_what_came(tmp_path: Path) -> None:
    text = next(iter(sorted((OWN / "initial_window").glob("rfc3390_*1460*")))).read_text(encoding="utf-8")
    script = tmp_path / "wrong.pkt"
    script.write_text(text.replace("1:4381(4380)", "1:5841(5840)"), encoding="utf-8")
    outcome = run_script(script, MICROSECOND_NS)
    assert outcome["verdict"] == "differs"
    assert outcome["reason"].startswith("line ")
    assert any(line.startswith("expected  . 1:5841(5840)") for line in outcome["details"])
    assert any("> . 2921:4381(1460)" in line for line in outcome["details"])


def test_what_cannot_be_read_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    script = tmp_path / "latin.pkt"
    script.write_bytes(b"// caf\xe9\n")
    assert run_script(script, MICROSECOND_NS)["verdict"] == "error"
    with pytest.raises(RequestError, match="no file or directory"):
        find_scripts([tmp_path / "missing"])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(RequestError, match=r"no script \(\*\.pkt\)"):
        find_scripts([empty])


@pytest.mark.parametrize(
    "line",
    [
        "+0 > S. 0:0(0) ack 1 <mss MSS,nop,wscale 8>",
        "+0 > encap psp spi 23 P. 501:1001(500) ack 501",
        "+0 %{ assert tcpi_sacked == 0 }%",
        "+0 %{ assert tcpi_delivered == 0 }%",
    ],
)
def test_what_is_not_modeled_is_unsupported_and_neither_wrong_nor_taken_for_zero(line: str, tmp_path: Path) -> None:
    script = tmp_path / "unsupported.pkt"
    opening = (
        "--profile=rfc\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n"
    )
    script.write_text(f"{opening}+0 < S 0:0(0) win 1000 <mss 1000>\n{line}\n", encoding="utf-8")
    assert run_script(script, MICROSECOND_NS)["verdict"] == "unsupported"


CONNECTED = """--profile=rfc
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1460>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 65535
"""


def _checked(block: str, opening: str = CONNECTED) -> dict[str, Any]:
    return packet_scripts.run_script(f"{opening}+0 %{{{block}}}%\n", MICROSECOND_NS)


@pytest.mark.parametrize(
    ("block", "notes"),
    [
        (" assert 9 <= tcpi_snd_cwnd <= 11, tcpi_snd_cwnd;\\\n   assert 1 # why\n", []),
        (" assert not 2 < tcpi_snd_cwnd < 3 and (1 or nothing)", []),
        ("print(tcpi_snd_cwnd); y = 7 // 2; y += 0x10; print(y, -7 % 3)", ["10", "19 2"]),
        ("print('%s of %.1f%%' % ('a', 2.25))", ["a of 2.2%"]),
        ("\n  import os\n  if tcpi_snd_cwnd > 20:\n    print(1)\n  elif tcpi_snd_cwnd > 5:\n    print(2)\n", ["2"]),
        (" assert 1\nassert tcpi_ca_state == TCP_CA_Open and min(3, abs(-2)) == 2\n", []),
    ],
)
def test_a_block_is_python_with_the_values_of_its_moment(block: str, notes: list[str]) -> None:
    report = _checked(block)
    assert (report["verdict"], report["reason"], report["notes"]) == ("pass", "", notes)


@pytest.mark.parametrize(
    ("block", "verdict", "reason"),
    [
        (" assert tcpi_snd_cwnd + 1 == 10 ", "differs", "line 8: assert tcpi_snd_cwnd + 1 == 10: tcpi_snd_cwnd is 10"),
        ("\n x = 3\n assert x > 3, 'x'\n", "differs", "line 10: assert x > 3: x is 3"),
        ("\nif 1:\n  assert 0, 'no'\n", "differs", "line 10: assert 0: no"),
        ("assert tcpi_busy_time == 1", "unsupported", "line 8: the endpoint keeps no tcpi_busy_time"),
        ("assert ().__class__", "unsupported", 'line 8: "().__class__" in a %{ }% block is not understood'),
        ("\nopen('/etc/passwd')", "error", 'line 9: nothing is called "open" here'),
        ("import os; os", "error", 'line 8: nothing is called "os" here'),
        ("x = 2 ** 9", "unsupported", 'line 8: "Pow" in a %{ }% block is not understood'),
        ("[x for x in 'a']", "unsupported", 'line 8: "[x for x in'),
        ("\nassert (1\n", "error", "line 9: this %{ }% block is no Python ('(' was never closed"),
        ("x = 1 / 0", "error", "line 8: this statement has no value (division by zero)"),
        ("assert 1 + 'a'", "error", "line 8: this statement has no value (unsupported operand"),
        ("assert " + "(" * 400, "error", "line 8: this %{ }% block is no Python (too many nested"),
        ("assert " + "-" * 100_000 + "1", "error", "line 8: this %{ }% block is no Python"),
    ],
)
def test_a_block_that_does_not_hold_or_is_no_statement_about_the_connection_ends_the_script(
    block: str, verdict: str, reason: str
) -> None:
    report = _checked(f"{block}}}%\n+0 %{{ assert 0 ")
    assert report["verdict"] == verdict
    assert report["reason"].startswith(reason), report["reason"]
    assert report["line"] == int(reason.split(":")[0].removeprefix("line "))
    assert bool(report["details"]) == (verdict == "differs")


def test_a_difference_before_a_block_is_reported_and_one_after_it_is_not() -> None:
    wrong = "+0 > . 1:1(0) ack 5\n"
    assert _checked("assert tcpi_snd_cwnd == 1", f"{CONNECTED}{wrong}")["line"] == 8
    report = _checked(f"assert tcpi_snd_cwnd == 1}}%\n{wrong}+0 %{{")
    assert (report["line"], report["reason"]) == (8, "line 8: assert tcpi_snd_cwnd == 1: tcpi_snd_cwnd is 10")
    assert report["details"][0] == "line 8: +0 %{assert tcpi_snd_cwnd == 1}%"
    assert report["details"][-1] == "  0.100000 < . 1:1(0) ack 1 win 65535"


@pytest.mark.parametrize(
    ("name", "status"), [("pass", 0), ("differs", 1), ("unsupported", 1), ("error", 2), ("mixed", 1), ("half", 0)]
)
def test_the_exit_status_tells_the_worst(
    name: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from firstflight.cli.script import command

    socket = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n"
    texts = {
        "pass": socket,
        "differs": f"{socket}+0 close(4) = 0\n",
        "unsupported": f"{socket}+0 epoll_create(1) = 4\n",
        "error": "0 socket(\n",
    }
    wanted = {"mixed": ("pass", "differs"), "half": ("pass", "unsupported")}.get(name, (name,))
    for part in wanted:
        (tmp_path / f"{part}.pkt").write_text(texts[part], encoding="utf-8")
    ended = 0
    try:
        command([tmp_path], True)
    except typer.Exit as leave:
        ended = leave.exit_code
    assert ended == status
    rows = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in rows] == sorted(wanted, key=lambda part: f"{part}.pkt")
    assert all(set(row) == {"path", "verdict", "reason"} for row in rows)
    with contextlib.suppress(typer.Exit):
        command([tmp_path], tolerance="4ms")
    assert f"{len(wanted)} script" in capsys.readouterr().out
