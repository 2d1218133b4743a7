"""The kind of a directory: a run, a damaged or older one, something else; and runs that were moved away from it."""

import glob
import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.input_files import read_bytes
from firstflight.records import files, schema
from firstflight.records.identity import FORMAT

SCENARIO = "scenario.toml"
"""The file of a finished cell that holds its scenario."""
DOCUMENT = "run.json"
QUANTITIES = "quantities.npz"
"""The file of what a study's claims, tables and figures are made of."""
_SUM = "sha256"
# Of the document: a few hundred bytes a cell.
_MOST_BYTES = 1 << 28


@dataclass
class _Cell:
    key: dict[str, str | int | float | None]
    hash: Annotated[str, Field(pattern=f"^{files.HASH.pattern}$")]
    replicates: int
    capture: bool


@dataclass
class _Session:
    started: str
    command: list[str]
    jobs: int | None
    on: str
    machine: dict[str, Any]
    ended: bool


@dataclass
class _Document:
    """The contents of a run.json, checked here so that no other form gets further."""

    format: Literal["firstflight run"]
    schema: int
    study: str
    engine: str
    seed: int
    replicates: int
    scenario: str | None
    vary: dict[str, list[Any]] | None
    code: dict[str, str]
    surroundings: dict[str, dict[str, str]]
    versions: dict[str, str]
    commit: str | None
    machine: dict[str, Any]
    profiles: list[dict[str, Any]]
    sessions: list[_Session]
    cells: list[_Cell]
    kept: dict[str, list[str]] | None = None


class DamagedRunError(RequestError):
    """A run.json that is missing, cut off or changed, next to finished cells."""


def write_document(directory: Path, document: dict[str, Any]) -> None:
    """Store a run's document with its checksum."""
    content = {name: value for name, value in document.items() if name != _SUM}
    files.write_json(directory / DOCUMENT, content | {_SUM: _sum(content)})


def read_document(directory: Path) -> dict[str, Any] | None:
    """The document in `directory`, None if there is none and no cells. RequestError if it is not one of ours,
    DamagedRunError if it was.
    """
    path = directory / DOCUMENT
    content = b""
    with files.readable(path):
        # Opening a pipe that has no writer blocks.
        if path.is_file():
            content = read_bytes(path, _MOST_BYTES)
        cells = stored_cells(directory)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and document.get("format") == FORMAT:
        # Another schema may have other entries.
        if document.get("schema", schema.SCHEMA_VERSION) != schema.SCHEMA_VERSION:
            return document
        checksum = document.pop(_SUM, None)
        if checksum == _sum(document) and _is_sound(content):
            return document
    if cells:
        state = "is damaged" if path.exists() else "is missing"
        raise DamagedRunError(
            f'"{path}" {state}, but the directory holds the records of {counted(len(cells), "cell")}: run the command '
            "that made them again: it is rewritten, and the records are kept"
        )
    if path.exists():
        raise RequestError(
            f'"{directory}" is not a run: its {DOCUMENT} was not written by firstflight, or is damaged; choose another '
            "directory"
        )
    return None


def _is_sound(content: bytes) -> bool:
    try:
        document = TypeAdapter(_Document).validate_json(content, strict=True)
    except ValidationError:
        return False
    return len({tuple(cell.key) for cell in document.cells}) <= 1


def _sum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def stored_cells(directory: Path) -> set[str]:
    """The hashes of the cells of which there is something in `directory`, whatever its document says."""
    places = [place for place in (directory / "cells", directory / "chunks") if place.is_dir()]
    return {path.name for place in places for path in place.iterdir() if files.HASH.fullmatch(path.name)}


def of_another_version(directory: Path, document: dict[str, Any]) -> str:
    """Which record schema the run there has, and which one this is, as the start of a sentence."""
    return (
        f'"{directory}" is a run of another version: its records have schema {document["schema"]} and this '
        f"firstflight reads {schema.SCHEMA_VERSION}"
    )


def check_cells(directory: Path, document: dict[str, Any]) -> None:
    """Raise RequestError if a file of a finished cell is missing or cut short, as after a copy that was interrupted.
    The content of the tables is checked when they are read.
    """
    for cell in {cell["hash"]: cell for cell in document["cells"]}.values():
        place = directory / "cells" / cell["hash"]
        if not place.is_dir():
            continue
        paths = [place / f"{table}.parquet" for table in schema.stored(cell["capture"])]
        whole = {path: files.is_whole_parquet(path) for path in paths}
        whole[place / files.SUMS] = files.is_whole_text(place / files.SUMS)
        whole[place / SCENARIO] = files.is_as_written(place / SCENARIO)
        for path in (path for path, is_whole in whole.items() if not is_whole):
            raise damaged(path, cell["key"])


def damaged(path: Path, key: dict[str, Any]) -> RequestError:
    """The error for a damaged file of a finished cell: which cell that is, and how it is computed again."""
    cell = ", ".join(f"{name} {value}" for name, value in key.items() if value is not None)
    return RequestError(
        f'"{path}" is missing or damaged, so the cell {cell} cannot be read; delete that cell (rm -r '
        f"{shlex.quote(str(path.parent))}) and run the same command again to recompute it"
    )


def foreign(directory: Path) -> str:
    """Why `directory` is none of ours, before anything is written there; empty if it is ours or empty. RequestError
    where what is ours there leads elsewhere.
    """
    if not directory.is_dir():
        return f'"{directory}" is a file; choose another --out'
    for name in (DOCUMENT, QUANTITIES, files.LOCK, "cells", "chunks"):
        files.refuse_link(directory / name)
    try:
        is_run = read_document(directory) is not None
    except DamagedRunError:
        is_run = (directory / DOCUMENT).exists()
    if not is_run and not all(map(_is_ours, directory.iterdir())):
        return f'"{directory}" is not a run and not empty; choose another --out'
    return ""


def _is_ours(path: Path) -> bool:
    """Whether a run that was killed before it wrote its document can have left this."""
    if path.name in ("cells", "chunks"):
        names = (inside.name.removeprefix(files.TEMPORARY) for inside in path.iterdir())
        return all(map(files.HASH.fullmatch, names))
    return path.name == files.LOCK or path.name.startswith(files.TEMPORARY)


def move_aside(directory: Path) -> Path:
    """Rename `directory` to DIR.1, DIR.2, ... whichever is free, and return that."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    return directory.rename(aside)


def set_aside_before(directory: Path) -> list[Path]:
    """The runs that were moved away from `directory`, oldest first."""
    places = [
        path
        for path in directory.parent.glob(f"{glob.escape(directory.name)}.*")
        if path.suffix[1:].isdigit() and (path / DOCUMENT).exists()
    ]
    return sorted(places, key=lambda path: int(path.suffix[1:]))
