"""Engines turn a cell and a seed into records. A scenario never names one; the request does."""

import importlib
from typing import Protocol, cast

import polars as pl

from ..errors import RequestError
from ..scenario import Cell
from ..scenario.table import nearest

# Imported when asked for, so that a command pays only for what it runs.
_ENGINES = {"simulate": "firstflight.engines.simulate", "model": "firstflight.engines.model"}
NAMES = tuple(_ENGINES)


class Engine(Protocol):
    """What every engine module offers."""

    def run_cell(self, cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
        """Replicates `first_replicate` and on of a cell: the tables `transfers`, `pages` and `links` as
        `records.schema` says. A table `counts` may come with them: one row, a column for each thing counted. A cell
        that captures gives `segments` besides.

        The same arguments give the same tables, and a replicate does not depend on the others asked for with it.
        Raises RequestError for a scenario the engine cannot do.
        """
        ...


def find(name: str) -> Engine:
    """The engine called `name`; RequestError with the nearest known one."""
    if name not in _ENGINES:
        raise RequestError(f'unknown engine "{name}"; {nearest(name, _ENGINES)}')
    return cast(Engine, importlib.import_module(_ENGINES[name]))
