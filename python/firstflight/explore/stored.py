"""The cell of a run that the explorer opens with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario.cell import Only, chosen


def cell(run: Run, only: Only) -> tuple[dict[str, Any], Path]:
    """Key and scenario file of the one finished cell that has the values of `only`. RequestError unless it is one."""
    cells = run.scenario_files
    if not cells:
        raise RequestError(f'no cell of "{run.directory}" has finished; run it first')
    left = [cells[index] for index in chosen([key for key, _ in cells], only)]
    if len(left) > 1:
        raise RequestError(f"{len(left)} cells are left, and the explorer opens with one; add {_choices(left)}")
    return left[0]


def named(study: str, key: Mapping[str, Any]) -> str:
    """The study and the values of a cell's key: "rfc6928-rounds: segments 20, iw 10"."""
    values = [f"{of.replace('_', ' ')} {value}" for of, value in key.items() if value is not None and value != study]
    return f"{study}: {', '.join(values)}" if values else study


def _choices(cells: list[tuple[dict[str, Any], Path]]) -> str:
    """Options of which each decides one of the keys that are still open."""
    values = {of: list(dict.fromkeys(str(key[of]) for key, _ in cells)) for of in cells[0][0]}
    return ", ".join(f"--only {of}={'|'.join(known)}" for of, known in values.items() if len(known) > 1)
