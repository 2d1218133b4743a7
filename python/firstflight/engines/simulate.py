"""The packet-level simulator: hands a plan to the native module and its columns to Polars."""

import json

import numpy as np
import polars as pl

from ..errors import RequestError
from ..records.schema import TABLES
from ..scenario import Cell, Scenario


def run_cell(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
    """Simulate replicates `first_replicate` and on of a cell: `transfers`, `pages`, `links` and `counts`.

    The native module lets other Python threads run meanwhile. RequestError if it refuses the plan.
    """
    return _simulated(cell.scenario, seed, first_replicate, replicates, capture=False)


def capture(scenario: Scenario, seed: int, replicate: int = 0) -> dict[str, pl.DataFrame]:
    """One replicate with every segment: the tables of `run_cell` and `segments`."""
    return _simulated(scenario, seed, replicate, 1, capture=True)


def _simulated(
    scenario: Scenario, seed: int, first_replicate: int, replicates: int, capture: bool
) -> dict[str, pl.DataFrame]:
    from .. import _native

    try:
        result = _native.simulate(json.dumps(scenario.to_plan()), seed, first_replicate, replicates, capture)
    except (ValueError, OverflowError) as error:
        raise RequestError(f'scenario "{scenario.name}": {error}') from None
    names = {"application": result["names"]["applications"], "link": result["names"]["links"]}
    tables = {name: _frame(name, columns, names) for name, columns in result["tables"].items()}
    return tables | {"counts": pl.DataFrame({name: [count] for name, count in result["counts"].items()})}


def _frame(table: str, columns: dict[str, tuple[str, bytes]], names: dict[str, list[str]]) -> pl.DataFrame:
    """The schema's columns from the native ones: names for indices, null for the values that stand for it."""
    series = []
    for column in TABLES[table]:
        dtype, content = columns[column.name]
        values = pl.Series(column.name, np.frombuffer(content, dtype=np.dtype(dtype)))
        if column.dtype is None:
            values = values.cat.to(pl.Enum(names[column.name]))
        elif column.none is not None:
            values = values.replace(column.none, None)
        series.append(values)
    return pl.DataFrame(series)
