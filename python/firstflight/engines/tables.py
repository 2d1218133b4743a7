"""Makes the records' tables from the columns that the native module hands over."""

import numpy as np
import polars as pl

from firstflight.records.schema import TABLES
from firstflight.scenario import Scenario


def frame(table: str, columns: dict[str, tuple[str, bytes]], names: dict[str, list[str]]) -> pl.DataFrame:
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


def first_transfers(transfers: pl.DataFrame, scenario: Scenario) -> pl.DataFrame:
    """Those of the first application, of all its arms, by their start."""
    names = scenario.recorded_names()[: 1 + len(scenario.arm or [])]
    return transfers.filter(pl.col("application").cast(pl.String).is_in(names)).sort("start_s", "connection")
