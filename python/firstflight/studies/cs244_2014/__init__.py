"""The Mininet reproduction of CS244 2014: the gain of slow users with IW 10 instead of 3, by their bandwidth."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from firstflight.scenario import Scenario
from firstflight.studies.cs244_2014 import report
from firstflight.studies.cs244_2014.claims import claims
from firstflight.studies.cs244_2014.responses import RATES_KBPS, flights, responses
from firstflight.studies.kernel import DeclaredStudy, Observations

CALM = pl.col("disturbed") == 0
REQUESTS = 3
LINE, SHAPED, SIMULATED = (partial(responses, grid=grid) for grid in ("line", "shaped", "simulated"))


# Of one response, by its user's bandwidth and the number of the request.
of_response = partial(Observations, by={"rate_kbps": RATES_KBPS, "request": range(REQUESTS)})
TIME = (1e3 * pl.col("completion_time_s")).max()
SEGMENTS = (pl.col("segments_sent") - pl.col("retransmissions")).max()
FIRST_FLIGHT, TEN_SEGMENTS = pl.col("first_flight_segments").max(), pl.col("ten_segments_ms").max()
QUANTITIES = (
    of_response("time", "Time", "ms", TIME, CALM, LINE, grid="line"),
    of_response("disturbed", "Disturbed", "responses", pl.col("disturbed").max(), records=LINE, grid="line"),
    of_response("first_flight", "First flight", "segments", FIRST_FLIGHT, records=LINE, grid="line"),
    of_response("segments", "Segments", "segments", SEGMENTS, records=LINE, grid="line"),
    of_response("timed_out", "With a timeout", "responses", (pl.col("timeouts") > 0).max(), records=LINE, grid="line"),
    of_response("rounds", "Rounds", "rounds", pl.col("rounds").max(), records=flights, grid="line"),
    of_response("ten_segments", "Ten segments", "ms", TEN_SEGMENTS, CALM, flights, grid="line"),
    of_response("shaped_time", "Time", "ms", TIME, records=SHAPED, grid="shaped"),
    of_response("simulated_time", "Time", "ms", TIME, records=SIMULATED, grid="simulated"),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """A link for each user."""
    spoke = scenario.to_dict()["network"]["spokes"][0]
    return scenario.replace("network.spokes", [spoke | {"rate": f"{round(1000 * rate)}bit"} for rate in RATES_KBPS])


STUDY = DeclaredStudy(__file__, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
