"""An advice rests on true values: paths that the kernel measured are recovered, and its gains are those of nginx and
curl over the kernel that runs here.
"""

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import advise_emulated
import advise_flows
import emulations
from firstflight import observe
from firstflight.advise.fit import FittedPopulation, fit

EXAMPLES = Path(__file__).parents[2] / "examples" / "flows"
WITHIN = 0.1
BUSY_MS = 8
"""Median difference between a user's times in both engines; 1 to 2 on a machine that does nothing else."""


def truth() -> list[tuple[float, float]]:
    """(round trip in seconds, rate in bits/s) of each user of the example files."""
    network = tomllib.loads((EXAMPLES / "paths.toml").read_text())["network"]
    hub_ms = float(network["hub"]["delay"].removesuffix("ms"))
    return [
        (2e-3 * (hub_ms + float(spoke["delay"].removesuffix("ms"))), 1e6 * float(spoke["rate"].removesuffix("Mbit")))
        for spoke in network["spokes"]
    ]


def fitted(name: str) -> FittedPopulation:
    return fit(observe.read(EXAMPLES / name), 1000, seed=1)


def test_paths_and_sizes_of_a_capture_of_real_connections_are_recovered_within_a_tenth() -> None:
    found = fitted("server.pcapng").rows.sort(pl.col("rtt_s").round(2), "down_bps")
    known = np.array(sorted(truth()))
    assert found["rtt_s"].to_numpy() == pytest.approx(known[:, 0], rel=WITHIN)
    assert found["down_bps"].to_numpy() == pytest.approx(known[:, 1], rel=WITHIN)


@pytest.mark.parametrize("name", ["ss.txt", "nginx.log", "server.pcapng"])
def test_every_connection_s_path_is_one_of_those_that_were_there(name: str) -> None:
    found = fitted(name).rows
    known = np.array(truth())
    assert found.height >= len(known)
    for rtt_s, down_bps in found.select("rtt_s", "down_bps").iter_rows():
        near = np.abs(known[:, 0] / rtt_s - 1) < WITHIN
        assert near.any()
        assert down_bps is None or (np.abs(known[near, 1] / down_bps - 1) < WITHIN).any()


def test_the_window_in_use_is_found_in_a_capture() -> None:
    found = fitted("server.pcapng").current
    assert (found.window, found.known) == (10, True)


def test_the_gain_is_that_of_real_connections(tmp_path: Path) -> None:
    emulations.skip_unless_possible()
    flows = advise_flows.write(tmp_path / "flows.csv", 8, seed=3)
    (found,) = advise_emulated.agreement(flows, [10, 32], users=8, repeats=4)
    if found.median_gap_ms > BUSY_MS:
        pytest.skip(f"the machine is busy: single transfers take {found.median_gap_ms:.0f} ms more than they should")
    assert found.simulated_percent > 10
    assert found.emulated_percent == pytest.approx(found.simulated_percent, abs=5)
