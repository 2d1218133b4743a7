"""One point of a study's grid, and the choice of some."""

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.scenario.scenario import Scenario

Key = dict[str, str | int | float | None]
Only = Mapping[str, str | int | float | Sequence[str | int | float]]


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: its key and its scenario.

    `key` is ordered and has the same names in every cell of a study (`{"webs": 8, "ftps": 0, "iw": 1}`). Its values
    become columns of the records, null for None (a key of another of the study's grids). `replicates` and `engine`
    replace those of the run for this cell; with `capture` every segment is recorded.
    """

    key: dict[str, str | int | float | None]
    scenario: Scenario
    replicates: int | None = None
    capture: bool = False
    engine: str | None = None

    @cached_property
    def plan(self) -> str:
        """The scenario's plan as JSON, cached: that of thousands of users takes milliseconds."""
        return json.dumps(self.scenario.to_plan(), sort_keys=True)


def whole(value: Any, least: int, most: int) -> int | None:
    """The integer in these bounds that it is, NumPy's included; None for another value, as true and false are."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    number = operator.index(value)
    return number if least <= number <= most else None


def check_seed(seed: int) -> int:
    """The seed as an int; RequestError unless the native module's random streams take it."""
    if (number := whole(seed, 0, 2**64 - 1)) is None:
        raise RequestError(f"the seed is {seed}; write a whole number from 0 to 2^64 - 1")
    return number


def chosen(keys: Sequence[Key], only: Only) -> list[int]:
    """Indices of the cells, known by their `keys`, that have the values of `only`. RequestError for an unknown key or
    value, and if no cell has them all.
    """
    allowed = _checked(only, keys)
    places = [index for index, key in enumerate(keys) if all(str(key[of]) in values for of, values in allowed.items())]
    if not places:
        raise RequestError("no cell of the grid has all the values asked for; drop one of the --only")
    return places


def _checked(only: Only, keys: Sequence[Key]) -> dict[str, set[str]]:
    allowed: dict[str, set[str]] = {}
    for key, values in only.items():
        if key not in keys[0]:
            raise RequestError(f'the cells have no key "{key}"; {nearest(key, keys[0])}')
        known = list(dict.fromkeys(str(row[key]) for row in keys if row[key] is not None))
        # A value by itself means itself; a text would else be taken letter by letter.
        values = [values] if isinstance(values, str) or not isinstance(values, Iterable) else values
        for value in values:
            if str(value) not in known:
                shown = ", ".join(f'"{label}"' if "," in label else label for label in known)
                raise RequestError(f'no cell has {key} = "{value}"; known: {shown}')
        allowed[key] = {str(value) for value in values}
    return allowed
