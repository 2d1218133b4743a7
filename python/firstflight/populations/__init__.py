"""Built-in populations, by the name that `[population] name = "..."` takes.

Each is a module of this package with a function `population() -> dict`: the `[population]` table as a scenario file
would spell it, complete, with its sources in the module's docstring. A file that it names is next to it.
"""

import importlib
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.errors import RequestError

# Name to module and function.
_BUILT_IN: dict[str, tuple[str, str]] = {
    "avgdc": ("avgdc", "population"),
    "slowdc": ("slowdc", "population"),
    "uk-2015": ("uk_homes", "population_2015"),
    "uk-2023": ("uk_homes", "population_2023"),
}
NAMES = tuple(_BUILT_IN)


def find(name: str) -> dict[str, Any]:
    """The `[population]` table of the built-in `name`, complete and the caller's own to change.

    RequestError with the nearest known name.
    """
    from firstflight.scenario.table import nearest

    if name not in _BUILT_IN:
        raise RequestError(f'unknown population "{name}"; {nearest(name, NAMES)}')
    return deepcopy(_loaded(name))


@cache
def _loaded(name: str) -> dict[str, Any]:
    module, function = _BUILT_IN[name]
    table: dict[str, Any] = getattr(importlib.import_module(f"{__name__}.{module}"), function)()
    return _without_files(table)


def _without_files(table: dict[str, Any]) -> dict[str, Any]:
    """The table with the contents of its files in place of their names, which mean nothing outside this package."""
    from firstflight.scenario.empirical import read_points
    from firstflight.scenario.paths_table import read_columns

    here = Path(__file__).parent
    made = {}
    for key, value in table.items():
        if key == "file":
            made["columns"] = read_columns(value, here)
        elif isinstance(value, dict) and "file" in value:
            made[key] = {k: v for k, v in value.items() if k != "file"} | {"points": read_points(value["file"], here)}
        else:
            made[key] = value
    return made
