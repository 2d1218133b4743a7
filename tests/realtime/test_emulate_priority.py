"""Classes of packets between real programs, at a queue of strict priority."""

import polars as pl

import emulations
from firstflight import Cell, Scenario
from firstflight.engines.emulate import campaign

# A queue of 1.2 s that the download fills, and a short transfer that begins behind it.
SCENARIO = """
name = "classes"
duration = "12s"

[tcp]
profile = "linux"
initial_window = 100
receive_window_growth = "none"

[network]
topology = "dumbbell"
bottleneck = { rate = "1Mbit", delay = "5ms", queue = { kind = "priority", limit = "100p" } }
left = { rate = "50Mbit", delay = "1ms", queue = "1000p" }
right = { count = 2, rate = "50Mbit", delay = "1ms", queue = "1000p" }

[[application]]
name = "download"
kind = "file_transfer"
size = "500kB"
count = 1
server_hosts = "right[0]"

[[application]]
name = "short"
kind = "file_transfer"
size = "10kB"
start = "1s"
count = 1
server_hosts = "right[1]"
"""


def test_a_transfer_of_a_higher_class_does_not_wait_behind_a_queue() -> None:
    emulations.skip_unless_possible()
    took = {}
    for priority in (0, 5):
        scenario = Scenario.from_toml(SCENARIO).replace("application.short.priority", priority)
        transfers = campaign.run_cell(Cell({"c": 1}, scenario), 1, 1)["transfers"]
        short = transfers.row(named=True, by_predicate=pl.col("application").cast(pl.String) == "short")
        assert short["completed"] == 1
        took[priority] = short["completion_time_s"]
    # Its SYN waits for most of a second, or for the packet on the line.
    assert took[5] < took[0] / 2
