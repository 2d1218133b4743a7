"""About how much memory a cell takes, estimated before any of it is allocated.

The figures were measured as the largest resident size of a process that simulates one replicate (Linux's TCP, x86-64,
November 2026): 3,900 to 4,500 bytes a client that fetches 10 kB, if all do so concurrently (1,450 where next to
nothing gets through), 150 one that has not begun, 240 a row of a population's users with its transfer, 4,700 a link,
187 a row of a link's counters. The number of transfers is unknown beforehand; their rows are not counted.
"""

from collections.abc import Iterable

from firstflight.errors import MachineError
from firstflight.records import Identity, machine
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.laws import Constant

_OPEN_CLIENT, _WAITING_CLIENT, _USER, _LINK, _INTERVAL = 3_900, 150, 240, 4_700, 180
# Where this is not there, the system says so soon enough.
_NEGLIGIBLE = 256 << 20


def check(cells: Iterable[Cell], identity: Identity, jobs: int | None) -> None:
    """MachineError if the replicates that threads compute concurrently cannot have the memory that they need."""
    threads = jobs or machine.usable_cpus()
    largest: list[tuple[int, Scenario]] = []
    for cell in cells:
        replicates = min(cell.replicates or identity.replicates, threads)
        largest += [(sum(about_bytes(cell.scenario).values()), cell.scenario)] * replicates
        largest = sorted(largest, key=lambda entry: -entry[0])[:threads]
    check_together([scenario for _, scenario in largest])


def check_together(scenarios: list[Scenario]) -> None:
    """As `check`, for a replicate of each of these together, the largest first."""
    needed = [about_bytes(scenario) for scenario in scenarios]
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


def about_bytes(scenario: Scenario) -> dict[str, int]:
    """Memory of one replicate in bytes, by part."""
    population = scenario.population
    if population is not None:
        return {f"{population.users:,} users": _USER * population.users if population.records == "rows" else 0}
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
    }
