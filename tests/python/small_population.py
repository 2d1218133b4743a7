"""Populations small enough to simulate in a moment, spelled as a scenario file would."""

import copy
from typing import Any

from firstflight.scenario import Scenario

MARGINALS: dict[str, Any] = {
    "users": 40,
    "paths": "marginals",
    "rtt": {"law": "lognormal", "median": "70ms", "sigma": 0.7, "minimum": "2ms"},
    "down": {"law": "lognormal", "median": "2Mbit", "sigma": 1.0, "minimum": "56kbit"},
    "up": {"law": "lognormal", "median": "500kbit", "sigma": 0.7, "minimum": "33kbit"},
    "buffer": "200ms",
    "dependence": {"rtt_down": -0.3},
}
SEARCH: dict[str, Any] = {"name": "search", "kind": "file_transfer", "size": "20kB", "count": 1}


def scenario(*applications: dict[str, Any], initial_window: int = 10, **population: Any) -> Scenario:
    """Users of MARGINALS with keys replaced (None: left out), who run `applications` (none given: SEARCH)."""
    table = {key: value for key, value in (MARGINALS | population).items() if value is not None}
    return whole(table, *applications, initial_window=initial_window)


def whole(population: dict[str, Any], *applications: dict[str, Any], initial_window: int = 10, **kw: Any) -> Scenario:
    """A scenario of this `[population]` table; `directory` says where its files are."""
    document = {
        "name": "users",
        "duration": "60s",
        "tcp": {"profile": "linux", "initial_window": initial_window},
        "population": population,
        "application": list(applications or (SEARCH,)),
    }
    return Scenario.from_dict(copy.deepcopy(document), **kw)
