"""Makes visits.log.gz, an access log long enough to advise on, from real connections: nginx, curl and this kernel.

    .venv/bin/python examples/flows/visits.py [FILE.log.gz]

Takes two minutes and needs what `--engine emulate` needs (`firstflight doctor`). Forty homes are drawn, by weight, from
those of the population "uk-2015" that have less than 95 Mbit/s, 30 ms farther away than Ofcom's server; each opens a
hundred connections one after the other and fetches one response on each. The initial window is 10.
"""

import gzip
import math
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import NormalDist

from make import SERVER, WEB, serve

from firstflight import populations
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.emulate.prepared import Prepared
from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).resolve().parent
HOMES, VISITS = 40, 100
MOST_BPS = 95e6
"""The link box keeps time up to 100 Mbit/s."""
SIZES = [round(40_000 * math.exp(1.2 * NormalDist().inv_cdf((step + 0.5) / 40))) for step in range(40)]
"""Bytes: forty equally likely sizes of a lognormal law, median 40 kB, sigma 1.2."""


def homes() -> Scenario:
    """Forty homes at the spokes of a star, the server at its hub."""
    table = populations.find("uk-2015")
    slow_enough = [down < MOST_BPS for down in table["columns"]["down_bps"]]
    table["columns"] = {
        name: [value for value, keep in zip(values, slow_enough, strict=True) if keep]
        for name, values in table["columns"].items()
    }
    scenario = {
        "name": "visits",
        "duration": "600s",
        "tcp": {"profile": "linux", "initial_window": 10},
        "population": table | {"row_sampling": "weighted", "extra_rtt": "30ms", "users": HOMES},
        "application": [{"kind": "file_transfer", "size": "40kB", "count": 1}],
    }
    return Scenario.from_dict(scenario).star_of_users(seed=1, users=HOMES)


def visit(lab: Lab, home: str, number: int, server: str) -> None:
    """All connections of one home: a curl for each, so that each is new."""
    drawn = random.Random(number).choices(SIZES, k=VISITS)
    loop = 'for url in "$@"; do curl --disable --silent --noproxy "*" --output /dev/null "$url" || exit; done'
    urls = [f"http://{server}:{WEB}/{size}" for size in drawn]
    lab.call("run", 600.0, host=home, program=["sh", "-c", loop, "sh", *urls], within_s=600.0)


def main() -> None:
    """Write the log."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "visits.log.gz"
    scenario = homes()
    layout = lay_out(scenario)
    with tempfile.TemporaryDirectory() as directory, Lab(layout) as lab:
        files = Path(directory)
        for host, told in Prepared(Cell(key={}, scenario=scenario), layout).hosts.items():
            lab.set(host, told)
        serve(lab, files, SIZES)
        server = layout.host(SERVER).address
        names = [host.name for host in layout.hosts if host.name != SERVER]
        with ThreadPoolExecutor(HOMES) as pool:
            list(pool.map(lambda number: visit(lab, names[number], number, server), range(HOMES)))
        # Without a time stamp of its own: the same log is the same file.
        out.write_bytes(gzip.compress((files / "access.log").read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
