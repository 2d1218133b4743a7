"""Other programs, on a host: found once, without the caller's environment, and without root's files."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.engines.emulate.inside.namespaces import Namespace
from firstflight.engines.emulate.start import ENVIRONMENT, MARK, PROGRAM_ID, search_path
from firstflight.errors import MachineError


@cache
def find(name: str, package: str) -> str:
    """The absolute path of a program; MachineError with the package that provides it."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise MachineError(f"there is no {name} on this machine", f"apt-get install {package}")
    return found


def spawn(namespace: Namespace, command: Sequence[str], **pipes: Any) -> subprocess.Popen[bytes]:
    """Start a program in a host's namespace: with an environment of only the variables that a testbed needs, and as a
    user who owns nothing outside if root has started the testbed. OSError if it cannot be started.
    """
    return namespace.spawn(command, env=ENVIRONMENT | {MARK: os.environ[MARK]}, **_identity(), **pipes)


def give(directory: Path) -> None:
    """Let the programs write in a directory."""
    if _identity():
        os.chown(directory, PROGRAM_ID, PROGRAM_ID)


@cache
def _identity() -> dict[str, Any]:
    """The user a program runs as. One that an ordinary user has started keeps that user's id: there is no other."""
    known = [line.split()[0] for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    if str(PROGRAM_ID) not in known:
        return {}
    return {"user": PROGRAM_ID, "group": PROGRAM_ID, "extra_groups": []}
