"""The calibration on the simulator's own output: the same initial window in both arms, other users in each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.ab.compare import compare, compare_rate
from firstflight.analysis.ab.contrast import least_units
from research.calibration.cases import DESIGN, Case, apart

if TYPE_CHECKING:
    from firstflight.scenario import Scenario

_SEED = 7
_POPULATION: dict[str, Any] = {
    "paths": "marginals",
    "rtt": {"distribution": "lognormal", "median": "70ms", "sigma": 0.7, "minimum": "2ms", "maximum": "3s"},
    "down": {"distribution": "lognormal", "median": "3Mbit", "sigma": 1.0, "minimum": "56kbit", "maximum": "1Gbit"},
    "up": {"distribution": "lognormal", "median": "1Mbit", "sigma": 1.0, "minimum": "33kbit", "maximum": "100Mbit"},
    "buffer": {"distribution": "lognormal", "median": "200ms", "sigma": 0.7, "minimum": "20ms", "maximum": "3s"},
    "loss": 0.005,
    "dependence": {"rtt_down": -0.3, "down_up": 0.7},
}
_NEIGHBORS = {"subnet_users": 8, "subnet_variance_fraction": 0.5}
_SIZE = {"distribution": "lognormal", "median": "15kB", "sigma": 1.0}


def scenario(users: int, neighbors: bool, initial_window: int = 10) -> Scenario:
    """Users who fetch one response each; with `neighbors`, eight at a time share an access network."""
    from firstflight.scenario import Scenario

    population = _POPULATION | {"users": users} | (_NEIGHBORS if neighbors else {})
    application = {"name": "search", "kind": "file_transfer", "size": _SIZE, "count": 1}
    return Scenario.from_dict(
        {
            "name": "calibration",
            "duration": "300s",
            "tcp": {"profile": "linux", "initial_window": initial_window},
            "population": population,
            "application": [application],
        }
    )


def arms(users: int, neighbors: bool, repetition: int) -> pl.DataFrame:
    """Transfers of two replicates of this repetition: `iw` says 3 and 10, and both are simulated with 10."""
    from firstflight.engines.simulate import run_cell
    from firstflight.scenario import Cell

    found = run_cell(Cell({}, scenario(users, neighbors)), _SEED, 2, 2 * repetition)
    subnets = found["users"].select("replicate", "client", "subnet")
    rows = found["transfers"].join(subnets, on=["replicate", "client"])
    return rows.with_columns(pl.when(pl.col("replicate") % 2 == 0).then(3).otherwise(10).alias("iw"))


def simulated() -> list[Case]:
    """The cases: mean, median, p95 and retransmission rate, and the median of neighbors, drawn by subnet."""
    found = [_case(name, least_units(name), False) for name in ("mean", "p50", "p95", "rate")]
    return [*found, _case("p50", 800, True), _case("mean", 800, True)]


def _case(statistic: str, users: int, neighbors: bool) -> Case:
    def once(seed: int) -> dict[str, bool]:
        drawn = replace(DESIGN, seed=seed, unit=["client"], paired=False, cluster="subnet" if neighbors else None)
        rows = arms(users, neighbors, seed)
        if statistic == "rate":
            return apart(compare_rate(rows, "retransmissions", "segments_sent", drawn))
        return apart(compare(rows, "completion_time_s", drawn, statistic=statistic))

    return Case(f"{statistic}, simulated{', by subnet' if neighbors else ''}", "false alarms", users, once)
