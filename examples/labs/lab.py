"""What the labs share: tasks with different numbers for each student, both engines, and answers that are checked."""

import hashlib
import math
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import firstflight
from firstflight import MachineError, Scenario

Value = TypeVar("Value")

DOWNLOAD = """
name = "lab"
duration = "60s"

[tcp]
profile = "linux"
initial_window = 10

[network]
topology = "chain"
links = {{ rate = "{rate_mbit}Mbit", delay = "{one_way_ms}ms", queue = "{queue}" }}

[[application]]
name = "download"
kind = "file_transfer"
size = "{size_bytes}B"
count = 1
request = "80B"
response_header = "240B"
"""


class Student:
    """A student, whose name decides the numbers of the tasks: the same name, the same numbers, everywhere."""

    def __init__(self, name: str) -> None:
        self.name = " ".join(name.lower().split())
        self.verdicts: dict[str, str] = {}

    def draw(self, what: str, values: Sequence[Value]) -> Value:
        """One of the values, each equally likely, for the quantity that `what` names."""
        digest = hashlib.sha256(f"{self.name}/{what}".encode()).digest()
        return random.Random(digest).choice(values)

    def check(self, question: str, answer: float | str | None, found: float, within: float = 0.0) -> None:
        """Print the verdict on an answer, and keep it: "holds" if it is `found`, give or take the share `within`."""
        number = _number(answer)
        if number is None:
            verdict, hint = "no answer yet", "" if answer in (None, "") else f' ("{answer}" is not a number; write one)'
        elif abs(number - found) <= within * abs(found) + 1e-9:
            verdict, hint = "holds", f" (found {found:.4g})"
        else:
            verdict, hint = "differs", f" ({number:g} is too {'small' if number < found else 'large'})"
        self.verdicts[question] = verdict
        print(f"{question}: {verdict}{hint}")

    def total(self) -> None:
        """Print how many answers hold."""
        held = sum(verdict == "holds" for verdict in self.verdicts.values())
        print(f"{self.name}: {held} of {len(self.verdicts)} answers hold")


def _number(answer: float | str | None) -> float | None:
    """The answer, also typed as text such as "3" or "41.5 ms"; None if it is no number."""
    if isinstance(answer, str):
        found = re.match(r"\s*[+-]?\d+([.,]\d+)?", answer)
        return float(found[0].replace(",", ".")) if found else None
    return None if answer is None or math.isnan(answer) else float(answer)


def download(rate_mbit: float, rtt_ms: float, queue: str, size_bytes: int, iw: int = 10) -> Scenario:
    """One download over a link, RTT and rate as given, by Linux's TCP with this initial window (segments)."""
    text = DOWNLOAD.format(rate_mbit=rate_mbit, one_way_ms=rtt_ms / 2, queue=queue, size_bytes=size_bytes)
    return Scenario.from_toml(text).replace("tcp.initial_window", iw)


def simulated_s(scenario: Scenario) -> float:
    """The completion time of the scenario's download, simulated, in s."""
    return float(firstflight.run(scenario, replicates=1).transfers.collect()["completion_time_s"].item())


def picture(scenario: Scenario) -> str:
    """The scenario's download as a picture of sequence numbers, windows and queue, SVG."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "trace.svg")
        firstflight.trace(scenario).plot(path)
        return path.read_text(encoding="utf-8")


def kernel_s(scenario: Scenario, repeats: int = 3) -> float:
    """The same with nginx and curl over the kernel that runs here, the median of `repeats` downloads, in s. NaN, with
    the reason, where this machine makes no testbed.
    """
    try:
        run = firstflight.run(scenario, engine="emulate", replicates=repeats)
    except MachineError as error:
        print(f"no kernel here: {error}")
        return math.nan
    return float(run.transfers.collect()["completion_time_s"].median())
