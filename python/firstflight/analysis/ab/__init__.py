"""Comparison of two arms, baseline and treatment, of any engine's records or real traffic. See docs/statistics.md."""

from firstflight.analysis.ab.aggregates import by_bucket_of_aggregates, of_aggregates
from firstflight.analysis.ab.buckets import Bucket, bucketed, by_bucket
from firstflight.analysis.ab.compare import (
    Budget,
    Harm,
    Retransmissions,
    compare,
    compare_jain,
    compare_rate,
    harm,
    jain_index,
    retransmissions,
    within_budget,
)
from firstflight.analysis.ab.comparison import Comparison, Verdict
from firstflight.analysis.ab.contrast import least_units
from firstflight.analysis.ab.planning import (
    Detectable,
    Pilot,
    minimum_detectable_effect,
    pilot_of,
    pilot_of_one_arm,
    units_needed,
)
from firstflight.analysis.ab.sample import Design

__all__ = [
    "Bucket",
    "Budget",
    "Comparison",
    "Design",
    "Detectable",
    "Harm",
    "Pilot",
    "Retransmissions",
    "Verdict",
    "bucketed",
    "by_bucket",
    "by_bucket_of_aggregates",
    "compare",
    "compare_jain",
    "compare_rate",
    "harm",
    "jain_index",
    "least_units",
    "minimum_detectable_effect",
    "of_aggregates",
    "pilot_of",
    "pilot_of_one_arm",
    "retransmissions",
    "units_needed",
    "within_budget",
]
