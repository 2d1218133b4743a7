"""What a directory holds: a run, a damaged or older one, something else; and runs that were moved away from it."""

import glob
import json
from pathlib import Path
from typing import Any

from ..errors import RequestError
from . import files, schema
from .identity import FORMAT

SCENARIO = "scenario.toml"
"""The file of a finished cell that holds its scenario."""
# What every run.json has.
_ENTRIES = {"schema", "study", "engine", "seed", "replicates", "scenario", "code", "sessions", "profiles", "cells"}


def read_document(directory: Path) -> dict[str, Any] | None:
    """The run.json in `directory`, None if there is none. RequestError if it is not one of ours."""
    path = directory / "run.json"
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f'"{path}" cannot be read: {error.strerror}; mend its permissions') from None
    except ValueError:
        document = None
    ours = isinstance(document, dict) and document.get("format") == FORMAT and "schema" in document
    # Another schema may have other entries.
    if not ours or (document["schema"] == schema.SCHEMA_VERSION and not document.keys() >= _ENTRIES):
        raise RequestError(
            f'"{directory}" is not a run: its run.json was not written by firstflight; choose another directory'
        )
    return dict(document)


def of_another_version(directory: Path, document: dict[str, Any]) -> str:
    """Which record schema the run there has, and which one this is, as the start of a sentence."""
    return (
        f'"{directory}" is a run of another version: its records have schema {document["schema"]} and this '
        f"firstflight reads {schema.SCHEMA_VERSION}"
    )


def check_cells(directory: Path, document: dict[str, Any]) -> None:
    """Raise RequestError if a file of a finished cell is missing or cut short, as after a copy that was interrupted."""
    for name, captures in {cell["hash"]: cell["capture"] for cell in document["cells"]}.items():
        place = directory / "cells" / name
        if not place.is_dir():
            continue
        paths = [place / f"{table}.parquet" for table in schema.stored(captures)]
        whole = {path: files.is_whole_parquet(path) for path in paths}
        whole[place / SCENARIO] = files.is_whole_text(place / SCENARIO)
        for path in (path for path, is_whole in whole.items() if not is_whole):
            raise RequestError(
                f'"{path}" is missing or damaged; delete {place} and run the same command again to compute that '
                "cell anew"
            )


def foreign(directory: Path) -> str:
    """Why `directory` is none of ours, before anything is written there; empty if it is ours or empty."""
    if not directory.is_dir():
        return f'"{directory}" is a file; choose another --out'
    if read_document(directory) is None and files.holds_something(directory):
        return f'"{directory}" is not a run and not empty; choose another --out'
    return ""


def move_aside(directory: Path) -> Path:
    """Rename `directory` to DIR.1, DIR.2, ... whichever is free, and return that."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    return directory.rename(aside)


def set_aside_before(directory: Path) -> list[Path]:
    """The runs that were moved away from `directory`, oldest first."""
    found = [
        path
        for path in directory.parent.glob(f"{glob.escape(directory.name)}.*")
        if path.suffix[1:].isdigit() and (path / "run.json").exists()
    ]
    return sorted(found, key=lambda path: int(path.suffix[1:]))
