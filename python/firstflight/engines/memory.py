"""About how much memory a cell takes, estimated before any of it is allocated.

The figures were measured as the largest resident size of a process that simulates one replicate (Linux's TCP, x86-64,
November 2026): 3,900 to 4,500 bytes a client that fetches 10 kB, if all do so concurrently (1,450 where next to
nothing gets through), 150 one that has not begun, 240 a row of a population's users with its transfer, 4,700 a link,
187 a row of a link's counters. Of an open loop (`arrivals`) 5,000 to 5,700 bytes a file on its way, 210 to 250 a row of
those that are done, and 1,180 a data segment where all are captured. The number of other transfers is unknown
beforehand; their rows are not counted.
"""

import math
from collections.abc import Iterable

from firstflight.errors import MachineError
from firstflight.records import Identity, machine
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import Arrivals
from firstflight.scenario.laws import Constant, mean
from firstflight.scenario.network import link_rate_bps

_OPEN_CLIENT, _WAITING_CLIENT, _USER, _LINK, _INTERVAL = 3_900, 150, 240, 4_700, 180
_OPEN_FILE, _FILE, _CAPTURED_SEGMENT = 5_500, 240, 1_180
# Where this is not there, the system says so soon enough.
_NEGLIGIBLE = 256 << 20


def check(cells: Iterable[Cell], identity: Identity, jobs: int | None) -> None:
    """MachineError if the replicates that threads compute concurrently cannot have the memory that they need."""
    threads = jobs or machine.usable_cpus()
    largest: list[tuple[int, dict[str, int], Scenario]] = []
    for cell in cells:
        replicates = min(cell.replicates or identity.replicates, threads)
        needed = about_bytes(cell.scenario, cell.capture)
        largest += [(sum(needed.values()), needed, cell.scenario)] * replicates
        largest = sorted(largest, key=lambda entry: -entry[0])[:threads]
    _check([needed for _, needed, _ in largest], [scenario for *_, scenario in largest])


def check_together(scenarios: list[Scenario], capture: bool = False) -> None:
    """As `check`, for a replicate of each of these together, the largest first. `capture`: with all segments."""
    _check([about_bytes(scenario, capture) for scenario in scenarios], scenarios)


def _check(needed: list[dict[str, int]], scenarios: list[Scenario]) -> None:
    total = sum(sum(parts.values()) for parts in needed)
    free = machine.free_memory_bytes() if total > _NEGLIGIBLE else None
    if free is None or total <= free:
        return
    what = max(needed[0], key=lambda part: needed[0][part])
    at_once = len(needed)
    raise MachineError(
        f'scenario "{scenarios[0].name}" needs about {total / 1e9:.1f} GB of memory for {what}'
        f"{f' in {at_once} threads' if at_once > 1 else ''}, and {free / 1e9:.1f} GB are free; ask for fewer"
        f"{', or write --jobs 1' if at_once > 1 and sum(needed[0].values()) <= free else ''}"
    )


def about_bytes(scenario: Scenario, capture: bool = False) -> dict[str, int]:
    """Memory of one replicate in bytes, by part; `capture`: with all segments."""
    population = scenario.population
    files = _files(scenario, capture)
    if population is not None:
        rows = population.users if population.records == "rows" else 0
        return {f"{population.users:,} users": _USER * rows} | files
    links = scenario.one_network("This estimate").link_count()
    counts = [scenario.clients(index) for index in range(len(scenario.application))]
    clients = 0
    for count, application in zip(counts, scenario.application, strict=True):
        begins = isinstance(application.start, Constant) and application.start.value < scenario.duration
        clients += count * (_OPEN_CLIENT if begins else _WAITING_CLIENT)
    intervals = 1 if scenario.stats_interval is None else -(-scenario.duration // scenario.stats_interval)
    return {
        f"{sum(counts):,} clients": clients,
        f"{links:,} links": _LINK * links,
        f"the counters of {links:,} links in {intervals:,} intervals": 2 * _INTERVAL * links * intervals,
    } | files


def _files(scenario: Scenario, capture: bool) -> dict[str, int]:
    """Of the applications whose files arrive whether or not those before are done."""
    sizes = {}
    for index, (name, application) in enumerate(zip(scenario.names(), scenario.application, strict=True)):
        if not isinstance(application, Arrivals):
            continue
        clients, seconds = scenario.clients(index) * application.user_fraction, scenario.duration.seconds
        if application.idle_time is not None:
            gap_s = mean(application.idle_time) / 1e9
        else:
            gap_s = scenario.to_plan()["applications"][index]["gap"]["mean"]
        files = clients * seconds / max(gap_s, 1e-9)
        files = min(files, clients * (application.count or math.inf))
        bytes_ = mean(application.size)
        if scenario.population is not None:
            # One user after the other; what is sent is the path's affair.
            rows = scenario.population.users if scenario.population.records == "rows" else 0
            sizes[f"{rows * files:,.0f} files"] = int(_FILE * rows * files)
            continue
        share = min(1.0, _capacity_bytes(scenario, application) / max(1.0, files * bytes_))
        needed = files * (share * _FILE + (1 - share) * _OPEN_FILE)
        if capture:
            needed += _CAPTURED_SEGMENT * files * share * (1 + bytes_ / scenario.full_payload_bytes(index))
        sizes[f'{files:,.0f} files of "{name}"'] = int(needed)
    return sizes


def _capacity_bytes(scenario: Scenario, application: Arrivals) -> float:
    """The most that the network can deliver in all."""
    network = scenario.one_network("This estimate")
    rate = network.capacity_bps()
    if application.load is not None:
        rate = link_rate_bps(network.plan(), application.of or "")
    return scenario.duration.seconds * rate / 8
