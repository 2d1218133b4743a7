"""Commands in a mount namespace of their own: as an ordinary user, without TUN devices, on a disk without space."""

import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
ORDINARY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]

# What is needed is brought to where it is in a file system that everyone may enter, however closed the directories
# above it are on this machine. $1: a directory for that; then directories that are closed, "--", directories that are
# needed, "--", the command.
OPENED = """
set -eu
shelf=$1; shift
closed=
while [ "$1" != -- ]; do closed="$closed $1"; shift; done; shift
needed=
while [ "$1" != -- ]; do needed="$needed $1"; shift; done; shift
mount -t tmpfs -o mode=0755 none "$shelf"
for directory in $needed; do mkdir -p "$shelf$directory"; mount --rbind "$directory" "$shelf$directory"; done
for directory in $closed; do mount -t tmpfs -o mode=0755 none "$directory"; done
for directory in $needed; do
    mkdir -p "$directory"
    [ "$(stat -c %d:%i "$directory")" = "$(stat -c %d:%i "$shelf$directory")" ] ||
        mount --rbind "$shelf$directory" "$directory"
done
exec "$@"
"""
# $1: a directory, $2: the bytes that it is to have room for; then the command.
SMALL = 'set -eu; mount -t tmpfs -o size="$2" none "$1"; shift 2; exec "$@"'


def as_ordinary_user(
    shelf: Path, command: Sequence[str], hidden: Sequence[str] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user without any privilege, who does not find what is in the hidden directories.

    Skips the test where that cannot be done.
    """
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv here; apt-get install util-linux")
    if REPOSITORY.stat().st_mode & 0o005 != 0o005:
        pytest.skip(f"others than its owner may not read {REPOSITORY}")
    return _opened(shelf, [*ORDINARY, *command], hidden)


def without(shelf: Path, command: Sequence[str], hidden: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command as the user of this process, who does not find what is in the hidden directories."""
    return _mounted(["sh", "-c", OPENED, "opened", str(shelf), *hidden, "--", "--", *command])


def on_a_small_disk(disk: Path, size: int, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command for which the directory `disk` has room for `size` bytes only."""
    return _mounted(["sh", "-c", SMALL, "small", str(disk), str(size), *command])


def _opened(shelf: Path, command: Sequence[str], hidden: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    packages = {Path(path) for path in site.getsitepackages()}
    needed = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent, REPOSITORY} | packages
    places = [*map(str, _closed(needed)), *hidden, "--", *map(str, needed), "--"]
    return _mounted(["sh", "-c", OPENED, "opened", str(shelf), *places, *command])


def _mounted(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        ["unshare", "--mount", *command], capture_output=True, text=True, cwd="/", timeout=300, check=False
    )
    if done.returncode != 0 and "mount:" in done.stderr:
        pytest.skip(f"root may mount nothing here: {done.stderr.strip().splitlines()[-1]}")
    return done


def _closed(directories: set[Path]) -> set[Path]:
    """The topmost directories above these that not everyone may enter."""
    found = set()
    for directory in directories:
        for above in reversed(directory.parents):
            if not above.stat().st_mode & 0o001:
                found.add(above)
                break
    return found
