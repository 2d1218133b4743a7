"""What a study is written with: a grid, quantities as labelled arrays, claims as expressions, tables and figures.

docs/add-a-study.md walks through one.
"""

from firstflight.analysis.claim import above, at_least, at_most, below, between, near

from .claim import ClaimSpec
from .declared import DeclaredStudy
from .figure import lines
from .quantity import Quantities, Quantity, estimate, named
from .table import table

__all__ = [
    "ClaimSpec",
    "DeclaredStudy",
    "Quantities",
    "Quantity",
    "above",
    "at_least",
    "at_most",
    "below",
    "between",
    "estimate",
    "lines",
    "named",
    "near",
    "table",
]
