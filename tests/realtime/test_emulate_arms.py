"""Arms of users whose routes have their own initial window."""

from pathlib import Path

import polars as pl
import pytest

import emulations
from firstflight import Cell, RequestError, Scenario
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign

ARMS = Scenario.load(Path(__file__).parents[2] / "examples/arms.toml")
WHO = ["replicate", "application", "client"]


def test_the_users_of_an_arm_are_those_of_the_simulator_and_begin_with_its_window() -> None:
    emulations.skip_unless_possible()
    scenario = ARMS.replace("application.download.count", 1).replace("duration", "3s")
    cell = Cell({"c": 1}, scenario, capture=False)
    real, simulated = (engine(cell, 3, 2)["transfers"].sort(WHO) for engine in (campaign.run_cell, simulate.run_cell))
    assert real.select(WHO).equals(simulated.select(WHO))
    for application, window in (("download", 3), ("download.iw10", 10)):
        of_arm = real.filter(pl.col("application").cast(pl.String) == application)
        assert of_arm.height > 2
        assert of_arm["initial_window_segments"].unique().to_list() == [window]
        # A busy machine may send an ACK before the flight is complete, but not more at first.
        assert of_arm["first_flight_segments"].median() == window


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("arm.iw10.of", "connections", "arm.iw10.of: the kernel has one TCP configuration per pair of hosts"),
        ("arm.iw10.server_tcp", {"stack": "firstflight"}, "arm.iw10: the stack is a host's"),
        ("arm.iw10.server_tcp", {"ecn": "on"}, r"applications or arms on host hub\[0\] want different TCP"),
        ("application.download.client_hosts", "spokes[0]", "two applications or arms set different TCP between"),
    ],
)
def test_arms_that_a_kernel_cannot_keep_apart_are_refused(path: str, value: object, error: str) -> None:
    with pytest.raises(RequestError, match=error):
        campaign.run_cell(Cell({"c": 1}, ARMS.replace(path, value)), 3, 1)
