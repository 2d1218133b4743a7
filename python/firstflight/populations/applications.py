"""Applications by name, for `[[application]] preset = "..."`: the requests of users, as applications.toml has them."""

import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError


@dataclass(frozen=True)
class Preset:
    """An application as in a scenario file, and the sources of its numbers."""

    what: str
    sources: str
    table: dict[str, Any]


_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PRESETS = {name: Preset(**said) for name, said in _SAID.items()}
NAMES = tuple(PRESETS)


def preset(preset: str, /, **keys: Any) -> dict[str, Any]:
    """A new `[[application]]` table of a preset, in which `keys` replace the preset's: `preset("maps", parallel=6)`.

    Its `name` is that of the preset by default. RequestError with the nearest known name.
    """
    if preset not in PRESETS:
        raise RequestError(f'unknown preset "{preset}"; {nearest(preset, NAMES)}')
    return {"name": preset} | deepcopy(PRESETS[preset].table) | keys
