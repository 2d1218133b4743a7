"""Lines of a text file of any length, in pieces, so that memory does not grow with it; packed or not. The entries of a
JSON document, such as a HAR, are lines, too.
"""

import bz2
import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl

from firstflight.errors import RequestError
from firstflight.observe.problem import Problems

# Of text at once: large enough that the work on a piece is done by column; its results take many times as much,
# and larger pieces are not read faster.
PIECE_BYTES = 1 << 21
# Longer lines are not of any format read here: binary junk may have no end of line at all.
_LONGEST_BYTES = 1 << 20
# A document is read whole.
_LARGEST_DOCUMENT_BYTES = 1 << 28
_PACKED: dict[bytes, tuple[str, Callable[..., BinaryIO]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),  # type: ignore[dict-item]
    b"BZh": ("bzip2", bz2.open),  # type: ignore[dict-item]
    b"\xfd7zXZ\0": ("xz", lzma.open),  # type: ignore[dict-item]
}
_ZSTD = b"\x28\xb5\x2f\xfd"
# Where documents have their entries: HAR, AWS, Azure, Elasticsearch.
_ENTRIES = (
    ("log", "entries"),
    ("entries",),
    ("Records",),
    ("records",),
    ("events",),
    ("logEvents",),
    ("value",),
    ("hits", "hits"),
)


def pieces(path: Path, problems: Problems, size: int = PIECE_BYTES) -> Iterator[tuple[int, pl.Series]]:
    """Pieces of the file: the number of the first line in it, from 1, and its lines. Empty lines are among them.

    A packed file that ends too early or is damaged gives its readable part and a problem at the byte of its content.
    """
    if (entries := _document(path)) is not None:
        yield 1, pl.Series("line", entries, dtype=pl.String)
        return
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
        # In a file without another end of line, carriage returns are ends of lines.
        yield number, _split(rest.replace(b"\r", b"\n") if number == 1 else rest)


def _split(text: bytes) -> pl.Series:
    whole = pl.Series("line", [text.decode("utf-8", errors="replace").replace("\r\n", "\n").removesuffix("\r")])
    return whole.str.split("\n").explode()


def begins(path: Path) -> bytes:
    """The beginning of the file's content, unpacked if it is packed. RequestError if it cannot be unpacked here."""
    return next(_contents(path, Problems(), 1 << 16), b"")


def packed_by(path: Path) -> str | None:
    """The program that packed a file; None if it is not packed. RequestError for zstd, which Python cannot read, and
    for text in UTF-16.
    """
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(_ZSTD):
        raise RequestError(
            f"{path} is packed by zstd, which is not read here; unpack it first (zstd -d), or pipe it: "
            f"zstd -dc {path} | firstflight observe -"
        )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise RequestError(
            f"{path} is text in UTF-16, which is not read here; convert it first (iconv -f UTF-16 -t UTF-8), or pipe "
            f"it: iconv -f UTF-16 -t UTF-8 {path} | firstflight observe -"
        )
    return next((name for magic, (name, _) in _PACKED.items() if head.startswith(magic)), None)


def unpacked(path: Path) -> Iterator[bytes]:
    """The file's content; of one that is damaged, the part before."""
    return _contents(path, Problems(), PIECE_BYTES)


def _opened(path: Path) -> BinaryIO:
    packer = packed_by(path)
    for name, unpacked in _PACKED.values():
        if name == packer:
            return unpacked(path)
    return path.open("rb")


def _contents(path: Path, problems: Problems, size: int) -> Iterator[bytes]:
    at = 0
    content = bytearray()
    with _opened(path) as stream:
        while True:
            try:
                # The data unpacked before the damage is used: `read` would discard it.
                more = stream.read1(size - len(content))  # type: ignore[attr-defined]
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                problems.add(f"the packed file is damaged from here on: {error}", [at + len(content)], "byte")
                more = b""
            content += more
            if len(content) == size or (content and not more):
                yield bytes(content if at else content.removeprefix(codecs.BOM_UTF8))
                at += len(content)
                content.clear()
            if not more:
                return


def _document(path: Path) -> list[str] | None:
    """The entries of a file that is JSON, but not a value a line; None for another file."""
    head = begins(path).lstrip(b" \t\r\n")
    if not head.startswith(b"{") and not (head.startswith(b"[") and head[1:].lstrip()[:1] in (b"{", b"]")):
        return None
    first, _, more = head.partition(b"\n")
    if more.strip() and head.startswith(b"{") and _values(first) is not None:
        return None
    text = bytearray()
    for content in _contents(path, Problems(), PIECE_BYTES):
        text += content
        if len(text) > _LARGEST_DOCUMENT_BYTES:
            raise RequestError(
                f"{path} is one JSON document of more than {_LARGEST_DOCUMENT_BYTES >> 20} MiB; write its entries one "
                "a line (jq -c '.[]')"
            )
    values = _values(bytes(text))
    if values is None:
        return None
    entries: list[object] = []
    for value in values:
        entries.extend(_entries(value))
    return [json.dumps(entry) for entry in entries]


def _entries(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    for names in _ENTRIES:
        inner = value
        for name in names:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(inner, list) and all(isinstance(entry, dict) for entry in inner):
            # Elasticsearch has what was logged one deeper.
            return [entry.get("_source", entry) for entry in inner]
    return [value]


def _values(text: bytes) -> list[object] | None:
    """The JSON values of a text; None if it holds anything else."""
    decoder, words = json.JSONDecoder(), text.decode("utf-8", errors="replace").strip()
    values = []
    try:
        while words:
            value, end = decoder.raw_decode(words)
            values.append(value)
            words = words[end:].lstrip().removeprefix(",").lstrip()
    except (ValueError, RecursionError):
        return None
    return values
