"""The send buffer of profile linux, against times of the running kernel (6.18, without wireless drivers)."""

import json
from typing import Any

import numpy as np
import pytest

from firstflight import _native
from firstflight.scenario import Scenario

DOWNLOAD = """
name = "far"
duration = "60s"

[tcp]
profile = "linux"
receive_window = "32MiB"

[network]
topology = "chain"
links = { rate = "100Mbit", delay = "150ms", queue = "10000p" }

[[application]]
name = "download"
kind = "file_transfer"
count = 1
size = "60MB"
"""
LONG = [("network.links[0].rate", "20Mbit"), ("application.download.size", "6MB")]


def seconds(*changes: tuple[str, Any]) -> float:
    """Completion time of the download."""
    plan = Scenario.from_toml(DOWNLOAD).replace_all(changes).to_plan()
    kind, bytes_ = _native.simulate(json.dumps(plan), 1, 0, 1)["tables"]["transfers"]["completion_time_s"]
    return float(np.frombuffer(bytes_, kind)[0])


def buffer(maximum: str) -> tuple[str, Any]:
    return "tcp.send_buffer", {"initial": "16KiB", "maximum": maximum}


# Completion times of kernel 6.18, from connect() on. The server calls send() with 1 MB whenever poll() says so, in the
# real-time class; a user-space relay between TUN devices delays the packets.
@pytest.mark.parametrize(
    ("changes", "kernel"),
    [
        ([], 8.971),
        ([buffer("32MiB")], 7.671),
        ([*LONG], 4.520),
        ([*LONG, buffer("512KiB")], 5.917),
        ([*LONG, buffer("256KiB"), ("network.links[0].delay", "100ms")], 4.753),
        ([*LONG, buffer("768KiB"), ("tcp.congestion_control", "bbr")], 5.784),
    ],
    ids=["default", "32 MiB", "not reached", "512 KiB", "256 KiB", "BBR"],
)
def test_a_waiting_application_takes_the_time_that_the_kernels_buffer_costs(
    changes: list[tuple[str, Any]], kernel: float
) -> None:
    assert seconds(*changes) == pytest.approx(kernel, rel=0.01)


def test_a_download_that_never_fills_the_buffer_takes_the_same_time_without_one() -> None:
    without = ("tcp.send_buffer", "none")
    assert seconds(*LONG) == seconds(*LONG, without)
    small = ("application.download.size", "70kB")
    assert seconds(small) == seconds(small, without)
