"""`python -m bench.scale`: a simulation on paper of very many connections, from rates measured here.

Prints the tables of docs/scale.md as Markdown. Measured: connections a second of one core, and bytes of a
replicate's records in either form. The assumption is printed next to them: the utilization of a cluster's cores.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import firstflight
from firstflight import Scenario
from firstflight.engines.chunks import aim_s

CONNECTIONS = 10**10
"""In each of two arms."""
ARMS = 2
# Nodes, and cores of each: a small machine, a large one, a cluster.
CLUSTERS = ((1, 2), (1, 64), (16, 64))
# Share of the time for which a cluster's cores compute; the rest waits for work or for storage.
_BUSY = 0.8


_SEARCH = """
name = "avgdc-search"
duration = "300s"
tcp = { profile = "linux", initial_window = 10 }
population = { name = "avgdc", users = 1 }
application = [{ preset = "web-search" }]
"""


@dataclass(frozen=True)
class Rates:
    """The work of one core, and its output: bytes of the Parquet files, per connection where rows are kept and
    per replicate where aggregates are.
    """

    users: int
    connections_per_core_s: float
    aggregate_bytes_per_replicate: float
    row_bytes_per_connection: float


def measure(users: int, replicates: int, rate: float | None = None) -> Rates:
    """Run `replicates` of `users` on one thread, with aggregates for time and bytes, and one with rows for bytes; with
    `rate` (connections a second of one core, as `python -m bench` prints it) the time is not measured.
    """
    base = Scenario.from_toml(_SEARCH).replace("population.users", users)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        kept = base.replace("population.records", "aggregates")
        run = firstflight.run(kept, replicates=replicates, jobs=1, out=place / "aggregates")
        # Of the processor: others may use the machine meanwhile.
        seconds = run.provenance["sessions"][0]["cpu_s"]
        aggregates = _stored(run.directory, "aggregates") + _stored(run.directory, "histograms")
        rows = firstflight.run(base.replace("population.records", "rows"), replicates=1, jobs=1, out=place / "rows")
        row_bytes = _stored(rows.directory, "transfers") + _stored(rows.directory, "users")
    return Rates(users, rate or users * replicates / seconds, aggregates / replicates, row_bytes / users)


def tables(rates: Rates) -> str:
    """The inputs and the outcome as two Markdown tables."""
    replicates = CONNECTIONS // rates.users
    core_s = ARMS * CONNECTIONS / rates.connections_per_core_s
    lines = [
        "| input | value |",
        "|---|---|",
        f"| connections | {ARMS} arms of 10^{len(str(CONNECTIONS)) - 1} |",
        f"| a replicate | {rates.users:,} users, one connection each; {replicates:,} replicates an arm |",
        f"| one core, measured | {rates.connections_per_core_s:,.0f} connections/s of CPU time |",
        f"| aggregates of a replicate, measured | {rates.aggregate_bytes_per_replicate / 1e3:,.1f} kB |",
        f"| rows of a connection, measured | {rates.row_bytes_per_connection:,.1f} B |",
        f"| cores of a cluster compute, assumed | {_BUSY:.0%} of the time |",
        "",
        "| nodes | cores | time | seconds a chunk | chunks/s | aggregates, GB | with rows, TB |",
        "|---|---|---|---|---|---|---|",
    ]
    aggregate_gb = ARMS * replicates * rates.aggregate_bytes_per_replicate / 1e9
    rows_tb = ARMS * CONNECTIONS * rates.row_bytes_per_connection / 1e12
    for nodes, cores in CLUSTERS:
        # A task holds at least one replicate.
        task_s = max(aim_s(nodes * cores), rates.users / rates.connections_per_core_s)
        tasks = nodes * cores * _BUSY / task_s
        shown = (nodes, f"{nodes * cores:,}", _time(core_s / (nodes * cores * _BUSY)), f"{task_s:.1f}", f"{tasks:,.0f}")
        lines.append(f"| {' | '.join(map(str, shown))} | {aggregate_gb:,.1f} | {rows_tb:,.2f} |")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"


def _stored(directory: Path, table: str) -> int:
    return sum(path.stat().st_size for path in directory.rglob(f"{table}.parquet"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000, help="users of a replicate")
    parser.add_argument("--replicates", type=int, default=20, help="replicates to measure")
    parser.add_argument("--rate", type=float, help="connections a second of one core, instead of measuring it here")
    options = parser.parse_args()
    print(tables(measure(options.users, options.replicates, options.rate)))


if __name__ == "__main__":
    main()
