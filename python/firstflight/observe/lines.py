"""Lines of a text file of any length, in pieces, so that memory does not grow with it; packed by gzip or not."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from firstflight.observe.problem import Problems

# Of text at once: large enough that the work on a piece is done by column; its results take many times as much,
# and larger pieces are not read faster.
PIECE_BYTES = 1 << 21
# Longer lines are not of any format read here: binary junk may have no end of line at all.
_LONGEST_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"


def pieces(path: Path, problems: Problems, size: int = PIECE_BYTES) -> Iterator[tuple[int, pl.Series]]:
    """Pieces of the file: the number of the first line in it, from 1, and its lines. Empty lines are among them.

    A packed file that ends too early or is damaged gives its readable part and a problem at the byte of its content.
    """
    rest = b""
    number = 1
    for content in _contents(path, problems, size):
        text = rest + content
        end = text.rfind(b"\n") + 1
        if end == 0 and len(text) > _LONGEST_BYTES:
            problems.add(f"a line of more than {_LONGEST_BYTES:,} bytes, where reading ends", [number])
            return
        rest = text[end:]
        if end:
            lines = _split(text[: end - 1])
            yield number, lines
            number += lines.len()
    if rest:
        yield number, pl.Series("line", [rest.decode("utf-8", errors="replace").rstrip("\r")], dtype=pl.String)


def _split(text: bytes) -> pl.Series:
    whole = pl.Series("line", [text.decode("utf-8", errors="replace").replace("\r\n", "\n").removesuffix("\r")])
    return whole.str.split("\n").explode()


def begins(path: Path, size: int = 1 << 16) -> bytes:
    """The beginning of the file's content, unpacked if it is packed."""
    return next(_contents(path, Problems(), size), b"")


def is_packed(path: Path) -> bool:
    """Whether a file is packed by gzip."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def _contents(path: Path, problems: Problems, size: int) -> Iterator[bytes]:
    at = 0
    content = bytearray()
    with gzip.open(path) if is_packed(path) else path.open("rb") as stream:
        while True:
            try:
                # The data unpacked before the damage is used: `read` would discard it.
                more = stream.read1(size - len(content))
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                problems.add(f"the packed file is damaged from here on: {error}", [at + len(content)], "byte")
                more = b""
            content += more
            if len(content) == size or (content and not more):
                yield bytes(content)
                at += len(content)
                content.clear()
            if not more:
                return
