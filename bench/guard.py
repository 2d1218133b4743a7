"""`python -m bench --guard`: the cost of the guard next to nginx, with a connection for each request.

nginx and the guard are in a namespace and clients in another, all on this machine, so that as many connections come as
it can give: how many that is belongs to the result. The guard's CPU time per connection stands on a busy machine, too.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.row import Goal, Row, as_json, as_text
from firstflight.errors import MachineError, require_linux

_SECONDS, _WARM_UP_S, _CLIENTS = 20, 12, 4
_MOST_CORE_SHARE, _AT_CONNECTIONS_PER_S = 0.05, 10_000
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Measured:
    """The worker's results. `driven` and `alone` are clients with the guard and without: connections, seconds and the
    CPU seconds of nginx and clients. `counts` are the guard's, of the same time.
    """

    driven: dict[str, float]
    alone: dict[str, float]
    guard_cpu_s: float
    idle_share: float
    counts: dict[str, int]
    resident_bytes: int
    routes: int
    route_changes: int


def main(json: bool = False) -> int:
    """Measure and print a table (JSON if asked); takes about a minute and a half.

    Returns 1 if a connection was made that the guard neither saw nor counted as dropped, else 0. Raises MachineError
    without namespaces, nginx or `ip`.
    """
    require_linux("python -m bench --guard")
    rows = rows_of(measure(_SECONDS, _WARM_UP_S, _CLIENTS))
    print(as_json(rows) if json else as_text(rows))
    return 1 if any(row.same is False for row in rows) else 0


def measure(seconds: float, warm_up_s: float, clients: int) -> Measured:
    """Run nginx, this number of clients and a guard that sets windows."""
    own = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    own += ["--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    job = json.dumps({"seconds": seconds, "warm_up_s": warm_up_s, "clients": clients})
    command = [*own, sys.executable, str(Path(__file__).with_name("guard_worker.py"))]
    most_s = 2 * seconds + warm_up_s + 120
    done = subprocess.run(command, input=job, capture_output=True, text=True, check=False, timeout=most_s)
    if done.returncode != 0:
        raise MachineError(f"the guard cannot be measured here: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return Measured(**found)


def rows_of(found: Measured) -> list[Row]:
    """The rows of the measurements."""
    made, counts = found.driven["connections"], found.counts
    seen = counts["reported"] + counts["dropped"]
    each_s = found.guard_cpu_s / made
    core = found.guard_cpu_s / found.driven["seconds"]
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    judged = counts["reported"] - counts["beyond"] - counts["passed_over"] - counts["uncertain"]
    most = Goal(_MOST_CORE_SHARE * 1e6 / _AT_CONNECTIONS_PER_S, at_least=False)
    memory = Goal(_MOST_BYTES / 2**20, at_least=False)
    return [
        Row("connections", made / found.driven["seconds"], "connections / s", note=load),
        Row("guard", 100 * core, "% of a core", note=f"without connections {100 * found.idle_share:.2g}%"),
        Row("guard, cost", 1e6 * each_s, "CPU us / connection", goals=(most,), goals_of_ratio=False),
        Row("guard, peak memory", found.resident_bytes / 2**20, "MiB", goals=(memory,), goals_of_ratio=False),
        Row("connections seen", seen, "connections", "made", made, same=seen == made),
        Row("reports dropped", counts["dropped"], "reports"),
        Row("connections judged", judged, "connections", "made", made, note=f"{found.routes} windows set"),
        Row("route changes", found.route_changes, "routes", note="in the time of the clients"),
        Row("nginx and clients", *_cost_us(found.driven), "without the guard", _cost_us(found.alone)[0]),
    ]


def _cost_us(driven: dict[str, float]) -> tuple[float, str]:
    return 1e6 * driven["cpu_s"] / driven["connections"], "CPU us / connection"
