"""Files that a request names: a file that is read whole is read up to a size that no file of its kind has."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from firstflight.errors import RequestError

if TYPE_CHECKING:
    import polars as pl

# Of a scenario, a packet script, a measured distribution, a directory's own description.
MOST_BYTES = 1 << 24


class TooLargeError(OSError):
    """A file that is larger than any of its kind; `strerror` says so."""

    def __str__(self) -> str:
        return str(self.strerror)


def or_packaged(path: str | os.PathLike[str]) -> Path:
    """`path`; for one under `examples/` that the working directory lacks, the package's own file of that name.

    RequestError for a zero character.
    """
    path = Path(path)
    if "\0" in str(path):
        raise RequestError(f"{str(path)!r} has a zero character, as no path has")
    if path.parts[:1] == ("examples",) and not os.access(path, os.F_OK):
        packaged = Path(__file__).parent / path
        return packaged if os.access(packaged, os.F_OK) else path
    return path


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The text in `path`, UTF-8, with a byte order mark or without. Errors as `read_bytes`, and UnicodeDecodeError."""
    return read_bytes(path, most_bytes).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def named_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The text in `path`, which a request names. RequestError if it cannot be read."""
    try:
        return read_text(path, most_bytes)
    except FileNotFoundError:
        raise RequestError(f'there is no file "{path}"') from None
    except IsADirectoryError:
        raise RequestError(f'"{path}" is a directory; name a file') from None
    except OSError as error:
        raise RequestError(f'"{path}" cannot be read: {error.strerror}') from None
    except UnicodeDecodeError as error:
        raise RequestError(f'"{path}" is not UTF-8 text: {error.reason} at byte {error.start}') from None


def read_beside(name: str, directory: Path | None) -> tuple[Path, str]:
    """Path and text of the file `name`, relative to `directory` or the current one. ValueError if it cannot be read."""
    path = (directory or Path()) / name
    try:
        return path, read_text(path)
    except FileNotFoundError:
        raise ValueError(f'there is no file "{path}"; the name is relative to the scenario\'s folder') from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f'"{path}" cannot be read: {error}') from None


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The contents of `path`, which may be a device or a pipe. OSError; TooLargeError for more than `most_bytes`."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        limit = f"{most_bytes >> 20} MiB"
        raise TooLargeError(errno.EFBIG, f"it has more than {limit}, and no file of its kind needs as much")
    return content


def check_is_file(path: Path) -> None:
    """RequestError for a path that exists but cannot be read twice, or has no end."""
    if path.is_dir():
        raise RequestError(f"{path} is a directory; name the file in it that is to be read")
    if path.exists() and not path.is_file():
        raise RequestError(f"{path} is a pipe or a device, which can be read only once; write it to a file first")


def scan(path: Path) -> "pl.LazyFrame":
    """The Parquet file at `path`, which is a name and never a pattern, a home directory or an address."""
    import polars as pl

    return pl.scan_parquet(path.absolute(), glob=False)


def unreadable() -> tuple[type[BaseException], ...]:
    """The errors of Polars for a damaged Parquet file: some damage makes it panic."""
    import polars as pl

    return pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError
