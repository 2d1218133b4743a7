"""Text at a terminal is wrapped and has colored verdicts; elsewhere it is as it was made."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

TEXT = "differs           a-claim: " + "A sentence of many words. " * 6 + "\n" + " " * 18 + "expected 5"
ROWS = "ok       python\nworse\n   10   +1.0%   over the budget: loss\nIt is over the budget, and worse is possible"
COLOR = re.compile(r"\x1b\[[\d;]*m")


def shows(text: str) -> list[str]:
    return [sys.executable, "-c", f"from firstflight.cli.terminal import show; show({text!r})"]


def at_a_terminal(columns: int, text: str = TEXT, **environment: str) -> list[str]:
    return run_at_a_terminal(columns, shows(text), **environment)


def run_at_a_terminal(columns: int, command: list[str], **environment: str) -> list[str]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(command, stdout=slave, env=kept | {"TERM": "xterm"} | environment) as process:
        os.close(slave)
        text = b""
        # Of a terminal whose other end is closed Linux reads an error.
        with contextlib.suppress(OSError):
            while part := os.read(master, 65536):
                text += part
    os.close(master)
    assert process.returncode == 0
    return text.decode().splitlines()


def test_lines_end_at_the_width_and_continue_below_their_text() -> None:
    for columns, width in ((100, 100), (60, 60), (20, 60)):
        lines = [COLOR.sub("", line) for line in at_a_terminal(columns)]
        assert max(map(len, lines)) <= width
        assert " ".join(" ".join(lines).split()) == " ".join(TEXT.split())
        assert all(line.startswith(" " * 18) for line in lines[1:])


def test_a_verdict_is_colored_unless_that_is_unwanted() -> None:
    assert COLOR.split(at_a_terminal(80)[0])[1] == "differs"
    found = [COLOR.split(line)[1:2] for line in at_a_terminal(80, ROWS)]
    assert [word.strip() for line in found for word in line] == ["ok", "worse", "over the budget"]
    assert not re.search(r"\x1b\[[\d;]*3\d", at_a_terminal(80, NO_COLOR="1")[0])


def test_a_pipe_gets_the_lines_as_they_are() -> None:
    assert subprocess.run(shows(TEXT), check=True, capture_output=True, text=True).stdout == TEXT + "\n"


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["observe", "flows/homes.csv.gz"], "  size: 39.36 kB (8.361, 190.8), 4,000 responses"),
        (["trace", "download.toml"], "0.060211200  sent      to_client       1    1448      81"),
    ],
)
def test_a_table_of_a_command_fits_a_narrow_terminal(arguments: list[str], line: str) -> None:
    command, file = arguments
    lines = run_at_a_terminal(60, [str(Path(sys.executable).with_name("firstflight")), command, str(EXAMPLES / file)])
    assert [one for one in lines if len(one) > 60 and " " in one.strip()] == []
    assert line in lines
