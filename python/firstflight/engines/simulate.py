"""The packet-level simulator: hands a plan to the native module and its columns to Polars."""

import json
from pathlib import Path

import polars as pl

from firstflight.errors import MachineError, RequestError
from firstflight.records.schema import COUNTED, DIMENSIONS, from_native
from firstflight.scenario import Cell, Scenario

# The output that captures every segment, at the start of a sentence.
_CAPTURE = "A capture of segments"


def run_cell(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
    """Simulate replicates `first_replicate` and on of a cell: `transfers`, `pages`, `links` and `counts`.

    A population's `users` are added, or `aggregates` and `histograms` instead of the first three, which are
    then empty; if the cell captures, `segments`, `sender_events` and `crossings`.

    The native module lets other Python threads run meanwhile. RequestError if it refuses the plan.
    """
    from firstflight import _native

    cell.scenario.over_tcp("the simulator")
    if cell.capture:
        cell.scenario.one_network(_CAPTURE)
    try:
        result = _native.simulate(cell.plan, seed, first_replicate, replicates, cell.capture)
    except (ValueError, OverflowError) as error:
        raise RequestError(f'scenario "{cell.scenario.name}": {error}') from None
    names = {
        "application": result["names"]["applications"],
        "link": result["names"]["links"],
        "old_state": result["names"]["states"],
        "new_state": result["names"]["states"],
        "trigger": result["names"]["triggers"],
        "unit": list(COUNTED),
        "dimension": list(DIMENSIONS),
    }
    tables = {name: from_native(name, columns, names) for name, columns in result["tables"].items()}
    return tables | {"counts": pl.DataFrame({name: [count] for name, count in result["counts"].items()})}


def capture(scenario: Scenario, seed: int, replicate: int = 0) -> dict[str, pl.DataFrame]:
    """One replicate with every segment: the tables of `run_cell`, `segments`, `sender_events` and `crossings`.

    RequestError for a population.
    """
    return run_cell(Cell({}, scenario, capture=True), seed, 1, replicate)


def capture_packets(
    scenario: Scenario, seed: int, path: Path, at: str = "client", link: str | None = None, replicate: int = 0
) -> int:
    """Write the packets that pass one place to a capture file, pcap if `path` ends in .pcap, else pcapng.

    `at` is "client" or "server": the host of that end of the first application's first connection, where packets are
    seen as TCP hands them to the network and as they arrive. With `link`, the place is the far end of that link, where
    packets are seen as they arrive over it and, the other way, as they leave. Returns how many packets there are.
    RequestError for a link that is not there, a population or a scenario that cannot be run, MachineError where the
    file cannot be written.
    """
    from firstflight import _native

    scenario.over_tcp("the simulator").one_network(_CAPTURE)

    comment = f"firstflight trace: scenario {scenario.name}, seed {seed}, replicate {replicate}, virtual time"
    try:
        return _native.write_packets(
            json.dumps(scenario.to_plan()), seed, replicate, path, comment, at, link, scenario.ip == "ipv6"
        )
    except (ValueError, OverflowError) as error:
        raise RequestError(f'scenario "{scenario.name}": {error}') from None
    except OSError as error:
        raise MachineError(str(error)) from None
