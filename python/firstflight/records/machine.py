"""The provenance stored with results: versions, code, commit, machine, command."""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
# The Python packages that determine a record's contents. Analysis, reports and studies only choose and read cells.
_DECIDING = ("scenario", "records", "engines")
ENGINES = ("simulate", "model", "emulate")
"""Each has its own source in `engines`, a file or a directory of that name."""
# Limit and use of a container's memory, as it sees them, and the part of the use that is files that can be evicted:
# of control groups version 2 and 1.
_GROUP = Path("/sys/fs/cgroup")
_GROUP_MEMORY = (
    (_GROUP / "memory.max", _GROUP / "memory.current", _GROUP / "memory.stat", "inactive_file"),
    (
        _GROUP / "memory/memory.limit_in_bytes",
        _GROUP / "memory/memory.usage_in_bytes",
        _GROUP / "memory/memory.stat",
        "total_inactive_file",
    ),
)


@cache
def version() -> str:
    """The version of this package."""
    return importlib.metadata.version("firstflight")


@cache
def code_version(engine: str) -> str:
    """16 hex digits that change whenever code does that can change a record of this engine.

    That is the native module's bytes, and the sources of the packages between scenario and records without those of
    the other engines.
    """
    from firstflight import _native

    others = {PACKAGE / "engines" / f"{name}{suffix}" for name in ENGINES if name != engine for suffix in ("", ".py")}
    files = [Path(str(_native.__file__))]
    files += sorted(path for package in _DECIDING for path in (PACKAGE / package).rglob("*.py"))
    return _digest(path for path in files if not others & {path, *path.parents})


def sources() -> str:
    """16 hex digits that change whenever a Python file of this package does, or what a study declares: also while this
    process runs.
    """
    return _digest(sorted(path for ends in ("*.py", "*.toml") for path in PACKAGE.rglob(ends)))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of everything that had a hand in a run."""
    from firstflight import _native

    names = ("numpy", "polars", "pydantic")
    return {"firstflight": version(), "native": _native.version(), "python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in names
    }


@cache
def commit() -> str | None:
    """The git commit of the checkout this package runs from, "-dirty" if it has changes; None outside one."""
    checkout = PACKAGE.parent.parent
    if not (checkout / ".git").exists():
        return None
    answers = []
    # Files that git does not know are none of the code: plots and runs may lie about.
    for command in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no")):
        try:
            done = subprocess.run(
                ["git", "-C", str(checkout), *command], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        answers.append(done.stdout.strip())
    return answers[0] + ("-dirty" if answers[1] else "")


def machine() -> dict[str, Any]:
    """The machine of the run: host, system, processor, usable CPUs, memory in bytes."""
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cpus": usable_cpus(),
        "memory_bytes": memory_bytes(),
    }


def usable_cpus() -> int:
    """CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Physical memory, where the system reports it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory_bytes() -> int | None:
    """The memory left to this process without swapping, of the machine, its control group and its own limits
    (`ulimit -v`, `ulimit -d`); None if unknown.
    """
    free = []
    with contextlib.suppress(OSError, LookupError, ValueError, ImportError):
        import resource

        for kind, name in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
            if (most := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY:
                free.append(most - 1024 * int(_entries(Path("/proc/self/status"))[name]))
    with contextlib.suppress(OSError, LookupError, ValueError):
        free.append(1024 * int(_entries(Path("/proc/meminfo"))["MemAvailable:"]))
    for limit, used, statistics, files in _GROUP_MEMORY:
        # Version 2 writes "max" where there is no limit.
        with contextlib.suppress(OSError, LookupError, ValueError):
            left = int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii"))
            free.append(left + int(_entries(statistics)[files]))
    return max(0, min(free)) if free else None


def _entries(path: Path) -> dict[str, str]:
    """Names and numbers of a file of lines."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    return {words[0]: words[1] for words in map(str.split, lines) if len(words) > 1}


def command() -> list[str]:
    """The command line of this process, its program by name only."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
