"""Files that are either whole or absent: written to a temporary file, made durable, renamed into place. And the lock.

A directory of records holds a checksum of each of its files, in the format of sha256sum.
"""

import contextlib
import errno
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO

import polars as pl

from firstflight.errors import MachineError, RequestError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Names that only an unfinished write has; the holder of the lock may remove them.
TEMPORARY = ".unfinished-"
SUMS = "SHA256SUMS"
"""The file with the checksums of a directory of records; `sha256sum -c` reads it, too."""
LOCK = ".lock"
HASH = re.compile("[0-9a-f]{20}")
"""The name of a cell's records, in `cells` and `chunks`. Nothing of another name there is ever removed."""
_MAGIC = b"PAR1"
# Rows of a row group. Left to itself, the writer begins one where a part of the table begins.
_ROW_GROUP = 250_000
# About as many as a cell has.
_FILES_AT_ONCE = 12
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_A_NAME = {errno.ENAMETOOLONG, errno.ELOOP}
# Windows has neither; a child process inherits nothing there that is not passed on.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NOT_INHERITED = getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def explained(directory: Path) -> Iterator[None]:
    """Turn an error of the file system on writing `directory` (or file) into one sentence: RequestError for a path
    that it can never take, MachineError for the rest.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NOT_A_NAME:
            raise RequestError(f"{directory} cannot be written: {error.strerror}; choose another name") from None
        if error.errno in _NO_SPACE:
            kept = "finished parts are kept; make room and run the same command again to continue"
            what = kept if directory.is_dir() else "nothing was written; make room"
            raise MachineError(f"there is no space left for {directory}: {what}") from None
        raise MachineError(
            f"{directory} cannot be written: {error.strerror or error}; choose another --out or fix its permissions"
        ) from None


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn an error of the file system on reading `path` into RequestError with one sentence."""
    try:
        yield
    except OSError as error:
        raise RequestError(f'"{path}" cannot be read: {error.strerror or error}') from None


def write_json(path: Path, content: Any) -> None:
    """Replace `path` in one step."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` in one step; it stays as it was if that fails."""
    beside = path.with_name(f"{TEMPORARY}{path.name}")
    try:
        with _written(beside, content) as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _sync_directory(path.parent)


def write_cell(
    place: Path, tables: Mapping[str, pl.DataFrame | pl.LazyFrame], metadata: dict[str, str], texts: Mapping[str, str]
) -> None:
    """Write a directory of Parquet files, one a table, that appears complete or not at all. `texts`: files that
    belong to all of them, by file name.
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
    """Write a directory of files, name and content, and their checksums, that appears complete or not at all."""
    beside = place.with_name(f"{TEMPORARY}{place.name}")
    beside.mkdir()
    listed = b""
    try:
        with contextlib.ExitStack() as stack:
            written = []
            for name, content in contents:
                written.append(stack.enter_context(_written(beside / name, content)))
                listed += sums([(name, content)])
            written.append(stack.enter_context(_written(beside / SUMS, listed)))
            _sync(written)
        _sync_directory(beside)
        beside.rename(place)
    except BaseException:
        # On a full disk it would use the little remaining space.
        shutil.rmtree(beside, ignore_errors=True)
        raise
    _sync_directory(place.parent)


def to_parquet(frame: pl.DataFrame | pl.LazyFrame, buffer: IO[bytes], metadata: dict[str, str]) -> None:
    """Write a table as Parquet; the bytes do not depend on the parts that it was put together from."""
    frame.lazy().sink_parquet(
        buffer, compression="zstd", compression_level=1, row_group_size=_ROW_GROUP, metadata=metadata
    )


def _opened(path: Path) -> io.BufferedReader:
    """The file at `path`. FileNotFoundError for a pipe, too: opening one that has no writer blocks."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.open("rb")


def is_whole_parquet(path: Path) -> bool:
    """Whether `path` begins and ends as a Parquet file does. Its content is not read."""
    try:
        with _opened(path) as file:
            head = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            return head == file.read() == _MAGIC
    except OSError:
        return False


def sums(contents: Iterable[tuple[str, bytes | memoryview]]) -> bytes:
    """The checksums of files, name and content, as `SUMS` holds them."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents).encode()


def is_as_written(path: Path) -> bool:
    """Whether a file's content matches the checksum stored with it. The whole file is read."""
    try:
        with _opened(path) as file:
            line = f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}".encode()
        return line in path.with_name(SUMS).read_bytes().splitlines()
    except OSError:
        return False


def is_directory_as_written(place: Path) -> bool:
    """Whether `is_as_written` holds of each file that was written into a directory."""
    try:
        names = [line.partition("  ")[2] for line in (place / SUMS).read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return False
    return bool(names) and all(is_as_written(place / name) for name in names)


def is_whole_text(path: Path) -> bool:
    """Whether `path` has lines, the last of which is complete. Their contents are not checked."""
    try:
        with _opened(path) as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:
        return False


def size_bytes(directory: Path) -> int:
    """The total size of the files in `directory` and below."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _sync(written: Sequence[BinaryIO]) -> None:
    """Sync the files in parallel, for the file system to make one commit of them; one after the other, each with a
    commit of its own, where the system starts no further thread.
    """
    descriptors = [file.fileno() for file in written]
    try:
        list(_sync_threads(os.getpid()).map(os.fsync, descriptors))
    except RuntimeError:
        for descriptor in descriptors:
            os.fsync(descriptor)


@cache
def _sync_threads(process: int) -> ThreadPoolExecutor:
    """Threads that are kept, as starting them takes twice the CPU time of a sync. A forked process has none of them."""
    return ThreadPoolExecutor(_FILES_AT_ONCE)


@contextlib.contextmanager
def _written(path: Path, content: bytes | memoryview) -> Iterator[BinaryIO]:
    """A file with this content, which need not be on the disk yet."""
    # A link is not followed: its target is not ours.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        yield file


def _sync_directory(path: Path) -> None:
    if sys.platform == "win32":
        # A directory cannot be opened there.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(directory: Path, names: re.Pattern[str]) -> None:
    """Remove half-written files of these names that a killed process left in `directory`."""
    for path in list(directory.iterdir()):
        if not (path.name.startswith(TEMPORARY) and names.fullmatch(path.name.removeprefix(TEMPORARY))):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove_if_empty(directory: Path) -> None:
    """Remove a directory unless something is in it."""
    with contextlib.suppress(OSError):
        directory.rmdir()


def refuse_link(path: Path) -> None:
    """Raise RequestError if `path` is a symbolic link: the run must not change its target."""
    if path.is_symlink():
        raise RequestError(
            f'"{path}" is a symbolic link, and a run writes only within its own directory; remove the link, or choose '
            "another --out"
        )


def _take(descriptor: int) -> None:
    """Lock a file without waiting; BlockingIOError if another process holds the lock (on Windows PermissionError)."""
    if sys.platform == "win32":
        # A byte that is locked cannot be read by others, and the first ones name the holder.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """The right to write in a directory, held by one process and gone with it, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Take the lock; RequestError if another process holds it."""
        path = directory / LOCK
        refuse_link(path)
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK | _NOT_INHERITED, 0o666)
        try:
            _take(self._file)
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()}\n".encode())
        except (BlockingIOError, PermissionError):
            os.lseek(self._file, 0, os.SEEK_SET)
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            self.release()
            raise RequestError(
                f"another process (pid {holder}) is writing in {directory}: wait for it, or choose another --out"
            ) from None
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the right back; harmless when already given."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
