"""Files that are either whole or absent: written beside, made durable, renamed into place. And the lock."""

import contextlib
import errno
import fcntl
import io
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..errors import MachineError, RequestError

# Names that only an unfinished write has; whoever holds the lock may remove them.
TEMPORARY = ".unfinished-"
_LOCK = ".lock"
_MAGIC = b"PAR1"
# Rows of a row group. Left to itself, the writer begins one where a part of the table begins.
_ROW_GROUP = 250_000
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def explained(directory: Path) -> Iterator[None]:
    """Turn what the file system refuses to write at `directory` (or file) into MachineError with one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise MachineError(
                f"there is no space left for {directory}: what had finished is kept; make room and run the same "
                "command again to continue"
            ) from None
        raise MachineError(
            f"{directory} cannot be written: {error.strerror or error}; choose another --out or mend its permissions"
        ) from None


def write_json(path: Path, content: Any) -> None:
    """Replace `path` in one step."""
    beside = path.with_name(f"{TEMPORARY}{path.name}")
    _write(beside, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    beside.replace(path)
    _sync_directory(path.parent)


def write_cell(
    place: Path, tables: Mapping[str, pl.DataFrame | pl.LazyFrame], metadata: dict[str, str], texts: Mapping[str, str]
) -> None:
    """Write a directory of Parquet files, one a table, that appears complete or not at all. `texts`: what belongs to
    all of them, by file name.
    """

    def content(frame: pl.DataFrame | pl.LazyFrame) -> memoryview:
        # Through memory: a full disk then is an OSError here, whatever the Parquet writer would make of it.
        buffer = io.BytesIO()
        to_parquet(frame, buffer, metadata)
        return buffer.getbuffer()

    parquet = ((f"{name}.parquet", content(frame)) for name, frame in tables.items())
    beside = ((name, text.encode()) for name, text in texts.items())
    write_directory(place, itertools.chain(parquet, beside))


def write_directory(place: Path, contents: Iterable[tuple[str, bytes | memoryview]]) -> None:
    """Write a directory of files, name and content, that appears complete or not at all."""
    beside = place.with_name(f"{TEMPORARY}{place.name}")
    beside.mkdir()
    for name, content in contents:
        _write(beside / name, content)
    _sync_directory(beside)
    beside.rename(place)
    _sync_directory(place.parent)


def to_parquet(frame: pl.DataFrame | pl.LazyFrame, buffer: IO[bytes], metadata: dict[str, str]) -> None:
    """Write a table as Parquet; the bytes do not depend on the parts that it was put together from."""
    frame.lazy().sink_parquet(
        buffer, compression="zstd", compression_level=1, row_group_size=_ROW_GROUP, metadata=metadata
    )


def is_whole_parquet(path: Path) -> bool:
    """Whether `path` begins and ends as a Parquet file does. Its content is not read."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            return head == file.read() == _MAGIC
    except OSError:
        return False


def is_whole_text(path: Path) -> bool:
    """Whether `path` has lines, the last of which is complete. What is in them is not looked at."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:
        return False


def size_bytes(directory: Path) -> int:
    """What the files in `directory` and below hold together."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _write(path: Path, content: bytes | memoryview) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(directory: Path) -> None:
    """Remove what a killed process left half-written in `directory`."""
    for path in directory.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def holds_something(directory: Path) -> bool:
    """Whether there is anything in `directory` besides a lock and unfinished writes."""
    return any(
        path.name != _LOCK and not path.name.startswith(TEMPORARY) and path.name not in ("cells", "chunks")
        for path in directory.iterdir()
    )


class Lock:
    """The right to write in a directory, held by one process and gone with it, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Take the lock; RequestError if another process has it."""
        self._file = (directory / _LOCK).open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise RequestError(
                f"another process (pid {holder}) is writing in {directory}: wait for it, or choose another --out"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Give the right back; harmless when already given."""
        self._file.close()
