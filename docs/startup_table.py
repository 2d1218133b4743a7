"""Prints the tables of docs/startup.md, and draws its pictures.

    .venv/bin/python docs/startup_table.py
    .venv/bin/python docs/startup_table.py draw

A test compares the output with the page, so the page cannot fall behind the code.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import firstflight
from firstflight.scenario import Scenario

DOCS = Path(__file__).parent
EXAMPLE = DOCS.parent / "examples" / "startup.toml"
SCHEMES = {
    "window": '"window"',
    "paced": '"paced"',
    "jump_start": '"jump_start"',
    "quick_start": '{ scheme = "quick_start", rate = 8 }',
    "rapid_start": '"rapid_start"',
    "suss": '"suss"',
    "careful_resume": '{ scheme = "careful_resume", saved_window_segments = 200, saved_rtt = "100ms" }',
}
PATHS = [
    {"rate": "20Mbit", "queue": "100p"},
    {"rate": "5Mbit", "queue": "40p"},
    {"rate": "2Mbit", "queue": "15p"},
]


def _parsed(written: str) -> Any:
    return tomllib.loads(f"value = {written}")["value"]


def _transfers(scenario: Scenario) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = firstflight.run(scenario, replicates=1, seed=1).transfers.collect().to_dicts()
    return rows


def schemes() -> str:
    """Each scheme over the three paths: first flight, completion time, maximum queue and retransmissions."""
    lines = [
        "| `startup` | first flight, segments | time, s | maximum queue, packets | retransmissions |",
        "|---|---|---|---|---|",
    ]
    example = firstflight.load_scenario(EXAMPLE)
    for name, written in SCHEMES.items():
        cells = []
        for path in PATHS:
            link = {"delay": "50ms", "quick_start": "grant", **path}
            scenario = example.replace("network.links", link).replace("tcp.startup", _parsed(written))
            run = firstflight.run(scenario, replicates=1, seed=1)
            (row,) = run.transfers.collect().to_dicts()
            queue = max(link["queue_max_packets"] for link in run.links.collect().to_dicts())
            time = f"{row['completion_time_s']:.3f}"
            cells.append((row["first_flight_segments"], time, queue, row["retransmissions"]))
        shown = " | ".join(", ".join(map(str, column)) for column in zip(*cells, strict=True))
        lines.append(f"| `{name}` | {shown} |")
    return "\n".join(lines)


# Time of 5 MB and packets lost in 20 MB, from https://sussdeveloper.github.io/HyStartPP/evaluation/index.html.
PUBLISHED: dict[str, tuple[dict[str, Any], str, str]] = {
    "slow start": ({"congestion_control": {"algorithm": "cubic", "hystart": "off"}}, "1.50", "1105"),
    "HyStart": ({}, "1.29", "40"),
    "HyStart++": ({"congestion_control": {"algorithm": "cubic", "hystart": "hystart_plus_plus"}}, "1.50", "704"),
    "SUSS": ({"startup": "suss"}, "1.11", "35"),
}


def suss() -> str:
    """CUBIC with each slow start over 50 Mbit/s, 100 ms and a queue of 1 BDP, next to the values of SUSS's authors."""
    link = {"rate": "50Mbit", "delay": "50ms", "queue": "413p"}
    lines = [
        "| slow start | time, s, published | here | packets lost, published | here |",
        "|---|---|---|---|---|",
    ]
    for name, (fields, time, lost) in PUBLISHED.items():
        tcp = {"profile": "linux", "receive_window_growth": "none", **fields}
        base = firstflight.load_scenario(EXAMPLE).replace("network.links", link).replace("tcp", tcp)
        rows = [_transfers(base.replace("application.download.size", size))[0] for size in ("5MB", "20MB")]
        lines.append(
            f"| {name} | {time} | {rows[0]['completion_time_s']:.2f} | {lost} | {rows[1]['retransmissions']} |"
        )
    return "\n".join(lines)


def _learning(policy: dict[str, Any], rate: str, queue: str, files: int) -> list[int]:
    """Initial windows of connections that carry a file of 100 segments each, one after the other."""
    example = firstflight.load_scenario(EXAMPLE)
    scenario = example.replace("network.links", {"rate": rate, "delay": "50ms", "queue": queue})
    scenario = scenario.replace("tcp.initial_window", policy).replace("duration", "3600s")
    scenario = scenario.replace("application.download.count", files).replace("application.download.size", "146000B")
    return [row["initial_window_segments"] for row in _transfers(scenario)]


def remembered() -> str:
    """Initial windows of connections in sequence, by memory."""
    policies: dict[str, dict[str, Any]] = {
        '`{ policy = "remembered" }`': {"policy": "remembered"},
        '`{ policy = "remembered", of = "closed" }`': {"policy": "remembered", "of": "closed"},
    }
    lines = ["| `initial_window` | 20 Mbit/s, 100 packets | 2 Mbit/s, 15 packets |", "|---|---|---|"]
    for name, policy in policies.items():
        shown = [
            ", ".join(map(str, _learning(policy, rate, queue, 8)))
            for rate, queue in (("20Mbit", "100p"), ("2Mbit", "15p"))
        ]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines)


def adaptive() -> str:
    """The window of the first connection of each interval of 100."""
    policy = {"policy": "adaptive", "connections": 100}
    lines = ["| path | first connection of each hundred |", "|---|---|"]
    for rate, queue in (("2Mbit", "15p"), ("2Mbit", "5p"), ("2Mbit", "2p")):
        windows = _learning(policy, rate, queue, 901)[::100]
        lines.append(f"| {rate}, {queue} | {', '.join(map(str, windows))} |")
    return "\n".join(lines)


def draw() -> None:
    """The picture of each scheme, by the command line that the page shows."""
    program = Path(sys.executable).parent / "firstflight"
    for name, written in SCHEMES.items():
        plot = DOCS / "startup" / f"{name}.svg"
        subprocess.run([program, "trace", EXAMPLE, "--set", f"tcp.startup={written}", "--plot", plot], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    else:
        print("\n\n".join((schemes(), suss(), remembered(), adaptive())))
