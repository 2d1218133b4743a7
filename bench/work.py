"""The simulated work: the scenarios of `bench/scenarios`, as plans for the worker, with the cells put in."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import firstflight
from firstflight.scenario import Scenario

DIRECTORY = Path(__file__).resolve().parent
SIZES_CSV = Path(firstflight.__file__).parent / "studies" / "rfc2415" / "mah1997_reply_length_cdf.csv"

NANOSECONDS = 1_000_000_000
Plan = dict[str, Any]


def plan(name: str, duration_s: float | None = None) -> Plan:
    """The plan of `bench/scenarios/NAME.toml`, cut to `duration_s`; links metered once over the whole run."""
    made: Plan = Scenario.load(DIRECTORY / "scenarios" / f"{name}.toml").to_plan()
    made["meter_interval_ns"] = None
    if duration_s is not None:
        made["duration_ns"] = round(duration_s * NANOSECONDS)
    return made


def rfc2415_cell(base: Plan, webs: int, ftps: int, initial_window: int = 1, http: str = "1.0") -> Plan:
    """`base`, the plan of rfc2415.toml, with a cell's numbers of clients, initial window and HTTP version."""
    cell = copy.deepcopy(base)
    web, ftp = cell["applications"]
    web |= {"clients": webs, "version": http}
    ftp |= {"clients": ftps}
    cell["applications"] = [web, ftp] if ftps else [web]
    for application in cell["applications"]:
        for end in ("client_tcp", "server_tcp"):
            application[end]["initial_window"] = {"policy": "fixed", "segments": initial_window}
    return cell


def baytcp_cell(base: Plan, clients: int, window_segments: int) -> Plan:
    """`base`, the plan of baytcp.toml, with downloads that begin 100 ms apart and a window of whole segments."""
    cell = copy.deepcopy(base)
    [download] = cell["applications"]
    for end in ("client_tcp", "server_tcp"):
        tcp = download[end]
        tcp["max_send_window_segments"] = tcp["initial_ssthresh_segments"] = window_segments
        tcp["receive_window_bytes"] = window_segments * tcp["mss_bytes"]
    starts = [{"distribution": "constant", "value": index / 10} for index in range(clients)]
    cell["applications"] = [
        copy.deepcopy(download) | {"name": f"ftp{index}", "start": start} for index, start in enumerate(starts)
    ]
    return cell


def rfc2415_sweep() -> Iterator[tuple[int, int, int, str]]:
    """(webs, ftps, initial window, HTTP version) of the 96 cells, the longest to simulate first."""
    for http in ("1.1", "1.0"):
        for webs in (32, 16, 8):
            for ftps in (3, 2, 1, 0):
                for initial_window in (4, 3, 2, 1):
                    yield webs, ftps, initial_window, http


def connections(base: Plan, clients: int, duration_s: float) -> Plan:
    """`base`, the plan of connections.toml, with this number of clients for this time."""
    made = copy.deepcopy(base)
    made["applications"][0]["clients"] = clients
    made["duration_ns"] = round(duration_s * NANOSECONDS)
    return made


def scheduler_sources(made: Plan) -> int:
    """Sources of a dumbbell's scheduler: both directions of the access links, but not of the bottleneck."""
    network = made["network"]
    return 2 * (len(network["left"]) + len(network["right"]))
