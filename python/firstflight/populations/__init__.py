"""Built-in populations (`[population] name = "..."`) and applications (`preset = "..."`), as tables of a scenario file.

The docstring of each module of this package has the sources of its numbers.
"""

import importlib
from copy import deepcopy
from functools import cache
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.populations.applications import preset

__all__ = ["NAMES", "find", "preset"]

# Name to module, and what its `population` is asked for.
_BUILT_IN: dict[str, tuple[str | int, ...]] = {
    "avgdc": ("avgdc",),
    "slowdc": ("slowdc",),
    "uk-2015": ("uk_homes", 2015),
    "uk-2023": ("uk_homes", 2023),
}
NAMES = tuple(_BUILT_IN)


def find(name: str) -> dict[str, Any]:
    """A new copy of the complete `[population]` table of the built-in `name`.

    RequestError with the nearest known name.
    """
    if name not in _BUILT_IN:
        raise RequestError(f'unknown population "{name}"; {nearest(name, NAMES)}')
    return deepcopy(_loaded(name))


@cache
def _loaded(name: str) -> dict[str, Any]:
    module, *which = _BUILT_IN[name]
    table: dict[str, Any] = importlib.import_module(f"{__name__}.{module}").population(*which)
    return table
