"""Paths for flows without RTTs, such as most access logs: one RTT, or the paths of a built-in population."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from firstflight import populations
from firstflight.advise.assume import Assumed
from firstflight.errors import RequestError
from firstflight.observe import Observation


def assumed(observed: Observation, given: Assumed, seed: int) -> Observation:
    """`observed` with the round trips (and rates) that `given` has, where the flows have no RTT.

    RequestError where all flows have one.
    """
    if given.rtt_s is None and given.paths is None:
        return observed
    users = observed.users
    unknown = users["rtt_s"].is_null()
    if not unknown.any():
        key = "rtt" if given.rtt_s is not None else "paths"
        raise RequestError(f"{observed.source.path} has RTTs, which are used; leave --assume {key}=... out")
    if given.rtt_s is not None:
        return replace(observed, users=users.with_columns(pl.col("rtt_s").fill_null(given.rtt_s)))
    assert given.paths is not None
    columns = {name: np.array(values) for name, values in populations.find(given.paths)["columns"].items()}
    weight = columns["weight"] / columns["weight"].sum()
    drawn = np.random.default_rng(seed).choice(len(weight), users.height, p=weight)
    rtt_s = pl.Series(columns["rtt_s"][drawn] + given.farther_s)
    down = pl.when(unknown).then(pl.Series(columns["down_bps"][drawn])).otherwise(pl.col("down_bps"))
    return replace(observed, users=users.with_columns(pl.col("rtt_s").fill_null(rtt_s), down_bps=down))
