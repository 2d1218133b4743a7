"""What the explorer's page starts from, written when it is built: `python -m firstflight.explore.start FILE.toml`."""

import json
import sys
from pathlib import Path
from typing import Any

from firstflight.scenario import Scenario, tcp
from firstflight.scenario.queues import AnyQueue, Before, Codel, DropTail, FqCodel, Pie, Red
from firstflight.scenario.units import Packets
from firstflight.studies.single import SingleScenario

# A limit that the page overwrites; the other parameters of each discipline are its defaults.
_LIMIT = Packets("100p")


def start(scenario: Scenario, seed: int = SingleScenario.seed) -> dict[str, Any]:
    """The scenario's plan, and what the knobs can put there: profiles, start-up schemes, controllers and queues.

    RequestError for a population.
    """
    scenario.one_network("The explorer")
    queues: list[AnyQueue] = [kind(limit=_LIMIT) for kind in (DropTail, Red, Codel, FqCodel, Pie)]
    return {
        "name": scenario.name,
        "seed": seed,
        "plan": scenario.to_plan(),
        "profiles": tcp.profiles(),
        "startup": tcp.choices()["startup"],
        "congestion_control": tcp.choices()["congestion_control"],
        "queues": [queue.plan(Before(None, 0)) for queue in queues],
    }


if __name__ == "__main__":
    json.dump(start(Scenario.load(Path(sys.argv[1]))), sys.stdout)
