"""The plans that scenarios become, against the native module's input: neither knows a key that the other lacks."""

import copy
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from firstflight import _native
from firstflight.scenario import Scenario
from firstflight.scenario.tcp import examples

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
SHIPPED = [
    path
    for folder in (EXAMPLES, REPOSITORY / "python" / "firstflight" / "studies")
    for path in sorted(folder.rglob("*.toml"))
    if "application" in tomllib.loads(path.read_text())
]
# Keys that no shipped scenario sets.
MORE = (
    ("browsing.toml", "application.web.frame", "8kB"),
    ("transfer-20-segments.toml", "network.links[0].burst", "15kB"),
    ("transfer-20-segments.toml", "network.links[0].gso", True),
    ("street.toml", "network.group.home.link.queue", "50ms"),
    ("handshake.toml", "application.file_transfer.tls", {"chain": "4kB"}),
    ("handshake.toml", "application.file_transfer.tls", {"flights": [["client", "9B"]], "record_size": "1kB"}),
    (
        "transfer-20-segments.toml",
        "application.download.size",
        {"distribution": "empirical", "points": [[0.0, 1000.0], [1.0, 20000.0]], "minimum": "2kB", "maximum": "10kB"},
    ),
)
# The native module's answer to a correct plan: none of its replicates is simulated.
TAKEN = "there are no replicates to simulate"
# serde accepts keys after the tag of a variant without parameters; Python refuses it when a scenario is read.
TAGS = {"policy", "algorithm", "scheme"}
Steps = tuple[str | int, ...]


def refusal(plan: dict[str, Any]) -> str | None:
    """The native module's message for a plan that it refuses."""
    try:
        _native.simulate(json.dumps(plan), 1, 0, 0)
    except ValueError as error:
        return None if TAKEN in str(error) else str(error)
    raise AssertionError("no replicates were simulated")


def tables(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, dict[str, Any]]]:
    if isinstance(value, dict):
        yield steps, value
        for name, inner in value.items():
            yield from tables(inner, (*steps, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from tables(inner, (*steps, place))


def changed(plan: dict[str, Any], steps: Steps) -> tuple[dict[str, Any], dict[str, Any]]:
    """A copy of the plan, and the table in it at the end of these steps."""
    copied = copy.deepcopy(plan)
    table: Any = copied
    for step in steps:
        table = table[step]
    return copied, table


@cache
def kinds() -> dict[tuple[str, ...], tuple[dict[str, Any], Steps]]:
    """One table of each kind in the plans: by the names of the steps to it, its variant and its keys."""
    found: dict[tuple[str, ...], tuple[dict[str, Any], Steps]] = {}
    varied = [Scenario.load(EXAMPLES / file).replace(key, value) for file, key, value in MORE]
    for plan in (scenario.to_plan() for scenario in (*map(Scenario.load, SHIPPED), *varied)):
        assert refusal(plan) is None
        for steps, table in tables(plan):
            named = [step for step in steps if isinstance(step, str)]
            variant = [str(table[tag]) for tag in ("kind", "distribution", *sorted(TAGS)) if tag in table]
            found.setdefault((*named, *variant, *table), (plan, steps))
    return found


def test_the_native_module_refuses_a_key_that_it_does_not_know_in_every_table() -> None:
    taken = []
    for plan, steps in kinds().values():
        copied, table = changed(plan, steps)
        only_a_tag = len(table) == 1 and next(iter(table)) in TAGS
        table["nosuch"] = 1
        if not only_a_tag and refusal(copied) is None:
            taken.append(steps)
    assert taken == []


def test_python_writes_every_key_that_the_native_module_reads() -> None:
    """The refusal of a key lists those that are known."""
    written: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for plan, steps in kinds().values():
        copied, table = changed(plan, steps)
        keys = set(table)
        table["nosuch"] = 1
        listed = re.search(r"unknown field `nosuch`, expected (.*) at line", refusal(copied) or "")
        if listed is not None:
            written[tuple(re.findall(r"`(\w+)`", listed[1]))] |= keys
    assert len(written) > 40
    assert {known: set(known) - keys for known, keys in written.items() if set(known) - keys} == {}


def test_the_native_module_misses_each_field_of_a_profile() -> None:
    optional = []
    profiles = [kind for kind in kinds().values() if kind[1][-1:] in (("client_tcp",), ("server_tcp",))]
    for plan, steps in profiles:
        for key in changed(plan, steps)[1]:
            copied, table = changed(plan, steps)
            del table[key]
            # A value that may be none is none where it is missing.
            if None not in examples()[key] and refusal(copied) is None:
                optional.append(key)
    assert len(profiles) > 1
    assert optional == []
