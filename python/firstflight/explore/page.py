"""The page, built by `make explore`, with a scenario in it."""

import json
from pathlib import Path

from firstflight.errors import MachineError
from firstflight.explore.start import start
from firstflight.scenario import Scenario

PAGE = Path(__file__).with_name("explorer.html")
_BEGIN, _END = '<script type="application/json" id="start">', "</script>"


def page(scenario: Scenario | None = None, seed: int | None = None) -> str:
    """The page as HTML, which opens with the scenario. MachineError if it was not built; RequestError for a scenario
    that has a population.
    """
    try:
        built = PAGE.read_text()
    except FileNotFoundError:
        raise MachineError(
            "the explorer is not built: in a checkout run `make explore`, which needs Node.js 18 or later with npm and "
            "`rustup target add wasm32-unknown-unknown`"
        ) from None
    if scenario is None:
        return built
    before, rest = built.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    opening = start(scenario) if seed is None else start(scenario, seed)
    # In a block of data "<" could end the block.
    return before + _BEGIN + json.dumps(opening).replace("<", "\\u003c") + _END + after
