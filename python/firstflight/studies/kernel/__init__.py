"""Parts of a study: grid, quantities as labeled arrays, claims as expressions, tables and figures.

docs/add-a-study.md explains them on an example.
"""

from firstflight.analysis.claim import above, at_least, at_most, below, between, near
from firstflight.studies.kernel.claim import OURS, ClaimSpec, Source
from firstflight.studies.kernel.declared import DeclaredStudy
from firstflight.studies.kernel.ensemble import MEMBER, Ensemble, Matched, Number, Parameter, rank_correlation, spread
from firstflight.studies.kernel.figure import heat_map, intervals, lines, panels, scatter
from firstflight.studies.kernel.quantity import (
    Observations,
    Observed,
    Quantities,
    Quantity,
    Sampled,
    along,
    by_replicate,
    common,
    each,
    estimate,
    extreme,
    headed,
    mean_of,
    named,
    observed,
    resampled,
    value,
    variation_of,
)
from firstflight.studies.kernel.sample import Sample
from firstflight.studies.kernel.table import table

__all__ = [
    "MEMBER",
    "OURS",
    "ClaimSpec",
    "DeclaredStudy",
    "Ensemble",
    "Matched",
    "Number",
    "Observations",
    "Observed",
    "Parameter",
    "Quantities",
    "Quantity",
    "Sample",
    "Sampled",
    "Source",
    "above",
    "along",
    "at_least",
    "at_most",
    "below",
    "between",
    "by_replicate",
    "common",
    "each",
    "estimate",
    "extreme",
    "headed",
    "heat_map",
    "intervals",
    "lines",
    "mean_of",
    "named",
    "near",
    "observed",
    "panels",
    "rank_correlation",
    "resampled",
    "scatter",
    "spread",
    "table",
    "value",
    "variation_of",
]
