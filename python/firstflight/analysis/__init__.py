"""From records to numbers: tables, intervals and claims, for the records of any engine."""

from firstflight.analysis.claim import Claim
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table

__all__ = ["Claim", "Estimate", "Metric", "Table"]
