"""The tests of testbeds again, as a user without any privilege."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import testbeds
from opened import REPOSITORY, as_ordinary_user

HERE = Path(__file__).resolve().parent
# Those that say nothing about who runs them need not run twice.
KILLS = "test_emulate_kills.py::test_"
AGAIN = (
    "test_emulate_lab.py",
    f"{KILLS}nothing_is_left_when_the_runner_is_killed",
    f"{KILLS}nothing_is_left_when_the_runner_is_killed_while_it_starts",
    f"{KILLS}a_testbed_that_ends_leaves_nothing",
    f"{KILLS}a_run_ends_with_one_sentence_when_a_program_of_it_is_killed",
)


def test_a_testbed_needs_no_privilege(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("these tests run as an ordinary user already")
    if refused := testbeds.refusal():
        pytest.skip(refused)
    files = Path(tempfile.gettempdir()) / f"firstflight-{os.getpid()}"
    options = [
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(REPOSITORY),
        "--confcutdir",
        str(HERE.parent),
        f"--basetemp={files}",
    ]
    tests = [sys.executable, "-P", "-m", "pytest", *map(str, options), *(str(HERE / name) for name in AGAIN)]
    try:
        done = as_ordinary_user(tmp_path, tests)
    finally:
        shutil.rmtree(files, ignore_errors=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert " passed" in said
