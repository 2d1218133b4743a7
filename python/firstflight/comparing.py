"""Two runs compared, cell by cell, as `--vary` compares the values of a key within one run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.analysis.table import Table
from firstflight.analysis.varied import Compared, compared, comparison_tables
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.records.run import union

_RUN = "run"
_A, _B = "a", "b"
Key = dict[str, str | int | float]


class _Pair:
    """One cell of each run as one set of records, whose column `run` says which of the two a row is of."""

    def __init__(self, cells: dict[str, tuple[Run, Key]]) -> None:
        self._cells = cells

    def __getattr__(self, table: str) -> pl.LazyFrame:
        rows = [
            run.table(table, **key).drop(list(key)).with_columns(pl.lit(name).alias(_RUN))
            for name, (run, key) in self._cells.items()
        ]
        # Enumerations hold each run's own names.
        schemas = [part.collect_schema() for part in rows]
        named = [column for column, dtype in schemas[0].items() if isinstance(dtype, pl.Enum)]
        enums = [pl.col(column).cast(union(schema[column] for schema in schemas)) for column in named]
        return pl.concat([part.with_columns(enums) for part in rows])


def compare(run_a: Run | str | Path, run_b: Run | str | Path) -> Table:
    """Differences of `run_b` from `run_a`: times in percent, shares in percentage points, with 95% CIs.

    Paired by replicate and, in a population, by user; both runs need the same seed and engine. Of two grids the cells
    with equal keys are compared; two runs of one cell always are. A run is a `Run` or its directory. RequestError for
    runs that cannot be compared.
    """
    a, b = (run if isinstance(run, Run) else Run.open(run) for run in (run_a, run_b))
    for what, of_a, of_b in (("engine", a.engine, b.engine), ("seed", a.seed, b.seed)):
        if of_a != of_b:
            raise RequestError(
                f"the runs' {what} differs ({of_a} and {of_b}), so nothing pairs their replicates; run both with the "
                f"same {what}"
            )
    for run in (a, b):
        if run.kept:
            raise RequestError(
                f'"{run.directory}" keeps the columns that its study needs, and not those compared here; run it with '
                "--records all"
            )
    pairs: list[Compared] = []
    order: dict[str, list[str | int | float]] = {_RUN: [_A, _B]}
    for key, cell_a, cell_b in _paired(a, b):
        cells: Any = _Pair({_A: (a, cell_a), _B: (b, cell_b)})
        of_users = _is_population(a, cell_a) and _is_population(b, cell_b)
        for name, value in key.items():
            order.setdefault(name, []).append(value)
        pairs += [replace(result, others=key) for result in compared(cells, {_RUN: order[_RUN]}, of_users)]
    tables = comparison_tables(pairs, order)
    if not tables:
        raise RequestError("the runs have no application in common of which both finished something; nothing compares")
    return replace(tables[0], name="comparison", title=f"{b.study} (b) compared with {a.study} (a)")


def _paired(a: Run, b: Run) -> list[tuple[Key, Key, Key]]:
    """The key of each pair in the table, and of its cell in each run."""
    if len(a.cells) == len(b.cells) == 1:
        return [({}, a.cells[0], b.cells[0])]
    common = [key for key in a.cells if key in b.cells]
    if not common:
        raise RequestError(
            f'no finished cell of "{a.directory}" has the key of one of "{b.directory}"; compare runs of the same grid'
        )
    return [(key, key, key) for key in common]


def _is_population(run: Run, key: Key) -> bool:
    return run.table("users", **key).head(1).collect().height > 0
