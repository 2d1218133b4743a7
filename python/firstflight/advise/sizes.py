"""Sizes for paths that were seen without any, as speed tests are: those of a built-in application."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from firstflight.errors import RequestError
from firstflight.observe import Observation
from firstflight.observe.tables import transfers
from firstflight.populations import applications
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.laws import Lognormal

# The others are pages, whose time is not that of one response, or have no end.
NAMES = ("web-search",)


def check_name(name: str) -> None:
    """RequestError for anything but an application of one response a connection."""
    if name not in NAMES:
        raise RequestError(
            f'--assume-sizes "{name}"'
            f" is no built-in application of one short response per connection; write "
            f"--assume-sizes {NAMES[0]}"
        )


def assumed(observed: Observation, name: str, seed: int) -> Observation:
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
