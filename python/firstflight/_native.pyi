"""Types of the compiled module (crates/python)."""

from os import PathLike
from typing import TypedDict

class Names(TypedDict):
    """What the indices in the tables stand for."""

    links: list[str]
    applications: list[str]

class Simulated(TypedDict):
    """Tables as {column: (NumPy dtype, little-endian bytes)}; what was counted."""

    names: Names
    tables: dict[str, dict[str, tuple[str, bytes]]]
    counts: dict[str, int]

def version() -> str:
    """Version of the native code."""

def profiles() -> str:
    """The TCP profiles with all their fields, as JSON: {name: {field: value}}."""

def choices() -> str:
    """The values that the fields of a profile with a choice can have, as JSON: {path: [value]}.

    A value is a word, or a table whose first key names the variant and whose others are parameters at their defaults;
    0 stands for a number without a default.
    """

def simulate(plan: str, seed: int, first_replicate: int, replicates: int, capture: bool = False) -> Simulated:
    """Simulate replicates `first_replicate` and on of a plan (JSON, `Scenario.to_plan`).

    Lets other threads run meanwhile. Raises ValueError, one sentence, for a plan that cannot be run.
    """

def write_packets(
    plan: str,
    seed: int,
    replicate: int,
    path: str | PathLike[str],
    comment: str,
    at: str = "client",
    link: str | None = None,
) -> int:
    """Simulate a replicate and write the packets that pass a place; returns how many.

    `at` is "client" or "server": the host of that end of the first application's first connection. With `link`, the
    place is the far end of that link. A path that ends in .pcap makes a pcap file, any other pcapng; it appears
    complete or not at all. Raises ValueError for a plan that cannot be run, a link that is not there or a segment too
    large for a packet, OSError where the file cannot be written: one sentence each.
    """

def run_script(text: str, tolerance_ns: int) -> str:
    """Run a packet script in virtual time.

    The report is JSON: verdict (pass, differs, unsupported, error), reason, line, details, notes, events, deviation_ns.
    """

def scheduler_cost(sources: int, operations: int) -> float:
    """Nanoseconds for taking the earliest event and scheduling the next of its source, among `sources` pending."""
