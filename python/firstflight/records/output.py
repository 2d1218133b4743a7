"""Files that a user asks for: a plot, a capture, a table, a page. Files that firstflight did not write are not
replaced.
"""

import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from firstflight.errors import RequestError
from firstflight.records import files

MARK = "Written by firstflight"
"""In every file that has a place for it: at the beginning or the end."""
_TRACE = b"firstflight trace:"
_MARKED_BYTES = 1 << 16
# A pcap file has no place for a mark: ours have nanoseconds, raw IP, and times that begin with the simulation.
_PCAP, _RAW_IP, _FIRST_TIME = b"\x4d\x3c\xb2\xa1", b"\x65\0\0\0", slice(24, 28)
_LONGEST_SIMULATION_S = 1 << 24
# Formats without a place for a mark: the names of columns, and the first key.
_BEGINNINGS: dict[str, Callable[[bytes], bytes]] = {
    ".csv": lambda text: text.partition(b"\n")[0],
    ".json": lambda text: text.partition(b":")[0],
}


def write(target: Path, content: bytes, inputs: Iterable[Path] = ()) -> None:
    """Write a file, which is either whole or as it was, and the directory it belongs to. RequestError if it holds
    something else; MachineError if it cannot be written.
    """
    check(target, inputs, content)
    make_directory(target)
    with files.explained(target):
        files.write_whole(target, content)


def make_directory(target: Path) -> None:
    """Make the directory of a file that is about to be written; MachineError if it cannot be made."""
    with files.explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)


def check(target: Path, inputs: Iterable[Path] = (), content: bytes | None = None) -> None:
    """Raise RequestError if writing `target` would destroy a file that was read (`inputs`) or that firstflight did not
    write.
    A CSV table and JSON are recognized by their first bytes, when `content` is known.
    """
    with files.explained(target):
        if not target.exists() and not target.is_symlink():
            return
        if any(path.exists() and path.samefile(target) for path in inputs if target.exists()):
            raise RequestError(f'"{target}" is the file that is read; write to another')
        if not stat.S_ISREG(target.lstat().st_mode):
            raise RequestError(f'"{target}" is a directory, link or device; name a file')
        if not _is_ours(target, content):
            raise RequestError(
                f'"{target}" exists and was not written by this command; delete it, or choose another name'
            )


def _is_ours(path: Path, content: bytes | None) -> bool:
    with path.open("rb") as file:
        begins = file.read(_MARKED_BYTES)
        file.seek(max(0, path.stat().st_size - _MARKED_BYTES))
        ends = file.read()
    if path.suffix.lower() in _BEGINNINGS:
        beginning = _BEGINNINGS[path.suffix.lower()]
        return content is None or not begins or beginning(begins) == beginning(content)
    if begins.startswith(_PCAP) and begins[20:24] == _RAW_IP:
        return int.from_bytes(begins[_FIRST_TIME], "little") < _LONGEST_SIMULATION_S
    return not begins or _TRACE in begins or MARK.encode() in begins or MARK.encode() in ends
