"""The fresh process in which a population is measured: a job as JSON on stdin, `population.Measured` on stdout.

It does the work of `firstflight run FILE --vary tcp.initial_window=3,10`, down to the records on disk.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from firstflight.scenario import Scenario
from firstflight.studies.execute import carry_out, prepare, started


def main() -> None:
    """Read the job, run it, print its cost."""
    job = json.load(sys.stdin)
    scenario = Scenario.load(Path(job["scenario"])).replace("population.users", job["users"])
    request = prepare(
        scenario,
        replicates=job["replicates"],
        jobs=job["jobs"],
        vary={"tcp.initial_window": job["initial_windows"]},
    )
    with tempfile.TemporaryDirectory() as directory:
        wall, cpu = time.perf_counter(), time.process_time()
        with started(request, Path(directory) / "run") as run:
            carry_out(request, run)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        memory_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        everything = run.aggregates.filter((pl.col("dimension") == "all") & (pl.col("unit") == "transfer"))
        connections = everything.select(pl.col("count").sum()).collect().item()
    json.dump({"connections": connections, "wall_s": wall, "cpu_s": cpu, "memory_bytes": memory_bytes}, sys.stdout)


if __name__ == "__main__":
    main()
