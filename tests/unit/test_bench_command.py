"""The command with its measurements replaced: its checks, its messages, its exit status."""

import json

import pytest

from bench import __main__ as command
from bench.row import Row


@pytest.fixture
def measured(monkeypatch):
    """Replaces every measurement; holds the rows that they give."""
    rows = [Row("bulk, even", 8e6, "data packets / CPU s")]
    monkeypatch.setattr(command, "_steps", lambda present, ns2, beside: [("all of it", lambda: rows)])
    return rows


def test_alone_it_looks_for_no_peer(measured, monkeypatch, capsys):
    monkeypatch.setattr(command, "build_ns3", lambda: pytest.fail("it built ns-3"))
    monkeypatch.setattr(command, "find_ns2", lambda: pytest.fail("it looked for ns-2"))

    assert command.simulator(peers=False, json=True) == 0
    printed = capsys.readouterr()
    assert [row["work"] for row in json.loads(printed.out)] == ["bulk, even"]
    assert printed.err == ""


def test_missing_peers_are_named_with_the_line_that_installs_them(measured, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")

    assert command.simulator(peers=True, json=True) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert printed.err == (
        "ns-2 and ns-3 not found, so only firstflight is measured there: sudo apt-get install ns2 ns3 libns3-dev g++\n"
    )


def test_work_that_was_not_the_same_is_exit_status_1(measured, capsys):
    measured.append(Row("same work", 1.31, "s", peer="ns-2", peer_value=1.0, same=False))

    assert command.simulator(peers=False) == 1
    assert "DIFFERS" in capsys.readouterr().out
