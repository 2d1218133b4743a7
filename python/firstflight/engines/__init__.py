"""Engines turn a cell and a seed into records. A scenario never names one; the request does."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from firstflight.counted import nearest
from firstflight.errors import RequestError, require_linux

# A testbed's own processes pass through here on the way to their module and should not wait for Polars.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import polars as pl

    from firstflight.scenario import Cell

# Imported when asked for, so that a command imports only the code that it runs.
_ENGINES = {
    "simulate": "firstflight.engines.simulate",
    "model": "firstflight.engines.model",
    "emulate": "firstflight.engines.emulate.campaign",
}
NAMES = tuple(_ENGINES)


class Engine(Protocol):
    """The interface of every engine module."""

    def run_cell(self, cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
        """Replicates `first_replicate` and on of a cell: the tables `transfers`, `pages` and `links` as
        `records.schema` says. A table `counts` may come with them: one row, a column for each thing counted; and a
        table `environment`, columns `name` and `value`: the settings on which the records depend in addition to the
        scenario. A cell that captures also gives `segments`, a population `users`, or `aggregates` and `histograms`
        where it keeps those.

        In virtual time the same arguments give the same tables, and a replicate does not depend on the others asked for
        with it. Raises RequestError for a scenario the engine cannot do.
        """
        ...


@runtime_checkable
class RealTime(Protocol):
    """The additional interface of an engine in real time, whose cells must share the time."""

    def together(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """The cells in groups that are compared with one another, and so must have the same background load."""
        ...

    def run_together(
        self, cells: Sequence[Cell], seed: int, replicates: Sequence[int], on_replicates: Callable[[Cell, int], None]
    ) -> list[dict[str, pl.DataFrame]]:
        """Run `replicates` of each cell of a group, in turn (A B A B), and return the tables of each.
        `on_replicates` is called for every replicate done.
        """
        ...

    def surroundings(self) -> dict[str, str]:
        """The environment of the records, in addition to scenario and code: programs and kernel settings of this
        machine, by name.
        A run's records all have the same. MachineError where the engine cannot run here.
        """
        ...

    def jobs(self, group: Sequence[Cell]) -> int:
        """The number of groups like this one that run concurrently on this machine without disturbing one another."""
        ...


def find(name: str) -> Engine:
    """The engine called `name`; RequestError with the nearest known one, MachineError for emulation without Linux."""
    if name not in _ENGINES:
        raise RequestError(f'unknown engine "{name}"; {nearest(name, _ENGINES)}')
    if name == "emulate":
        require_linux("emulation")
    return cast(Engine, importlib.import_module(_ENGINES[name]))


PLAN = "applications arms arms_of duration_ns header_bytes meter_interval_ns network"
"""Keys of a plan."""
APPLICATION = (
    "arms class client_hosts client_tcp clients count handshakes kind name response_header_bytes server_choice "
    "server_hosts server_tcp service_time_ns share start"
)
"""Keys of an application of any kind."""
OF_KIND = {
    "file_transfer": "direction gap request_bytes size",
    "request_response": "request response think",
    "web_page": (
        "connections dns frame_bytes hosts inline inline_count keep_alive_ns parallel persistent primary request_bytes "
        "then think think_from_start version"
    ),
    "voice": "bit_rate_bps codec datagram_header_bytes direction frame_ns impairment length_ns playout_ns",
    "game": "client_interval_ns client_payload datagram_header_bytes deadline_ns length_ns server_payload tick_ns",
    "constant_rate": "datagram_header_bytes deadline_ns direction length_ns payload_bytes rate_bps",
}
"""Further keys of an application of this kind."""


def check_named(engine: str, where: str, table: Mapping[str, Any], named: str) -> None:
    """RequestError for a key of `table` that is not among the words of `named`.

    An engine names the keys of a plan that it reads or refuses, so that it never passes over a key that came later.
    """
    if others := sorted(table.keys() - named.split()):
        raise RequestError(
            f"{where}: the engine {engine} does not know {', '.join(others)}; leave it out, or use --engine simulate"
        )
