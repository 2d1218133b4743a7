"""Records: one schema, written cell by cell so that nothing finished is ever lost, read as Polars frames."""

from firstflight.records.identity import Identity
from firstflight.records.run import Run
from firstflight.records.schema import SCHEMA_VERSION, STORED, TABLES, Column, empty, stored
from firstflight.records.writer import RunWriter

__all__ = ["SCHEMA_VERSION", "STORED", "TABLES", "Column", "Identity", "Run", "RunWriter", "empty", "stored"]
