"""A column of the records."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Column:
    """One column. `dtype` None: an Enum whose categories are the run's names. `none`: the raw value for null."""

    name: str
    dtype: type[pl.DataType] | None
    unit: str
    meaning: str
    none: int | float | None = None
