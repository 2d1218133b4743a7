"""The program where the machine, the terminal or the user's hand is not as usual: one sentence, and no traceback."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = [sys.executable, "-c", "from firstflight.cli import main; main()"]
Program = Callable[..., Any]


@pytest.mark.parametrize(
    "encoding",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX"},
    ],
    ids=lambda encoding: " ".join(encoding),
)
def test_what_the_terminal_cannot_show_is_spelled_in_ascii(
    small_file: Path, tmp_path: Path, encoding: dict[str, str]
) -> None:
    small_file.write_text(
        small_file.read_text().replace('name = "small"', 'name = "small"\ndescription = "Größe ± 中"')
    )
    # The second error has a name that it cannot show.
    code = "import sys; from firstflight.cli import main; told = []\n"
    code += "for file in sys.argv[1:]:\n sys.argv[1:] = ['explain', file]\n try: main()\n"
    code += " except SystemExit as end: told.append(end.code)\nassert told == [0, 2], told"
    command = [sys.executable, "-c", code, str(small_file), str(tmp_path / "no such 中.toml")]
    done = subprocess.run(command, env=os.environ | encoding, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b"Gr" in done.stdout
    assert done.stderr.startswith(b"firstflight: ")
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_failure(small_file: Path, tmp_path: Path, closed: str) -> None:
    command = ("run", str(small_file), "--replicates", "1", "--out", str(tmp_path / "out"))
    told = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *PROGRAM, *command], capture_output=True, timeout=120, check=False
    )
    assert (told.returncode, told.stderr) == (0, b"")
    assert b"Traceback" not in told.stdout
    assert (tmp_path / "out" / "run.json").is_file()


@pytest.mark.parametrize("command", ["explain", "studies", "doctor"])
def test_a_current_folder_that_was_deleted_is_told(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = f"import os, shutil; os.chdir({str(folder)!r}); shutil.rmtree({str(folder)!r}); "
    code += f"import sys; sys.argv = ['firstflight', {command!r}]; from firstflight.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, "")
    expected = "firstflight: the current folder cannot be used (No such file or directory); change to another one\n"
    assert done.stderr == expected


@pytest.mark.parametrize(
    ("problem", "status", "said"),
    [
        (OSError(errno.EMFILE, "Too many open files"), 3, "firstflight: Too many open files\n"),
        (OSError(errno.EIO, "Input/output error", "a\x1b[2J"), 3, "firstflight: a\\x1b[2J: Input/output error\n"),
        (MemoryError(), 3, "firstflight: there is not enough memory for this; ask for less\n"),
        (KeyboardInterrupt(), 130, "firstflight: interrupted\n"),
    ],
)
def test_a_failure_of_the_machine_in_any_command_is_one_sentence(
    firstflight: Program, monkeypatch: pytest.MonkeyPatch, problem: BaseException, status: int, said: str
) -> None:
    def fail() -> None:
        raise problem

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("firstflight.cli._discard_output", lambda: None)
    monkeypatch.setattr("firstflight.cli.studies.listed", fail)
    try:
        answer = firstflight("studies")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (answer.status, answer.err) == (status, said)


def test_ctrl_c_while_the_program_starts_is_answered_without_a_traceback() -> None:
    """From where Python has started to the end: before, its own start, no program can do anything."""
    installed = shutil.which("firstflight", path=Path(sys.executable).parent)
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    own_start_s = time.monotonic() - began
    took_s = 0.0
    for step in range(5):
        words = [installed, "studies"] if installed else [*PROGRAM, "studies"]
        began = time.monotonic()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            if step:
                time.sleep(2 * own_start_s + took_s * step / 10)
                program.send_signal(signal.SIGINT)
            _, told = program.communicate(timeout=120)
        took_s = took_s or time.monotonic() - began
        assert b"Traceback" not in told
        # On a busy machine the signal may come before Python takes signals, which ends it without a word.
        early = () if told else (-signal.SIGINT,)
        assert program.returncode in ((0,) if step == 0 else (0, 130, *early))
        assert told in (b"", b"firstflight: interrupted\n")
