"""The fresh process that a measurement runs in: a job as JSON on stdin, its cost as JSON on stdout.

Run by `process.simulate`; the job's keys are that function's arguments, the answer's those of `Simulated`.
"""

import json
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstflight import _native

if TYPE_CHECKING:
    from firstflight._native import Simulated

Tables = dict[str, dict[str, tuple[str, bytes]]]


def main() -> None:
    """Read the job, run it, print its cost."""
    job = json.load(sys.stdin)
    plans = [json.dumps(plan) for plan in job["plans"]] * job["repeat"]

    def run(plan: str) -> "Simulated":
        return _native.simulate(plan, job["seed"], 0, job["replicates"])

    peak = _peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    first, counts = _run_all(run, plans, job["threads"])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    answer = {
        "cpu_s": cpu,
        "wall_s": wall,
        "memory_bytes": peak(),
        **counts,
        "links": _links(first),
        "retransmissions": sum(_column(first["tables"], "transfers", "retransmissions")),
        "page_delays_s": _page_delays_s(first["tables"]),
    }
    json.dump(answer, sys.stdout)


def _run_all(run: Callable[[str], "Simulated"], plans: list[str], threads: int) -> tuple["Simulated", dict[str, int]]:
    """The first plan's result, and the counts of all; other results are dropped as they come."""
    first = run(plans[0])
    counts = dict(first["counts"])

    def counts_of(plan: str) -> dict[str, int]:
        return run(plan)["counts"]

    with ThreadPoolExecutor(threads) as pool:
        for more in pool.map(counts_of, plans[1:]):
            for name, count in more.items():
                counts[name] += count
    return first, counts


def _peak_memory() -> Callable[[], int]:
    """Starts watching the process's memory; the call it returns says by how many bytes it rose at most.

    Linux only: elsewhere that is 0. Writing 5 to clear_refs resets the peak to the current resident size.
    """
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return lambda: 0
    clear.write_text("5")
    before = _status_bytes("VmRSS")
    return lambda: _status_bytes("VmHWM") - before


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


# NumPy itself stays out of this process: the threads it starts would be in the CPU measured.
_CODES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f8": "d"}


def _column(tables: Tables, table: str, name: str) -> tuple[Any, ...]:
    """A column's values; its bytes are little endian, its type is spelled as NumPy does."""
    kind, data = tables[table][name]
    code = _CODES[kind[-2:]]
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def _links(result: "Simulated") -> dict[str, dict[str, int]]:
    tables = result["tables"]
    fields = ("sent_packets", "sent_bytes", "dropped_packets")
    sums = {name: dict.fromkeys(fields, 0) for name in result["names"]["links"]}
    names = [result["names"]["links"][index] for index in _column(tables, "links", "link")]
    for field in fields:
        for name, value in zip(names, _column(tables, "links", field), strict=True):
            sums[name][field] += value
    return sums


def _page_delays_s(tables: Tables) -> list[float]:
    delays_s = _column(tables, "pages", "completion_time_s")
    return [delay for delay, done in zip(delays_s, _column(tables, "pages", "completed"), strict=True) if done]


if __name__ == "__main__":
    main()
