"""RFC 6928 section 5.1: round trips by transfer size, with initial windows of 3 and 10 segments."""

from pathlib import Path

import polars as pl

from firstflight.studies.kernel import DeclaredStudy, Quantity
from firstflight.studies.rfc6928_rounds import report
from firstflight.studies.rfc6928_rounds.claims import claims

# On a path of infinite bandwidth the handshake takes a round trip. The RFC counts from the request on, so the first
# flight arrives after 1 round trip. Rounded because seconds in binary floating point do not hold whole nanoseconds.
ROUND_TRIPS = Quantity(
    "round_trips",
    "Round trips, from the run's records",
    "round trips",
    (pl.col("completion_time_s") / pl.col("handshake_time_s") - 1).mean().round(6),
    pl.col("completed") == 1,
    digits=0,
)

STUDY = DeclaredStudy(Path(__file__).parent, [ROUND_TRIPS], claims, report.tables, report.figures, report.answer)
