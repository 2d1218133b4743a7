"""What flows lack and the operator assumes: round trips and rates, and sizes.

Access logs mostly lack round trips: one RTT, or the paths of a built-in population. Speed tests have no sizes: those of
a built-in application.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from firstflight import populations
from firstflight.advise.assume import Assumed
from firstflight.errors import RequestError
from firstflight.observe import Observation
from firstflight.observe.tables import transfers
from firstflight.populations import applications
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.laws import Lognormal

# The others are pages, whose time is not that of one response, or have no end.
NAMES = ("web-search",)


def with_paths(observed: Observation, given: Assumed, seed: int) -> Observation:
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


def check_sizes(name: str) -> None:
    """RequestError for anything but an application of one response a connection."""
    if name not in NAMES:
        raise RequestError(
            f'--assume-sizes "{name}"'
            f" is no built-in application of one short response per connection; write "
            f"--assume-sizes {NAMES[0]}"
        )


def with_sizes(observed: Observation, name: str, seed: int) -> Observation:
    """`observed` with one response a connection, its size drawn from the application `name` independent of the path.

    RequestError where the data has sizes.
    """
    if not observed.transfers.is_empty():
        raise RequestError(f"{observed.source.path} has sizes, which are used; leave --assume-sizes {name} out")
    law = FileTransfer.model_validate(applications.preset(name)).size
    assert isinstance(law, Lognormal)
    normal = np.random.default_rng(seed).standard_normal(observed.users.height)
    sizes = np.maximum(np.rint(law.median * np.exp(law.sigma * normal)), 1).astype(np.int64)
    drawn = transfers(observed.users.select("client", bytes=pl.Series(sizes)))
    note = f'sizes are not in the data but assumed: those of the built-in application "{name}", independent of the path'
    return replace(observed, transfers=drawn, source=replace(observed.source, notes=(*observed.source.notes, note)))
