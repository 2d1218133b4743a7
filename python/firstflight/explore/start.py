"""Initial data of the explorer's page, written by its build: `python -m firstflight.explore.start FILE.toml`."""

import base64
import json
import sys
import tomllib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from firstflight import populations
from firstflight.scenario import Scenario, tcp
from firstflight.scenario.parts import QUEUES
from firstflight.scenario.tls import Tls
from firstflight.scenario.units import Packets

HOMES = 400
"""Real paths in the page, of 2,426: 12 kB."""
CHAINS = ("ecdsa", "ml-dsa-44", "ml-dsa-65", "ml-dsa-87", "merkle-tree")
"""Chains of the knob, which has "none", too."""
NEIGHBORS = {
    "short flow": 'kind = "file_transfer"\nsize = "30kB"\ncount = 1',
    "call": 'kind = "voice"\nlength = "2s"',
    "download": 'kind = "file_transfer"\nsize = "1MB"\ncount = 1',
}
"""Second flows that share the path, by the choice of the knob: keys of an application, as TOML."""
LEAST_QUEUE_BYTES = 10 * 1500
"""The population's `min_buffer`."""
# A limit that the page overwrites; the other parameters of each discipline are its defaults.
_LIMIT = Packets("100p")


def transfer(scenario: Scenario, seed: int | None = None, name: str | None = None) -> dict[str, Any]:
    """The page's first simulation: a plan, its seed and its name. RequestError for a population."""
    scenario.over_tcp("the explorer").one_network("The explorer")
    return {
        "name": scenario.name if name is None else name,
        "seed": 1 if seed is None else seed,
        "plan": scenario.to_plan(),
        "toml": scenario.to_toml(),
    }


def start(opening: dict[str, Any]) -> dict[str, Any]:
    """A `transfer`, and the choices of the knobs: profiles, start-up schemes, controllers, queues, handshakes by chain;
    neighbors; real paths.
    """
    return {
        **opening,
        "profiles": tcp.profiles(),
        "startup": tcp.choices()["startup"],
        "congestion_control": tcp.choices()["congestion_control"],
        "chains": {name: Tls(chain=name).plan() for name in CHAINS},
        "queues": [queue.model_validate({"limit": _LIMIT}).plan() for queue in QUEUES.values()],
        "neighbors": {name: {"plan": _application(keys), "toml": keys} for name, keys in NEIGHBORS.items()},
        "homes": homes(),
    }


def _application(keys: str) -> dict[str, Any]:
    """The plan of an application that a scenario in TOML has."""
    network = {"topology": "chain", "links": {"rate": "1Gbit", "delay": "1ms", "queue": "100p"}}
    rest = {"name": "neighbor", "duration": "10s", "tcp": {"profile": "linux"}, "network": network}
    scenario = Scenario.from_dict({**rest, "application": [tomllib.loads(keys)]})
    application: dict[str, Any] = scenario.to_plan()["applications"][0]
    return application


def homes() -> list[list[float]]:
    """`HOMES` of the population uk-2023, at even steps of its weights: RTT in ms, rate in bit/s, queue in kB, loss in
    percent, to three digits.
    """
    columns = populations.find("uk-2023")["columns"]
    share = np.cumsum(columns["weight"]) / np.sum(columns["weight"])
    at = np.searchsorted(share, (np.arange(HOMES) + 0.5) / HOMES)
    rtt_s, down_bps, buffer_s, loss = (np.asarray(columns[of])[at] for of in ("rtt_s", "down_bps", "buffer_s", "loss"))
    queue_bytes = np.maximum(buffer_s * down_bps / 8, LEAST_QUEUE_BYTES)
    table = np.column_stack([1e3 * rtt_s, down_bps, queue_bytes / 1e3, 100 * loss])
    return [[float(f"{value:.3g}") for value in row] for row in table]


def fragment(opening: dict[str, Any]) -> str:
    """The part of the page's address that opens any explorer with this `transfer`: some 2 kB."""
    packed = zlib.compress(json.dumps(opening, separators=(",", ":")).encode(), 9)
    return "plan=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


if __name__ == "__main__":
    json.dump(start(transfer(Scenario.load(Path(sys.argv[1])))), sys.stdout)
