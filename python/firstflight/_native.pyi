"""Types of the compiled module (crates/python)."""

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

def simulate(plan: str, seed: int, first_replicate: int, replicates: int, capture: bool = False) -> Simulated:
    """Simulate replicates `first_replicate` and on of a plan (JSON, `Scenario.to_plan`).

    Lets other threads run meanwhile. Raises ValueError, one sentence, for a plan that cannot be run.
    """

def scheduler_cost(sources: int, operations: int) -> float:
    """Nanoseconds for taking the earliest event and scheduling the next of its source, among `sources` pending."""
