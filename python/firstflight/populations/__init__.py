"""Built-in populations, by the name that `[population] name = "..."` takes.

Each is a module of this package with a function `population() -> dict`: the `[population]` table as a scenario file
would spell it, complete and without files, with its sources in the module's docstring.
"""

import importlib
from copy import deepcopy
from functools import cache
from typing import Any

from firstflight.counted import nearest
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
    if name not in _BUILT_IN:
        raise RequestError(f'unknown population "{name}"; {nearest(name, NAMES)}')
    return deepcopy(_loaded(name))


@cache
def _loaded(name: str) -> dict[str, Any]:
    module, function = _BUILT_IN[name]
    table: dict[str, Any] = getattr(importlib.import_module(f"{__name__}.{module}"), function)()
    return table
