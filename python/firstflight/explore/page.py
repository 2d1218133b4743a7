"""The page, built by `make explore`, with a transfer in it."""

import json
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError
from firstflight.explore.start import start

PAGE = Path(__file__).with_name("explorer.html")
_BEGIN, _END = '<script type="application/json" id="start">', "</script>"


def page(opening: dict[str, Any] | None = None) -> str:
    """The page as HTML, which opens with the `start.transfer`. MachineError if it was not built."""
    try:
        built = PAGE.read_text()
    except FileNotFoundError:
        raise MachineError(
            "the explorer is not built: in a checkout run `make explore`, which needs Node.js 18 or later with npm and "
            "`rustup target add wasm32-unknown-unknown`"
        ) from None
    if opening is None:
        return built
    before, rest = built.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    # In a block of data "<" could end the block.
    return before + _BEGIN + json.dumps(start(opening)).replace("<", "\\u003c") + _END + after
