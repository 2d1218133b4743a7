"""Cells for the emulator's tests, and whether this machine can run them."""

import shutil
from functools import cache

import polars as pl
import pytest

import testbeds
from firstflight import Cell, Scenario
from firstflight.engines.emulate.start import search_path

# Of a path where rounds are to be told apart on a busy machine, which may be late by tens of milliseconds.
FAR = "30ms"
FAR_ROUND_TRIP_S = 0.06
DOWNLOAD = """
name = "download"
duration = "10s"

[tcp]
profile = "linux"
receive_window_growth = "none"

[network]
topology = "chain"
links = { rate = "50Mbit", delay = "5ms", queue = "200p" }

[[application]]
name = "web"
kind = "file_transfer"
size = "100kB"
count = 1
"""


@cache
def refusal() -> str | None:
    """Why this machine cannot emulate, or None if it can."""
    for program in ("nginx", "curl"):
        if shutil.which(program, path=search_path()) is None:
            return f"there is no {program} on this machine"
    return testbeds.refusal()


def skip_unless_possible() -> None:
    """Skip the test that calls this, with the reason, where nothing can be emulated."""
    if refused := refusal():
        pytest.skip(refused)


def download(**changes: object) -> Scenario:
    """The scenario above with keys changed: `tcp__initial_window=3`, `link__queue="10p"`, `web__size="5kB"`."""
    values = []
    for path, value in changes.items():
        path = path.replace("__", ".")
        path = path.replace("link.", "network.links[0].") if path.startswith("link.") else path
        path = path.replace("web.", "application.web.") if path.startswith("web.") else path
        values.append((path, value))
    return Scenario.from_toml(DOWNLOAD).replace_all(values)


def in_time(real: pl.Series, simulated: pl.Series) -> bool:
    """Whether transfers over a path of `FAR` took the rounds that they take in virtual time.

    Nothing makes a transfer quicker; a busy machine is late, but one more round would be a whole round trip.
    """
    late = sorted(real - simulated)
    return -1e-3 < late[0] < FAR_ROUND_TRIP_S / 2 and late[len(late) // 2] < 0.9 * FAR_ROUND_TRIP_S


def cell(**changes: object) -> Cell:
    """A cell of its own."""
    capture = bool(changes.pop("capture", False))
    return Cell({"cell": "one"}, download(**changes), capture=capture)
