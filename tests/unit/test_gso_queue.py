"""GSO packets in a short queue, against times of the running kernel (6.18) with and without offloads."""

import json
from typing import Any

import numpy as np
import pytest

from firstflight import _native
from firstflight.scenario import Scenario

DOWNLOAD = """
name = "container"
duration = "60s"

[tcp]
profile = "linux"
receive_window = "32MiB"

[network]
topology = "chain"

[[network.links]]
rate = "unlimited"
delay = "0ms"
queue = "10000p"

[[network.links]]
rate = "10Mbit"
delay = "30ms"
queue = "20p"
burst = "1600B"
wake = "40us"
reverse = { rate = "100Gbit", queue = "10000p" }

[[application]]
name = "download"
kind = "file_transfer"
count = 1
size = "500kB"
"""

# Rate, one-way delay, queue and size; seconds from connect() with veth's offloads on, and off. The server's veth ends
# at a router, where htb with pfifo holds what it gets; a user-space relay adds the delay. Where runs differ, the drop
# of one packet has decided them.
KERNEL: dict[tuple[str, str, str, str], tuple[list[float], list[float]]] = {
    ("10Mbit", "30ms", "20p", "500kB"): (
        [0.630, 0.636, 0.640, 0.642, 0.674, 0.686],
        [0.638, 0.639, 0.640, 0.640, 0.644, 0.658],
    ),
    ("20Mbit", "20ms", "10p", "300kB"): ([0.312, 0.313, 0.322], [0.410, 0.410, 0.410]),
    ("5Mbit", "50ms", "10p", "200kB"): ([0.728, 0.798, 0.799], [0.712, 0.788, 0.791]),
    ("50Mbit", "25ms", "20p", "1MB"): ([0.469, 0.522, 0.611], [0.766, 0.768, 0.963]),
    ("10Mbit", "30ms", "5p", "100kB"): ([0.334, 0.363, 0.364], [0.490, 0.492, 0.492]),
    ("10Mbit", "40ms", "40p", "1MB"): ([1.144, 1.150, 1.568], [1.145, 1.145, 1.160]),
}


@pytest.mark.parametrize("gso", [True, False])
@pytest.mark.parametrize("path", KERNEL, ids="-".join)
def test_a_queue_of_gso_packets_takes_the_time_of_one_of_the_kernels_runs(
    path: tuple[str, str, str, str], gso: bool
) -> None:
    rate, delay, queue, size = path
    changes: list[tuple[str, Any]] = [
        ("network.links[1].rate", rate),
        ("network.links[1].delay", delay),
        ("network.links[1].queue", queue),
        ("network.links[1].gso", gso),
        ("application.download.size", size),
    ]
    plan = Scenario.from_toml(DOWNLOAD).replace_all(changes).to_plan()
    kind, stored = _native.simulate(json.dumps(plan), 1, 0, 1)["tables"]["transfers"]["completion_time_s"]
    found = float(np.frombuffer(stored, kind)[0])
    nearest = min(KERNEL[path][0 if gso else 1], key=lambda time: abs(time - found))
    assert found == pytest.approx(nearest, rel=0.025)
