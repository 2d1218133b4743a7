"""Some of the users, each as a transfer that the explorer opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.explore.links import Link, link
from firstflight.explore.page import PAGE
from firstflight.scenario import Scenario

if TYPE_CHECKING:
    from firstflight.advise.advice import Advice
    from firstflight.advise.experiment import Experiment
    from firstflight.advise.measure import Measurements

_PERCENTILES = (10, 50, 90, 99)


def transfers(advice: Advice, experiment: Experiment, measured: Measurements) -> list[Link]:
    """The users at some percentiles of the time of a response, in the reference case with the current window. Each
    opens with that window and the one that the page shows. None if the explorer is not built.
    """
    if not PAGE.exists():
        return []
    rows = measured.responses(advice.cases[0].name).filter(pl.col("iw") == advice.current.window)
    took = pl.col("time_s").mean()
    ranked = rows.group_by("client").agg(took).filter(pl.col("time_s").is_not_nan()).sort("time_s", "client")["client"]
    at = {p: ranked[round(p / 100 * (len(ranked) - 1))] for p in _PERCENTILES} if len(ranked) else {}
    sides = f"&a.iw={advice.current.window}&b.iw={advice.shown_window}"
    return [
        link(f"{p}th percentile: {_path(experiment, user)}", _alone(experiment, user), advice.seed, sides)
        for p, user in at.items()
    ]


def _path(experiment: Experiment, user: int) -> str:
    columns = experiment.users[experiment.sensitivity_cases[0].name].columns
    size, rtt, rate = (columns[name][user] for name in ("bytes", "rtt_s", "down_bps"))
    return f"{size / 1e3:,.3g} kB, RTT {1e3 * rtt:.3g} ms, {rate / 1e6:.3g} Mbit/s"


def _alone(experiment: Experiment, user: int) -> Scenario:
    """The reference case with that user only."""
    document = experiment.cells("simulate")[0].scenario.to_dict()
    population = document["population"]
    population["users"] = 1
    population["columns"] = {name: [values[user]] for name, values in population["columns"].items()}
    return Scenario.from_dict(document, source="the flows").star_of_users(experiment.seed, users=1)
