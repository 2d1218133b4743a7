"""Makes the records' tables from the columns that the native module hands over."""

import numpy as np
import polars as pl

from firstflight.records.schema import TABLES


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
