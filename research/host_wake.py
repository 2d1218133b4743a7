"""How long a host of the emulator takes to act on a packet: the first one after a pause, and those that follow.

    .venv/bin/python research/host_wake.py [REPEATS]

Downloads 1 MB over 20 Mbit/s and 63 ms with IW 10. For each ACK that is due at the server and releases data: the time
until its first segment is at the link. A pause is 5 ms without an ACK. The link box's own lateness is in it. What the
first takes longer than the others is `wake` of studies/kernel_check/transfer.toml. No root is needed.
"""

import sys
from bisect import bisect_right
from pathlib import Path

import numpy as np
import polars as pl

import firstflight
from firstflight.engines.emulate.campaign import capture

DELAY_NS = 31_500_000
PAUSE_NS = 5_000_000


def waits(crossings: pl.DataFrame) -> tuple[list[float], list[float]]:
    """In µs, after a pause and otherwise."""
    ordered = crossings.sort("time_ns")
    due = (ordered.filter(pl.col("from_server") == 0)["end_ns"] + DELAY_NS).to_list()
    first, other, answered = [], [], -1
    for sent in ordered.filter(pl.col("from_server") == 1)["time_ns"].to_list():
        ack = bisect_right(due, sent) - 1
        if ack > max(answered, 0):
            (first if due[ack] - due[ack - 1] > PAUSE_NS else other).append((sent - due[ack]) / 1e3)
        answered = ack
    return first, other


def main() -> None:
    """Print both medians."""
    scenario = firstflight.load_scenario(Path(__file__).parents[1] / "examples" / "download.toml")
    changes = {"rate": "20Mbit", "delay": f"{DELAY_NS // 1000}us", "queue": "20p"}
    for key, value in changes.items():
        scenario = scenario.replace(f"network.links[0].{key}", value)
    scenario = scenario.replace("application[0].size", "1MB").replace("tcp.initial_window", 10)
    all_first, all_other = [], []
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        first, other = waits(capture(scenario, seed).tables["crossings"])
        all_first += first
        all_other += other
    for name, found in (("after a pause", all_first), ("others", all_other)):
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        print(f"{name}: median {middle:.0f} us ({low:.0f} to {high:.0f}), {len(found)} ACKs")


if __name__ == "__main__":
    main()
